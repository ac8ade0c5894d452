#!/usr/bin/env python3
"""Writes scikit-learn's measures of random classifiers, with standard errors: measures.json beside this file.

The standard errors are DeLong's by his formula, the binomial ones, and else infinitesimal jackknives, whose derivatives
by the images' weights are taken by a complex step from measures written out for weighted images."""
import json, os
import numpy as np
from sklearn import metrics

rng = np.random.default_rng(11)


def influences(measure, n):
    """The derivatives of measure(w) at weights of 1."""
    out = np.empty(n)
    for i in range(n):
        w = np.ones(n, dtype=complex)
        w[i] += 1e-30j
        out[i] = measure(w).imag / 1e-30
    return out


def se(x):
    return float(np.sqrt((x ** 2).sum()))


def average_precision(s, y, w):
    return sum(w[i] * w[(s >= s[i]) & y].sum() / w[s >= s[i]].sum() for i in np.flatnonzero(y)) / w[y].sum()


def auc(s, y, w):
    a, b = s[y], s[~y]
    above = (a[:, None] > b[None]) + .5 * (a[:, None] == b[None])
    return w[y] @ above @ w[~y] / (w[y].sum() * w[~y].sum())


def delong(s, y):
    a, b = s[y], s[~y]
    above = (a[:, None] > b[None]) + .5 * (a[:, None] == b[None])
    return float(np.sqrt(above.mean(1).var(ddof=1) / len(a) + above.mean(0).var(ddof=1) / len(b)))


def f1(label, guess, k, w):
    return 2 * w[(label == k) & (guess == k)].sum() / (w[label == k].sum() + w[guess == k].sum())


def recall(label, guess, k, w):
    return w[(label == k) & (guess == k)].sum() / w[label == k].sum()


def ranked(scores, shown):
    """Both measures of each class, and their means over the classes in which they are defined."""
    n, classes = scores.shape
    auc_of, ap_of, auc_all, ap_all = [], [], np.zeros(n), np.zeros(n)
    for k in range(classes):
        s, y = scores[:, k], shown[:, k]
        m = int(y.sum())
        auc_of.append([None, None]), ap_of.append([None, None])
        if 0 < m:
            i = influences(lambda w: average_precision(s, y, w), n)
            ap_all += i
            ap_of[k] = [float(metrics.average_precision_score(y, s)), se(i) if 1 < m < n else None]
        if 0 < m < n:
            i = influences(lambda w: auc(s, y, w), n)
            i *= np.where(y, np.sqrt(m / max(1, m - 1)), np.sqrt((n - m) / max(1, n - m - 1)))
            auc_all += i
            auc_of[k] = [float(metrics.roc_auc_score(y, s)), delong(s, y) if 1 < m < n - 1 else None]

    def mean(of, i):
        values = [v for v, _ in of if v is not None]
        return [float(np.mean(values)), se(i) / len(values)]
    return dict(auc=auc_of, ap=ap_of, mean_auc=mean(auc_of, auc_all), mean_ap=mean(ap_of, ap_all))


cases = []
for n, classes, digits, absent in ((40, 2, 1, 0), (60, 4, 1, 0), (50, 3, 6, 0), (30, 5, 2, 1), (12, 3, 0, 0)):
    label = rng.choice(classes - absent, n, p=np.arange(1, classes - absent + 1) / sum(range(classes - absent + 1)))
    label[0] = 0
    scores = np.float32(np.round(rng.normal(size=(n, classes)) + 1.3 * np.eye(classes)[label], digits)).astype(float)
    guess = scores.argmax(1)
    case = dict(scores=scores.tolist(), shown=np.eye(classes, dtype=bool)[label].tolist(), guess=guess.tolist())
    occurs = sorted(set(label) | set(guess))
    present = sorted(set(label))
    case["precision"], case["recall"], case["f1"] = [], [], []
    for k in range(classes):
        right, found, has = (guess == k) & (label == k), guess == k, label == k
        p = [None, None]
        if found.any():
            v = float(metrics.precision_score(label == k, found))
            p = [v, float(np.sqrt(v * (1 - v) / found.sum()))]
        r = [None, None]
        if has.any():
            v = float(metrics.recall_score(has, found))
            r = [v, se(influences(lambda w: recall(label, guess, k, w), n))]
        f = [None, None]
        if k in occurs:
            f = [float(metrics.f1_score(has, found)), se(influences(lambda w: f1(label, guess, k, w), n))]
        case["precision"].append(p), case["recall"].append(r), case["f1"].append(f)
    case["macro_f1"] = [float(metrics.f1_score(label, guess, average="macro")),
                        se(influences(lambda w: sum(f1(label, guess, k, w) for k in occurs) / len(occurs), n))]
    balanced = influences(lambda w: sum(recall(label, guess, k, w) for k in present) / len(present), n)
    case["balanced_accuracy"] = [float(np.mean([v for v, _ in case["recall"] if v is not None])), se(balanced)]
    assert abs(case["balanced_accuracy"][0] - metrics.balanced_accuracy_score(label, guess)) < 1e-15
    case.update(ranked(scores, np.array(case["shown"])))
    cases.append(case)

for n, classes, digits in ((40, 3, 1), (25, 4, 6)):  # several classes an image
    shown = rng.random((n, classes)) < np.linspace(.03, .6, classes)
    shown[3] = True
    scores = np.float32(np.round(rng.normal(size=(n, classes)) + shown, digits)).astype(float)
    cases.append(dict(scores=scores.tolist(), shown=shown.tolist(), **ranked(scores, shown)))

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "measures.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
