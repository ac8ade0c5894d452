"""Writes optimizers.json beside it: steps of optimisers in float64. Needs: pip install torch timm schedulefree

Most are PyTorch's or their authors'. LARS and LAMB are written here from their papers' equations, and checked against timm's.
Gradients are given for each step; the parameters are some tensors, of which one does not decay, one starts as zeros, one has
no gradient and one has neither.
"""

import json
import pathlib

import numpy as np
import timm
import torch
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from timm.optim import Lamb, Lars, Lion

LENGTHS = [6, 3, 5, 4, 2, 20]
NO_DECAY, ZERO, NO_GRADIENT, NOTHING = 1, 2, 3, 4
STEPS = 6
RATES = [0.1, 0.1, 0.05, 0.02, 0.3, 0.01]
SCALES = [1, 0.5, 0.25, 1, 2, 1]


def numbers(rng, n):
    return rng.uniform(-1, 1, n).astype(np.float32).astype(np.float64)  # exact in float32


def start(rng):
    w = [numbers(rng, n) for n in LENGTHS]
    w[ZERO][:], w[NOTHING][:] = 0, 0
    g = [[numbers(rng, n) for n in LENGTHS] for _ in range(STEPS)]
    for x in g:
        x[NO_GRADIENT][:], x[NOTHING][:] = 0, 0
    return w, g


def library(make, w, g, clip=0):
    """The trajectory of an optimiser of PyTorch or timm, whose state has the given names."""
    params = [torch.tensor(x) for x in w]
    decays = [p for i, p in enumerate(params) if i != NO_DECAY]
    opt, names = make(decays, [params[NO_DECAY]])
    free = hasattr(opt, "train")
    if free:
        opt.train()
    steps = []
    for grads, rate, scale in zip(g, RATES, SCALES):
        for p, x in zip(params, grads):
            p.grad = torch.tensor(scale * x)
        if clip:
            torch.nn.utils.clip_grad_norm_(params, clip)
        for group in opt.param_groups:
            group["lr"] = rate
        opt.step()
        of = lambda p, k: opt.state[p]["z"] - p if k == "z_minus_y" else opt.state[p][k]
        state = [torch.cat([of(p, k).reshape(-1) for p in params]).tolist() for k in names]
        step = {"w": torch.cat(params).tolist(), "state": state}
        if free:
            working = [p.clone() for p in params]
            opt.eval()
            step["average"] = torch.cat(params).tolist()
            opt.train()
            for p, y in zip(params, working):
                p.copy_(y)
        steps.append(step)
    return steps


def norm(x):
    return np.sqrt(np.sum(x * x))


def lars(o, w, g):
    w, m = [x.copy() for x in w], [np.zeros_like(x) for x in w]
    steps = []
    for grads, rate, scale in zip(g, RATES, SCALES):
        for i, x in enumerate(w):
            d, r, decay = scale * grads[i], 1, 0
            if i != NO_DECAY:
                decay = o["decay"]
                if norm(x) > 0 and norm(d) > 0:
                    r = o["trust-coefficient"] * norm(x) / (norm(d) + decay * norm(x) + o["eps"])
            d = r * (d + decay * x)
            m[i] = o["momentum"] * m[i] + d
            w[i] = x - rate * (d + o["momentum"] * m[i] if o["nesterov"] else m[i])
        steps.append({"w": np.concatenate(w).tolist(), "state": [np.concatenate(m).tolist()]})
    return steps


def lamb(o, w, g):
    w, m, v = [x.copy() for x in w], [np.zeros_like(x) for x in w], [np.zeros_like(x) for x in w]
    b1, b2 = o["beta1"], o["beta2"]
    steps = []
    for t, (grads, rate, scale) in enumerate(zip(g, RATES, SCALES), 1):
        if o["max-grad-norm"] > 0:
            scale = scale / max(1, norm(np.concatenate([scale * x for x in grads])) / o["max-grad-norm"])
        for i, x in enumerate(w):
            d, r, decay = scale * grads[i], 1, 0 if i == NO_DECAY else o["decay"]
            m[i] = b1 * m[i] + (1 - b1) * d
            v[i] = b2 * v[i] + (1 - b2) * d * d
            u = m[i] / (1 - b1**t) / (np.sqrt(v[i] / (1 - b2**t)) + o["eps"]) + decay * x
            if i != NO_DECAY and norm(x) > 0 and norm(u) > 0:
                r = norm(x) / norm(u)
            w[i] = x - rate * r * u
        steps.append({"w": np.concatenate(w).tolist(), "state": [np.concatenate(m).tolist(), np.concatenate(v).tolist()]})
    return steps


