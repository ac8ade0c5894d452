"""Narrow and whole hierarchical transformers of timm, for make.py."""

import torch
import torch.nn as nn
from timm.layers import DropPath, RelPosBiasTf, RelPosMlp
from timm.models import maxxvit
from timm.models.crossvit import CrossVit
from timm.models.davit import DaVit
from timm.models.focalnet import FocalNet
from timm.models.gcvit import GlobalContextVit
from timm.models.hiera import Hiera
from timm.models.maxxvit import MaxxVit, MaxxVitCfg
from timm.models.mvitv2 import MultiScaleVit, MultiScaleVitCfg
from timm.models.nest import Nest
from timm.models.nextvit import NextTransformerBlock, NextViT
from timm.models.pit import PoolingVisionTransformer
from timm.models.pvt_v2 import PyramidVisionTransformerV2
from timm.models.twins import Twins
from timm.models.visformer import Visformer

from nets import NOTHING

ONCE = (maxxvit.MbConvBlock, maxxvit.ConvNeXtBlock, NextTransformerBlock)  # blocks that use their DropPath once


LINEAR = (MaxxVit, PyramidVisionTransformerV2, Hiera, DaVit, FocalNet, Twins, PoolingVisionTransformer, Visformer,
          GlobalContextVit, MultiScaleVit, CrossVit, Nest)  # nets whose drop_path rises by block


def BLOCKS(model):
    """The number of blocks of a net, whose DropPaths may be in parts of them."""
    if isinstance(model, NextViT):  # some drop a quarter as often as others
        return 4 * sum(len(s.blocks) for s in model.stages) - 3
    if not isinstance(model, LINEAR):
        return 0
    if not hasattr(model, "blocks_of_drop_path"):
        model.blocks_of_drop_path = 1 + len({m.drop_prob for m in model.modules() if isinstance(m, DropPath)})
    return model.blocks_of_drop_path


def bias_tf(self, get_bias=RelPosBiasTf.get_bias):
    """timm picks elements of a table by a product with zeros and ones, which published.py shall not count."""
    table = self.relative_position_bias_table
    return table.new_empty(len(table), self.window_area, self.window_area) if table.is_meta else get_bias(self)


RelPosBiasTf.get_bias = bias_tf


def double_offsets(model):
    """Makes logarithms of offsets, which are no part of the state, with float64, and drops nothing in the nets that take them."""
    for m in model.modules():
        if isinstance(m, RelPosMlp):
            m.mlp.drop1.p = NOTHING
            h, w = (torch.arange(1 - n, n, dtype=torch.float64) for n in m.window_size)
            x = torch.stack(torch.meshgrid(h, w, indexing="ij"), -1)
            x = x.sign() * (1 + x.abs()).log()
            torch.testing.assert_close(m.rel_coords_log.double(), x, rtol=0, atol=1e-6)
            m.rel_coords_log = None
            m.register_buffer("rel_coords_log", None)
            m.exact = x
            m.get_bias = lambda m=m: offset_bias(m)
    return model


def offset_bias(m):
    x = m.mlp(m.exact.to(m.mlp.fc1.weight.dtype)).view(-1, m.num_heads)[m.relative_position_index]
    return x.view(m.bias_shape).permute(2, 0, 1).unsqueeze(0).contiguous()


def maxvit(kind, size, depths, blocks, **kwargs):
    cfg = MaxxVitCfg(embed_dim=(8, 8, 16, 16), depths=depths, block_type=blocks, stem_width=(8, 8), **kwargs)
    cfg.transformer_cfg.dim_head = 4
    return double_offsets(MaxxVit(cfg, img_size=size, num_classes=10, drop_path_rate=0.2))


def narrow(make, **kwargs):
    return make(num_classes=10, drop_path_rate=0.2, **kwargs)


class NarrowNextViT(NextViT):
    """NextViT has channels of its own."""

    def __setattr__(self, name, value):
        if name == "stage_out_chs":
            value = [[{96: 8, 192: 16, 384: 16, 768: 16}.get(c, 40) for c in stage] for stage in value]
        super().__setattr__(name, value)


# Hiera resizes places and CrossViT images, MViT V2 adds products with distances to scores: products here, of which PyTorch makes fewer.
UNCOUNTED = {"hiera_small_abswin_256", "mvitv2_tiny", "mvitv2_small", "mvitv2_base", "mvitv2_large"}
CROSS = [f"crossvit_{size}" for size in ("tiny_240", "small_240", "base_240", "9_240", "9_dagger_240", "15_240", "15_dagger_240", "15_dagger_408",
                                         "18_240", "18_dagger_240", "18_dagger_408")]
