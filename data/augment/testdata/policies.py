"""Writes policies.json: results of the operations of torchvision's and timm's automatic augmentation on
../../imaging/testdata/operations.png. The SHA-1 of the pixels of each is kept.
Needs: pip install "pillow<13" torchvision timm.

    python policies.py
"""
import hashlib
import json
import pathlib

import torch
from PIL import Image
from timm.data import auto_augment as timm
from torchvision import transforms as T
from torchvision.transforms import InterpolationMode as I
from torchvision.transforms import autoaugment as A

here = pathlib.Path(__file__).parent
rgb = Image.open(here / "../../imaging/testdata/operations.png").convert("RGB")
sha = lambda im: hashlib.sha1(im.tobytes()).hexdigest()
size = (rgb.size[1], rgb.size[0])
out = {"wide": [], "levels": [], "auto": [], "timm": []}
for kind, space, n, picks in (
    ("wide", T.TrivialAugmentWide()._augmentation_space(31), 31, (0, 1, 11, 15, 16, 29, 30)),
    ("levels", T.RandAugment()._augmentation_space(31, size), 31, (0, 9, 15, 22, 30)),
    ("auto", T.AutoAugment()._augmentation_space(10, size), 10, (0, 3, 4, 5, 9)),
):
    for name, (magnitudes, signed) in space.items():
        for how in (I.NEAREST, I.BILINEAR):
            for i in picks:
                for negative in (False, True):
                    m = float(magnitudes[i].item()) if magnitudes.ndim > 0 else 0.0
                    if signed and negative:
                        m = -m
                    im = A._apply_op(rgb, name, m, interpolation=how, fill=None)
                    out[kind].append([name, how.value, i, negative, sha(im)])
timm._randomly_negate = lambda v: v * sign
for name in timm._RAND_INCREASING_TRANSFORMS:
    for level in (0.0, 3.3, 7.0, 10.0):
        for sign in (1, -1):
            for how in (Image.BILINEAR, Image.BICUBIC):
                op = timm.AugmentOp(name, prob=1.0, magnitude=level, hparams={"img_mean": (124, 116, 104), "interpolation": how})
                out["timm"].append([name, int(how), level, sign < 0, sha(op(rgb.copy()))])
text = json.dumps(out, separators=(",", ":")).replace('[["', '[\n["').replace(',["', ',\n["')
(here / "policies.json").write_text(text + "\n")
