#!/usr/bin/env python3
"""Curves of stochastic methods on Sonar, by numpy alone: the mean over 400 seeds of log10(f - f*) at each epoch.

    python3 stochastic.py sonar_normalized.csv > stochastic_numpy.csv

The file holds y, then the 61 normalised features. The random streams are numpy's, so that curves agree in the mean only.
"""
import sys

import numpy as np

data = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1)
y, X = data[:, 0], data[:, 1:]
n, d = X.shape
lmax = (X * X).sum(1).max()
SEEDS, EPOCHS = 400, 100


def risk(w, reg):
    return np.logaddexp(0, -y * (w @ X.T)).mean(-1) + reg / 2 * (w * w).sum(-1)


def optimum(reg):
    w = np.zeros(d)
    for _ in range(100):
        p = 1 / (1 + np.exp(y * (X @ w)))
        g = -(X.T @ (y * p)) / n + reg * w
        h = (X.T * (p * (1 - p))) @ X / n + reg * np.eye(d)
        w = w - np.linalg.solve(h, g)
    return risk(w, reg)


def slope(z, i):
    return -y[i] / (1 + np.exp(y[i] * z))


def slopes(w):
    return -y / (1 + np.exp(y * (w @ X.T)))


def dots(w, i):
    return (w * X[i]).sum(1)


def sgd(reg, rng):
    w, h = np.zeros((SEEDS, d)), 1 / (3 * (lmax + reg))
    yield 0, w
    for e in range(1, EPOCHS + 1):
        for _ in range(n):
            i = rng.integers(n, size=SEEDS)
            w = w - h * (slope(dots(w, i), i)[:, None] * X[i] + reg * w)
        yield e, w


def saga(reg, rng):
    w, h = np.zeros((SEEDS, d)), 1 / (3 * (lmax + reg))
    table = slopes(w)
    mean = table @ X / n
    rows = np.arange(SEEDS)
    yield 1, w
    for e in range(2, EPOCHS + 2):
        for _ in range(n):
            i = rng.integers(n, size=SEEDS)
            s = slope(dots(w, i), i)
            change = (s - table[rows, i])[:, None] * X[i]
            w = w - h * (change + mean + reg * w)
            mean = mean + change / n
            table[rows, i] = s
        yield e, w


def svrg(reg, rng):
    w, h = np.zeros((SEEDS, d)), 1 / (3 * (lmax + reg))
    rows = np.arange(SEEDS)
    yield 0, w
    for e in range(2, EPOCHS + 1, 2):
        table = slopes(w)
        mean = table @ X / n
        for _ in range(n):
            i = rng.integers(n, size=SEEDS)
            w = w - h * ((slope(dots(w, i), i) - table[rows, i])[:, None] * X[i] + mean + reg * w)
        yield e, w


def katyusha(reg, rng):
    """Allen-Zhu's algorithm 1, with the regulariser as the proximal term and option II."""
    m, rows = 2 * n, np.arange(SEEDS)
    tau1, tau2 = min(np.sqrt(m * reg / (3 * lmax)), 0.5), 0.5
    alpha = 1 / (3 * tau1 * lmax)
    anchor = np.zeros((SEEDS, d))
    v, z = anchor, anchor
    yield 0, anchor
    for e in range(5, EPOCHS + 1, 5):
        table = slopes(anchor)
        mean = table @ X / n
        total, weight, at = 0.0, 1.0, 0.0
        for _ in range(m):
            x = tau1 * z + tau2 * anchor + (1 - tau1 - tau2) * v
            i = rng.integers(n, size=SEEDS)
            g = mean + (slope(dots(x, i), i) - table[rows, i])[:, None] * X[i]
            z = (z - alpha * g) / (1 + alpha * reg)
            v = (x - g / (3 * lmax)) / (1 + reg / (3 * lmax))
            at = at + weight * v
            total += weight
            weight *= 1 + alpha * reg
            if weight > 1e200:
                at, total, weight = at / weight, total / weight, 1.0
        anchor = at / total
        yield e, anchor


print("conditioning,method,epoch,mean_log10")
for name, reg in (("well", lmax / (n / 100)), ("regular", lmax / n), ("bad", lmax / (100 * n))):
    best = optimum(reg)
    for method in (sgd, svrg, saga, katyusha):
        for epoch, w in method(reg, np.random.default_rng(1)):
            gap = np.log10(np.maximum(risk(w, reg) - best, 1e-17)).mean()
            print(f"{name},{method.__name__},{epoch},{gap:.6f}")
