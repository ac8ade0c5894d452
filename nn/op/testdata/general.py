#!/usr/bin/env python3
"""Writes PyTorch's results and gradients, in float64, for ops of any rank: general.json beside this file."""
import json, os
import torch
import torch.nn.functional as F

torch.manual_seed(7)
cases = []


def case(name, f, *shapes, index=None, targets=None, **attributes):
    x = [torch.randn(s, dtype=torch.float64).round(decimals=6).requires_grad_() for s in shapes]
    y = f(*x) if targets is None else f(*x, targets)
    dy = torch.randn(y.shape, dtype=torch.float64).round(decimals=6)
    grads = torch.autograd.grad(y, x, dy)
    tensor = lambda t: dict(shape=list(t.shape), data=t.flatten().tolist())
    c = dict(op=name, attributes=attributes, x=[tensor(t) for t in x + ([] if targets is None else [targets])], y=tensor(y), dy=tensor(dy),
             grads=[tensor(g) for g in grads])
    if index is not None:
        c["index"] = index
    cases.append(c)


def tokens(x):
    return x.flatten(2).transpose(1, 2)


for trans in ((False, False), (True, False), (False, True), (True, True)):
    turn = lambda t, yes: t.transpose(-1, -2) if yes else t
    for batch in ((), (2,), (2, 3)):
        a, b = (3, 4) if not trans[0] else (4, 3), (4, 5) if not trans[1] else (5, 4)
        case("matmul", lambda x, y: turn(x, trans[0]) @ turn(y, trans[1]), batch + a, batch + b, TransA=trans[0], TransB=trans[1])
case("permute", lambda x: x.permute(2, 0, 3, 1), (2, 3, 4, 5), Axes=[2, 0, 3, 1])
case("permute", lambda x: x.permute(2, 0, 3, 1, 4), (2, 3, 3, 2, 2), Axes=[2, 0, 3, 1, 4])
case("slice", lambda x: x[1:2, :, 2:4], (2, 3, 5), From=[1, 0, 2], To=[2, 3, 4])
case("pad", lambda x: F.pad(x, (1, 2, 0, 3)), (2, 3, 2), Before=[0, 0, 1], After=[0, 3, 2])
case("concat", lambda *x: torch.cat(x, 1), (2, 3, 2), (2, 1, 2), (2, 4, 2), Axis=1)
case("concat", lambda *x: torch.cat(x, 0), (2, 3), (1, 3), Axis=0)
case("expand", lambda x: x.expand(4, 3, 5, 2), (1, 3, 1, 2), Shape=[4, 3, 5, 2])
case("gather", lambda x: x.index_select(1, torch.tensor([2, 0, 2, 1])), (2, 3, 2), index=[2, 0, 2, 1], Axis=1)
case("gather", lambda x: x.index_select(0, torch.tensor([3, 3, 0])), (4, 2), index=[3, 3, 0], Axis=0)
for axes in ([0], [1, 3], [0, 1, 2, 3], [2]):
    case("reduce", lambda x: x.sum(axes, keepdim=True), (2, 3, 4, 2), By=0, Axes=axes)
    case("reduce", lambda x: x.mean(axes, keepdim=True), (2, 3, 4, 2), By=1, Axes=axes)
    case("reduce", lambda x: x.amax(axes, keepdim=True), (2, 3, 4, 2), By=2, Axes=axes)
for shape in ((3, 6), (2, 3, 5), (2, 2, 2, 4)):
    c = shape[-1]
    case("layer_norm", lambda x, w, b: F.layer_norm(x, (c,), w, b, 1e-6), shape, (c,), (c,), Eps=1e-6)
    case("rms_norm", lambda x, w: F.rms_norm(x, (c,), w, 1e-5), shape, (c,), Eps=1e-5)
    case("softmax", lambda x: x.softmax(-1), shape)
