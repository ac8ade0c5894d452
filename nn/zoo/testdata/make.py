"""Writes results of torchvision's and timm's nets in float64, a JSON file each, for TestTorchvision of package zoo.

    python make.py                   narrow and small nets, beside this file
    python make.py . NET...          those named
    python make.py FOLDER [NET...]   whole nets: those named, or all

Weights, statistics and images follow a formula, so that no file holds them. Tensors are compared by their inner product
with numbers of a formula.
"""

import json
import math
import os
import re
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import nets
import numpy as np
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from nets import OWN
from torchvision.models import densenet, swin_transformer
from torchvision.models.maxvit import PartitionAttentionLayer
from torchvision.ops import StochasticDepth
from timm.layers import DropPath, RotaryEmbeddingCat
from timm.layers.pos_embed_sincos import RotaryEmbeddingDinoV3
from timm.models import edgenext, swiftformer
from timm.models.byobnet import ByobNet
from timm.models.convnext import ConvNeXtBlock
from timm.models.efficientformer import MetaBlock1d, MetaBlock2d
from timm.models.efficientvit_mit import LiteMLA
from timm.models.fastvit import AttentionBlock, RepMixerBlock
from timm.models.hgnet import HighPerfGpuNet
from timm.models.swin_transformer_v2 import WindowAttention
from timm.models.tiny_vit import MBConv, TinyVitBlock
from timm.optim import param_groups_weight_decay

# Files nets_*.py beside this one have groups of nets. Their TIMM gives for a whole net of timm the arguments, the batch and the size,
# and STEPS, if there is one, the steps of narrow nets.
HERE = Path(__file__).resolve().parent
GROUPS = [import_module(f.stem) for f in sorted(HERE.glob("nets_*.py"))]
VARIANTS = nets.VARIANTS | {name: v for g in GROUPS for name, v in g.VARIANTS.items()}
STEPS = nets.STEPS | {name: n for g in GROUPS for name, n in getattr(g, "STEPS", {}).items()}
TIMM = nets.TIMM + [name for g in GROUPS for name in g.TIMM]
ONCE = tuple(k for g in GROUPS for k in getattr(g, "ONCE", ()))  # blocks with a norm2 that use their drop_path once

# Kinds of blocks that one list of probabilities is for.
KINDS = (MBConv, TinyVitBlock), (RepMixerBlock, AttentionBlock), (MetaBlock1d, MetaBlock2d), (edgenext.ConvBlock, edgenext.SplitTransposeBlock), (swiftformer.Block, swiftformer.ConvEncoder)

IMAGES, LABELS, PRODUCT = 100000, 100001, 100002  # streams


def u01(stream, n):
    """n numbers of a stream, uniform in [0,1): those of onlinerna/nn/internal/golden.U01."""
    with np.errstate(over="ignore"):
        z = (np.uint64(stream) << np.uint64(32)) + np.arange(n, dtype=np.uint64)
        z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def value(k, name, shape):
    u = u01(k, math.prod(shape))
    if name.endswith("logit_scale"):
        x = u.copy()
        x[0] = 5 if name.startswith("features.7") else x[0]  # above the most that counts
    elif len(shape) > 1:
        x = (2 * u - 1) * math.sqrt(3 / math.prod(shape[1:]))
    elif name.endswith("running_var"):
        x = 0.5 + u
    elif name.endswith((".weight", ".scale")):
        x = 0.75 + 0.5 * u
    else:
        x = 0.2 * (2 * u - 1)
    return torch.from_numpy(x.astype(np.float32).astype(np.float64).reshape(shape))


def offsets(extents, whole=None):
    """ShiftedWindowAttentionV2's relative_coords_table, which it makes with float32; whole are the extents of offsets from -8 to 8."""
    h, w = [8 * torch.arange(1 - n, n, 2, dtype=torch.float64) / max(k - 1, 1) for n, k in zip(extents, whole or extents)]
    x = torch.stack(torch.meshgrid(h, w, indexing="ij"), -1)
    return x.sign() * (x.abs() + 1).log2() / 3