UNCOUNTED.update(CROSS)


M, CT = ("M",) * 4, ("C", "C", "T", "T")
VARIANTS = {
    "maxvit_tf_narrow": (lambda: maxvit("tf", 64, (1, 2, 1, 1), M, stem_bias=True, head_hidden_size=12, **maxxvit._tf_cfg()), 3, 64),
    "maxvit_rmlp_narrow": (lambda: maxvit("rw", 64, (1, 1, 1, 1), M, **maxxvit._rw_max_cfg(rel_pos_type="mlp", rel_pos_dim=12,
                                                                                           conv_attn_ratio=0.2)), 3, 64),
    "coatnet_narrow": (lambda: maxvit("rw", 64, (2, 1, 2, 1), CT, **maxxvit._rw_coat_cfg(
        conv_attn_early=True, transformer_shortcut_bias=False, pool_type="max", init_values=0.2)), 3, 64),
    "coatnext_narrow": (lambda: maxvit("next", 64, (2, 1, 1, 1), CT, weight_init="normal",
                                       **maxxvit._next_cfg(init_values=(0.1, None), rel_pos_type="bias")), 3, 64),
    "maxxvit_narrow": (lambda: maxvit("next", 64, (1, 1, 1, 1), M, **maxxvit._next_cfg(init_values=(0.1, 0.2), no_block_attn=True,
                                                                                       rel_pos_dim=12)), 3, 64),
    "pvt_v2_narrow": (lambda: narrow(PyramidVisionTransformerV2, embed_dims=(8, 16, 24, 32), num_heads=(1, 2, 3, 4), depths=(1, 2, 1, 1)), 3, 64),
    "pvt_v2_li_narrow": (lambda: narrow(PyramidVisionTransformerV2, embed_dims=(8, 8, 16, 16), num_heads=(1, 2, 1, 2), depths=(1, 1, 1, 1),
                                        mlp_ratios=(2, 3, 4, 1), linear=True), 3, 56),
    "hiera_narrow": (lambda: narrow(Hiera, img_size=64, embed_dim=8, num_heads=2, stages=(1, 2, 2, 1)), 3, 64),
    "hiera_abswin_narrow": (lambda: narrow(Hiera, img_size=64, embed_dim=8, stages=(1, 1, 2, 1), abs_win_pos_embed=True,
                                           global_pos_size=(6, 6), init_values=0.2, weight_init="jax", use_expand_proj=False), 3, 64),
    "davit_narrow": (lambda: narrow(DaVit, embed_dims=(8, 16, 32, 64), num_heads=(2, 4, 8, 16), depths=(1, 2, 1, 1), window_size=3), 3, 58),
    "focalnet_narrow": (lambda: narrow(FocalNet, embed_dim=8, depths=(1, 2, 1, 1)), 3, 64),
    "focalnet_post_narrow": (lambda: narrow(FocalNet, embed_dim=8, depths=(1, 1, 1, 1), focal_levels=(3,) * 4, focal_windows=(5,) * 4,
                                            use_overlap_down=True, use_post_norm=True, use_post_norm_in_modulation=True,
                                            layerscale_value=0.2), 3, 64),
    "twins_narrow": (lambda: narrow(Twins, img_size=64, embed_dims=(8, 16, 24, 32), num_heads=(1, 2, 3, 4), depths=(2, 1, 2, 1), wss=(3,) * 4,
                                    mlp_ratios=(2, 3, 4, 2)), 3, 64),
    "pit_narrow": (lambda: narrow(PoolingVisionTransformer, img_size=32, patch_size=8, stride=4, base_dims=(4, 4, 4), heads=(2, 4, 4),
                                  depth=(1, 2, 1), distilled=True), 3, 32),
    "visformer_narrow": (lambda: narrow(Visformer, img_size=64, init_channels=8, embed_dim=16, depth=(2, 1, 2), num_heads=2, group=4,
                                        attn_stage="011", spatial_conv="100", norm_layer=nn.BatchNorm2d, conv_init=True,
                                        embed_norm=nn.BatchNorm2d), 3, 64),
    "nextvit_narrow": (lambda: narrow(NarrowNextViT, in_chans=3, stem_chs=(8, 8, 12), depths=(1, 2, 5, 1), head_dim=8), 4, 64),
    "gcvit_narrow": (lambda: narrow(GlobalContextVit, img_size=64, embed_dim=8, depths=(2, 2, 2, 2), num_heads=(2, 4, 8, 16), mlp_ratio=2,
                                    layer_scale=0.2), 3, 64),
    "mvitv2_narrow": (lambda: narrow(MultiScaleVit, cfg=MultiScaleVitCfg(depths=(1, 2, 1, 1), embed_dim=8), img_size=64), 3, 64),
    "mvitv2_large_narrow": (lambda: narrow(MultiScaleVit, cfg=MultiScaleVitCfg(depths=(1, 1, 2, 1), embed_dim=8, num_heads=2,
                                                                               expand_attn=False), img_size=32), 3, 32),
    "crossvit_narrow": (lambda: narrow(CrossVit, img_size=48, img_scale=(1.0, 2 / 3), patch_size=(12, 16), embed_dim=(8, 16),
                                       depth=((1, 2, 0),) * 2, num_heads=(2, 2), mlp_ratio=(3, 3, 1), multi_conv=True), 3, 48),
    "nest_narrow": (lambda: narrow(Nest, img_size=32, embed_dims=(8, 12, 16), num_heads=(2, 3, 4), depths=(1, 2, 1), pad_type="same"), 3, 32),
}

