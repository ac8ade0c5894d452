"""Narrow nets for small devices, and how make.py builds whole ones."""

from functools import partial
from types import SimpleNamespace

import torch
import torch.nn as nn
from timm.layers import GlobalContext, LayerNorm2d
from timm.models._efficientnet_blocks import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def, round_channels
from timm.models import edgenext, efficientformer
from timm.models.efficientformer import EfficientFormer
from timm.models.efficientformer_v2 import EfficientFormerV2
from timm.models.efficientnet import EfficientNet
from timm.models.efficientvit_mit import EfficientVit, EfficientVitLarge
from timm.models.fasternet import FasterNet
from timm.models.fastvit import FastVit, RepConditionalPosEnc
from timm.models.ghostnet import GhostNet
from timm.models.lcnetv2 import LCNetV2
from timm.models.levit import LevitDistilled
from timm.models.mobilenetv3 import MobileNetV3
from timm.models.repghost import RepGhostNet
from timm.models.repvit import RepVit
from timm.models.shvit import SHViT
from timm.models.starnet import StarNet
from timm.models.swiftformer import SwiftFormer

TF = {"pad_type": "same", "norm_layer": partial(nn.BatchNorm2d, eps=0.001)}


def efficientnet(*stages, depth=1, **kwargs):
    return EfficientNet(decode_arch_def([s.split() for s in stages], depth, "round"), num_classes=10, **kwargs)


def mobilenet(*stages, **kwargs):
    return MobileNetV3(decode_arch_def([s.split() for s in stages]), num_classes=10, **kwargs)


VARIANTS = {
    "tf_mixnet_narrow": (lambda: efficientnet(
        "ds_r1_k3_s1_e1_c16", "ir_r1_k3.5.7_a1.1_p1.1_s2_e3_c24 ir_r1_k3_a1.1_p1.1_s1_e2_c24_se0.5_nsw",
        "ir_r2_k3.5_p1.1_s2_e2_c32_se0.25_nsw ir_r3_k5_s1_e2.5_c32_nr6", "ir_r1_k5_s1_e2_c40", depth=0.7,
        stem_size=12, num_features=64, **TF), 8, 64),
    "gc_efficientnet_narrow": (lambda: efficientnet(
        "cn_r1_k1_s1_c16", "er_r1_k3_s2_e4_c24_fc16_noskip er_r1_k3_s1_e4_gs32_c24", "ir_r2_k5_s2_e3_c32_se0.25", "dsa_r2_k3_s2_c40",
        stem_size=12, stem_kernel_size=5, fix_stem=True, round_chs_fn=partial(round_channels, multiplier=0.8), num_features=0,
        act_layer=nn.SiLU, se_layer=GlobalContext), 8, 64),
    "fbnetv3_narrow": (lambda: mobilenet(
        "ds_r2_k3_s1_e1_c16", "ir_r1_k5_s2_e4_c24_se0.5 ir_r1_k3_s1_e3_c24_se0.25_nre", stem_size=16, num_features=96, head_bias=False,
        round_chs_fn=partial(round_channels, multiplier=1.3, round_limit=0.95), se_from_exp=False, act_layer=nn.Hardswish, aa_layer="blurpc",
        se_layer=partial(SqueezeExcite, gate_layer="hard_sigmoid", rd_round_fn=partial(round_channels, round_limit=0.95))), 8, 64),
    "lcnet_narrow": (lambda: mobilenet(
        "dsa_r1_k3_s1_c24", "dsa_r2_k5_s2_c40_se0.25", "dsa_r1_k3_s2_c64_se0.25", num_features=96, act_layer=nn.Hardswish,
        round_chs_fn=partial(round_channels, multiplier=0.5), se_layer=partial(SqueezeExcite, gate_layer="hard_sigmoid", force_act_layer=nn.ReLU),
        drop_rate=0.2), 8, 64),
    "mobilenetv4_hybrid_narrow": (lambda: mobilenet(
        "er_r1_k3_s2_e3_c16", "uir_r1_a3_k5_s2_e2_c24 mqa_r1_k3_h3_s1_v2_d8_c24 uir_r1_a3_k0_s1_e2_c24", "uir_r1_a3_k0_s2_e2_c32 mqa_r1_k3_h2_s1_d16_c32",
        "cn_r1_k1_s1_c48",
        stem_size=12, fix_stem=True, num_features=64, head_bias=False, head_norm=True, act_layer=nn.GELU, layer_scale_init_value=1e-5,
        aa_layer="avg", drop_path_rate=0.2), 8, 64),
}

