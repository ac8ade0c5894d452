"""Writes timm.txt, the names of nets of which timm has weights, for TestTimm of package docs, and published.tsv, the figures that
torchvision and timm publish about weights, for TestPublished of package zoo.

Columns of published.tsv: name, parameters, pairs of a multiplication and an addition in 10⁹ (of timm's nets as PyTorch counts them), crop,
shorter side before it, interpolation, mean, standard deviation. They are those of the default weights.

torchvision's GoogLeNet and Inception transform their input: mean and standard deviation are those of the pixels that the
layers take. Its parameters of Inception v3 include the auxiliary head, so those are timm's, whose net lacks it.
"""

import math
import os
from types import SimpleNamespace

import torch
from make import GROUPS, TIMM
from timm import create_model, list_models
from timm.models import get_pretrained_cfg
from torch.utils.flop_counter import FlopCounterMode
from torchvision import models

TRANSFORMING = {"googlenet": models.GoogLeNet, "inception_v3": models.Inception3}


def transformed(net, mean, std):
    """Mean and standard deviation that give the pixels behind net's transform_input."""
    black, white = (net._transform_input(SimpleNamespace(transform_input=True), (torch.full((1, 3), p) - torch.tensor(mean)) / torch.tensor(std))[0]
                    for p in (0.0, 1.0))
    std = 1 / (white - black)
    return [[round(v, 5) for v in x.tolist()] for x in (-black * std, std)]


def torchvision(name):
    w = models.get_model_weights(name).DEFAULT
    t = w.transforms()
    params, mean, std = w.meta["num_params"], t.mean, t.std
    if name in TRANSFORMING:
        mean, std = transformed(TRANSFORMING[name], mean, std)
    if name == "inception_v3":
        params = timm(name)[0]
    return [params, w.meta["_ops"], t.crop_size[0], t.resize_size[0], t.interpolation.value, mean, std]


def timm(name):
    name = name.removeprefix("timm_")  # which tells timm's net from torchvision's
    c = get_pretrained_cfg(name)
    size = c.input_size[1]
    with torch.device("meta"):
        net = create_model(name, num_classes=1000).eval()
    params = sum(p.numel() for p in net.parameters())
    with FlopCounterMode(display=False) as counter:
        net(torch.empty(1, *c.input_size, device="meta"))
    counted = not any(name in getattr(g, "UNCOUNTED", ()) for g in GROUPS)
    resize = max(size, math.floor(size / c.crop_pct))  # timm fills up images that are smaller than the crop, which nets here do not take
    return [params, f"{counter.get_total_flops() / 2e9:.3f}" if counted else "", size, resize, c.interpolation, c.mean, c.std]


def text(x):
    return ",".join(map(text, x)) if isinstance(x, (list, tuple)) else str(x).removesuffix(".0")


HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "timm.txt"), "w") as f:
    f.writelines(name + "\n" for name in list_models() if list_models(name, pretrained=True))
with open(os.path.join(HERE, "published.tsv"), "w") as f:
    for name in sorted(models.list_models(module=models)):
        f.write("\t".join([name] + [text(x) for x in torchvision(name)]) + "\n")
    for name in TIMM:
        f.write("\t".join([name] + [text(x) for x in timm(name)]) + "\n")
