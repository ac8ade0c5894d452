"""Write posthoc.json: the weights of steps that ema-pytorch's power EMAs give, and its weights of stored EMAs.

Needs torch and ema-pytorch 0.8.3.
"""
import importlib.metadata
import json
import os

import torch
from ema_pytorch.post_hoc_ema import KarrasEMA, solve_weights

STEPS = 600


def karras(gamma):
    """The average of unit vectors, one a step."""
    net = torch.nn.ParameterList([torch.zeros(STEPS, dtype=torch.float64)])
    ema = KarrasEMA(net, gamma=gamma, update_every=1)
    for step in range(STEPS):
        net[0].data.zero_()
        net[0].data[step] = 1
        ema.update()
    return [round(x, 9) for x in next(ema.ema_model.parameters()).tolist()]


def solved(gamma):
    steps = torch.tensor([float(STEPS // 10 * e) for e in range(1, 11) for _ in (5, 12)])
    gammas = torch.tensor([5.0, 12.0] * 10)
    w = solve_weights(steps, gammas, torch.tensor([float(STEPS)]), torch.tensor([gamma]))
    return {"gamma": gamma, "weights": w.flatten().tolist()}


path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "posthoc.json")
with open(path, "w") as f:
    json.dump({"version": importlib.metadata.version("ema-pytorch"), "steps": STEPS,
               "karras": {str(g): karras(g) for g in (5, 12)}, "solved": [solved(g) for g in (3.0, 7.0, 8.0, 10.0, 16.0)]}, f)