TIMM = {name: ({}, 2, 64) for name in (
    "efficientnet_es", "efficientnet_em", "efficientnet_el", "tf_efficientnet_es", "tf_efficientnet_em", "tf_efficientnet_el",
    "mixnet_s", "mixnet_m", "mixnet_l", "mixnet_xl", "tf_mixnet_s", "tf_mixnet_m", "tf_mixnet_l",
    "tinynet_a", "tinynet_b", "tinynet_c", "tinynet_d", "tinynet_e", "mobilenetv1_100", "mobilenetv1_100h", "mobilenetv1_125",
    "semnasnet_075", "semnasnet_100", "spnasnet_100", "mnasnet_small", "efficientnetv2_rw_t", "efficientnetv2_rw_s", "efficientnetv2_rw_m",
    "gc_efficientnetv2_rw_t", "mobilenet_edgetpu_v2_m", "lcnet_050", "lcnet_075", "lcnet_100", "fbnetv3_b", "fbnetv3_d", "fbnetv3_g",
    "mobilenetv3_rw", "mobilenetv3_large_150d", "tf_mobilenetv3_large_minimal_100", "tf_mobilenetv3_small_minimal_100",
    "mobilenetv4_hybrid_medium", "mobilenetv4_hybrid_large", "mobilenetv4_conv_aa_large", "mobilenetv4_conv_blur_medium",
    "hardcorenas_a", "hardcorenas_b", "hardcorenas_c", "hardcorenas_d", "hardcorenas_e", "hardcorenas_f")}
TIMM["fbnetc_100"] = {"bn_eps": 0.001}, 2, 64
for name in "tf_efficientnet_b8", "tf_efficientnet_l2", "tf_efficientnetv2_xl":
    TIMM[name] = {"drop_rate": 0.4 if "v2" in name else 0.5, "drop_path_rate": 0.2}, 2, 64

VARIANTS |= {
    "repvit_narrow": (lambda: RepVit(embed_dim=(8, 16, 24, 32), depth=(1, 2, 1, 1), num_classes=10), 4, 64),
    "repvit_legacy_narrow": (lambda: RepVit(embed_dim=(8, 16, 16, 24), depth=(1, 1, 2, 1), num_classes=10, legacy=True), 4, 64),
    "efficientvit_narrow": (lambda: EfficientVit(
        widths=(8, 8, 16, 24, 32), depths=(1, 2, 1, 1, 1), head_dim=8, head_widths=(48, 40), num_classes=10, drop_rate=0.2), 4, 64),
    "efficientvit_large_narrow": (lambda: EfficientVitLarge(
        widths=(8, 8, 8, 12, 16), depths=(1, 1, 1, 1, 1), head_dim=8, head_widths=(48, 40), num_classes=10, drop_rate=0.2), 4, 64),
}
TIMM |= {f"repvit_{name}": ({}, 2, 96) for name in ("m1", "m2", "m3", "m0_9", "m1_0", "m1_1", "m1_5", "m2_3")}
TIMM |= {f"efficientvit_{name}": ({}, 2, 96) for name in ("b0", "b1", "b2", "b3", "l1", "l2", "l3")}


def narrow_efficientformer():
    model = EfficientFormer(depths=(1, 1, 1, 3), embed_dims=(8, 12, 16, 24), num_vit=2, num_classes=10, drop_rate=0.2, drop_path_rate=0.2)
    for block in model.stages[3].blocks[2:]:
        block.token_mixer = efficientformer.Attention(24, resolution=2)
    model.apply(model._init_weights)
    return model


VARIANTS |= {
    "efficientformer_narrow": (narrow_efficientformer, 4, 64),
    "efficientformerv2_narrow": (lambda: EfficientFormerV2(
        depths=(1, 1, 2, 2), embed_dims=(8, 12, 16, 24), mlp_ratios=(2, 3, (2, 1), (1, 2)), num_vit=1, img_size=64, num_classes=10,
        drop_rate=0.2, drop_path_rate=0.2), 4, 64),
    "levit_narrow": (lambda: LevitDistilled(
        use_conv=True, img_size=96, embed_dim=(16, 24, 32), key_dim=4, num_heads=(2, 3, 5), depth=(2, 1, 1), num_classes=10, drop_path_rate=0.1), 4, 96),
}
TIMM |= {f"efficientformer_{name}": ({}, 2, 224) for name in ("l1", "l3", "l7")}
TIMM |= {f"efficientformerv2_{name}": ({}, 2, 224) for name in ("s0", "s1", "s2", "l")}
TIMM |= {f"levit_conv_{name}": ({}, 2, 224) for name in ("128s", "128", "192", "256", "384")}