TIMM = {f"maxvit_{size}_tf_{pixels}": ({"img_size": 224}, 1, 224) for size in ("tiny", "small", "base", "large", "xlarge") for pixels in (224, 384, 512)}
TIMM |= {f"coatnet_{kind}_rw_224": ({}, 1, 224) for kind in ("nano", "0", "1", "2", "3", "rmlp_nano", "rmlp_1", "rmlp_2")}
TIMM |= {"coatnet_rmlp_1_rw2_224": ({}, 1, 224), "coatnet_rmlp_2_rw_384": ({"img_size": 224}, 1, 224), "coatnext_nano_rw_224": ({}, 1, 224)}
TIMM |= {f"max{kind}": ({"img_size": 224}, 1, 224) for kind in (
    "vit_nano_rw_256", "vit_tiny_rw_224", "vit_rmlp_pico_rw_256", "vit_rmlp_nano_rw_256", "vit_rmlp_tiny_rw_256", "vit_rmlp_small_rw_224",
    "vit_rmlp_base_rw_224", "vit_rmlp_base_rw_384", "xvit_rmlp_nano_rw_256", "xvit_rmlp_small_rw_256", "xvitv2_nano_rw_256",
    "xvitv2_rmlp_base_rw_224", "xvitv2_rmlp_base_rw_384")}
TIMM |= {f"pvt_v2_{size}": ({}, 2, 64) for size in ("b0", "b1", "b2", "b2_li", "b3", "b4", "b5")}
TIMM |= {f"hiera_{size}": ({}, 1, int(size[-3:])) for size in ("tiny_224", "small_224", "base_224", "base_plus_224", "large_224", "huge_224",
                                                              "small_abswin_256")}
TIMM |= {f"davit_{size}": ({}, 2, 64) for size in ("tiny", "small", "base")}
TIMM |= {f"focalnet_{size}": ({}, 2, 64) for size in (
    "tiny_srf", "tiny_lrf", "small_srf", "small_lrf", "base_srf", "base_lrf", "large_fl3", "large_fl4", "xlarge_fl3", "xlarge_fl4",
    "huge_fl3", "huge_fl4")}
TIMM |= {f"twins_{kind}_{size}": ({}, 1, 224) for kind, sizes in (("pcpvt", ("small", "base", "large")), ("svt", ("small", "base", "large"))) for size in sizes}
TIMM |= {f"pit_{size}{kind}_224": ({}, 1, 224) for size in ("ti", "xs", "s", "b") for kind in ("", "_distilled")}
TIMM |= {f"visformer_{size}": ({}, 1, 224) for size in ("tiny", "small")}
TIMM |= {f"nextvit_{size}": ({}, 2, 64) for size in ("small", "base", "large")}
TIMM |= {f"gcvit_{size}": ({}, 1, 224) for size in ("xxtiny", "xtiny", "tiny", "small", "base")}
TIMM |= {f"mvitv2_{size}": ({}, 1, 224) for size in ("tiny", "small", "base", "large")}
TIMM |= {name: ({}, 1, int(name[-3:])) for name in CROSS}
TIMM |= {f"nest_{size}_jx": ({}, 1, 224) for size in ("tiny", "small", "base")}
