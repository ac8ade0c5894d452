"""Writes freeze.json beside it: losses of a conv6 in float64, of which the first layers and their BatchNorm are frozen, with a learning rate of
the head's own and layer decay. Needs: pip install torch

Weights, statistics and images are formulas of integers, so that any program can make them.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

SIZE, BATCH, CLASSES, STEPS, RATE, HEAD, LAYER, DECAY = 8, 4, 3, 6, 0.05, 0.2, 0.5, 1e-3
FILTERS = [32, 48, 64, 64, 96, 128]
FROZEN = ["conv1", "bn1", "conv2", "bn2", "bn4"]

torch.set_default_dtype(torch.float64)
shapes, before = {}, 1
for i, f in enumerate(FILTERS, 1):
    shapes[f"conv{i}.weight"] = (f, before, 3, 3)
    shapes[f"bn{i}.weight"] = shapes[f"bn{i}.bias"] = (f,)
    before = f
shapes["fc.weight"], shapes["fc.bias"] = (CLASSES, before), (CLASSES,)


def formula(shape, k):
    i = torch.arange(torch.Size(shape).numel())
    return (((i * 37 + k * 11) % 127 - 63) / 512.0).reshape(shape)


params = {}
for k, (name, shape) in enumerate(shapes.items()):
    params[name] = (formula(shape, k) + (1 if name.startswith("bn") and name.endswith("weight") else 0)).requires_grad_()
stats = {f"bn{i}": (formula((f,), 100 + i), formula((f,), 200 + i) + 1) for i, f in enumerate(FILTERS, 1)}


def loss(step):
    i = torch.arange(BATCH * SIZE * SIZE)
    x = ((i * i * 7 + i * 13 + step * 31) % 251 / 255.0).reshape(BATCH, 1, SIZE, SIZE)
    for i in range(1, 7):
        x = F.conv2d(x, params[f"conv{i}.weight"], None, stride=2 - (i - 1) % 2, padding=1)
        mean, var = stats[f"bn{i}"]
        x = F.relu(F.batch_norm(x, mean, var, params[f"bn{i}.weight"], params[f"bn{i}.bias"], f"bn{i}" not in FROZEN, 0.1))
    return F.cross_entropy(F.linear(x.mean((2, 3)), params["fc.weight"], params["fc.bias"]), (torch.arange(BATCH) * 3 + step) % CLASSES)


groups = []
for name, p in params.items():
    layer = name.split(".")[0]
    depth = 6 if layer == "fc" else int(layer[-1]) - 1
    if layer not in FROZEN:
        groups.append(dict(params=[p], scale=HEAD / RATE if layer == "fc" else LAYER ** (6 - depth)))
opt = torch.optim.SGD(groups, lr=1, momentum=0.9, weight_decay=DECAY)
losses = []
for step in range(STEPS):
    for g in opt.param_groups:
        g["lr"] = g["scale"] * RATE / (1 + step)
    opt.zero_grad()
    value = loss(step)
    losses.append(value.item())
    value.backward()
    opt.step()
sums = {name: p.sum().item() for name, p in params.items()}
sums.update({f"{name}.running": m.sum().item() + v.sum().item() for name, (m, v) in stats.items()})
pathlib.Path(__file__).with_name("freeze.json").write_text(json.dumps({
    "about": "Made by freeze.py.", "torch": torch.__version__, "size": SIZE, "batch": BATCH, "classes": CLASSES, "rate": RATE, "head": HEAD,
    "layer": LAYER, "decay": DECAY, "freeze": [n + ".*" for n in FROZEN], "losses": losses, "sums": sums}, indent=1) + "\n")
