"""Narrow and whole convolutional nets of timm, for make.py."""

from functools import partial

import torch.nn as nn
from nets import thin
from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg
from timm.models import inception_next, rexnet
from timm.models.convnext import ConvNeXt
from timm.models.cspnet import CspModelCfg, CspNet, CspStagesCfg, CspStemCfg
from timm.models.dla import DLA, DlaBasic, DlaBottle2neck, DlaBottleneck
from timm.models.dpn import DPN
from timm.models.hgnet import HighPerfGpuNet
from timm.models.hrnet import HighResolutionNet
from timm.models.regnet import RegNet, RegNetCfg
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


def narrow_byobnet(*blocks, rates=(0.2, 0.2), img_size=None, **kwargs):
    cfg = ByoModelCfg(blocks=tuple(ByoBlockCfg(*b[:6], **(b[6] if len(b) > 6 else {})) for b in blocks), **kwargs)
    return ByobNet(cfg, num_classes=10, drop_rate=rates[0], drop_path_rate=rates[1], img_size=img_size)


def narrow_mobileone():
    pair = lambda i, o, **kwargs: (ByoBlockCfg("one", 1, i, gs=1, block_kwargs={"num_conv_branches": 2}, **kwargs),
                                   ByoBlockCfg("one", 1, o, gs=0, block_kwargs={"num_conv_branches": 2, "kernel_size": 1}, **kwargs))
    se = {"attn_layer": "se"}
    blocks = (pair(8, 16) + pair(16, 16), pair(16, 24), pair(24, 24) + pair(24, 24, **se), pair(24, 24, **se))
    return ByobNet(ByoModelCfg(blocks=blocks, stem_type="one", stem_chs=8), num_classes=10, drop_rate=0.2, drop_path_rate=0.2)


def narrow_repvgg_se():
    blocks = [ByoBlockCfg(type="rep", d=d, c=c) for d, c in ((2, 16), (1, 16), (1, 24), (1, 40))]
    return ByobNet(ByoModelCfg(blocks=blocks, stem_type="rep", stem_chs=16, attn_layer="se",
                               attn_kwargs=dict(rd_ratio=0.0625, rd_divisor=1)), num_classes=10)


def narrow_csp(stem, act="leaky_relu", **stages):
    cfg = CspModelCfg(stem=CspStemCfg(**stem), stages=CspStagesCfg(**stages), act_layer=act)
    return CspNet(cfg, num_classes=10, drop_rate=0.2, drop_path_rate=0.2)


class NarrowReXNet(rexnet.RexNet):
    """With fewer blocks."""

    def __init__(self):
        whole = rexnet._block_cfg
        rexnet._block_cfg = lambda *args: [(12, 1, 1, 0.0), (16, 6, 2, 0.0), (20, 6, 1, 0.0), (24, 6, 2, 0.25), (28, 6, 1, 0.25)]
        super().__init__(num_classes=10, width_mult=1.0, drop_path_rate=0.2)
        rexnet._block_cfg = whole


def narrow_hgnet_v1():
    stages = ([12, 8, 16, 1, False, False, 3, 2], [16, 8, 24, 2, True, False, 3, 2], [24, 12, 24, 1, True, False, 3, 1],
              [24, 16, 32, 2, True, False, 3, 1])
    cfg = {"stem_type": "v1", "stem_chs": [8, 8, 12]} | {f"stage{i + 1}": s for i, s in enumerate(stages)}
    return HighPerfGpuNet(cfg, num_classes=10, head_hidden_size=40, drop_rate=0.2, drop_path_rate=0.2)


