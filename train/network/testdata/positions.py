"""Writes what timm makes of x[i] = sin(i) when it resizes: positions.json, for the positions of a token and a grid, and
tables.json, for tables of relative positions.

    python positions.py
"""
import json
import os

import torch
from timm.layers import resample_abs_pos_embed, resize_rel_pos_bias_table, resize_rel_pos_bias_table_levit


def sines(*shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float64).sin().reshape(shape)


def write(name, cases):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "w") as f:
        json.dump(cases, f)


cases = []
for before, after, width in (4, 6, 2), (6, 4, 2), (7, 3, 1), (3, 3, 2), (2, 5, 3), (5, 1, 2):
    y = resample_abs_pos_embed(sines(1, 1 + before * before, width), [after, after], num_prefix_tokens=1)
    cases.append({"from": before, "to": after, "width": width, "y": y[0, 1:].double().flatten().tolist()})
write("positions.json", cases)

cases = []
for before, after in (3, 5), (4, 7), (7, 4), (5, 2):
    old, new = 2 * before - 1, 2 * after - 1
    for name, x, to in (
        ("relative_position_bias_table", sines(old * old, 2), (new * new, 2)),
        ("relative_position_bias_table", sines(old * old + 3, 2), (new * new + 3, 2)),
        ("relative_position_bias_table", sines(2, old, old), (2, new, new)),
        ("attention_biases", sines(2, before * before), (2, after * after)),
    ):
        if name == "attention_biases":
            y = resize_rel_pos_bias_table_levit(x.T, to[::-1]).T
        else:
            y = resize_rel_pos_bias_table(x, (after, after), to)
        cases.append({"name": name, "from": list(x.shape), "to": list(y.shape), "y": y.double().flatten().tolist()})
write("tables.json", cases)
