"use strict";
const tip = document.getElementById("tip");
const show = (text, x, y) => {
  tip.textContent = text;
  tip.style.visibility = "visible";
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
  tip.style.top = (y + 18 + box.height < innerHeight ? y + 18 : Math.max(4, y - box.height - 10)) + "px";
};
for (const figure of document.querySelectorAll("figure.hover")) {
  const svg = figure.querySelector("svg"), cross = svg.querySelector(".cross");
  const ring = svg.querySelector(".ring"); // around the point in hand
  const data = JSON.parse(figure.querySelector("script").textContent);
  let at = -1;
  const hide = () => {
    tip.style.visibility = "hidden";
    if (cross) cross.style.visibility = "hidden";
    if (ring) ring.setAttribute("d", "");
  };
  const point = (i, y) => { // of a curve
    at = Math.max(0, Math.min(data.x.length - 1, i));
    cross.setAttribute("x1", data.at[at]);
    cross.setAttribute("x2", data.at[at]);
    cross.style.visibility = "visible";
    const lines = data.lines.filter(l => l.v[at]).map(l => l.name + ": " + l.v[at]);
    const p = new DOMPoint(data.at[at], 40).matrixTransform(svg.getScreenCTM());
    show(["epoch " + data.x[at], ...lines].join("\n"), p.x, y ?? p.y);
  };
  svg.addEventListener("pointermove", e => {
    const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (data.points) {
      const far = q => Math.hypot(q[0] - p.x, q[1] - p.y);
      const near = data.points.length ? data.points.reduce((a, b) => far(b) < far(a) ? b : a) : null;
      if (!near || far(near) > 20) { hide(); return; }
      ring.setAttribute("d", "M" + near[0] + " " + near[1] + "h0");
      show(near[2], e.clientX, e.clientY);
      return;
    }
    if (data.at) {
      let near = 0;
      data.at.forEach((x, i) => { if (Math.abs(x - p.x) < Math.abs(data.at[near] - p.x)) near = i; });
      point(near, e.clientY);
      return;
    }
    const col = Math.floor((p.x - data.left) / data.width), row = Math.floor((p.y - data.top) / data.height);
    const text = data.cells[row + "," + col];
    text ? show(data.rows[row] + ", " + data.cols[col] + ": " + text, e.clientX, e.clientY) : hide();
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  if (data.at) svg.addEventListener("keydown", e => {
    if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
      e.preventDefault();
      point(e.key === "ArrowRight" ? at + 1 : at - 1);
    }
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
