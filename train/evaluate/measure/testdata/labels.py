#!/usr/bin/env python3
"""Writes scikit-learn's measures of multi-label predictions and of regressions: labels.json beside this file. The
standard errors are infinitesimal jackknives by differences of weighted measures."""
import json, os
import numpy as np
from sklearn import metrics

rng = np.random.default_rng(7)


def se(measure, n):
    h = 1e-4
    d = [(measure(np.ones(n) + h * e) - measure(np.ones(n) - h * e)) / (2 * h) for e in np.eye(n)]
    return float(np.sqrt(np.square(d).sum()))


cases = []
for n, k in (40, 3), (25, 5), (60, 1):
    y = (rng.random((n, k)) < rng.uniform(.2, .7, k)).astype(int)
    y[0] = 1
    s = np.round(y * .8 + rng.normal(size=(n, k)), 1)  # with ties
    best, f1 = [], []
    for c in range(k):
        p, r, t = metrics.precision_recall_curve(y[:, c], s[:, c])
        f = np.divide(2 * p * r, p + r, out=np.zeros_like(p), where=p + r > 0)[:-1]
        i = int(np.argmax(f > f.max() - 1e-12))
        best.append(float(t[i]))
        f1.append(float(f[i]))
    found = s >= np.array(best)
    macro = lambda w: metrics.f1_score(y, found, average="macro", sample_weight=w) if k > 1 else \
        metrics.f1_score(y[:, 0], found[:, 0], sample_weight=w)
    micro = lambda w: metrics.f1_score(y, found, average="micro", sample_weight=w) if k > 1 else macro(w)
    truth, guess = rng.normal(size=(n, k)) * 3 + 5, None
    guess = truth + rng.normal(size=(n, k))
    rmse = lambda w: metrics.root_mean_squared_error(truth, guess, sample_weight=w)
    mae = lambda w: metrics.mean_absolute_error(truth, guess, sample_weight=w)
    one = np.ones(n)
    cases.append(dict(
        width=k, scores=s.ravel().tolist(), targets=y.ravel().tolist(), thresholds=best, f1=f1, found=found.ravel().tolist(),
        macro=[macro(one), se(macro, n)], micro=[micro(one), se(micro, n)],
        exact=float(metrics.accuracy_score(y, found)), truth=truth.ravel().tolist(), guess=guess.ravel().tolist(),
        rmse=[rmse(one), se(rmse, n)], mae=[mae(one), se(mae, n)], r2=metrics.r2_score(truth, guess),
        rmses=np.sqrt(np.square(truth - guess).mean(0)).tolist()))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "labels.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
