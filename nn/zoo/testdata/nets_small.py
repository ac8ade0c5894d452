"""Narrow and whole nets of small families of timm, for make.py."""

from functools import partial

import torch
import torch.nn as nn
from timm.layers import DropPath, Mlp
from timm.models import coat, cpubone, efficientvim, efficientvit_msra, iformer, lowformer
from timm.models._efficientnet_builder import decode_arch_def
from timm.models.efficientnet import EfficientNet
from timm.models.mobilenetv5 import MobileNetV5
from timm.models.swin_transformer_v2_cr import SwinTransformerV2Cr, WindowMultiHeadAttention

from nets import NOTHING


class Each(nn.ModuleList):
    """DropPaths for a block that uses one several times."""

    def __init__(self, path, times):
        super().__init__(DropPath(path.drop_prob) for _ in range(times))
        self.used = 0

    def forward(self, x):
        self.used = self.used % len(self) + 1
        return self[self.used - 1](x)


def each(model):
    """Gives blocks a DropPath for each use, and none to branches without a shortcut."""
    for m in model.modules():
        if not isinstance(getattr(m, "drop_path", None), DropPath):
            continue
        if isinstance(m, (efficientvim.EfficientViMBlock, coat.ParallelBlock)):
            m.drop_path = Each(m.drop_path, 6 if isinstance(m, coat.ParallelBlock) else 4)
        elif isinstance(m, (lowformer.ResidualBlock, cpubone.ResidualBlock)) and m.shortcut is None:
            m.drop_path = nn.Identity()
    return model


def BLOCKS(model):
    """The number of blocks of a net, whose DropPaths may be in parts of them."""
    if isinstance(model, (lowformer.LowFormer, cpubone.CPUBone)):
        return len(model.stem) + sum(len(s) for s in model.stages) - 3  # the first of the stem and two others are none
    if isinstance(model, iformer.IFormer):
        return sum(len(s.blocks) for s in model.stages)
    if isinstance(model, efficientvim.EfficientViM):
        return sum(len(s.blocks) for s in model.stages)
    return 2 if isinstance(model, coat.CoaT) else 0  # all with the same probability


def narrow(make, **kwargs):
    return each(make(num_classes=10, drop_path_rate=0.2, **kwargs))


def efficientvit():
    model = efficientvit_msra.EfficientVitMsra(img_size=80, num_classes=10, embed_dim=(16, 24, 24), key_dim=(4, 4, 4), depth=(1, 2, 1),
                                               num_heads=(2, 3, 2), window_size=(3, 3, 3), kernels=(5, 3, 3), drop_rate=0.2)
    model.drop_rate = 0.0  # it has a layer for it
    return model


def iformer_narrow():
    return narrow(iformer.IFormer, dims=(8, 12, 16, 24), depths=(1, 1, 6, 3), attn_groups=(0, 0, 1, 1), attn_head_dim_reduction=(0, 0, 2, 4),
                  conv_ratio=3, ffn_ratio=2, layer_scale_init_value=0.2, drop_rate=0.2, distillation=True)


def offsets(m):
    """The biases of WindowMultiHeadAttention, whose offsets are no part of the state, and of float32."""
    t = m.window_size[0] * m.window_size[1]
    x = m.meta_mlp(m.exact.to(m.meta_mlp.fc1.weight.dtype))
    return x.transpose(1, 0).reshape(1, m.num_heads, t, t)


def swin_cr(**kwargs):
    """A net whose offsets are of float64, and which drops nothing of what comes from them."""
    model = SwinTransformerV2Cr(num_classes=10, drop_path_rate=0.2, **kwargs)
    for m in model.modules():
        if isinstance(m, WindowMultiHeadAttention):
            m.meta_mlp = Mlp(2, 12, m.num_heads, act_layer=nn.ReLU, drop=(NOTHING, 0))
            h, w = (torch.arange(n, dtype=torch.float64) for n in m.window_size)
            x = torch.stack(torch.meshgrid(h, w, indexing="ij"), -1).flatten(0, 1)
            x = (x[:, None] - x[None]).flatten(0, 1)
            m.exact = x.sign() * (1 + x.abs()).log()
            torch.testing.assert_close(m.relative_coordinates_log.double(), m.exact, rtol=0, atol=1e-6)
            m.relative_coordinates_log = None
            m._relative_positional_encodings = partial(offsets, m)
    return model


def efficientnet_x():
    stages = [["ds_r2_k3_s1_e1_c8_se0.25_d1"], ["er_r2_k3_s2_e6_c16_se0.25_nre"], ["ir_r1_k3_s2_e4_c24_se0.25"]]
    return EfficientNet(decode_arch_def(stages), stem_size=8, num_features=32, act_layer=nn.SiLU, num_classes=10, drop_path_rate=0.2)