def rotations(rope, shape):
    """Sines and cosines of a rotary embedding, which it makes with float32."""
    bands, dinov3 = rope.dim // 4, isinstance(rope, RotaryEmbeddingDinoV3)
    axes = [torch.arange(n, dtype=torch.float64) for n in shape]
    if dinov3:
        axes = [2 * math.pi * (2 * (x + 0.5) / n - 1) for x, n in zip(axes, shape)]
    else:
        axes = [x + rope.grid_offset for x in axes]
    if not dinov3 and rope.ref_feat_shape is not None:
        axes = [x / n * r for x, n, r in zip(axes, shape, rope.ref_feat_shape)]
    periods = rope.temperature ** (torch.arange(bands, dtype=torch.float64) / bands)
    grid = torch.meshgrid(*axes, indexing="ij")
    grid = grid[::-1] if rope.grid_indexing == "xy" else grid
    angles = (torch.stack(grid, -1)[..., None] / periods).flatten(-2).flatten(0, 1)
    angles = torch.cat([angles, angles], -1) if rope.rotate_half else angles.repeat_interleave(2, -1)
    return torch.cat([angles.sin(), angles.cos()], -1)


def rotate(model):
    """Replaces rotary embeddings, after a comparison, by such with float64."""
    model = getattr(model, "encoder", model)
    rope = getattr(model, "rope", None)
    if not isinstance(rope, (RotaryEmbeddingCat, RotaryEmbeddingDinoV3)):
        return
    table = rotations(rope, model.patch_embed.grid_size)
    torch.testing.assert_close(rope.get_embed(model.patch_embed.grid_size).double(), table, rtol=0, atol=2e-5)
    rope.get_embed = lambda shape=None: table.to(model.patch_embed.proj.weight.dtype)


def fill(model):
    k = 0
    with torch.no_grad():
        for m in model.modules():
            if isinstance(m, WindowAttention):  # its table is no part of the state, and of float32
                whole = [p or w for p, w in zip(m.pretrained_window_size, m.window_size)]
                m.relative_coords_table.copy_(offsets(m.relative_coords_table.shape[1:3], [2 * n - 1 for n in whole]))
        for name, x in model.state_dict().items():
            if name.endswith("relative_coords_table"):
                x.copy_(offsets(x.shape[1:3]))
            elif x.is_floating_point() and ".std_" not in name:  # else a number of batches, indices, or what the head does not take
                x.copy_(value(k, name, tuple(x.shape)))
                k += 1


def product(x):
    x = x.detach().double().contiguous().flatten().numpy()
    return float(x @ (2 * u01(PRODUCT, len(x)) - 1))


def ours(name):
    """Package zoo's name of a layer that drops weights of attention."""
    if name.startswith("layers."):  # timm's Swin
        name = name.replace("attn_drop", "attention.dropout")
    for theirs in "self_attention.dropout", "attn.attn_drop":
        name = name.replace(theirs, "attention.dropout")
    return name.replace("attention_dropout", "attention.dropout")


def drops(model):
    """Names and probabilities of the layers that drop something, and no more of it."""
    found = {}
    most = round(max((m.drop_prob for m in model.modules() if isinstance(m, DropPath)), default=0), 6)
    if getattr(model, "drop_rate", 0) > 0 and not any(hasattr(getattr(model, "head", None), n) for n in ("fc", "proj")):  # timm's, a function
        found["dropout"], model.drop_rate = model.drop_rate, 0.0
    for name, m in model.named_modules():
        if isinstance(m, densenet._DenseLayer) and m.drop_rate > 0:
            found[f"{name}.dropout"], m.drop_rate = m.drop_rate, 0.0
        if isinstance(m, (nn.MultiheadAttention, swin_transformer.ShiftedWindowAttention)):  # functions
            for own in ("dropout", "attention_dropout"):
                if getattr(m, own, 0) > 0:
                    found[ours(f"{name}.{own}")] = getattr(m, own)
                    setattr(m, own, 0.0)
        if isinstance(m, (nn.Dropout, StochasticDepth)):
            residual = True
            if isinstance(m, StochasticDepth):
                block = model.get_submodule(name.rsplit(".", 1)[0])
                residual = getattr(block, "use_res_connect", True)
            if m.p > 0 and residual:
                found[ours(name)] = m.p
                above = model.get_submodule(name.rpartition(".")[0])
                if isinstance(above, (swin_transformer.SwinTransformerBlock, PartitionAttentionLayer)):  # they use it twice
                    place, _, own = name.rpartition(".")
                    found[f"{place}.{'mlp' if hasattr(above, 'mlp') else 'mlp_layer'}.{own}"] = m.p
            m.p = 0.0
        elif isinstance(m, DropPath):
            block = model.get_submodule(name.rpartition(".")[0])
            if isinstance(block, ConvNeXtBlock):
                n = sum(isinstance(b, ConvNeXtBlock) for b in model.modules()) - 1
                found[name.replace("drop_path", "stochastic_depth")] = most * round(m.drop_prob / most * n) / n
            elif isinstance(model, (ByobNet, HighPerfGpuNet)):
                n = sum(len(getattr(s, "blocks", s)) for s in model.stages) - 1
                residual = getattr(block, "shortcut", block) is not None and getattr(block, "residual", True)
                if m.drop_prob > 0 and residual:
                    found[re.sub("drop_path$", "stochastic_depth", name)] = most * round(m.drop_prob / most * n) / n
            elif getattr(block, "no_skip", False) or not getattr(block, "use_shortcut", True):  # it has one in vain
                pass
            elif not hasattr(block, "has_skip"):
                kinds = next((k for k in KINDS if isinstance(block, k)), type(block))
                n = sum(isinstance(b, kinds) for b in model.modules()) - 1
                n = next((g.BLOCKS(model) for g in GROUPS if hasattr(g, "BLOCKS") and g.BLOCKS(model)), n + 1) - 1
                twice = name.endswith("drop_path") and not isinstance(block, ONCE) and not hasattr(block, "conv2") and (
                    hasattr(block, "norm2") and getattr(block, "norm1", block) is not None or hasattr(block, "xca")
                    or hasattr(block, "local_representation"))
                for own in ((name + "1", name + "2") if twice else (name,)) if m.drop_prob > 0 else ():
                    found[own] = most * round(m.drop_prob / most * n) / n  # it is a float32
            elif block.has_skip:
                found[name.replace("drop_path", "stochastic_depth")] = m.drop_prob
            m.drop_prob = 0.0
    return found