edgenext.torch = SimpleNamespace(**{**vars(torch), "float32": torch.float64})  # in which it makes places whatever the net's type
VARIANTS |= {
    "edgenext_narrow": (lambda: edgenext.EdgeNeXt(
        dims=(8, 16, 20, 24), depths=(1, 1, 2, 1), heads=(4, 4, 4, 4), num_classes=10, drop_rate=0.2, drop_path_rate=0.1), 4, 64),
    "edgenext_overlap_narrow": (lambda: edgenext.EdgeNeXt(
        dims=(8, 16, 32, 32), depths=(1, 2, 2, 1), heads=(4, 4, 4, 4), num_classes=10, downsample_block=True, conv_bias=False,
        stem_type="overlap"), 4, 64),
}
TIMM |= {f"edgenext_{name}": ({}, 2, 96) for name in ("xx_small", "x_small", "small_rw")}
TIMM |= {f"edgenext_{name}": ({"drop_path_rate": 0.1}, 2, 96) for name in ("small", "base")}

VARIANTS |= {
    "starnet_narrow": (lambda: StarNet(base_dim=8, depths=[1, 1, 2, 1], num_classes=10, drop_rate=0.2, drop_path_rate=0.2), 4, 64),
    "fasternet_narrow": (lambda: FasterNet(
        embed_dim=8, depths=(1, 1, 2, 1), num_classes=10, drop_rate=0.2, drop_path_rate=0.2, act_layer=nn.GELU), 4, 64),
    "shvit_narrow": (lambda: SHViT(
        embed_dim=(16, 24, 32), partial_dim=(4, 9, 12), depth=(1, 2, 1), types=("i", "s", "s"), num_classes=10, drop_rate=0.2), 4, 96),
    "repghostnet_narrow": (lambda: RepGhostNet(
        [[[3, 16, 16, 0, 1]], [[3, 24, 24, 0, 2]], [[5, 36, 40, 0.25, 2], [3, 40, 40, 0.25, 1]]], width=0.5, num_classes=10), 4, 64),
}
TIMM |= {f"starnet_s{i}": ({}, 2, 64) for i in range(1, 5)}
TIMM |= {f"fasternet_{name}": ({}, 2, 64) for name in ("t0", "t1", "t2", "s", "m", "l")}
TIMM |= {f"shvit_s{i}": ({}, 2, 96) for i in range(1, 5)}
TIMM |= {f"repghostnet_{name}": ({}, 2, 64) for name in ("050", "058", "080", "100", "111", "130", "150", "200")}

GHOST = [[[3, 16, 16, 0, 1]], [[3, 24, 24, 0, 2]], [[5, 40, 40, 0.25, 2], [3, 48, 40, 0, 1]]]
VARIANTS |= {
    "ghostnetv2_narrow": (lambda: GhostNet(GHOST, width=0.5, num_classes=10, version="v2"), 4, 56),
    "ghostnetv3_narrow": (lambda: GhostNet(GHOST, width=0.5, num_classes=10, version="v3"), 4, 56),
    "lcnetv2_narrow": (lambda: LCNetV2(scale=0.125, depths=(1, 1, 2, 2), num_classes=10, drop_rate=0.2), 4, 64),
    "swiftformer_narrow": (lambda: SwiftFormer(
        layers=[2, 1, 1, 1], embed_dims=[8, 12, 16, 20], num_classes=10, drop_rate=0.2, drop_path_rate=0.2), 4, 64),
    "fastvit_mci_narrow": (lambda: FastVit(
        layers=(1, 1, 1), embed_dims=(8, 32, 64), mlp_ratios=(2, 2, 2), token_mixers=("repmixer", "attention", "attention"),
        downsamples=(False, True, True), se_downsamples=(False, True, False), pos_embs=(None, RepConditionalPosEnc, RepConditionalPosEnc),
        lkc_use_act=True, norm_layer=partial(LayerNorm2d, eps=1e-5), stem_use_scale_branch=False, num_classes=10, drop_path_rate=0.1), 4, 64),
}
TIMM |= {f"ghostnetv{version}": ({}, 2, 64) for version in ("2_100", "2_130", "2_160", "3_100")}
TIMM |= {f"lcnetv2_{size}": ({}, 2, 64) for size in ("small", "base", "large")}
TIMM |= {f"swiftformer_{size}": ({}, 2, 64) for size in ("xs", "s", "l1", "l3")}
TIMM |= {f"fastvit_mci{i}": ({}, 2, 64) for i in range(5)}

# Blurs are convolutions in timm and means here, and PyTorch does not count bilinear interpolation.
UNCOUNTED = {"mobilenetv4_conv_blur_medium"} | {f"efficientformerv2_{size}" for size in ("s0", "s1", "s2", "l")}
