"""Narrow and whole nets of torchvision and timm, and nets that neither has, for make.py."""

from functools import partial
from types import SimpleNamespace

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import models
from torchvision.models import convnext, densenet, efficientnet, inception, mobilenetv2, mobilenetv3, regnet, resnet, swin_transformer, vgg, vision_transformer
from torchvision.models.googlenet import BasicConv2d, Inception
from torchvision.models.maxvit import MaxVit
from timm.layers import GatedMlp, LayerNorm, SqueezeExcite
from timm.models import xcit
from timm.models.beit import Beit
from timm.models._efficientnet_builder import decode_arch_def, round_channels
from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg
from timm.models.cait import Cait
from timm.models.convnext import ConvNeXt
from timm.models.deit import VisionTransformerDistilled
from timm.models.efficientnet import EfficientNet
from timm.models.eva import Eva
from timm.models.fastvit import FastVit, RepConditionalPosEnc
from timm.models.ghostnet import GhostNet
from timm.models.hgnet import HighPerfGpuNet
from timm.models.metaformer import Attention, GroupNorm1, GroupNorm1NoBias, LayerNorm2dNoBias, LayerNormNoBias, MetaFormer, Pooling, SepConv
from timm.models.mlp_mixer import Affine, MlpMixer, ResBlock, SpatialGatingBlock
from timm.models.mobilenetv3 import MobileNetV3
from timm.models.mobilevit import _inverted_residual_block, _mobilevit_block, _mobilevitv2_block
from timm.models.regnet import RegNet, RegNetCfg
from timm.models.res2net import Bottle2neck
from timm.models.resnet import Bottleneck, ResNet
from timm.models.swin_transformer_v2 import SwinTransformerV2
from timm.models.tiny_vit import TinyVit
from timm.models.vision_transformer import VisionTransformer

xcit.torch = SimpleNamespace(**{**vars(torch), "float32": torch.float64})  # in which it makes places whatever the net's type

NOTHING = 1e-12  # a probability of dropout that drops nothing


class WideBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn2, self.dropout, self.conv2 = nn.BatchNorm2d(o), nn.Dropout(0), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(i, o, 1, stride, bias=False) if i != o or stride != 1 else None

    def forward(self, x):
        a = F.relu(self.bn1(x))
        y = self.conv2(self.dropout(F.relu(self.bn2(self.conv1(a)))))
        return y + (x if self.shortcut is None else self.shortcut(a))


