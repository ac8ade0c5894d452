"""Write golden.json: mergekit's merges of small tensors in float64. python golden.py"""
import json, os
from types import SimpleNamespace as NS

import torch
from mergekit.merge_methods.registry import registered_methods
from mergekit.merge_methods.slerp import slerp

methods = {m.spec.name: m for m in registered_methods()}
g = torch.Generator().manual_seed(5)
rand = lambda: torch.round(torch.randn(4, 6, generator=g, dtype=torch.float64) * 2**18) / 2**20
base = rand()
models = [base + rand() for _ in range(3)]
group = NS(base=NS(tensor=base), non_base=[NS(id=i, tensor=m) for i, m in enumerate(models)])


def run(name, weights, density=1.0, scale=1.0, normalize=False, rescale=False, gamma=None):
    each = lambda v: {i: v for i in range(3)}
    p = {"int8_mask": False, "lambda": scale, "weight": dict(enumerate(weights)), "density": each(density), "normalize": normalize, "rescale": rescale}
    if gamma is not None:
        p["gamma"] = each(gamma)
    return methods[name].merge_group(group, **p).flatten().tolist()


one, some = [1, 1, 1], [0.5, -0.25, 0.75]
out = {
    "base": base.flatten().tolist(), "models": [m.flatten().tolist() for m in models], "weights": some,
    "task": run("task_arithmetic", some, scale=0.5), "task normalized": run("task_arithmetic", some, normalize=True),
    "ties": run("ties", one, 0.4, normalize=True), "ties weights": run("ties", some, 0.6, 0.5), "ties l1": run("ties", one, 0.4, normalize=True, rescale=True),
    "breadcrumbs": run("breadcrumbs", some, 0.5, gamma=0.1), "breadcrumbs sign": run("breadcrumbs_ties", some, 0.5, gamma=0.1),
    "slerp": slerp(torch.tensor([0.3], dtype=torch.float64), base[None], models[0][None])[0].flatten().tolist(),
}
json.dump(out, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w"), indent=1)
