"""Narrow and whole ResNets of timm, for make.py."""

from functools import partial

import torch.nn as nn
from timm.layers import BatchNormAct2d, BlurPool2d, GroupNorm, GroupNormAct, StdConv2d, create_conv2d
from nets import thin
from timm.models.nfnet import NfCfg, NormFreeNet
from timm.models.resnest import ResNestBottleneck
from timm.models.resnet import BasicBlock, Bottleneck, ResNet
from timm.models.resnetv2 import ResNetV2
from timm.models.senet import SEBottleneck, SEResNetBottleneck, SENet
from timm.models.sknet import SelectiveKernelBottleneck


narrow = partial(ResNet, num_classes=10, channels=(8, 16, 16, 24))

VARIANTS = {
    "resnetblur_timm_narrow": (lambda: narrow(BasicBlock, (1, 1, 1, 1), stem_width=4, stem_type="deep", aa_layer=BlurPool2d, block_reduce_first=2,
                                              down_kernel_size=3, block_args={"attn_layer": "eca"}), 3, 36),
    "resnetaa_timm_narrow": (lambda: narrow(Bottleneck, (1, 2, 1, 1), base_width=64, aa_layer=nn.AvgPool2d, block_reduce_first=2,
                                            norm_layer=partial(GroupNorm, num_groups=4)), 3, 32),
    "resnetv2_timm_narrow": (lambda: ResNetV2([1, 2, 1, 1], (8, 16, 16, 24), 10, stem_chs=8, stem_type="deep", basic=True, bottle_ratio=1.0,
                                              avg_down=True, conv_layer=create_conv2d, norm_layer=BatchNormAct2d, drop_rate=0.2,
                                              drop_path_rate=0.2), 4, 36),
    "resnetv2_bit_narrow": (lambda: ResNetV2([1, 2, 1, 1], (32, 32, 48, 64), 10, width_factor=2, stem_chs=8, stem_type="fixed",
                                             conv_layer=partial(StdConv2d, eps=1e-2), norm_layer=partial(GroupNormAct, num_groups=4)), 4, 36),
    "skresnet_timm_narrow": (lambda: narrow(SelectiveKernelBottleneck, (1, 1, 2, 1), cardinality=2, base_width=32, replace_stem_pool=True,
                                            block_args={"sk_kwargs": dict(rd_ratio=0.5, rd_divisor=4, split_input=True)}, zero_init_last=False), 4, 36),
    "resnest_timm_narrow": (lambda: narrow(ResNestBottleneck, (1, 1, 2, 1), stem_width=4, stem_type="deep", avg_down=True, base_width=32, cardinality=2,
                                           block_args=dict(radix=4, avd=True)), 4, 36),
    "nfnet_dm_narrow": (lambda: NormFreeNet(NfCfg((1, 2, 1, 1), (16, 24, 32, 32), stem_type="deep_quad", stem_chs=16, group_size=8, bottle_ratio=0.5,
                                                  extra_conv=True, num_features=40, gamma_in_act=True, same_padding=True, skipinit=True, attn_layer="se",
                                                  attn_kwargs=dict(rd_ratio=0.5), act_layer="gelu"), 10, drop_rate=0.2, drop_path_rate=0.2), 4, 36),
    "nf_regnet_narrow": (lambda: NormFreeNet(NfCfg((1, 1, 2, 1), (16, 24, 32, 40), stem_type="3x3", group_size=8, width_factor=0.75, bottle_ratio=2.25,
                                                   num_features=40, reg=True, attn_layer="eca", attn_kwargs={}, act_layer="silu"), 10, drop_path_rate=0.2), 4, 36),
    "legacy_seresnet_narrow": (lambda: thin(SENet(SEResNetBottleneck, [1, 1, 2, 1], 1, 16), 8), 4, 36),
    "legacy_senet_narrow": (lambda: thin(SENet(SEBottleneck, [1, 1, 1, 1], 32, 16, inplanes=128, input_3x3=True, downsample_kernel_size=3,
                                               downsample_padding=1), 16), 4, 42),
}

RESNETS = ("resnext101_32x4d resnext101_32x16d resnext101_32x32d seresnext101_32x4d seresnext101_32x8d seresnext101_64x4d seresnext101d_32x8d "
           "seresnext26d_32x4d seresnext26t_32x4d seresnet152d senet154 resnet10t resnet26t resnet200d resnet50c resnet101c resnet152c resnet50s "
           "resnet101s resnet152s resnext50d_32x4d resnet50_gn ecaresnet26t ecaresnet50d ecaresnet50t ecaresnet101d ecaresnet269d ecaresnetlight "
           "resnetaa50 resnetaa50d resnetaa101d seresnextaa101d_32x8d seresnextaa201d_32x8d resnetblur50 resnetrs50 resnetrs101 resnetrs152 "
           "resnetrs200 resnetrs270 resnetrs350 resnetrs420")

RESNETS += "".join(f" resnetv2_{kind}" for kind in ("18", "18d", "34", "34d", "50", "50d_gn", "101", "50x1_bit", "50x3_bit", "101x1_bit",
                                                  "101x3_bit", "152x2_bit", "152x4_bit"))

RESNETS += " skresnet18 skresnet34 skresnext50_32x4d"
RESNETS += "".join(f" resnest{kind}" for kind in ("14d", "26d", "50d", "50d_1s4x24d", "50d_4s2x40d", "101e", "200e", "269e"))

RESNETS += "".join(f" dm_nfnet_f{k}" for k in range(7)) + "".join(f" eca_nfnet_l{k}" for k in range(3)) + " nfnet_l0 nf_resnet50 nf_regnet_b1"

RESNETS += "".join(f" legacy_{name}" for name in ("seresnet18", "seresnet34", "seresnet50", "seresnet101", "seresnet152", "seresnext26_32x4d",
                                                "seresnext50_32x4d", "seresnext101_32x4d", "senet154"))

TIMM = {name: ({}, 8, 64) for name in RESNETS.split()}