def same(a, b):
    for x, y in zip(a, b):
        np.testing.assert_allclose(x["w"], y["w"], rtol=1e-11, atol=1e-14)
        for p, q in zip(x["state"], y["state"]):
            np.testing.assert_allclose(p, q, rtol=1e-11, atol=1e-14)


def groups(decays, rest, decay, **more):
    return [dict(params=decays, weight_decay=decay, **more), dict(params=rest, weight_decay=0.0)]


def of_torch(make, *names):
    """Runs an optimiser of PyTorch's interface, made of groups and options, whose state has the given names."""

    def steps(o, w, g):
        return library(lambda a, b: (make(groups(a, b, o["decay"]), o), names), w, g, o.get("clip", 0))

    return steps


def checked(own, make, *names):
    """Runs own, and holds it to an optimiser of timm's."""

    def steps(o, w, g):
        of = own(o, w, g)
        same(of, library(lambda a, b: (make(groups(a, b, o["decay"], always_adapt=True), o), names), w, g))
        return of

    return steps


def betas(o):
    return o["beta1"], o["beta2"]


MATRICES = {0: (2, 3), 5: (5, 4)}  # of rows and columns; the elements of a column of the second one are neighbours


def matrix(i, x):
    rows, columns = MATRICES[i]
    return x.reshape(columns, rows).T if i == 5 else x.reshape(rows, columns)


def muon(o, w, g):
    """torch.optim.Muon for matrices, whose orthogonal step is made in double, not in bfloat16, and AdamW for the rest."""
    params = [torch.tensor(x) for x in w]
    for i in MATRICES:
        params[i] = matrix(i, params[i]).contiguous()
    groups = lambda list: [dict(params=[params[i] for i in list], weight_decay=0.0 if NO_DECAY in list else o["decay"])]
    rest = [i for i in range(len(params)) if i not in MATRICES and i != NO_DECAY]
    adam = torch.optim.AdamW(groups(rest) + groups([NO_DECAY]), lr=1, betas=betas(o), eps=o["eps"])
    opt = torch.optim.Muon(groups(list(MATRICES)), lr=1, momentum=o["momentum"], adjust_lr_fn="match_rms_adamw")
    to, steps = torch.Tensor.to, []
    torch.Tensor.to = lambda x, *a, **k: x.clone() if k.get("dtype") == torch.bfloat16 else to(x, *a, **k)
    flat = lambda i, x: (x.T if i == 5 else x).reshape(-1)
    for grads, rate, scale in zip(g, RATES, SCALES):
        for i, x in enumerate(grads):
            params[i].grad = matrix(i, torch.tensor(scale * x)) if i in MATRICES else torch.tensor(scale * x)
        before = [p.clone() for p in params]
        for group in opt.param_groups + adam.param_groups:
            group["lr"] = rate
        opt.step()
        adam.step()
        state = [[], []]
        for i, p in enumerate(params):
            if i in MATRICES:  # the step follows from the weights
                u = (before[i] * (1 - rate * o["decay"]) - p) / (rate * 0.2 * max(p.shape) ** 0.5)
                each = opt.state[p]["momentum_buffer"], u
            else:
                each = [adam.state[p][k] for k in MOMENTS]
            for k in range(2):
                state[k] += flat(i, each[k]).tolist()
        steps.append({"w": torch.cat([flat(i, p) for i, p in enumerate(params)]).tolist(), "state": state})
    torch.Tensor.to = to
    return steps


