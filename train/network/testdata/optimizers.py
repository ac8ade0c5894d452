"""Writes optimizers.json beside it: losses of a small LeNet in float64 under optimisers of PyTorch and timm. Needs: pip install torch timm

Weights and images are formulas of integers, so that any program can make them.
"""

import json
import pathlib

import timm
import torch
import torch.nn.functional as F
from timm.optim import Lamb, Lars

SIZE, BATCH, CLASSES, STEPS = 12, 5, 4, 10
SHAPES = {
    "conv1.weight": (6, 1, 5, 5), "conv1.bias": (6,), "conv2.weight": (16, 6, 5, 5), "conv2.bias": (16,),
    "fc1.weight": (120, 16), "fc1.bias": (120,), "fc2.weight": (84, 120), "fc2.bias": (84,), "fc3.weight": (CLASSES, 84), "fc3.bias": (CLASSES,),
}


def weights():
    torch.set_default_dtype(torch.float64)
    w = {}
    for k, (name, shape) in enumerate(SHAPES.items()):
        i = torch.arange(torch.Size(shape).numel())
        w[name] = (((i * 37 + k * 11) % 127 - 63) / 256.0).reshape(shape).requires_grad_()
    return w


def batch(step):
    i = torch.arange(BATCH * SIZE * SIZE)
    x = ((i * i * 7 + i * 13 + step * 31) % 251 / 255.0).reshape(BATCH, 1, SIZE, SIZE)
    return x, (torch.arange(BATCH) * 3 + step) % CLASSES


def loss(w, x, labels):
    x = F.max_pool2d(F.relu(F.conv2d(x, w["conv1.weight"], w["conv1.bias"], padding=2)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, w["conv2.weight"], w["conv2.bias"])), 2).flatten(1)
    x = F.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"]))
    x = F.relu(F.linear(x, w["fc2.weight"], w["fc2.bias"]))
    return F.cross_entropy(F.linear(x, w["fc3.weight"], w["fc3.bias"]), labels)


def run(make, decay, rate):
    w = weights()
    groups = [dict(params=[p for n, p in w.items() if p.dim() > 1], weight_decay=decay), dict(params=[p for p in w.values() if p.dim() == 1], weight_decay=0.0)]
    opt = make(groups)
    losses = []
    for step in range(STEPS):
        for g in opt.param_groups:
            g["lr"] = rate / (1 + step)
        opt.zero_grad()
        value = loss(w, *batch(step))
        losses.append(value.item())
        value.backward()
        opt.step()
    return losses


def adapting(groups):
    groups[0]["always_adapt"] = True
    return groups


RUNS = [
    ("sgd", 0.05, 1e-3, lambda g: torch.optim.SGD(g, lr=1, momentum=0.9, nesterov=True)),
    ("adamw", 0.002, 0.05, lambda g: torch.optim.AdamW(g, lr=1, betas=(0.9, 0.999), eps=1e-8)),
    ("lars", 2.0, 1e-3, lambda g: Lars(adapting(g), lr=1, momentum=0.9, trust_coeff=0.002, eps=1e-8)),
    ("lamb", 0.02, 0.01, lambda g: Lamb(adapting(g), lr=1, betas=(0.9, 0.999), eps=1e-6, max_grad_norm=1.0)),
]

out = {"about": "Made by optimizers.py.", "torch": torch.__version__, "timm": timm.__version__,
       "size": SIZE, "batch": BATCH, "classes": CLASSES,
       "runs": [{"optimizer": n, "rate": r, "decay": d, "losses": run(make, d, r)} for n, r, d, make in RUNS]}
pathlib.Path(__file__).with_name("optimizers.json").write_text(json.dumps(out, indent=1) + "\n")