VARIANTS = {
    "convnext_hnf_narrow": (lambda: narrow_convnext(stem_type="overlap_tiered", head_norm_first=True), 3, 64),
    "convnext_simple_narrow": (lambda: narrow_convnext(stem_type="overlap_act", norm_layer="simplenorm", norm_eps=1e-3,
                                                       head_hidden_size=40), 3, 64),
    # GENet's and ResNet-61-Q's kinds of blocks, then ECA and a pooling in the stem, then RegNetZ's, then CLIP's.
    "byobnet_narrow": (lambda: narrow_byobnet(
        ("edge", 1, 16, 1, 0, 1.0, {"block_kwargs": {}}), ("basic", 2, 24, 2, 0, 1.0, {"attn_layer": "", "block_kwargs": {}}),
        ("bottle", 2, 32, 2, 8, 0.5), ("bottle", 2, 32, 1, 1, 1.0),
        stem_chs=32, stem_type="quad2", stem_pool="", num_features=40, act_layer="silu", block_kwargs={"extra_conv": True},
        attn_layer="gca"), 4, 64),
    "byobnet_eca_narrow": (lambda: narrow_byobnet(
        ("bottle", 2, 32, 1, 8, 0.5), ("bottle", 1, 64, 2, 8, 0.5), stem_chs=32, stem_type="tiered", act_layer="silu", attn_layer="eca"), 4, 38),
    "regnetz_narrow": (lambda: narrow_byobnet(
        ("bottle", 2, 16, 2, 8, 3), ("bottle", 2, 24, 2, 8, 3), stem_chs=8, stem_pool="", downsample="", num_features=40, act_layer="silu",
        attn_layer="se", attn_kwargs={"rd_ratio": 0.25}, block_kwargs={"bottle_in": True, "linear_out": True}, rates=(0.2, 0)), 4, 38),
    "resnet_clip_narrow": (lambda: narrow_byobnet(
        ("bottle", 2, 32, 1, None, 0.25), ("bottle", 1, 64, 2, None, 0.25), ("bottle", 1, 64, 2, None, 0.25), ("bottle", 1, 128, 2, None, 0.25),
        stem_chs=(8, 8, 16), stem_type="", stem_pool="avg2", downsample="avg", aa_layer="avg", head_type="attn_abs", img_size=64), 6, 64),
    "mobileone_narrow": (narrow_mobileone, 4, 64),
    "repvgg_se_narrow": (narrow_repvgg_se, 8, 48),
    "cspnet_narrow": (lambda: narrow_csp(
        dict(out_chs=16, kernel_size=7, stride=4, pool="max"), depth=(1, 2), out_chs=(16, 32), stride=(1, 2), groups=2, expand_ratio=2.0,
        bottle_ratio=0.5, cross_linear=True), 4, 64),
    "cspnet_cs3_narrow": (lambda: narrow_csp(
        dict(out_chs=16, kernel_size=6, stride=2, padding=2, pool=""), "silu", depth=(1, 2), out_chs=(32, 48), stride=2, block_ratio=0.5,
        bottle_ratio=1.5, stage_type="cs3", block_type="edge", attn_layer="se", attn_kwargs={"rd_ratio": 0.25}), 4, 64),
    "cspnet_dark_narrow": (lambda: narrow_csp(
        dict(out_chs=8, kernel_size=3, stride=1, pool=""), depth=(1, 2), out_chs=(16, 32), stride=2, bottle_ratio=0.5, avg_down=True,
        stage_type="dark", block_type="dark"), 4, 32),
    "rexnet_narrow": (NarrowReXNet, 4, 48),
    "inception_next_narrow": (lambda: inception_next.MetaNeXt(
        depths=(1, 2, 1, 1), dims=(16, 32, 64, 128), token_mixers=partial(inception_next.InceptionDWConv2d, band_kernel_size=9, branch_ratio=0.25),
        ls_init_value=0.2, drop_path_rate=0.2, num_classes=10), 4, 64),
    "hgnet_narrow": (narrow_hgnet_v1, 4, 64),
    "regnetz_timm_narrow": (lambda: RegNet(RegNetCfg(depth=6, w0=8, wa=12.5, wm=2.2, group_size=8, se_ratio=0.25, bottle_ratio=2.0,
                                                     downsample=None, linear_out=True, act_layer="silu"), num_classes=10, zero_init_last=False), 4, 64),
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
         "xception_aligned_narrow": 3, "xception_aligned_p_narrow": 3, "byobnet_narrow": 3, "byobnet_eca_narrow": 3, "regnetz_narrow": 3,
         "resnet_clip_narrow": 3, "repvgg_se_narrow": 3,
         "cspnet_narrow": 3, "cspnet_cs3_narrow": 3, "cspnet_dark_narrow": 3, "rexnet_narrow": 3, "hgnet_narrow": 3, "regnetz_timm_narrow": 3, "inception_next_narrow": 3}

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
TIMM |= {f"gernet_{size}": ({}, 2, 96) for size in "sml"}
TIMM |= {name: ({}, 2, 96) for name in ("resnext26ts", "seresnext26ts", "gcresnext26ts", "eca_resnext26ts", "resnet32ts", "resnet33ts",
                                        "seresnet33ts", "gcresnet33ts", "eca_resnet33ts", "gcresnet50t", "gcresnext50ts", "resnet51q",
                                        "resnet61q", "repvgg_d2se")}
TIMM |= {f"regnetz_{size}": ({}, 2, 96) for size in ("b16", "c16", "d32", "d8", "e8")}
TIMM |= {f"mobileone_s{i}": ({}, 2, 96) for i in range(5)}
TIMM |= {f"resnet{size}_clip": ({"img_size": 96}, 2, 96) for size in ("50", "101", "50x4", "50x16", "50x64")}
TIMM |= {f"resnet{size}_clip_gap": ({}, 2, 96) for size in ("50", "101", "50x4", "50x16", "50x64")}
TIMM |= {name: ({}, 2, 96) for name in ("cspresnet50", "cspresnext50", "cspdarknet53", "darknet53", "darknetaa53")}
TIMM |= {f"cs3{name}": ({}, 2, 96) for name in ("darknet_m", "darknet_l", "darknet_x", "darknet_focus_s", "darknet_focus_m",
                                               "darknet_focus_l", "sedarknet_l", "sedarknet_x", "edgenet_x", "se_edgenet_x")}
TIMM |= {f"rexnet{name}": ({}, 2, 96) for name in ("_100", "_130", "_150", "_200", "_300", "r_200", "r_300")}
TIMM |= {f"inception_next_{size}": ({}, 2, 96) for size in ("atto", "tiny", "small", "base")}
TIMM |= {f"hgnet_{size}": ({}, 2, 96) for size in ("tiny", "small", "base")}
TIMM |= {f"regnet{size}": ({}, 2, 96) for size in ("y_640", "y_2560", "z_040", "z_040_h")}

# They compute all tokens, of which they use one.
UNCOUNTED = {f"resnet{size}_clip" for size in ("50", "101", "50x4", "50x16", "50x64")}