def mobilenetv5():
    stages = [["er_r2_k3_s2_e4_c8"], ["uir_r1_a3_k5_s2_e2_c8", "mqa_r1_k3_h2_v2_s1_d4_c8", "uir_r1_a0_k0_s1_e2_c8"],
              ["uir_r1_a5_k0_s2_e2_c16", "mqa_r1_k3_h2_s1_d4_c16", "uir_r1_a0_k0_s1_e2_c16"]]
    return MobileNetV5(decode_arch_def(stages), stem_size=8, num_features=16, msfa_output_resolution=4, num_classes=10, drop_rate=0.2,
                       drop_path_rate=0.2, layer_scale_init_value=0.2)


# CoaT resizes images and LowFormer has transposed convolutions: more products here than PyTorch counts.
UNCOUNTED = {f"coat_{size}" for size in ("tiny", "mini", "small")} | {f"lowformer_{size}" for size in ("b0", "b1", "b15", "b3", "e3")}


VARIANTS = {
    "efficientvit_msra_narrow": (efficientvit, 3, 80),
    "iformer_narrow": (iformer_narrow, 3, 64),
    "coat_narrow": (lambda: narrow(coat.CoaT, img_size=64, patch_size=4, embed_dims=(8, 16, 16, 16), serial_depths=(1, 2, 1, 1),
                                   parallel_depth=2, mlp_ratios=(2, 3, 3, 3), drop_rate=0.2), 3, 64),
    "coat_lite_narrow": (lambda: narrow(coat.CoaT, img_size=32, patch_size=4, embed_dims=(8, 8, 16, 24), serial_depths=(1, 1, 2, 1),
                                        mlp_ratios=(2, 3, 1, 2)), 3, 32),
    "efficientvim_narrow": (lambda: narrow(efficientvim.EfficientViMDistilled, embed_dim=(8, 12, 16), depths=(2, 1, 1), state_dim=(5, 4, 3),
                                           drop_rate=0.2), 3, 96),
    "lowformer_narrow": (lambda: narrow(lowformer.LowFormer, width_list=(4, 6, 8, 120, 8), depth_list=(1, 2, 1, 1, 2), head_widths=(12, 16),
                                        attn_mlp=False, downsample_expand_ratios=(3,) * 4, stem_expand_ratio=1, drop_rate=0.2), 2, 72),
    "cpubone_narrow": (lambda: narrow(cpubone.CPUBone, width_list=(4, 6, 8, 10, 256), depth_list=(0, 1, 1, 2, 1), head_widths=(12, 16),
                                      fused_conv=True, fused_downsample=True, attn_mlp_ratio=4, expand_groups=2, small_kernels=True,
                                      attn_upsample="nearest", local_mbconv_norm="depth_proj", proj_drop_rate=NOTHING, drop_rate=0.2), 3, 72),
    "swinv2_cr_narrow": (lambda: swin_cr(img_size=64, embed_dim=8, depths=(2, 1, 2, 1), num_heads=(1, 2, 4, 8), extra_norm_stage=True), 1, 64),
    "efficientnet_x_narrow": (efficientnet_x, 3, 64),
    "mobilenetv5_narrow": (mobilenetv5, 3, 64),
}

TIMM = {f"efficientvit_m{i}": ({}, 3, 224) for i in range(6)}
TIMM |= {f"iformer_{size}": ({}, 3, 64) for size in ("t", "s", "m", "l", "h", "m_distilled", "l_distilled", "l2_distilled")}
TIMM |= {f"coat_{size}": ({}, 1, 224) for size in ("tiny", "mini", "small", "lite_tiny", "lite_mini", "lite_small", "lite_medium")}
TIMM |= {"coat_lite_medium_384": ({}, 1, 384)}
TIMM |= {f"efficientvim_{size}{kind}": ({}, 2, 128) for size in ("m1", "m2", "m3", "m4") for kind in ("", "_dist")}
TIMM |= {f"lowformer_{size}": ({}, 2, 96) for size in ("b0", "b1", "b15", "b3", "e1", "e2", "e3")}
TIMM |= {f"cpubone_{size}": ({"proj_drop_rate": NOTHING}, 2, 96) for size in (
    "nano", "t0", "s0", "b3", "b0_bfrobust", "b1_bfrobust", "b2_bfrobust", "b1_dwnorm", "b2pt5_dwnorm")}
TIMM |= {f"swinv2_cr_{size}_224": ({}, 1, 224) for size in ("tiny_ns", "small", "small_ns")}
TIMM |= {f"efficientnet_{kind}_b5": ({}, 2, 96) for kind in "xh"}
TIMM |= {"mobilenetv5_300m": ({}, 1, 64)}
