"""Narrow and whole vision transformers of timm, for make.py."""

from functools import partial

from timm.layers import HybridEmbed, LayerNorm, RmsNorm, SwiGLU, SwiGLUPacked
from timm.models.eva import Eva
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import DiffParallelScalingBlock, ParallelScalingBlock, ResPostBlock, VisionTransformer
from timm.models.vitamin import GeGluMlp, MbConvStages, VitCfg


def vit(**kwargs):
    return VisionTransformer(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=10, **kwargs)


def wee(**kwargs):
    return vit(class_token=False, no_embed_class=True, reg_tokens=1, global_pool="avg", init_values=1e-5, **kwargs)


def eva(**kwargs):
    return Eva(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=10, **kwargs)


def vitamin():
    backbone = MbConvStages(VitCfg(embed_dim=(8, 16, 24), depths=(1, 2, 1), stem_width=8))
    return VisionTransformer(img_size=48, patch_size=1, embed_dim=24, depth=2, num_heads=3, num_classes=10, mlp_layer=GeGluMlp, mlp_ratio=2.0,
                             class_token=False, global_pool="avg", embed_layer=partial(HybridEmbed, backbone=backbone, proj=False))


VARIANTS = {
    "swin_s3_timm_narrow": (lambda: SwinTransformer(64, embed_dim=8, depths=(2, 2, 1, 1), num_heads=(2, 4, 8, 16), num_classes=10,
                                                    window_size=(4, 4, 4, 2)), 2, 64),
    "vit_rpn_timm_narrow": (lambda: vit(global_pool="avg", reg_tokens=2, qkv_bias=False, init_values=1e-5, block_fn=ResPostBlock,
                                        scale_attn_norm=True, scale_mlp_norm=True), 3, 24),
    "dinov2_giant_narrow": (lambda: vit(reg_tokens=2, no_embed_class=True, init_values=1e-5, mlp_layer=SwiGLUPacked, act_layer="silu",
                                        mlp_ratio=2.67, final_norm=False), 3, 24),
    "aimv2_narrow": (lambda: vit(class_token=False, global_pool="avg", fc_norm=False, mlp_ratio=1.67, qkv_bias=False, proj_bias=False,
                                 act_layer="silu", norm_layer=partial(RmsNorm, eps=1e-5), embed_norm_layer=partial(RmsNorm, eps=1e-5),
                                 mlp_layer=SwiGLU), 3, 24),
    "eva_clip_narrow": (lambda: eva(use_post_norm=True, scale_attn_inner=True, scale_mlp=True, global_pool="token"), 3, 24),
    "vit_rope_narrow": (lambda: eva(attn_type="rope", global_pool="token", init_values=1e-5, no_embed_class=True, use_rot_pos_emb=True,
                                    rope_grid_indexing="xy", rope_temperature=100.0), 3, 24),
    "vit_rope_gap_narrow": (lambda: eva(class_token=False, num_reg_tokens=2, use_rot_pos_emb=True, use_abs_pos_emb=False,
                                        ref_feat_shape=(2, 2), init_values=1e-5), 3, 24),
    "vit_pe_core_narrow": (lambda: eva(attn_type="rope", global_pool="map", attn_pool_num_heads=4, attn_pool_mlp_ratio=4.0,
                                       use_pre_transformer_norm=True, use_rot_pos_emb=True, ref_feat_shape=(2, 2), rope_grid_offset=1.0,
                                       rope_grid_indexing="xy", norm_layer=partial(LayerNorm, eps=1e-5)), 3, 24),
    "vit_pwee_narrow": (lambda: wee(block_fn=ParallelScalingBlock, drop_path_rate=0.1), 3, 24),
    "vit_dpwee_narrow": (lambda: wee(block_fn=DiffParallelScalingBlock), 3, 24),
    "vit_dwee_narrow": (lambda: wee(attn_layer="diff"), 3, 24),
    "vitamin_narrow": (vitamin, 3, 48),
}