MOMENTS = "exp_avg", "exp_avg_sq"
OPTIMIZERS = {
    "sgd": of_torch(lambda p, o: torch.optim.SGD(p, lr=1, momentum=o["momentum"], nesterov=o["nesterov"]), "momentum_buffer"),
    "adamw": of_torch(lambda p, o: torch.optim.AdamW(p, lr=1, betas=betas(o), eps=o["eps"]), *MOMENTS),
    "adam": of_torch(lambda p, o: torch.optim.Adam(p, lr=1, betas=betas(o), eps=o["eps"]), *MOMENTS),
    "schedule-free-sgd": of_torch(lambda p, o: SGDScheduleFree(p, lr=1, momentum=o["momentum"]), "z_minus_y"),
    "schedule-free-adamw": of_torch(lambda p, o: AdamWScheduleFree(p, lr=1, betas=betas(o), eps=o["eps"]), "z_minus_y", "exp_avg_sq"),
    "muon": muon,
    "rmsprop": of_torch(lambda p, o: torch.optim.RMSprop(p, lr=1, alpha=o["beta2"], eps=o["eps"], momentum=o["momentum"]),
                        "momentum_buffer", "square_avg"),
    "lion": of_torch(lambda p, o: Lion(p, lr=1, betas=betas(o)), "exp_avg"),
    "lars": checked(lars, lambda p, o: Lars(p, lr=1, momentum=o["momentum"], nesterov=o["nesterov"],
                                            trust_coeff=o["trust-coefficient"], eps=o["eps"]), "momentum_buffer"),
    "lamb": checked(lamb, lambda p, o: Lamb(p, lr=1, betas=betas(o), eps=o["eps"], max_grad_norm=o["max-grad-norm"] or None), *MOMENTS),
}


def main():
    w, g = start(np.random.default_rng(14))
    runs = []
    for name, o in [
        ("sgd", dict(momentum=0.9, decay=0.01, nesterov=False)),
        ("sgd", dict(momentum=0.9, decay=0.1, nesterov=True)),
        ("adamw", dict(beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01)),
        ("adamw", dict(beta1=0.7, beta2=0.9, eps=1e-2, decay=0.5)),
        ("sgd", dict(momentum=0.9, decay=0.01, nesterov=False, clip=0.7)),
        ("adamw", dict(beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01, clip=1.0)),
        ("adam", dict(beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01)),
        ("adam", dict(beta1=0.7, beta2=0.9, eps=1e-2, decay=0.5)),
        ("schedule-free-sgd", dict(momentum=0.9, decay=0.01)),
        ("schedule-free-sgd", dict(momentum=0.5, decay=0.5, clip=0.7)),
        ("schedule-free-adamw", dict(beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01)),
        ("schedule-free-adamw", dict(beta1=0.6, beta2=0.9, eps=1e-2, decay=0.5)),
        ("muon", dict(momentum=0.95, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.1)),
        ("muon", dict(momentum=0.5, beta1=0.9, beta2=0.95, eps=1e-2, decay=0)),
        ("rmsprop", dict(momentum=0.9, beta2=0.99, eps=1e-8, decay=0.01)),
        ("rmsprop", dict(momentum=0.5, beta2=0.5, eps=1e-2, decay=0.5, clip=0.7)),
        ("lion", dict(beta1=0.9, beta2=0.99, decay=0.1)),
        ("lion", dict(beta1=0.6, beta2=0.8, decay=0.5, clip=0.7)),
        ("lars", dict(momentum=0.9, decay=1e-4, nesterov=False, **{"trust-coefficient": 1e-3}, eps=1e-8)),
        ("lars", dict(momentum=0.5, decay=0.1, nesterov=True, **{"trust-coefficient": 0.5}, eps=0.01)),
        ("lars", dict(momentum=0.9, decay=0.0, nesterov=False, **{"trust-coefficient": 0.02}, eps=1e-8)),
        ("lamb", dict(beta1=0.9, beta2=0.999, eps=1e-6, decay=0.01, **{"max-grad-norm": 1.0})),
        ("lamb", dict(beta1=0.7, beta2=0.9, eps=1e-2, decay=0.5, **{"max-grad-norm": 0.0})),
        ("lamb", dict(beta1=0.9, beta2=0.99, eps=1e-6, decay=0.0, **{"max-grad-norm": 100.0})),
    ]:
        runs.append({"optimizer": name, "options": o, "steps": OPTIMIZERS[name](o, w, g)})
    out = {
        "about": "Made by optimizers.py: steps in float64 with these gradients, each times its scale.",
        "torch": torch.__version__, "timm": timm.__version__,
        "lengths": LENGTHS, "no_decay": NO_DECAY, "rates": RATES, "scales": SCALES,
        "w": np.concatenate(w).tolist(), "gradients": [np.concatenate(x).tolist() for x in g], "runs": runs,
    }
    path = pathlib.Path(__file__).with_name("optimizers.json")
    path.write_text(json.dumps(out, separators=(",", ":")).replace('{"optimizer"', '\n{"optimizer"') + "\n")


main()
