"""Narrow and whole vision transformers of timm whose places are resized or turned by trained angles, for make.py."""

from functools import partial

import torch
from timm.layers import RmsNorm, pos_embed_sincos
from timm.layers.norm import RmsNormFp32
from timm.models.deepseek_vit import DeepseekVitClassifier
from timm.models.eva import Eva
from timm.models.gemma4_vit import Gemma4RotaryEmbedding2D, Gemma4VitClassifier
from timm.models.hieradet_sam2 import HieraDet
from timm.models.naflexvit import NaFlexEmbeds, NaFlexVit, NaFlexVitCfg
from timm.models.qwen3_vit import Qwen3VitClassifier


def wide(f):
    """f, in which float64 stays float64 where timm computes with float32."""
    def g(*args, **kwargs):
        narrow = torch.Tensor.float
        torch.Tensor.float = lambda x: x if x.dtype == torch.float64 else narrow(x)
        try:
            return f(*args, **kwargs)
        finally:
            torch.Tensor.float = narrow
    return g


def turn(self, x, position_ids, theirs=Gemma4RotaryEmbedding2D.forward):
    """Gemma's cosines and sines, whose frequencies it makes with float32."""
    extent = self.head_dim // 2
    angles = position_ids.double()[..., None] * self.rope_theta ** -(torch.arange(0, extent, 2, dtype=torch.float64) / extent).to(x.device)
    angles = torch.cat([angles, angles], -1).flatten(2)
    if not x.is_meta:
        torch.testing.assert_close(theirs(self, x, position_ids)[1].double(), angles.sin(), rtol=0, atol=2e-5 if x.dtype != torch.bfloat16 else 1e-2)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


NaFlexEmbeds.forward, RmsNormFp32.forward = wide(NaFlexEmbeds.forward), wide(RmsNormFp32.forward)
pos_embed_sincos.get_mixed_freqs = wide(pos_embed_sincos.get_mixed_freqs)
Gemma4RotaryEmbedding2D.forward = turn


def eva(**kwargs):
    return Eva(img_size=24, patch_size=8, num_classes=10, class_token=True, global_pool="token", attn_type="rope", use_rot_pos_emb=True, **kwargs)


def naflex(**kwargs):
    cfg = dict(patch_size=8, embed_dim=24, depth=2, num_heads=3, drop_path_rate=0.2)
    return NaFlexVit(NaFlexVitCfg(**cfg | kwargs), num_classes=10)


def language(make, **kwargs):
    return make(patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=10, drop_path_rate=0.2, **kwargs)


RADIO = dict(class_token=True, global_pool="token", final_norm=False, reg_tokens=2, pos_embed_interp_mode="bilinear", pos_embed_antialias=False)
VARIANTS = {
    "hieradet_narrow": (lambda: HieraDet(num_classes=10, embed_dim=8, num_heads=2, stages=(1, 1, 2, 1), window_spec=(8, 4, 6, 3),
                                         global_att_blocks=(3,), global_pos_size=(5, 5), drop_path_rate=0.2), 3, 64),
    "vit_rope_mixed_narrow": (lambda: eva(embed_dim=24, depth=2, num_heads=3, init_values=1e-5, no_embed_class=True, rope_grid_indexing="xy",
                                          rope_temperature=10.0, rope_type="mixed"), 3, 24),
    "sapiens2_narrow": (lambda: eva(embed_dim=32, depth=3, num_heads=4, num_kv_heads=(4, 2, 4), qkv_fused=False, qk_norm=True, swiglu_mlp=True,
                                    mlp_ratio=2.0, init_values=0.5, attn_only_layer_scale=True, rope_type="dinov3", rope_temperature=100,
                                    rope_rotate_half=True, use_abs_pos_emb=False, num_reg_tokens=2, use_fc_norm=False,
                                    norm_layer=partial(RmsNorm, eps=1e-6)), 3, 24),
    "naflexvit_narrow": (lambda: naflex(global_pool="map", act_layer="gelu_tanh", reg_tokens=1, pos_embed_grid_size=(2, 2), init_values=0.2), 3, 24),
    "naflexvit_parfac_narrow": (lambda: naflex(global_pool="avg", reg_tokens=2, pos_embed_grid_size=(4, 4), pos_embed="factorized",
                                               pos_embed_ar_preserving=True), 3, 24),
    "naflexvit_radio_narrow": (lambda: naflex(pos_embed_grid_size=(5, 5), pos_embed_align_corners=True, **RADIO), 3, 24),
    "qwen3_vit_narrow": (lambda: language(Qwen3VitClassifier, img_size=32, mlp_ratio=2.0, pos_embed_grid_size=3, encoder_pool="merge",
                                          out_features=20), 3, 32),
    "deepseek_vit_narrow": (lambda: language(DeepseekVitClassifier, img_size=32, mlp_ratio=1.5, encoder_pool="align", out_features=20), 3, 32),
    "gemma4_vit_narrow": (lambda: language(Gemma4VitClassifier, head_dim=8, intermediate_size=36, position_embedding_size=9, standardize=True), 3, 24),
}

# Whole nets: arguments, batch, size. Those of larger images are judged with smaller ones.
TIMM = {
    **{f"sam2_hiera_{size}": ({}, 1, 224) for size in ("tiny", "small", "base_plus")},
    "sam2_hiera_large": ({}, 1, 256),
    **{f"vit_{size}_patch16_rope_{kind}_224": ({}, 1, 224) for size in ("small", "base", "large") for kind in ("mixed", "mixed_ape")},
    **{f"vit_{size}_patch16_lingbot": ({"img_size": 224}, 1, 224) for size in ("small", "base", "large", "giant")},
    **{f"vit_{size}_patch16_sapiens2": ({"img_size": 224, "rope_rescale_coords": 1.0}, 1, 224) for size in ("base", "large", "huge", "giant", "5b")},
    **{f"naflexvit_{size}": ({}, 1, 224) for size in (
        "base_patch16_gap", "base_patch16_par_gap", "base_patch16_parfac_gap", "base_patch16_siglip", "so400m_patch16_siglip",
        "base_patch16_radio_v3", "large_patch16_radio_v3", "huge_patch16_radio_v3", "giant_patch16_radio_v3", "so400m_patch16_radio_v4",
        "huge_patch16_radio_v4")},
    **{f"qwen3_vit_{size}{kind}": ({"img_size": 224}, 1, 224) for size in ("88m", "306m", "416m") for kind in ("", "_merge")},
    **{f"deepseek_vit_412m{kind}": ({"img_size": 126}, 1, 126) for kind in ("", "_align")},
    "gemma4_vit_570m": ({}, 1, 96),
}

# Products resize places here, or pick them in timm; Sapiens2's images are no squares there.
UNCOUNTED = {name for name in TIMM if name.startswith(("sam2_", "naflexvit_", "gemma4_")) or name.endswith("sapiens2")}