for shape, groups in (((2, 6, 3, 2), 3), ((3, 4), 2), ((2, 4, 5), 1), ((2, 4, 2, 2), 4)):
    case("group_norm", lambda x, w, b: F.group_norm(x, groups, w, b, 1e-5), shape, (shape[1],), (shape[1],), Groups=groups, Eps=1e-5)
case("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=.4), (4, 3, 5), (4, 6, 5), (4, 6, 2), Scale=.4)
case("attention", lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, b.repeat(2, 1, 1), scale=.7),
     (4, 3, 5), (4, 6, 5), (4, 6, 2), (2, 3, 6), Scale=.7)
case("tokens", tokens, (2, 3, 4, 5))
case("planes", lambda x: x.transpose(1, 2).reshape(2, 3, 4, 5), (2, 20, 3), Height=4, Width=5)



def focal(x, t, gamma):
    logs = x.log_softmax(1)
    return -(t * (1 - logs.exp()) ** gamma * logs).sum(1).mean()


def asymmetric(x, t, positive, negative, margin):
    p = x.sigmoid()
    m = (p - margin).clamp(min=0)
    return -(t * (1 - p) ** positive * p.log() + (1 - t) * m ** negative * (1 - m).log()).mean()


for _ in range(2):
    t = torch.rand((4, 5), dtype=torch.float64).round(decimals=6)
    hard = F.one_hot(torch.tensor([0, 4, 2, 2]), 5).double()
    for gamma in (0., .5, 1., 2., 3.5):
        for targets in (t, hard):
            case("focal_loss", lambda x, t: focal(x, t, gamma), (4, 5), targets=targets,
                 Gamma=gamma)
    for positive, negative, margin in ((0., 0., 0.), (0., 4., .05), (1., 2., 0.), (.5, 1.5, .2)):
        for targets in (t, (t > .5).double()):
            case("asymmetric_loss", lambda x, t: asymmetric(x, t, positive, negative, margin), (4, 5), targets=targets,
                 Positive=positive, Negative=negative, Margin=margin)


def heads(qkv, bias=None):
    q, k, v = qkv.reshape(3, 4, 3, 2, 5).permute(2, 0, 3, 1, 4)
    if bias is not None:
        bias = bias.repeat(6 // len(bias), 1, 1).reshape(3, 2, 4, 4)
    return F.scaled_dot_product_attention(q, k, v, bias, scale=.6).transpose(1, 2).reshape(12, 10)


case("self_attention", heads, (12, 30), Tokens=4, Heads=2, Scale=.6)
case("self_attention", heads, (12, 30), (2, 4, 4), Tokens=4, Heads=2, Scale=.6)
case("self_attention", heads, (12, 30), (6, 4, 4), Tokens=4, Heads=2, Scale=.6)
case("roll", lambda x: x.roll((-2, 1), (1, 2)), (2, 5, 3), By=[0, 2, -1])
case("roll", lambda x: x.roll((-3, -3), (1, 2)), (2, 7, 7, 2), By=[0, 3, 3, 0])

for _ in range(2):
    t = torch.randn((4, 5), dtype=torch.float64).round(decimals=6)
    case("regression_loss", F.mse_loss, (4, 5), targets=t, Delta=0.)
    for delta in (.5, 1., 2.):
        case("regression_loss", lambda x, t: F.huber_loss(x, t, delta=delta), (4, 5), targets=t, Delta=delta)



def distill(x, t, temperature):
    return F.kl_div((x / temperature).log_softmax(1), (t / temperature).log_softmax(1), reduction="batchmean",
                    log_target=True) * temperature ** 2


for temperature in (.5, 1., 4., 20.):
    for wide in (1, 30):
        t = (wide * torch.randn((4, 5), dtype=torch.float64)).round(decimals=6)
        case("distill_loss", lambda x, t: distill(x, t, temperature), (4, 5), targets=t, Temperature=temperature)
case("taps", lambda w: w.flatten(2).transpose(1, 2)[None], (4, 3, 2, 5))
case("filters", lambda x: x[0].transpose(1, 2).reshape(4, 3, 2, 5), (1, 4, 10, 3), Height=2, Width=5)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "general.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
