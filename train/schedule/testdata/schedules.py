"""Writes schedules.json: learning rates of torch.optim.lr_scheduler, stepped once a step of the optimiser.

    python schedules.py > schedules.json
"""
import json
import warnings

import torch
from torch.optim import lr_scheduler as S

warnings.filterwarnings("ignore")
PER_EPOCH, EPOCHS, BASE = 7, 6, 0.4
N = PER_EPOCH * EPOCHS


def rates(make, n=N):
    o = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=BASE)
    s, out = make(o), []
    for _ in range(n):
        out.append(o.param_groups[0]["lr"])
        o.step()
        s.step()
    return out


def after(warmup, start, make):
    def f(o):
        first = S.LinearLR(o, start_factor=start, total_iters=warmup)
        return S.SequentialLR(o, [first, make(o)], milestones=[warmup])
    return f


cosine = lambda n, low=0.0: lambda o: S.CosineAnnealingLR(o, T_max=n, eta_min=low)
poly = lambda n, p: lambda o: S.PolynomialLR(o, total_iters=n, power=p)
cycle = lambda **kw: lambda o: S.OneCycleLR(o, max_lr=BASE, total_steps=N, cycle_momentum=False, **kw)
print(json.dumps({
    "per_epoch": PER_EPOCH, "epochs": EPOCHS, "base": BASE,
    "rates": {
        "cosine": rates(cosine(N)),
        "cosine_floor": rates(cosine(N, 0.01)),
        "warmup_2_epochs_cosine": rates(after(14, 0.01, cosine(N - 14))),
        "warmup_10_steps_cosine": rates(after(10, 0.1, cosine(N - 10))),
        "warmup_10_steps_poly2": rates(after(10, 0.1, poly(N - 10, 2.0))),
        "poly2": rates(poly(N, 2.0)),
        "poly1": rates(poly(N, 1.0)),
        "linear": rates(lambda o: S.LinearLR(o, start_factor=1.0, end_factor=0.25, total_iters=N - 1)),
        "one_cycle": rates(cycle()),
        "one_cycle_10": rates(cycle(pct_start=10 / N, div_factor=10, final_div_factor=100)),
        "step_2_epochs": rates(lambda o: S.StepLR(o, step_size=14, gamma=0.1)),
        "multi": rates(lambda o: S.MultiStepLR(o, milestones=[7, 21], gamma=0.5)),
    },
}, indent=1))
