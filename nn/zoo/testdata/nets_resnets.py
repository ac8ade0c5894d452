"""Narrow and whole ResNets of timm, for make.py."""

from functools import partial

import torch.nn as nn
from timm.layers import BlurPool2d, GroupNorm
from timm.models.resnet import BasicBlock, Bottleneck, ResNet


narrow = partial(ResNet, num_classes=10, channels=(8, 16, 16, 24))

VARIANTS = {
    "resnetblur_timm_narrow": (lambda: narrow(BasicBlock, (1, 1, 1, 1), stem_width=4, stem_type="deep", aa_layer=BlurPool2d, block_reduce_first=2,
                                              down_kernel_size=3, block_args={"attn_layer": "eca"}), 3, 36),
    "resnetaa_timm_narrow": (lambda: narrow(Bottleneck, (1, 2, 1, 1), base_width=64, aa_layer=nn.AvgPool2d, block_reduce_first=2,
                                            norm_layer=partial(GroupNorm, num_groups=4)), 3, 32),
}

RESNETS = ("resnext101_32x4d resnext101_32x16d resnext101_32x32d seresnext101_32x4d seresnext101_32x8d seresnext101_64x4d seresnext101d_32x8d "
           "seresnext26d_32x4d seresnext26t_32x4d seresnet152d senet154 resnet10t resnet26t resnet200d resnet50c resnet101c resnet152c resnet50s "
           "resnet101s resnet152s resnext50d_32x4d resnet50_gn ecaresnet26t ecaresnet50d ecaresnet50t ecaresnet101d ecaresnet269d ecaresnetlight "
           "resnetaa50 resnetaa50d resnetaa101d seresnextaa101d_32x8d seresnextaa201d_32x8d resnetblur50 resnetrs50 resnetrs101 resnetrs152 "
           "resnetrs200 resnetrs270 resnetrs350 resnetrs420")

# The size of images is 64 pixels of each.
TIMM = {name: ({}, 8, 64) for name in RESNETS.split()}