def linear_attention(q, k, v):
    """LiteMLA's, which computes in float32, also for float64."""
    dtype, wide = v.dtype, torch.promote_types(v.dtype, torch.float32)
    q, k, v = q.to(wide), k.to(wide), v.to(wide)
    out = q @ (k.transpose(-1, -2) @ v)
    return (out[..., :-1] / (out[..., -1:] + 1e-5)).to(dtype)


def factor(m):
    """The factor of timm's differential attention."""
    return (m.lambda_q1 * m.lambda_k1).sum().exp() - (m.lambda_q2 * m.lambda_k2).sum().exp() + m.lambda_init


def exact(model):
    """Replaces activations whose gradients PyTorch makes with a sixth in float32, and what timm computes in float32."""
    for m in model.modules():
        if isinstance(m, nn.Hardswish):
            m.forward = lambda x: x * F.relu6(x + 3) / 6
        elif isinstance(m, nn.Hardsigmoid):
            m.forward = lambda x: F.relu6(x + 3) / 6
        elif isinstance(m, LiteMLA):
            m._attn = linear_attention
        elif hasattr(m, "_compute_lambda"):
            m._compute_lambda = partial(factor, m)


def initial(model):
    """The root of the mean square of each parameter's initial values, without outliers: the -2 that timm's trunc_normal_ has for
    -inf, of which Eva makes parts."""
    values = {name: p.detach().double().abs().flatten() for name, p in model.named_parameters()}
    large = {name: x.kthvalue(max(1, int(0.9 * len(x)))).values for name, x in values.items()}  # half of some are tiny
    return {name: float(x[x <= 30 * (large[name] or 1)].square().mean().sqrt()) for name, x in values.items()}


def exempt(model):
    """Names of the matrices and larger tensors that timm exempts from weight decay, as it does all vectors."""
    groups = param_groups_weight_decay(model, 1, no_weight_decay_list=getattr(model, "no_weight_decay", set)())
    decayed = {id(p) for g in groups if g["weight_decay"] > 0 for p in g["params"]}
    assert all(p.ndim > 1 for p in model.parameters() if id(p) in decayed)
    return [name for name, p in model.named_parameters() if p.ndim > 1 and id(p) not in decayed]


# The losses of steps by these are compared.
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.001, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.001, weight_decay=0.05),
}


def root_mean_square(x):
    return float(torch.tensor(x, dtype=torch.float64).square().mean().sqrt())


def deviation(single, double, least=0.0):
    """The largest deviation of PyTorch's float32 in an inner product of a tensor, relative to its norm, as TestTorchvision's."""
    norms = {n: x.norm().item() for n, x in double.items()}
    least *= math.hypot(*norms.values())
    return max(abs(product(single[n]) - product(x)) / max(norms[n], least) for n, x in double.items())


