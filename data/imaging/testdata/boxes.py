"""PIL's results for boxes of JPEG files, resized: for files of this folder and of many/, crop() and resize(), and
draft() at 1/2, 1/4 and 1/8 with resize() of the box. python3 boxes.py writes boxes.txt: file, divisor, size, SHA-256 of
the pixels of the draft, box in pixels of the whole image, size it is resized to, SHA-256 of that.
Needs Pillow (13.0.0 wrote it)."""
import hashlib
import pathlib
import random

from PIL import Image

random.seed(3)
here = pathlib.Path(__file__).parent
lines = []


def digest(im):
    return hashlib.sha256(im.tobytes()).hexdigest()[:32]


for path in sorted(here.glob("*.jpg")) + sorted((here / "many").glob("*.jpg")):
    name = path.relative_to(here)
    whole = Image.open(path)
    w, h = whole.size
    if whole.mode not in ("RGB", "L") or min(w, h) < 16:
        continue
    for by in 1, 1, 1, 2, 4, 8:
        im = Image.open(path)
        im.draft(None, (w // by, h // by))
        im = im.convert("RGB")
        if im.size != (-(-w // by), -(-h // by)):
            continue
        x0, y0 = random.randrange(w // 4), random.randrange(h // 4)
        x1, y1 = random.randrange(w * 3 // 4, w) + 1, random.randrange(h * 3 // 4, h) + 1
        tw, th = random.randrange((x1 - x0) // (2 * by), (x1 - x0) // by) + 1, random.randrange((y1 - y0) // (2 * by), (y1 - y0) // by) + 1
        if by == 1:
            tw, th = random.randrange(1, 2 * w), random.randrange(1, 2 * h)
            small = im.crop((x0, y0, x1, y1)).resize((tw, th), Image.BILINEAR)
        else:
            small = im.resize((tw, th), Image.BILINEAR, box=(x0 / by, y0 / by, x1 / by, y1 / by))
        lines.append(f"{name} {by} {im.width} {im.height} {digest(im)} {x0} {y0} {x1} {y1} {tw} {th} {digest(small)}\n")
(here / "boxes.txt").write_text("".join(lines))
