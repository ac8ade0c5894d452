#!/usr/bin/env python3
"""Writes scikit-learn's balanced class weights, those by effective number (Cui et al. 2019, as their repository
normalises them): classweights.json beside this file."""
import json, os
import numpy as np
from sklearn.utils.class_weight import compute_class_weight

cases = []
for counts in ([1, 1], [900, 80, 20], [5, 1, 300, 7, 7], [100000, 12]):
    labels = np.repeat(np.arange(len(counts)), counts)
    rules = {"auto": compute_class_weight("balanced", classes=np.arange(len(counts)), y=labels)}
    for beta in (0, .9, .999, .9999):
        w = (1 - beta) / (1 - np.power(beta, np.array(counts, dtype=np.float64)))
        rules[f"effective:{beta}"] = w / w.sum() * len(counts)
    for rule, w in rules.items():
        cases.append(dict(rule=rule, counts=counts, weights=w.tolist()))

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "classweights.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