# Whole nets: arguments, batch, size.
TIMM = {
    "swinv2_base_window12_192": ({}, 1, 192),
    "swinv2_large_window12_192": ({}, 1, 192),
    "swin_base_patch4_window12_384": ({}, 1, 384),
    "swin_large_patch4_window7_224": ({}, 1, 224),
    "swin_large_patch4_window12_384": ({}, 1, 384),
    # Those of larger images are judged with the usual ones.
    **{f"vit_{size}_384": ({"img_size": 224}, 1, 224) for size in (
        "tiny_patch16", "small_patch16", "small_patch32", "base_patch16", "base_patch32", "large_patch16", "large_patch32")},
    **{f"deit3_{size}_patch16_384": ({"img_size": 224}, 1, 224) for size in ("small", "base", "large")},
    "deit3_huge_patch14_224": ({}, 1, 224),
    **{f"deit_base_{kind}patch16_384": ({"img_size": 224, "drop_path_rate": 0.1}, 1, 224) for kind in ("", "distilled_")},
    **{f"xcit_{size}_p{patch}_384": ({}, 2, 64) for size in (
        "nano_12", "tiny_12", "small_12", "tiny_24", "small_24", "medium_24", "large_24") for patch in (16, 8)},
    **{f"vit_{size}": ({"img_size": 224}, 1, 224) for size in (
        "xsmall_patch16_clip_224", "medium_patch16_clip_224", "medium_patch32_clip_224", "betwixt_patch32_clip_224",
        "base_patch32_clip_256", "base_patch32_clip_384", "base_patch32_clip_448", "base_patch16_clip_384", "base_patch16_plus_clip_240",
        "large_patch14_clip_336", "large_patch14_clip_quickgelu_336", "huge_patch14_clip_224", "huge_patch14_clip_336",
        "huge_patch14_clip_378", "huge_patch14_clip_quickgelu_224", "huge_patch14_clip_quickgelu_378", "giant_patch14_clip_224",
        "gigantic_patch14_clip_224", "gigantic_patch14_clip_378", "gigantic_patch14_clip_quickgelu_224")},
    **{f"vit_{size}": ({"img_size": 224}, 1, 224) for size in (
        "base_patch16_siglip_512", "base_patch32_siglip_gap_256", "base_patch16_siglip_gap_256", "base_patch16_siglip_gap_384",
        "base_patch16_siglip_gap_512", "large_patch16_siglip_512", "large_patch16_siglip_gap_256", "large_patch16_siglip_gap_384",
        "large_patch16_siglip_gap_512", "so400m_patch14_siglip_378", "so400m_patch14_siglip_gap_224", "so400m_patch14_siglip_gap_378",
        "so400m_patch14_siglip_gap_384", "so400m_patch14_siglip_gap_448", "so400m_patch14_siglip_gap_896", "so400m_patch16_siglip_512",
        "so400m_patch16_siglip_gap_256", "so400m_patch16_siglip_gap_384", "so400m_patch16_siglip_gap_512",
        "giantopt_patch16_siglip_256", "giantopt_patch16_siglip_384", "giantopt_patch16_siglip_gap_256",
        "giantopt_patch16_siglip_gap_384")},
    **{f"vit_{size}": ({"img_size": 224}, 1, 224) for size in (
        "small_patch8_224", "base_patch8_224", "large_patch14_224", "huge_patch14_224", "giant_patch14_224", "gigantic_patch14_224",
        "base_patch16_224_miil", "base_patch16_rpn_224", "small_patch16_36x1_224", "base_patch32_plus_256", "base_patch16_plus_240",
        "medium_patch16_gap_240", "medium_patch16_gap_256", "medium_patch16_gap_384", "betwixt_patch16_gap_256", "huge_patch14_gap_224",
        "huge_patch16_gap_448", "giant_patch16_gap_224", "wee_patch16_reg1_gap_256",
        "pwee_patch16_reg1_gap_256", "dwee_patch16_reg1_gap_256", "dlittle_patch16_reg1_gap_256", "dpwee_patch16_reg1_gap_256", "little_patch16_reg1_gap_256",
        "little_patch16_reg4_gap_256", "medium_patch16_reg1_gap_256", "medium_patch16_reg4_gap_256", "mediumd_patch16_reg4_gap_256",
        "mediumd_patch16_reg4_gap_384", "betwixt_patch16_reg1_gap_256", "betwixt_patch16_reg4_gap_256", "betwixt_patch16_reg4_gap_384",
        "base_patch16_reg4_gap_256", "so150m_patch16_reg4_gap_256", "so150m_patch16_reg4_gap_384", "so150m_patch16_reg4_map_256",
        "so150m2_patch16_reg1_gap_256", "so150m2_patch16_reg1_gap_384", "so150m2_patch16_reg1_gap_448", "intern300m_patch14_448",
        "giant_patch14_dinov2", "giant_patch14_reg4_dinov2", "base_patch14_reg1_tipsv2", "large_patch14_reg1_tipsv2",
        "so400m_patch14_reg1_tipsv2", "giant_patch14_reg1_tipsv2", "base_patch16_radio_v3", "large_patch16_radio_v3",
        "huge_patch16_radio_v3", "giant_patch16_radio_v3", "huge_patch16_radio_v4", "so400m_patch16_radio_v4")},
    **{f"flexivit_{size}": ({"img_size": 224}, 1, 224) for size in ("small", "base", "large")},
    **{f"eva_large_patch14_{size}": ({"img_size": 224}, 1, 224) for size in (196, 336)},
    **{f"beit3_{size}": ({"img_size": 224}, 1, 224) for size in ("base_patch16_224", "large_patch16_224", "giant_patch14_224",
                                                                   "giant_patch14_336")},
    **{f"aimv2_{size}_patch14_{pixels}": ({"img_size": 224}, 1, 224) for size in ("large", "huge", "1b", "3b") for pixels in (224, 336, 448)},
    **{f"eva{name}": ({"img_size": 224}, 1, 224) for name in (
        "02_base_patch16_clip_224", "02_large_patch14_clip_224", "02_large_patch14_clip_336", "02_enormous_patch14_clip_224",
        "_giant_patch14_clip_224", "_giant_patch14_224", "_giant_patch14_336", "_giant_patch14_560")},
    "vit_7b_patch16_dinov3": ({"img_size": 224}, 1, 224),
    **{f"vit_{size}_patch16_{kind}": ({"img_size": 224}, 1, 224) for size in ("small", "base", "large") for kind in ("rope_224", "rope_ape_224")},
    **{f"vit_{size}_gap_256": ({"img_size": 224}, 1, 224) for size in (
        "medium_patch16_rope_reg1", "mediumd_patch16_rope_reg1", "betwixt_patch16_rope_reg4", "base_patch16_rope_reg1")},
    **{f"vit_pe_{name}": ({"img_size": 224}, 1, 224) for name in (
        "core_tiny_patch16_384", "core_small_patch16_384", "core_base_patch16_224", "core_large_patch14_336",
        "core_gigantic_patch14_448", "lang_large_patch14_448", "lang_gigantic_patch14_448", "spatial_tiny_patch16_512",
        "spatial_small_patch16_512", "spatial_base_patch16_512", "spatial_large_patch14_448", "spatial_gigantic_patch14_448")},
    **{f"vitamin_{size}": ({"img_size": 224}, 1, 224) for size in (
        "small_224", "base_224", "large_224", "large_256", "large_336", "large_384", "large2_224", "large2_256", "large2_336", "large2_384",
        "xlarge_256", "xlarge_336", "xlarge_384")},
    **{f"swin_s3_{size}_224": ({}, 1, 224) for size in ("tiny", "small", "base")},
}
