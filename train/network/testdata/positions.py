"""Writes positions.json: timm's resize of the positions x[i] = sin(i) of a token and a grid, for TestPositions.

    python positions.py
"""
import json
import os

import torch
from timm.layers import resample_abs_pos_embed

cases = []
for before, after, width in (4, 6, 2), (6, 4, 2), (7, 3, 1), (3, 3, 2), (2, 5, 3), (5, 1, 2):
    x = torch.arange((1 + before * before) * width, dtype=torch.float64).sin().reshape(1, -1, width)
    y = resample_abs_pos_embed(x, [after, after], num_prefix_tokens=1)
    cases.append({"from": before, "to": after, "width": width, "y": y[0, 1:].double().flatten().tolist()})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "positions.json"), "w") as f:
    json.dump(cases, f)
