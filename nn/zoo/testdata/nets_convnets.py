"""Narrow and whole convolutional nets of timm, for make.py."""

from timm.models.convnext import ConvNeXt


def narrow_convnext(**kwargs):
    return ConvNeXt(depths=(1, 2, 1, 1), dims=(8, 16, 32, 64), ls_init_value=0.2, conv_mlp=True, num_classes=10, **kwargs)


VARIANTS = {
    "convnext_hnf_narrow": (lambda: narrow_convnext(stem_type="overlap_tiered", head_norm_first=True), 3, 64),
    "convnext_simple_narrow": (lambda: narrow_convnext(stem_type="overlap_act", norm_layer="simplenorm", norm_eps=1e-3,
                                                       head_hidden_size=40), 3, 64),
}

# Of a whole net: arguments, batch, size of images.
TIMM = {f"convnext_{size}": ({}, 2, 64) for size in ("xlarge", "xxlarge", "large_mlp", "tiny_hnf", "atto_ols", "femto_ols",
                                                     "pico_ols", "nano_ols", "zepto_rms", "zepto_rms_ols")}
TIMM |= {"convnextv2_huge": ({"drop_path_rate": 0.3}, 2, 64)}
