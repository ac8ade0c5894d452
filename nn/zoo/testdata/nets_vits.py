"""Narrow and whole vision transformers of timm, for make.py."""

from timm.models.swin_transformer import SwinTransformer

VARIANTS = {
    "swin_s3_timm_narrow": (lambda: SwinTransformer(64, embed_dim=8, depths=(2, 2, 1, 1), num_heads=(2, 4, 8, 16), num_classes=10,
                                                    window_size=(4, 4, 4, 2)), 2, 64),
}

# Whole nets: arguments, batch, size.
TIMM = {
    "swinv2_base_window12_192": ({}, 1, 192),
    "swinv2_large_window12_192": ({}, 1, 192),
    "swin_base_patch4_window12_384": ({}, 1, 384),
    "swin_large_patch4_window7_224": ({}, 1, 224),
    "swin_large_patch4_window12_384": ({}, 1, 384),
    **{f"swin_s3_{size}_224": ({}, 1, 224) for size in ("tiny", "small", "base")},
}
