"""Writes operations.json: results of PIL and torchvision on operations.png and operations-l.png, and those images.
An operation is a name with numbers; its result is kept as its size and the SHA-1 of its pixels.
Needs: pip install "pillow<13" torchvision.

    python operations.py [FOLDER]      # where a folder is given, the pixels go there, a raw file each
"""
import hashlib
import json
import pathlib
import sys

import numpy as np
import PIL
import torchvision
from PIL import Image, ImageEnhance, ImageOps
from torchvision.transforms import InterpolationMode as I
from torchvision.transforms import functional as F

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(7)
W, H = 61, 47
y, x = np.mgrid[0:H, 0:W].astype(float)
a = np.stack([127 + 120 * np.sin(x / 5), 127 + 120 * np.cos(y / 4 + x / 9), 255 * (x + y) / (W + H - 2)], -1)
a[(x > W * 0.6) & (y < H * 0.4)] = (250, 20, 40)
a[(x < 9) & (y > 30)] = (90, 90, 90)
a += rng.normal(0, 12, a.shape) * (x < W * 0.8)[..., None]
a = 20 + a * 0.8
rgb = Image.fromarray(np.clip(a, 0, 255).astype(np.uint8))
gray = rgb.convert("L")
rgb.save(here / "operations.png", optimize=True)
gray.save(here / "operations-l.png", optimize=True)

MODES = {"nearest": I.NEAREST, "bilinear": I.BILINEAR, "bicubic": I.BICUBIC}
PILS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
out = []


def keep(name, args, make):
    for kind, im in (("rgb", rgb), ("l", gray)):
        got = make(im)
        pix = got.tobytes()
        out.append({"op": name, "args": args, "image": kind, "size": list(got.size), "sha1": hashlib.sha1(pix).hexdigest()})
        if len(sys.argv) > 1:
            stem = "-".join([name, kind] + [str(v) for v in args])
            pathlib.Path(sys.argv[1], stem + ".raw").write_bytes(pix)


def fill(im, v):
    return tuple(v) if im.mode == "RGB" else v[0]


for how in MODES:
    for w, h in ((24, 24), (100, 80), (61, 30), (30, 47), (7, 13), (90, 47), (176, 150)):
        keep("resize", [how, w, h], lambda im: im.resize((w, h), PILS[how]))
FILL = [124, 116, 104]
for how in MODES:
    for v in (0.3, -0.17, 0.99, -0.99):
        deg = float(np.degrees(np.arctan(v)))
        kw = dict(interpolation=MODES[how], center=[0, 0])
        keep("shear_x", [how, v], lambda im: F.affine(im, angle=0.0, translate=[0, 0], scale=1.0, shear=[deg, 0.0], fill=None, **kw))
        keep("shear_y", [how, v], lambda im: F.affine(im, angle=0.0, translate=[0, 0], scale=1.0, shear=[0.0, deg], fill=None, **kw))
    for v in (5, -13, 60):
        kw = dict(angle=0.0, scale=1.0, shear=[0.0, 0.0], interpolation=MODES[how])
        keep("translate_x", [how, v], lambda im: F.affine(im, translate=[v, 0], fill=None, **kw))
        keep("translate_y", [how, v], lambda im: F.affine(im, translate=[0, v], fill=None, **kw))
    for v in (30.0, -7.5, 135.0, 0.0, 90.0, 180.0, -20.7):
        keep("rotate", [how, v], lambda im: F.rotate(im, v, interpolation=MODES[how]))
    # timm's: PIL's transform with a colour outside
    for v in (0.21, -0.3):
        keep("pil_shear_x", [how, v], lambda im: im.transform(im.size, Image.AFFINE, (1, v, 0, 0, 1, 0), resample=PILS[how], fillcolor=fill(im, FILL)))
        keep("pil_shear_y", [how, v], lambda im: im.transform(im.size, Image.AFFINE, (1, 0, 0, v, 1, 0), resample=PILS[how], fillcolor=fill(im, FILL)))
    for v in (0.45, -0.123):
        keep("pil_translate_x", [how, v], lambda im: im.transform(im.size, Image.AFFINE, (1, 0, v * im.size[0], 0, 1, 0), resample=PILS[how], fillcolor=fill(im, FILL)))
        keep("pil_translate_y", [how, v], lambda im: im.transform(im.size, Image.AFFINE, (1, 0, 0, 0, 1, v * im.size[1]), resample=PILS[how], fillcolor=fill(im, FILL)))
    for v in (21.0, -8.4):
        keep("pil_rotate", [how, v], lambda im: im.rotate(v, resample=PILS[how], fillcolor=fill(im, FILL)))
for v in (0.0, 0.1, 0.55, 1.0, 1.45, 1.9, 1.99):
    keep("brightness", [v], lambda im: F.adjust_brightness(im, v))
    keep("color", [v], lambda im: F.adjust_saturation(im, v))
    keep("contrast", [v], lambda im: F.adjust_contrast(im, v))
    keep("sharpness", [v], lambda im: F.adjust_sharpness(im, v))
for v in (1, 2, 4, 6, 8):
    keep("posterize", [v], lambda im: F.posterize(im, v))
for v in (0.0, 27.3, 128.0, 255.0, 256.0):
    keep("solarize", [v], lambda im: ImageOps.solarize(im, v))
for v in (0, 33, 110):
    lut = [min(255, i + v) if i < 128 else i for i in range(256)]
    keep("solarize_add", [v], lambda im: im.point(lut * 3 if im.mode == "RGB" else lut))
keep("autocontrast", [], F.autocontrast)
keep("equalize", [], F.equalize)
keep("invert", [], F.invert)
for v in (-0.5, -0.13, 0.0, 0.08, 0.31, 0.5):
    keep("hue", [v], lambda im: F.adjust_hue(im, v))
(here / "operations.json").write_text(json.dumps({"pillow": PIL.__version__, "torchvision": torchvision.__version__, "cases": out}, separators=(",", ":")).replace('{"op"', '\n{"op"') + "\n")
