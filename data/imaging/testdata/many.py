"""500 JPEG files over subsampling, progressive, optimised tables, restart intervals, quality and odd sizes, and PIL's
pixels for them: python3 many.py FOLDER writes them to FOLDER and their names with the SHA-256 of the pixels as RGB to
many.txt; every twentieth goes to many/ too. ONLINERNA_JPEGS=FOLDER go test ./data/imaging -run Many compares all.
Needs Pillow (13.0.0 wrote many.txt) and numpy."""
import hashlib
import io
import pathlib
import sys

import numpy as np
from PIL import Image, ImageFilter

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
here = pathlib.Path(__file__).parent
(here / "many").mkdir(exist_ok=True)
rng = np.random.default_rng(7)


def picture(w, h):
    """Blurred noise, edges and a gradient, by chance."""
    a = rng.normal(128, 90, (h, w, 3))
    im = Image.fromarray(np.clip(a, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(float(rng.choice([0, 0.7, 2, 6]))))
    y, x = np.mgrid[0:h, 0:w]
    b = np.asarray(im).astype(float) + 80 * np.stack([np.sin(x / 9), np.cos(y / 7), np.sin((x + y) / 15)], -1)
    if rng.random() < 0.5:
        b[(x > w * rng.random()) & (y < h * rng.random())] = rng.integers(0, 256, 3)
    return Image.fromarray(np.clip(b, 0, 255).astype(np.uint8))


lines = []
for i in range(500):
    w, h = (int(v) for v in rng.integers(1, 70 if i % 20 == 0 else 220, 2))
    gray = i % 11 == 5
    options = {
        "quality": int(rng.choice([1, 5, 20, 50, 75, 90, 95, 100])), "progressive": bool(i % 4 == 3),
        "optimize": bool(rng.random() < 0.4),
    }
    if not gray:
        options["subsampling"] = int(rng.integers(0, 3))
    if i % 5 == 2:
        options["restart_marker_blocks" if i % 2 else "restart_marker_rows"] = int(rng.integers(1, 6))
    im = picture(w, h)
    b = io.BytesIO()
    (im.convert("L") if gray else im).save(b, "JPEG", **options)
    name = f"{i:03}.jpg"
    (out / name).write_bytes(b.getvalue())
    if i % 20 == 0:
        (here / "many" / name).write_bytes(b.getvalue())
    pixels = Image.open(io.BytesIO(b.getvalue())).convert("RGB").tobytes()
    lines.append(f"{name} {hashlib.sha256(pixels).hexdigest()[:32]}\n")
(here / "many.txt").write_text("".join(lines))
