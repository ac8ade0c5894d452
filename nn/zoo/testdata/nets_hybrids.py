"""Narrow and whole transformers with convolutions, relative positions or other kinds of attention of timm, for make.py."""

from functools import partial

import torch.nn as nn
import torch.nn.functional as F
from timm.layers import DropPath, GluMlp, GroupNormAct, HybridEmbed, RelPosMlp, StdConv2dSame
from timm.models.convit import ConVit
from timm.models.davit import DaVit
from timm.models.mlp_mixer import MlpMixer
from timm.models.mvitv2 import MultiScaleVit, MultiScaleVitCfg
from timm.models.resnetv2 import ResNetV2
from timm.models.tnt import TNT
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem
from timm.models.vision_transformer_relpos import ResPostRelPosBlock, VisionTransformerRelPos
from timm.models.vision_transformer_sam import VisionTransformerSAM
from timm.models.volo import VOLO

from nets_hier import double_offsets, narrow, offset_bias


def BLOCKS(model):
    """The number of blocks of VOLO, of which the first are of another kind and drop nothing."""
    return sum(len(model.network[i]) for i in (0, 2, 3, 4)) if isinstance(model, VOLO) else 0


def small(make, **kwargs):
    return narrow(make, embed_dim=24, depth=2, num_heads=3, **kwargs)


def hybrid(backbone, proj=True, **kwargs):
    embed = partial(HybridEmbed, backbone=backbone, proj=proj)
    return small(VisionTransformer, img_size=48, patch_size=1, embed_layer=embed, **kwargs)


def resnet():
    return ResNetV2((1, 2), (16, 32), num_classes=0, global_pool="", stem_chs=8, preact=False, stem_type="same",
                    conv_layer=partial(StdConv2dSame, eps=1e-2), norm_layer=partial(GroupNormAct, num_groups=4))


def relpos(**kwargs):
    model = double_offsets(small(VisionTransformerRelPos, img_size=24, patch_size=8, rel_pos_dim=12, **kwargs))
    for m in model.modules():
        if isinstance(m, RelPosMlp) and m.prefix_tokens:
            m.get_bias = lambda m=m: F.pad(offset_bias(m), [1, 0, 1, 0])
    return model


def tnt(**kwargs):
    """A DropPath of TNT has four uses: here each has a name, for make.py."""
    model = narrow(TNT, img_size=32, embed_dim=24, inner_dim=8, depth=2, num_heads_outer=3, num_heads_inner=2, **kwargs)
    for b in model.blocks:
        p = getattr(b.drop_path, "drop_prob", 0.0)
        b.drop_path = nn.Identity()
        for i in range(4):
            setattr(b, f"drop_path{i + 1}", DropPath(p))
    return model


VARIANTS = {
    "vit_hybrid_narrow": (lambda: hybrid(resnet()), 3, 48),
    "vit_mci_narrow": (lambda: hybrid(ConvStem(3, 3, (6, 6, 24), (4, 2, 2), (4, 2, 2), 0, act_layer=nn.GELU), False, no_embed_class=True), 3, 48),
    "vit_relpos_narrow": (lambda: relpos(class_token=True, fc_norm=True, init_values=0.2), 3, 24),
    "vit_srelpos_narrow": (lambda: relpos(shared_rel_pos=True, qkv_bias=False, block_fn=ResPostRelPosBlock), 3, 24),
    "volo_narrow": (lambda: narrow(VOLO, layers=(2, 1, 1, 1), img_size=64, embed_dims=(8, 16, 16, 16), num_heads=(2, 4, 4, 4), mlp_ratio=2,
                                   stem_hidden_dim=8), 3, 64),
    "samvit_narrow": (lambda: small(VisionTransformerSAM, img_size=40, patch_size=8, use_rel_pos=True, window_size=3, global_attn_indexes=(0,),
                                    neck_chans=8), 3, 40),
    "mvitv2_cls_narrow": (lambda: narrow(MultiScaleVit, cfg=MultiScaleVitCfg(depths=(1, 1, 1, 1), embed_dim=8, use_cls_token=True),
                                         img_size=32), 3, 32),
    "tnt_narrow": (lambda: tnt(), 3, 32),
    "tnt_legacy_narrow": (lambda: tnt(legacy=True), 3, 32),
    "convit_narrow": (lambda: narrow(ConVit, img_size=32, patch_size=8, embed_dim=6, depth=3, num_heads=4, local_up_to_layer=2), 3, 32),
    "davit_fl_narrow": (lambda: narrow(DaVit, embed_dims=(8, 16, 32, 64), num_heads=(2, 4, 8, 16), depths=(1, 2, 1, 1), window_size=3,
                                       down_kernel_size=3, channel_attn_v2=True, named_blocks=True), 3, 58),
    "gmixer_narrow": (lambda: narrow(MlpMixer, img_size=24, patch_size=8, embed_dim=24, num_blocks=2, mlp_ratio=(1.0, 2.5), mlp_layer=GluMlp,
                                     act_layer=nn.SiLU), 3, 24),
}

# Attention with products of distances, or of weights by content and by offset, has other products here.
UNCOUNTED = {f"samvit_{size}" for size in ("base_patch16", "large_patch16", "huge_patch16", "base_patch16_224")}
UNCOUNTED |= {f"mvitv2_{size}_cls" for size in ("small", "base", "large", "huge")} | {f"convit_{size}" for size in ("tiny", "small", "base")}

# Smaller images than usual take less time.
TIMM = {f"vit_{name}": ({"img_size": 64}, 2, 64) for name in (
    "tiny_r_s16_p8_224", "tiny_r_s16_p8_384", "small_r26_s32_224", "small_r26_s32_384", "base_r26_s32_224", "base_r50_s16_224",
    "base_r50_s16_384", "large_r50_s32_224", "large_r50_s32_384", "base_mci_224")}
TIMM |= {f"vit_{name}": ({}, 1, int(name[-3:])) for name in (
    "relpos_base_patch32_plus_rpn_256", "relpos_base_patch16_plus_240", "relpos_small_patch16_224", "relpos_medium_patch16_224",
    "relpos_base_patch16_224", "srelpos_small_patch16_224", "srelpos_medium_patch16_224", "relpos_medium_patch16_cls_224",
    "relpos_base_patch16_cls_224", "relpos_base_patch16_clsgap_224", "relpos_small_patch16_rpn_224", "relpos_medium_patch16_rpn_224",
    "relpos_base_patch16_rpn_224")}
TIMM |= {f"volo_{name}": ({"img_size": 64}, 2, 64) for name in (
    "d1_224", "d1_384", "d2_224", "d2_384", "d3_224", "d3_448", "d4_224", "d4_448", "d5_224", "d5_448", "d5_512")}
TIMM |= {f"samvit_{name}": ({"img_size": 64}, 1, 64) for name in ("base_patch16", "large_patch16", "huge_patch16", "base_patch16_224")}
TIMM |= {f"mvitv2_{size}_cls": ({"img_size": 64}, 1, 64) for size in ("small", "base", "large", "huge")}
TIMM |= {f"tnt_{size}_patch16_224": ({"img_size": 32}, 2, 32) for size in ("s_legacy", "s", "b")}
TIMM |= {f"convit_{size}": ({"img_size": 64}, 2, 64) for size in ("tiny", "small", "base")}
TIMM |= {f"davit_{size}_fl": ({}, 2, 64) for size in ("base", "huge")}
TIMM |= {f"gmixer_{blocks}_224": ({"img_size": 64}, 2, 64) for blocks in (12, 24)}
