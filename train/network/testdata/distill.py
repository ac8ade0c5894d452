"""Writes distill.json beside it: losses of a conv6 in float64 that learns from labels and from a teacher, a conv6 with other weights and another
normalisation. Needs: pip install torch

Weights, statistics and images are formulas of integers, so that any program can make them.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

SIZE, BATCH, CLASSES, STEPS, RATE, ALPHA, TEMPERATURE, SMOOTHING = 8, 4, 3, 10, 0.002, 0.7, 3.0, 0.1
MEAN, STD = 0.4, 0.3  # of the teacher
FILTERS = [32, 48, 64, 64, 96, 128]

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


def net(first):
    params = {}
    for k, (name, shape) in enumerate(shapes.items()):
        params[name] = formula(shape, first + k) + (1 if name.startswith("bn") and name.endswith("weight") else 0)
    stats = {f"bn{i}": (formula((f,), first + 100 + i), formula((f,), first + 200 + i) + 1) for i, f in enumerate(FILTERS, 1)}
    return params, stats


def logits(params, stats, x, training):
    for i in range(1, 7):
        x = F.conv2d(x, params[f"conv{i}.weight"], None, stride=2 - (i - 1) % 2, padding=1)
        mean, var = stats[f"bn{i}"]
        x = F.relu(F.batch_norm(x, mean, var, params[f"bn{i}.weight"], params[f"bn{i}.bias"], training, 0.1))
    return F.linear(x.mean((2, 3)), params["fc.weight"], params["fc.bias"])


student, running = net(0)
teacher, known = net(500)
teacher["fc.weight"] *= 20
for p in student.values():
    p.requires_grad_()
opt = torch.optim.SGD(student.values(), lr=RATE, momentum=0.9)
losses, kl = [], torch.nn.KLDivLoss(reduction="batchmean")
for step in range(STEPS):
    i = torch.arange(BATCH * SIZE * SIZE)
    x = ((i * i * 7 + i * 13 + step * 31) % 251 / 255.0).reshape(BATCH, 1, SIZE, SIZE)
    with torch.no_grad():
        told = logits(teacher, known, (x - MEAN) / STD, False)
    y = logits(student, running, x, True)
    hard = F.cross_entropy(y, (torch.arange(BATCH) * 3 + step) % CLASSES, label_smoothing=SMOOTHING)
    soft = kl(F.log_softmax(y / TEMPERATURE, 1), F.softmax(told / TEMPERATURE, 1)) * TEMPERATURE ** 2
    loss = (1 - ALPHA) * hard + ALPHA * soft
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
pathlib.Path(__file__).with_name("distill.json").write_text(json.dumps({
    "about": "Made by distill.py.", "torch": torch.__version__, "size": SIZE, "batch": BATCH, "classes": CLASSES, "rate": RATE, "alpha": ALPHA,
    "temperature": TEMPERATURE, "smoothing": SMOOTHING, "mean": MEAN, "std": STD, "losses": losses}, indent=1) + "\n")
