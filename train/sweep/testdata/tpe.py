"""Writes tpe.json: logarithms of Optuna's Parzen estimators. Run it with a Python that has optuna."""

import json
import math
import os

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_weights

PARAMETERS = dict(
    prior_weight=1.0, consider_magic_clip=True, consider_endpoints=False, weights=default_weights, multivariate=False,
)


def main():
    r = np.random.default_rng(1)
    cases = []
    for n in (1, 2, 5, 24, 25, 26, 27, 60, 120):
        for kind in ("lin", "log", "int", "list"):
            if kind == "int" and n > 25:
                continue  # numpy's order of equal points, which then differ in weight, is its own
            if kind == "lin":
                d, x = FloatDistribution(-1, 3), r.uniform(-1, 3, n)
            elif kind == "log":
                d, x = FloatDistribution(1e-4, 2, log=True), np.exp(r.uniform(math.log(1e-4), math.log(2), n))
            elif kind == "int":
                d, x = IntDistribution(2, 9), r.integers(2, 10, n)
            else:
                d, x = CategoricalDistribution(["a", "b", "c", "d"]), r.integers(0, 4, n)
            p = _ParzenEstimator({"x": np.asarray(x, dtype=float)}, {"x": d}, _ParzenEstimatorParameters(**PARAMETERS))
            at = {"lin": [-1, -.4, .9, 3], "log": [1e-4, .003, .5, 2], "int": [2, 5, 9], "list": [0, 1, 2, 3]}[kind]
            logs = p.log_pdf({"x": np.asarray(at, dtype=float)})
            cases.append(dict(kind=kind, points=[float(v) for v in x], at=at, log=[float(v) for v in logs]))
    x, y = r.uniform(-1, 3, 30), r.integers(0, 4, 30)
    space = {"x": FloatDistribution(-1, 3), "y": CategoricalDistribution(["a", "b", "c", "d"])}
    p = _ParzenEstimator({"x": x, "y": y.astype(float)}, space, _ParzenEstimatorParameters(**PARAMETERS))
    at = [[-.5, 0], [1, 2], [2.9, 3]]
    logs = p.log_pdf({"x": np.array([a[0] for a in at]), "y": np.array([a[1] for a in at], dtype=float)})
    joint = dict(points=[[float(a), int(b)] for a, b in zip(x, y)], at=at, log=[float(v) for v in logs])
    path = os.path.join(os.path.dirname(__file__), "tpe.json")
    with open(path, "w") as f:
        json.dump(dict(optuna=optuna.__version__, cases=cases, joint=joint), f)
        f.write("\n")


main()
