"""Narrow and whole convolutional nets of timm, for make.py."""

from functools import partial

import torch.nn as nn
from nets import thin
from timm.models.convnext import ConvNeXt
from timm.models.dla import DLA, DlaBasic, DlaBottle2neck, DlaBottleneck
from timm.models.dpn import DPN
from timm.models.hrnet import HighResolutionNet
from timm.models.vovnet import VovNet
from timm.models.xception_aligned import XceptionAligned


def narrow_convnext(**kwargs):
    return ConvNeXt(depths=(1, 2, 1, 1), dims=(8, 16, 32, 64), ls_init_value=0.2, conv_mlp=True, num_classes=10, **kwargs)


def narrow_vovnet(depthwise):
    cfg = {"stem_chs": [8, 8, 12], "stage_conv_chs": [12, 8, 12, 8], "stage_out_chs": [16, 16, 24, 24], "layer_per_block": 2,
           "block_per_stage": [1, 1 if depthwise else 2, 1, 1], "residual": True, "depthwise": depthwise, "attn": "ese"}
    return VovNet(cfg, num_classes=10, drop_rate=0.2, drop_path_rate=0.2)


def narrow_hrnet():
    stage = lambda modules, branches: {"num_modules": modules, "num_branches": branches, "block_type": "BASIC", "fuse_method": "SUM",
                                       "num_blocks": (1,) * branches, "num_channels": tuple(32 << i for i in range(branches))}
    first = {"num_modules": 1, "num_branches": 1, "block_type": "BOTTLENECK", "num_blocks": (2,), "num_channels": (64,), "fuse_method": "SUM"}
    return thin(HighResolutionNet({"stem_width": 64, "stage1": first, "stage2": stage(1, 2), "stage3": stage(2, 3), "stage4": stage(1, 4)},
                                  drop_rate=0.2), 8)


def narrow_dla(levels, block, **kwargs):
    return DLA(levels, (8, 8, 16, 16, 24, 32), num_classes=10, block=block, drop_rate=0.2, **kwargs)


def narrow_dpn(split):
    return DPN((2, 1, 2, 1), (4, 8, 4, 8), 8, 4, 10, small=True, num_init_features=8, b=split, drop_rate=0.2)


def narrow_xception(preact):
    last = {} if preact else {"start_with_relu": False}
    blocks = [dict(in_chs=64, out_chs=128, stride=2), dict(in_chs=128, out_chs=256, stride=1), dict(in_chs=256, out_chs=256, stride=1),
              dict(in_chs=256, out_chs=(256, 1024, 1024), stride=2),
              dict(in_chs=1024, out_chs=(1536, 1536, 2048), stride=1, no_skip=True, **last)]
    return thin(XceptionAligned(blocks, preact=preact, norm_layer=partial(nn.BatchNorm2d, eps=1e-3), drop_rate=0.2, drop_path_rate=0.2), 16)


VARIANTS = {
    "convnext_hnf_narrow": (lambda: narrow_convnext(stem_type="overlap_tiered", head_norm_first=True), 3, 64),
    "convnext_simple_narrow": (lambda: narrow_convnext(stem_type="overlap_act", norm_layer="simplenorm", norm_eps=1e-3,
                                                       head_hidden_size=40), 3, 64),
    "ese_vovnet_narrow": (lambda: narrow_vovnet(False), 4, 50),
    "ese_vovnet_dw_narrow": (lambda: narrow_vovnet(True), 4, 64),
    "hrnet_narrow": (narrow_hrnet, 4, 64),
    "dla_narrow": (lambda: narrow_dla((2, 1, 1, 3, 1, 1), DlaBottleneck, cardinality=4, base_width=16, shortcut_root=True), 6, 32),
    "dla_res2net_narrow": (lambda: narrow_dla((1, 2, 2, 1, 1, 1), DlaBottle2neck, cardinality=2, base_width=16), 6, 32),
    "dpn_narrow": (lambda: narrow_dpn(False), 4, 48),
    "dpn_split_narrow": (lambda: narrow_dpn(True), 4, 48),
    "xception_aligned_narrow": (lambda: narrow_xception(False), 4, 48),
    "xception_aligned_p_narrow": (lambda: narrow_xception(True), 4, 48),
}

# After more steps of DLA the rounding of float64 shows; of the others more take long.
STEPS = {"dla_narrow": 2, "dla_res2net_narrow": 2, "hrnet_narrow": 3, "dpn_narrow": 3, "dpn_split_narrow": 3,
         "xception_aligned_narrow": 3, "xception_aligned_p_narrow": 3}

# Of a whole net: arguments, batch, size of images.
TIMM = {f"convnext_{size}": ({}, 2, 64) for size in ("xlarge", "xxlarge", "large_mlp", "tiny_hnf", "atto_ols", "femto_ols",
                                                     "pico_ols", "nano_ols", "zepto_rms", "zepto_rms_ols")}
TIMM |= {"convnextv2_huge": ({"drop_path_rate": 0.3}, 2, 64)}
TIMM |= {f"ese_vovnet{size}": ({}, 2, 64) for size in ("19b_dw", "39b", "57b")}
TIMM |= {f"hrnet_w{size}": ({}, 2, 64) for size in ("18_small", "18_small_v2", "18", "30", "32", "40", "44", "48", "64", "18_ssld",
                                                   "48_ssld")}
TIMM |= {f"dla{size}": ({}, 2, 96) for size in ("34", "46_c", "46x_c", "60", "60x", "60x_c", "60_res2net", "60_res2next", "102",
                                               "102x", "102x2", "169")}
TIMM |= {f"dpn{size}": ({}, 2, 96) for size in ("68", "68b", "92", "98", "131", "107")}
TIMM |= {f"xception{size}": ({}, 2, 96) for size in ("41", "65", "71", "41p", "65p")}
