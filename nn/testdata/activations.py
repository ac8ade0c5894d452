"""Writes activations.json: PyTorch's activations and squeeze-and-excitation in float64, with gradients.

    python activations.py > activations.json
"""

import json
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def flat(t):
    return t.detach().flatten().tolist()


def series(n, start):
    """Numbers of (-1, 1) without a pattern."""
    return torch.tensor([math.sin(start + 1.7 * i + 0.3 * i * i) for i in range(n)])


# F.hardswish and F.hardsigmoid differentiate with a sixth in float32: those below are their formulas.
x0 = torch.cat([torch.linspace(-9, 9, 73), torch.tensor([-3.0, 3.0, 0.0, -0.0, 1e-8, -1e-8, 30.0, -30.0, 700.0, -700.0])])
cases = {}
for name, f in {
    "hardswish": lambda x: x * F.relu6(x + 3) / 6,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "hardsigmoid": lambda x: F.relu6(x + 3) / 6,
}.items():
    x = x0.clone().requires_grad_()
    dy = series(len(x), 1)
    y = f(x)
    y.backward(dy)
    cases[name] = {"x": flat(x), "dy": flat(dy), "y": flat(y), "dx": flat(x.grad)}

n, c, s, h, w = 2, 5, 3, 3, 2
x, w1, b1, w2, b2 = [
    series(math.prod(shape), i).reshape(shape).requires_grad_() for i, shape in enumerate([(n, c, h, w), (s, c, 1, 1), (s,), (c, s, 1, 1), (c,)])
]
dy = series(n * c * h * w, 9).reshape(n, c, h, w)
y = x * torch.sigmoid(F.conv2d(F.silu(F.conv2d(F.adaptive_avg_pool2d(x, 1), w1, b1)), w2, b2))
y.backward(dy)
cases["squeeze_excite"] = {"x": flat(x), "dy": flat(dy), "y": flat(y), "dx": flat(x.grad)}
for name, p in {"fc1.weight": w1, "fc1.bias": b1, "fc2.weight": w2, "fc2.bias": b2}.items():
    cases["squeeze_excite"][name] = flat(p)
    cases["squeeze_excite"]["d" + name] = flat(p.grad)

print("{")
print(",\n".join(f'"{k}": {json.dumps(v)}' for k, v in cases.items()))
print("}")