class WideResNet(nn.Module):
    def __init__(self, depth, width, num_classes=10):
        super().__init__()
        self.conv1, i = nn.Conv2d(3, 16, 3, 1, 1, bias=False), 16
        for k in range(3):
            o, blocks = 16 * 2**k * width, []
            for j in range((depth - 4) // 6):
                blocks.append(WideBlock(i, o, 2 if k > 0 and j == 0 else 1))
                i = o
            setattr(self, f"layer{k + 1}", nn.Sequential(*blocks))
        self.bn1, self.fc = nn.BatchNorm2d(i), nn.Linear(i, num_classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return self.fc(F.relu(self.bn1(x)).mean((2, 3)))


class ConvNorm(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(i, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class ResNet9(nn.Module):
    def __init__(self, width=64, num_classes=10):
        super().__init__()
        self.prep = ConvNorm(3, width)
        for k in (1, 2, 3):
            i, o = width * 2 ** (k - 1), width * 2**k
            stage = ConvNorm(i, o)
            if k != 2:
                stage.residual = nn.Sequential(ConvNorm(o, o), ConvNorm(o, o))
            setattr(self, f"layer{k}", stage)
        self.linear = nn.Linear(8 * width, num_classes)

    def forward(self, x):
        x = self.prep(x)
        for stage in (self.layer1, self.layer2, self.layer3):
            x = F.max_pool2d(stage(x), 2)
            if hasattr(stage, "residual"):
                x = x + stage.residual(x)
        return self.linear(F.max_pool2d(x, 4).flatten(1)) * 0.125


def narrow_vgg(cfg, norm, hidden, pool, num_classes=10):
    m = vgg.VGG(vgg.make_layers(cfg, batch_norm=norm), num_classes=num_classes)
    m.avgpool = nn.AdaptiveAvgPool2d(pool)
    m.classifier[0] = nn.Linear(cfg[-2] * pool * pool, hidden)
    m.classifier[3], m.classifier[6] = nn.Linear(hidden, hidden), nn.Linear(hidden, num_classes)
    for l in (m.classifier[0], m.classifier[3], m.classifier[6]):
        nn.init.normal_(l.weight, 0, 0.01)
        nn.init.zeros_(l.bias)
    return m


def narrow_alexnet(n, pool):
    conv = lambda i, o, *k: [nn.Conv2d(i, o, *k[:1], **k[1]), nn.ReLU()]
    m = models.AlexNet(num_classes=10)
    m.features = nn.Sequential(
        *conv(3, 64 // n, 11, dict(stride=4, padding=2)), nn.MaxPool2d(3, 2),
        *conv(64 // n, 192 // n, 5, dict(padding=2)), nn.MaxPool2d(3, 2),
        *conv(192 // n, 384 // n, 3, dict(padding=1)), *conv(384 // n, 256 // n, 3, dict(padding=1)),
        *conv(256 // n, 256 // n, 3, dict(padding=1)), nn.MaxPool2d(3, 2),
    )
    m.avgpool = nn.AdaptiveAvgPool2d(pool)
    m.classifier[1] = nn.Linear(256 // n * pool * pool, 4096 // n)
    m.classifier[4], m.classifier[6] = nn.Linear(4096 // n, 4096 // n), nn.Linear(4096 // n, 10)
    return m


def narrow_v3(arch, width, **kwargs):
    setting, last = mobilenetv3._mobilenet_v3_conf(arch, width_mult=width, **kwargs)
    return mobilenetv3.MobileNetV3(setting, last, num_classes=10)


def own_v3(last, *blocks):
    return mobilenetv3.MobileNetV3([mobilenetv3.InvertedResidualConfig(*b, 0.75) for b in blocks], last, num_classes=10)


def narrow_efficientnet(stages, last=None, norm=None, **kwargs):
    return efficientnet.EfficientNet(stages, dropout=0.2, last_channel=last, num_classes=10, norm_layer=norm)


TF = {"pad_type": "same", "norm_layer": partial(nn.BatchNorm2d, eps=1e-3), "num_classes": 10, "drop_rate": 0.2}


def narrow_tf_efficientnet(stem, last, *stages):
    return EfficientNet(decode_arch_def([[s] for s in stages]), stem_size=stem, num_features=last, act_layer=nn.SiLU,
                        drop_path_rate=0.2, **TF)


def narrow_lite():
    blocks = [["ds_r1_k3_s1_e1_c16"], ["ir_r1_k5_s2_e6_c24"], ["ir_r1_k3_s2_e6_c40"]]
    return EfficientNet(decode_arch_def(blocks, 1.4, fix_first_last=True), stem_size=24, fix_stem=True, num_features=96, num_classes=10,
                        round_chs_fn=partial(round_channels, multiplier=0.6), act_layer=nn.ReLU6, drop_rate=0.2, drop_path_rate=0.2)


def narrow_tf_mobilenetv3():
    return timm.models.mobilenetv3._gen_mobilenet_v3("tf_mobilenetv3_small_100", 0.35, bn_eps=1e-3, pad_type="same", num_classes=10,
                                                     drop_rate=0.2)


def narrow_mobilenetv4(*stages):
    return MobileNetV3(decode_arch_def(stages), stem_size=32, fix_stem=True, num_features=1280, head_bias=False, head_norm=True,
                       round_chs_fn=partial(round_channels, multiplier=0.25), act_layer=nn.ReLU, num_classes=10, drop_path_rate=0.2)


def narrow_mobilenetv2():
    return timm.models.efficientnet._gen_mobilenet_v2("mobilenetv2_110d", 0.25, 1.2, fix_stem_head=True, num_classes=10,
                                                      drop_rate=0.2)


def narrow_squeezenet(version, n):
    m = models.SqueezeNet(version, num_classes=10)
    for name, c in list(m.named_modules()):
        if isinstance(c, nn.Conv2d):
            i, o = (c.in_channels if c.in_channels == 3 else c.in_channels // n), (10 if c.out_channels == 10 else c.out_channels // n)
            parent = m.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], nn.Conv2d(i, o, c.kernel_size, c.stride, c.padding))
    return m


def narrow_inception(net, n, conv, blocks, *modules):
    """GoogLeNet or Inception3 with 1/n of the channels; blocks is the name of its argument for modules."""
    narrow = lambda i, o, **kwargs: conv(i if i == 3 else i // n, o // n, **kwargs)
    m = net(num_classes=10, aux_logits=False, init_weights=True,
            **{blocks: [narrow] + [partial(b, conv_block=narrow) for b in modules] + [None]})
    m.fc = nn.Linear(m.fc.in_features // n, 10)
    return m


def thin(m, n):
    """m with 1/n of the channels, for 10 classes."""
    for l in m.modules():
        if isinstance(l, nn.Conv2d):
            l.in_channels, l.out_channels = l.in_channels if l.in_channels == 3 else l.in_channels // n, l.out_channels // n
            l.groups = max(1, l.groups // n)
            l.weight = nn.Parameter(torch.zeros(l.out_channels, l.in_channels // l.groups, *l.kernel_size))
            l.bias = None if l.bias is None else nn.Parameter(torch.zeros(l.out_channels))
        elif isinstance(l, nn.BatchNorm2d):
            l.num_features //= n
            l.weight, l.bias = (nn.Parameter(torch.zeros(l.num_features)) for _ in range(2))
            l.running_mean, l.running_var = torch.zeros(l.num_features), torch.zeros(l.num_features)
        elif isinstance(l, nn.Linear):
            l.in_features, l.out_features = l.in_features // n, 10
            l.weight, l.bias = nn.Parameter(torch.zeros(10, l.in_features)), nn.Parameter(torch.zeros(10))
    return m


def narrow_inception_v4():
    m = thin(timm.create_model("inception_v4"), 16)
    m.features = nn.Sequential(*[m.features[i] for i in (0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 18, 19)])
    return m


def narrow_inception_resnet_v2():
    m = thin(timm.create_model("inception_resnet_v2"), 16)
    m.repeat, m.repeat_1, m.repeat_2 = m.repeat[:2], m.repeat_1[:1], m.repeat_2[:1]
    return m


def narrow_hgnet(lab):
    stages = ([12, 8, 16, 1, False, False, 3, 2], [16, 8, 24, 2, True, True, 5, 2], [24, 12, 24, 1, True, False, 3, 1],
              [24, 16, 32, 2, True, True, 3, 1])
    cfg = {"stem_type": "v2", "stem_chs": [8, 12]} | {f"stage{i + 1}": s for i, s in enumerate(stages)}
    return HighPerfGpuNet(cfg, num_classes=10, head_hidden_size=40, use_lab=lab, drop_rate=0.2, drop_path_rate=0.2)


def small_densenet(growth, blocks, stem, **kwargs):
    m = densenet.DenseNet(growth, blocks, stem, num_classes=10, **kwargs)
    m.features.conv0 = nn.Conv2d(3, stem, 3, 1, 1, bias=False)
    m.features.norm0 = m.features.relu0 = m.features.pool0 = nn.Identity()
    return m


def narrow_regnet(num_classes=10, stem_width=32, **kwargs):
    return regnet.RegNet(regnet.BlockParams.from_init_params(**kwargs), num_classes=num_classes, stem_width=stem_width)


def narrow_swin():
    return swin_transformer.SwinTransformer([4, 4], 8, [2, 2, 1, 1], [2, 4, 8, 16], [4, 4], stochastic_depth_prob=0.2, num_classes=10)


def swin_options():
    return swin_transformer.SwinTransformer([2, 2], 8, [2, 2, 1, 1], [2, 4, 8, 16], [3, 4], 2.5, NOTHING, 2 * NOTHING, 0.2, 10)


def narrow_swin_v2(*args):
    return swin_transformer.SwinTransformer(*args, block=swin_transformer.SwinTransformerBlockV2,
                                            downsample_layer=swin_transformer.PatchMergingV2)


def narrow_timm_swin_v2(size, **kwargs):
    return SwinTransformerV2(size, embed_dim=8, depths=(2, 2, 1, 1), num_heads=(2, 4, 8, 16), num_classes=10, drop_path_rate=0.1, **kwargs)


def maxvit_options():
    return MaxVit((32, 32), 8, 4, [8, 16], [1, 1], 4, 0.2, squeeze_ratio=0.5, expansion_ratio=2.5, mlp_ratio=3, mlp_dropout=NOTHING,
                  attention_dropout=2 * NOTHING, num_classes=10)


def deit_options():
    return VisionTransformerDistilled(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, mlp_ratio=2.5, qkv_bias=False,
                                      init_values=0.1, pos_drop_rate=NOTHING, proj_drop_rate=NOTHING, attn_drop_rate=2 * NOTHING,
                                      drop_path_rate=0.1, num_classes=10)


def dinov2(registers, **kwargs):
    return VisionTransformer(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, init_values=0.1, reg_tokens=registers,
                             no_embed_class=registers > 0, num_classes=10, **kwargs)


def narrow_clip(act, **kwargs):
    return VisionTransformer(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, pre_norm=True, act_layer=act,
                             norm_layer=partial(LayerNorm, eps=1e-5), num_classes=10, **kwargs)


def narrow_eva(**kwargs):
    return Eva(**{"img_size": 24, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 10,
                  "use_rot_pos_emb": True} | kwargs)


def narrow_dinov3(**kwargs):
    return narrow_eva(dynamic_img_size=True, init_values=0.1, rope_type="dinov3", rope_temperature=100, rope_rotate_half=True,
                      use_abs_pos_emb=False, num_reg_tokens=2, use_fc_norm=False, norm_layer=partial(LayerNorm, eps=1e-5), **kwargs)


def narrow_mobilevit(*blocks, **kwargs):
    cfg = ByoModelCfg(blocks=blocks, stem_chs=8, stem_type="3x3", stem_pool="", downsample="", act_layer="silu", **kwargs)
    return ByobNet(cfg, num_classes=10, drop_rate=0.2, drop_path_rate=0.2)


def narrow_repvgg():
    grouped = lambda chs, i: chs // 4 if i % 2 else 0
    blocks = [ByoBlockCfg(type="rep", d=d, c=c, gs=grouped) for d, c in ((2, 8), (3, 16), (1, 16), (2, 24))]
    return ByobNet(ByoModelCfg(blocks=blocks, stem_type="rep", stem_chs=8), num_classes=10, drop_path_rate=0.2)


def narrow_siglip(size, **kwargs):
    return VisionTransformer(img_size=size, patch_size=8, embed_dim=24, depth=2, num_heads=3, class_token=False, global_pool="map",
                             num_classes=10, **kwargs)


def narrow_beit(**kwargs):
    return Beit(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, use_abs_pos_emb=False, use_rel_pos_bias=True,
                num_classes=10, **kwargs)


def narrow_maxvit():
    return MaxVit((64, 64), 8, 4, [8, 16], [1, 2], 4, 0.2, num_classes=10)


def narrow_deit():
    return VisionTransformerDistilled(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, drop_path_rate=0.1,
                                      num_classes=10)


def small_vit(patch, width, depth, heads, size):
    return VisionTransformer(img_size=size, patch_size=patch, embed_dim=width, depth=depth, num_heads=heads, num_classes=10)


MB, Fused = efficientnet.MBConvConfig, efficientnet.FusedMBConvConfig
VGG16 = [64, 64, "M", 128, 128, "M"] + 3 * [256] + ["M"] + 3 * [512] + ["M"] + 3 * [512] + ["M"]

# Name: net, batch, size of the images. package zoo's test has the same names.
def narrow_metaformer(token_mixers, norm_layers, depths=(1, 1, 2, 1), dims=(8, 12, 16, 24), **kwargs):
    return MetaFormer(depths=depths, dims=dims, token_mixers=token_mixers, norm_layers=norm_layers, num_classes=10, **kwargs)


def narrow_mixer(**kwargs):
    return MlpMixer(img_size=32, patch_size=8, embed_dim=24, num_blocks=2, num_classes=10, drop_path_rate=0.1, **kwargs)


VARIANTS = {
    "alexnet_narrow": (lambda: narrow_alexnet(16, 1), 3, 63),
    "vgg_narrow": (lambda: narrow_vgg([8, "M", 16, "M", 32, 32, "M", 64, "M", 64, "M"], False, 32, 1), 2, 64),
    "vgg_bn_narrow": (lambda: narrow_vgg([8, "M", 16, "M", 32, 32, "M", 64, "M", 64, "M"], True, 32, 1), 3, 32),
    "resnext_narrow": (lambda: resnet.ResNet(resnet.Bottleneck, [1, 2, 1, 1], num_classes=10, groups=8, width_per_group=2), 3, 64),
    "resnet_dilated_narrow": (lambda: resnet.ResNet(resnet.Bottleneck, [1, 2, 2, 1], num_classes=10, groups=4, width_per_group=4,
                                                    replace_stride_with_dilation=[True, True, False]), 2, 32),
    "resnet_timm_narrow": (lambda: ResNet(Bottleneck, (1, 2, 1, 1), 10, cardinality=8, base_width=2, stem_width=8, stem_type="deep_tiered",
                                          avg_down=True, block_args={"attn_layer": partial(SqueezeExcite, rd_ratio=0.1)}), 3, 36),
    "res2net_timm_narrow": (lambda: ResNet(Bottle2neck, (1, 2, 1, 1), 10, cardinality=2, base_width=3, block_args={"scale": 4}), 3, 36),
    "mobilenet_v2_own_narrow": (lambda: mobilenetv2.MobileNetV2(
        num_classes=10, width_mult=0.1, inverted_residual_setting=[[1, 40, 1, 2], [3, 70, 2, 1]], round_nearest=3), 4, 24),
    "mobilenet_v2_narrow": (lambda: mobilenetv2.MobileNetV2(num_classes=10, width_mult=0.25), 4, 48),
    "mobilenetv2_narrow": (narrow_mobilenetv2, 8, 64),
    "mobilenet_v3_small_narrow": (lambda: narrow_v3("mobilenet_v3_small", 0.35), 4, 48),
    "mobilenet_v3_large_narrow": (lambda: narrow_v3("mobilenet_v3_large", 0.25), 4, 48),
    "mobilenet_v3_dilated_narrow": (lambda: narrow_v3("mobilenet_v3_small", 0.35, reduced_tail=True, dilated=True), 4, 64),
    "mobilenet_v3_own_narrow": (lambda: own_v3(
        72, (32, 5, 32, 32, False, "HS", 1, 3), (32, 3, 48, 32, True, "RE", 2, 1), (32, 3, 64, 32, False, "RE", 2, 2)), 4, 24),
    "mobilenetv4_narrow": (lambda: narrow_mobilenetv4(
        ["cn_r1_k3_s2_c64", "cn_r1_k1_s1_c64"], ["er_r2_k3_s2_e2_c64"],
        ["uir_r2_a5_k3_s2_e3_c96", "uir_r1_a3_k0_s1_e2_c96", "uir_r1_a0_k3_s1_e2_c96", "uir_r1_a0_k0_s1_e2_c96"],
        ["uir_r1_a3_k0_s2_e2_c128"]), 8, 64),
    "ghostnet_timm_narrow": (lambda: GhostNet(
        [[[3, 16, 16, 0, 1]], [[3, 48, 24, 0, 2]], [[5, 72, 40, 0.25, 2], [3, 80, 40, 0.25, 1], [3, 96, 56, 0.25, 1]]], 10, 0.5), 8, 40),
    "mnasnet_narrow": (lambda: models.MNASNet(0.25, num_classes=10), 4, 48),
    "efficientnet_narrow": (lambda: narrow_efficientnet([
        MB(1, 3, 1, 32, 16, 1, 0.6, 0.6), MB(6, 3, 2, 16, 24, 2, 0.6, 0.6), MB(6, 5, 2, 24, 40, 2, 0.6, 0.6)]), 4, 32),
    "efficientnet_v2_narrow": (lambda: narrow_efficientnet([
        Fused(1, 3, 1, 16, 16, 2), Fused(4, 3, 2, 16, 24, 2), MB(4, 3, 2, 24, 32, 2), MB(6, 3, 1, 32, 40, 2)],
        96, lambda c: nn.BatchNorm2d(c, eps=1e-3)), 4, 32),
    "tf_efficientnet_narrow": (lambda: narrow_tf_efficientnet(
        16, 96, "ds_r1_k3_s1_e1_c8_se0.25", "ir_r2_k3_s2_e6_c16_se0.25", "ir_r2_k5_s2_e6_c24_se0.25"), 4, 38),
    "efficientnet_lite_timm_narrow": (narrow_lite, 4, 38),
    "tf_efficientnetv2_narrow": (lambda: narrow_tf_efficientnet(
        16, 96, "cn_r1_k3_s1_e1_c16_skip", "er_r2_k3_s2_e4_c24", "ir_r1_k3_s2_e4_c32_se0.25", "ir_r1_k3_s1_e6_c40_se0.25"), 4, 27),
    "tf_mobilenetv3_narrow": (narrow_tf_mobilenetv3, 4, 46),
    "regnet_x_narrow": (lambda: narrow_regnet(depth=6, w_0=16, w_a=12.5, w_m=2.2, group_width=8), 4, 32),
    "regnet_y_narrow": (lambda: narrow_regnet(depth=6, w_0=16, w_a=12.5, w_m=2.2, group_width=12, se_ratio=0.25,
                                              bottleneck_multiplier=1.5, stem_width=24), 4, 32),
    "regnety_narrow": (lambda: RegNet(RegNetCfg(depth=6, w0=8, wa=12.5, wm=2.2, group_size=12, se_ratio=0.25), num_classes=10), 4, 64),
    "squeezenet1_0_narrow": (lambda: narrow_squeezenet("1_0", 8), 2, 63),
    "squeezenet1_1_narrow": (lambda: narrow_squeezenet("1_1", 8), 2, 64),
    "googlenet_narrow": (lambda: narrow_inception(models.GoogLeNet, 8, BasicConv2d, "blocks", Inception), 4, 82),
    "inception_v3_narrow": (lambda: narrow_inception(
        models.Inception3, 16, inception.BasicConv2d, "inception_blocks", inception.InceptionA, inception.InceptionB,
        inception.InceptionC, inception.InceptionD, inception.InceptionE), 6, 107),
    "inception_v4_narrow": (narrow_inception_v4, 6, 107),
    "inception_resnet_v2_narrow": (narrow_inception_resnet_v2, 6, 107),
    "legacy_xception_narrow": (lambda: thin(timm.create_model("legacy_xception"), 8), 4, 67),
    "hgnetv2_timm_narrow": (lambda: narrow_hgnet(True), 4, 64),
    "hgnetv2_plain_timm_narrow": (lambda: narrow_hgnet(False), 4, 64),
    "densenet_narrow": (lambda: densenet.DenseNet(8, (2, 3, 2), 16, num_classes=10), 3, 48),
    "densenet_small": (lambda: small_densenet(4, (2, 3), 8, bn_size=3, drop_rate=0.2), 3, 16),
    "shufflenet_v2_narrow": (lambda: models.ShuffleNetV2([1, 2, 2], [8, 16, 24, 32, 48], num_classes=10), 3, 64),
    "wrn10_2": (lambda: WideResNet(10, 2), 3, 16),
    "resnet9_narrow": (lambda: ResNet9(8), 3, 32),
    "vit_narrow": (lambda: small_vit(8, 24, 2, 3, 24), 3, 24),
    "vit_gap_narrow": (lambda: VisionTransformer(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=10,
                                                 class_token=False, global_pool="avg", fc_norm=False), 3, 24),
    "vit_torchvision_narrow": (lambda: vision_transformer.VisionTransformer(24, 8, 2, 3, 24, 96, num_classes=10), 3, 24),
    "convnext_narrow": (lambda: convnext.ConvNeXt([convnext.CNBlockConfig(8 << i, 16 << i if i < 3 else None, n) for i, n in
                                                   enumerate((1, 2, 1, 1))], 0.1, 0.2, num_classes=10), 3, 64),
    "convnext_timm_narrow": (lambda: ConvNeXt(depths=(1, 2, 1, 1), dims=(8, 16, 32, 64), ls_init_value=0.2, conv_mlp=True,
                                              num_classes=10), 3, 64),
    "convnextv2_narrow": (lambda: ConvNeXt(depths=(1, 2, 1, 1), dims=(8, 16, 32, 64), use_grn=True, ls_init_value=None,
                                           drop_path_rate=0.1, num_classes=10), 3, 64),
    "poolformer_narrow": (lambda: narrow_metaformer(
        Pooling, GroupNorm1, downsample_norm=None, mlp_act=nn.GELU, mlp_bias=True, layer_scale_init_values=0.2,
        res_scale_init_values=None, use_mlp_head=False, drop_path_rate=0.1), 3, 52),
    "poolformerv2_narrow": (lambda: narrow_metaformer(Pooling, GroupNorm1NoBias, use_mlp_head=False, drop_path_rate=0.1), 3, 64),
    "convformer_narrow": (lambda: narrow_metaformer(SepConv, LayerNorm2dNoBias, (1, 1, 1, 2), (8, 12, 16, 16), drop_path_rate=0.2), 3, 64),
    "caformer_narrow": (lambda: narrow_metaformer(
        [SepConv, SepConv, Attention, Attention], [LayerNorm2dNoBias] * 2 + [LayerNormNoBias] * 2, head_dim=8,
        layer_scale_init_values=0.2, drop_path_rate=0.15), 3, 64),
    "mixer_narrow": (lambda: narrow_mixer(mlp_ratio=(0.75, 2.5)), 3, 32),
    "resmlp_narrow": (lambda: narrow_mixer(mlp_ratio=4, block_layer=partial(ResBlock, init_values=0.1), norm_layer=Affine,
                                           drop_rate=0.2), 3, 32),
    "gmlp_narrow": (lambda: narrow_mixer(mlp_ratio=6, block_layer=SpatialGatingBlock, mlp_layer=GatedMlp), 3, 32),
    "cait_narrow": (lambda: Cait(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, init_values=0.2, drop_path_rate=0.1,
                                 num_classes=10), 3, 32),
    "xcit_narrow": (lambda: xcit.Xcit(img_size=48, patch_size=8, embed_dim=24, depth=2, num_heads=3, eta=0.5, tokens_norm=True,
                                      drop_path_rate=0.1, num_classes=10), 4, 48),
    "xcit_nano_narrow": (lambda: xcit.Xcit(img_size=64, patch_size=16, embed_dim=48, depth=1, num_heads=4, num_classes=10), 4, 64),
    "tiny_vit_narrow": (lambda: TinyVit(embed_dims=(8, 12, 16, 24), depths=(2, 1, 2, 1), num_heads=(1, 2, 4, 3), window_sizes=(2, 3, 4, 2),
                                        drop_path_rate=0.2, num_classes=10), 4, 64),
    "fastvit_narrow": (lambda: FastVit(layers=(2, 1, 1, 1), embed_dims=(8, 16, 16, 32), mlp_ratios=(3,) * 4, downsamples=(False,) * 4,
                                       token_mixers=("repmixer",) * 3 + ("attention",), pos_embs=(None,) * 3 + (RepConditionalPosEnc,),
                                       drop_path_rate=0.1, num_classes=10), 4, 64),
    "swin_narrow": (narrow_swin, 2, 40),
    "swin_v2_narrow": (lambda: narrow_swin_v2([4, 4], 8, [2, 2, 1, 1], [2, 4, 8, 16], [4, 4], 4.0, 0.0, 0.0, 0.2, 10), 2, 40),
    "swin_v2_options_narrow": (lambda: narrow_swin_v2([2, 2], 8, [2, 2, 1, 1], [2, 4, 8, 16], [3, 4], 2.5, NOTHING, 2 * NOTHING,
                                                      0.2, 10), 2, 20),
    "swinv2_timm_narrow": (lambda: narrow_timm_swin_v2(64, window_size=4), 2, 64),
    "swinv2_timm_options_narrow": (lambda: narrow_timm_swin_v2(
        32, patch_size=2, window_size=8, mlp_ratio=2.5, proj_drop_rate=NOTHING, attn_drop_rate=2 * NOTHING,
        pretrained_window_sizes=(6, 6, 6, 3)), 2, 32),
    "maxvit_narrow": (narrow_maxvit, 2, 64),
    "mobilevit_timm_narrow": (lambda: narrow_mobilevit(
        _inverted_residual_block(2, 8, 1, 2), _mobilevit_block(1, 16, 2, 12, 2, 2), _mobilevit_block(2, 24, 2, 20, 1, 2), num_features=40), 3, 36),
    "mobilevitv2_timm_narrow": (lambda: narrow_mobilevit(
        _inverted_residual_block(2, 8, 1, 2), _mobilevitv2_block(1, 16, 2, 2), _mobilevitv2_block(2, 32, 2, 1)), 3, 36),
    "repvgg_timm_narrow": (narrow_repvgg, 8, 48),
    "deit_narrow": (narrow_deit, 3, 24),
    "vit_torchvision_options_narrow": (lambda: vision_transformer.VisionTransformer(24, 8, 2, 3, 24, 60, NOTHING, 2 * NOTHING, 10, 16), 3, 24),
    "deit_options_narrow": (deit_options, 3, 24),
    "swin_options_narrow": (swin_options, 2, 20),
    "maxvit_options_narrow": (maxvit_options, 2, 32),
    "dinov2_narrow": (lambda: dinov2(0), 3, 24),
    "dinov2_reg2_narrow": (lambda: dinov2(2), 3, 24),
    "dinov2_options_narrow": (lambda: dinov2(2, pos_drop_rate=NOTHING, proj_drop_rate=NOTHING, mlp_ratio=2.5, pre_norm=True), 3, 24),
    "vit_reg2_narrow": (lambda: VisionTransformer(img_size=24, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=10,
                                                  reg_tokens=2), 3, 24),
    "clip_narrow": (lambda: narrow_clip("gelu"), 3, 24),
    "clip_quickgelu_narrow": (lambda: narrow_clip("quick_gelu", mlp_ratio=2.5), 3, 24),
    "clip_options_narrow": (lambda: narrow_clip("quick_gelu", class_token=False, global_pool="avg", fc_norm=False,
                                                pos_drop_rate=NOTHING, proj_drop_rate=NOTHING), 3, 24),
    "dinov3_narrow": (lambda: narrow_dinov3(qkv_bias=False), 3, 24),
    "dinov3_qkvb_narrow": (lambda: narrow_dinov3(swiglu_mlp=True, swiglu_align_to=8, mlp_ratio=2.5), 3, 24),
    "eva02_narrow": (lambda: narrow_eva(swiglu_mlp=True, mlp_ratio=8 / 3, ref_feat_shape=(2, 2)), 3, 24),
    "eva02_large_narrow": (lambda: narrow_eva(img_size=32, swiglu_mlp=True, scale_mlp=True, mlp_ratio=8 / 3, ref_feat_shape=(2, 2),
                                              qkv_fused=False, drop_path_rate=0.1), 3, 32),
    "eva_options_narrow": (lambda: narrow_eva(embed_dim=16, num_heads=2, scale_mlp=True, mlp_ratio=2.5, num_reg_tokens=1, init_values=0.2,
                                              qkv_fused=False, qkv_bias=False, drop_rate=0.2, pos_drop_rate=NOTHING,
                                              proj_drop_rate=NOTHING, attn_drop_rate=2 * NOTHING), 3, 24),
    "siglip_narrow": (lambda: narrow_siglip(24), 3, 24),
    "siglip_options_narrow": (lambda: narrow_siglip(28, act_layer="gelu_tanh", mlp_ratio=2.5, pos_drop_rate=NOTHING,
                                                    proj_drop_rate=NOTHING), 3, 28),
    "beit_narrow": (lambda: narrow_beit(init_values=0.1, drop_path_rate=0.1), 3, 24),
    "beit_options_narrow": (lambda: narrow_beit(mlp_ratio=2.5, pos_drop_rate=NOTHING, proj_drop_rate=NOTHING,
                                                attn_drop_rate=2 * NOTHING), 3, 24),
}

STEPS = {"inception_v3_narrow": 4}  # else 10; after more the rounding of float64 shows

OWN = {
    "wrn28_10": lambda: WideResNet(28, 10),
    "resnet9": ResNet9,
    "densenet100_12": lambda: small_densenet(12, (16, 16, 16), 24),
    "vgg16_bn_cifar": lambda: narrow_vgg(VGG16, True, 512, 1),
    "vit_tiny_patch4_32": lambda: small_vit(4, 192, 12, 3, 32),
}

FAMILIES = ("alexnet", "vgg", "resnext", "wide_resnet", "mobilenet", "mnasnet", "efficientnet_b", "efficientnet_v2",
            "regnet", "squeezenet", "googlenet", "inception", "densenet", "shufflenet", "vit_",
            "convnext", "swin_", "maxvit")
LARGE = ("vit_h_14", "regnet_y_128gf", "vit_huge_plus_patch16_dinov3", "vit_huge_plus_patch16_dinov3_qkvb")  # 0.6 billion parameters: by default they are left out
# timm's, beside torchvision's.
TIMM = [f"vit_{size}_patch{patch}_224" for size, patch in (("tiny", 16), ("small", 16), ("small", 32), ("base", 16), ("base", 32),
                                                             ("large", 16), ("large", 32))]
TIMM += [f"deit_{size}{kind}_patch16_224" for size in ("tiny", "small", "base") for kind in ("", "_distilled")]
TIMM += ["mobilenetv3_large_100", "mobilenetv3_small_100", "vit_base_patch16_gap_224", "timm_efficientnet_b5"]
TIMM += [f"tf_efficientnet_b{i}" for i in range(8)]
TIMM += [f"tf_efficientnetv2_{size}" for size in ("s", "m", "l", "b0", "b1", "b2", "b3")]
TIMM += ["tf_mobilenetv3_large_100", "tf_mobilenetv3_small_100"]
TIMM += [f"regnetx_{size}" for size in ("002", "004", "006", "040", "064", "120")]
TIMM += [f"regnety_{size}" for size in ("002", "006", "008", "040", "064", "080", "120")]
TIMM += [f"mobilenetv2_{size}" for size in ("050", "140", "110d", "120d")]
TIMM += [f"mobilenetv4_conv_{size}" for size in ("small_050", "small", "medium", "large")]
TIMM += ["mobilenetv3_small_050", "mobilenetv3_small_075", "tf_mobilenetv3_large_075", "tf_mobilenetv3_small_075"]
TIMM += ["resnet14t", "resnet18d", "resnet34d", "resnet26", "resnet26d", "resnet50d", "resnet101d", "resnet152d", "seresnet50",
         "seresnext50_32x4d"]
TIMM += [f"convnext_{size}" for size in ("atto", "femto", "pico", "nano")]
TIMM += [f"convnextv2_{size}" for size in ("atto", "femto", "pico", "nano", "tiny", "base", "large")]
TIMM += [f"vit_{size}_patch14{kind}_dinov2" for size in ("small", "base", "large") for kind in ("", "_reg4")]
TIMM += [f"deit3_{size}_patch16_224" for size in ("small", "medium", "base", "large")]
TIMM += [f"vit_{size}_clip{kind}_224" for size in ("base_patch32", "base_patch16", "large_patch14") for kind in ("", "_quickgelu")]
TIMM += ["vit_tiny_patch16_dinov3_qkvb"]
TIMM += [f"vit_{size}_patch16_dinov3{kind}" for size in ("small", "small_plus", "base", "large", "huge_plus") for kind in ("", "_qkvb")]
TIMM += [f"eva02_{size}_patch14_{pixels}" for size, large in (("tiny", 336), ("small", 336), ("base", 448), ("large", 448))
         for pixels in (224, large)]
META = [f"poolformer{v}_{size}" for v in ("", "v2") for size in ("s12", "s24", "s36", "m36", "m48")]
META += [f"{kind}former_{size}" for kind in ("conv", "ca") for size in ("s18", "s36", "m36", "b36")]
TIMM += META
TIMM += [f"mixer_{size}_224" for size in ("s16", "s32", "b16", "b32", "l16", "l32")]
TIMM += [f"resmlp_{size}_224" for size in ("12", "24", "36", "big_24")]
TIMM += [f"cait_{size}" for size in ("xxs24_224", "xxs24_384", "xxs36_224", "xxs36_384", "xs24_384", "s24_224", "s24_384", "s36_384",
                                     "m36_384", "m48_448")]
TIMM += [f"xcit_{size}_p{patch}_224" for size in ("nano_12", "tiny_12", "small_12", "tiny_24", "small_24", "medium_24", "large_24")
         for patch in (16, 8)]
TIMM += [f"gmlp_{size}16_224" for size in ("ti", "s", "b")]
# Of MetaFormers, by the end of the name.
META_DROP = {"_s12": 0.1, "_s24": 0.1, "v2_s36": 0.2, "poolformer_s36": 0.2, "_s36": 0.3, "v2_m36": 0.3, "poolformer_m36": 0.3,
             "_m36": 0.4, "_m48": 0.4, "_b36": 0.6, "convformer_s18": 0.2, "caformer_s18": 0.15}
TIMM += [f"tiny_vit_{size}" for size in ("5m_224", "11m_224", "21m_224", "21m_384", "21m_512")]
TIMM += [f"fastvit_{size}" for size in ("t8", "t12", "s12", "sa12", "sa24", "sa36", "ma36")]
TIMM += [f"{tf}efficientnet_lite{i}" for tf in ("", "tf_") for i in range(5)]
TIMM += [f"res2net{kind}" for kind in ("50_14w_8s", "50_26w_4s", "50_26w_6s", "50_26w_8s", "50_48w_2s", "50d", "101_26w_4s", "101d")]
TIMM += ["res2next50"]
TIMM += [f"ghostnet_{size}" for size in ("050", "100", "130")]
TIMM += ["legacy_xception", "inception_v4", "inception_resnet_v2"]
TIMM += [f"hgnetv2_b{i}" for i in range(7)]
TIMM += ["mobilevit_xxs", "mobilevit_xs", "mobilevit_s"]
TIMM += [f"mobilevitv2_{size}" for size in ("050", "075", "100", "125", "150", "175", "200")]
TIMM += [f"repvgg_{size}" for size in ("a0", "a1", "a2", "b0", "b1", "b1g4", "b2", "b2g4", "b3", "b3g4")]
TIMM += [f"vit_{tower}_{size}" for tower, sizes in (
    ("base_patch16_siglip", (224, 256, 384)), ("base_patch32_siglip", (256,)), ("large_patch16_siglip", (256, 384)),
    ("so400m_patch14_siglip", (224, 384)), ("so400m_patch16_siglip", (256, 384)), ("base_patch16_siglip_gap", (224,))) for size in sizes]
TIMM += ["beit_base_patch16_224", "beit_base_patch16_384", "beit_large_patch16_224", "beit_large_patch16_384", "beit_large_patch16_512",
         "beitv2_base_patch16_224", "beitv2_large_patch16_224"]
TIMM += [f"swinv2_{size}_window{window}_256" for size in ("tiny", "small", "base") for window in (8, 16)]
TIMM += [f"swinv2_{size}_window12to{window}_192to{image}" for size in ("base", "large") for window, image in ((16, 256), (24, 384))]
DROPOUT = {"0": 0.2, "1": 0.2, "2": 0.3, "3": 0.3, "4": 0.4, "5": 0.4, "6": 0.5, "7": 0.5, "s": 0.2, "m": 0.3, "l": 0.4}  # of EfficientNets
# Large linear layers, and embeddings of places, take images of the usual size. XCiT takes two images: for one PyTorch's CPU differentiates
# its first batch normalisations wrongly, as finite differences show.
WHOLE = ("vit_", "beit", "deit", "eva02_", "mixer", "resmlp", "gmlp", "cait", "swin_", "maxvit", "alexnet", "vgg11", "vgg13", "vgg16", "vgg19")


def names():
    """Whole nets but for the largest."""
    known = [n for n in models.list_models(module=models) if n.startswith(FAMILIES)] + list(OWN) + TIMM
    return [n for n in known if n not in LARGE]


def whole(names):
    for name in names:
        if name in OWN:
            yield name, OWN[name], 2, 32
        else:
            whole = name.startswith(WHOLE)
            make = timm.create_model if name in TIMM else models.get_model
            kwargs, shape = {}, (1, 224) if whole else (2, 64)
            if name in ("googlenet", "inception_v3"):
                kwargs, shape = {"aux_logits": False, "init_weights": True}, (1, 299 if name == "inception_v3" else 224)
            elif name in ("inception_v4", "inception_resnet_v2"):
                shape = (2, 107)
            elif name.startswith(("repvgg", "hgnet")):
                shape = (2, 96)  # at 64 pixels float32 opens a ReLU
            elif name.startswith("swinv2_"):
                shape = 1, int(name[-3:])
            elif name.startswith("deit_"):
                kwargs = {"drop_path_rate": 0.1}
            elif name.startswith("convnextv2_"):
                kwargs = {"drop_path_rate": 0.2 if name.endswith(("tiny", "large")) else 0.1}
            elif name in META:
                kwargs = {"drop_path_rate": next(p for end, p in META_DROP.items() if name.endswith(end))}
            elif "_dinov" in name or "siglip" in name or name.startswith(("beit", "eva02_")):
                kwargs = {"img_size": 224}
            elif "mobilenetv3_" in name or "mobilenetv2_" in name:
                kwargs = {"drop_rate": 0.2}
            elif make is timm.create_model and "efficientnet" in name:
                kwargs = {"drop_rate": 0.3 if name.endswith("lite4") else DROPOUT[name[-1]], "drop_path_rate": 0.2}
            yield name, lambda: make(name.removeprefix("timm_"), num_classes=1000, **kwargs), *shape