def autocast(model, x, y, logits, gradients):
    """Deviations of PyTorch's bfloat16: logits relative to their root mean square, gradients to their norms."""
    model = model.float()
    fill(model)
    with torch.autocast("cpu", torch.bfloat16):
        with torch.no_grad():
            off = model.eval()(x.float()).double() - logits
        model.zero_grad()
        F.cross_entropy(model.train()(x.float()), y).backward()
    norms = {n: p.grad.double().norm().item() for n, p in model.named_parameters()}
    least = 1e-2 * max(norms.values())
    offs = [(product(p.grad) - gradients[n]) / max(norms[n], least) for n, p in model.named_parameters()]
    return {"logits": root_mean_square(off.flatten().tolist()) / root_mean_square(logits.flatten().tolist()),
            "gradients": root_mean_square(offs)}


def write(path, name, build, batch, size, steps, whole=False):
    torch.manual_seed(1)
    model = build()
    first, dropped = initial(model), drops(model)
    exact(model)
    rotate(model)
    model = model.double()
    fill(model)
    classes = [m for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d))][-1].weight.shape[0]
    shape = (batch, 3, size, size)
    x = torch.from_numpy(((2 * u01(IMAGES, math.prod(shape)) - 1) * math.sqrt(3)).astype(np.float32).astype(np.float64).reshape(shape))
    y = torch.arange(batch) % classes
    out = {"net": name, "batch": batch, "size": size, "classes": classes, "dropped": dropped,
           "state": [[n, list(v.shape)] for n, v in model.state_dict().items()]}
    of_timm = type(model).__module__.startswith("timm.")
    if any(first.values()) and (of_timm or whole and name not in OWN or "options" in name or name.startswith("convnext")):
        out["initial"] = first  # thin() leaves none
    if of_timm:
        out["exempt"] = exempt(model)
    with torch.no_grad():
        logits = model.eval()(x)
        out["logits"] = logits.flatten().tolist()
        single = model.float()(x.float()).double()
        out["deviation"] = float((single - logits).abs().max() / logits.abs().max())  # of PyTorch's float32
    for name_of, make in list(OPTIMIZERS.items())[:1 if whole else None]:
        gradients, running = [], []  # of float32 and float64
        for key, dtype in (f"{name_of}32", torch.float32), (name_of, torch.float64):
            model = model.double()
            fill(model)
            model = model.to(dtype).train()
            optimizer = make(model.parameters())
            out[key] = []
            for step in range(steps + 1):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x.to(dtype)), y)
                out[key].append(loss.item())
                loss.backward()
                if step == 0:
                    gradients.append({n: p.grad.double().clone() for n, p in model.named_parameters()})
                    running.append({n: b.double().clone() for n, b in model.named_buffers() if "running" in n})
                    out["gradients"], out["running"] = ({n: product(x) for n, x in tensors[-1].items()} for tensors in (gradients, running))
                if step < steps:
                    optimizer.step()
    if whole:
        out["float32"] = {"gradients": deviation(*gradients, 1e-4), "statistics": deviation(*running) if running[1] else 0.0}
    else:
        out["autocast"] = autocast(model, x, y, logits, out["gradients"])
    lists = {k: json.dumps(v) for k, v in out.items()}
    with open(os.path.join(path, name + ".json"), "w") as f:
        f.write("{\n" + ",\n".join(f'"{k}": {v}' for k, v in lists.items()) + "\n}\n")
    print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, float32 deviates by {out['deviation']:.1e}", flush=True)


def whole(names):
    """Whole nets of the names, or all but the largest: name, constructor, batch, size of images."""
    yield from nets.whole([n for n in names if not any(n in g.TIMM for g in GROUPS)] if names else nets.names())
    for g in GROUPS:
        for name, (kwargs, batch, size) in g.TIMM.items():
            if name in names or not names:
                yield name, lambda: timm.create_model(name, num_classes=1000, **kwargs), batch, size


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] in ([], ["."]):
        for name in sys.argv[2:] or VARIANTS:
            build, batch, size = VARIANTS[name]
            write(HERE, name, build, batch, size, STEPS.get(name, 10))
    else:
        os.makedirs(sys.argv[1], exist_ok=True)
        for name, build, batch, size in whole(sys.argv[2:]):
            write(sys.argv[1], name, build, batch, size, 1, True)
