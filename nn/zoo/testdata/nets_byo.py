"""Narrow and whole nets of timm with gates, attention in blocks, or few relatives, for make.py."""

from functools import partial

import torch
import torch.nn as nn
from timm.layers import BlurPool2d, EvoNorm2dS0, EvoNorm2dS0a, create_conv2d
from timm.layers import evo_norm
from timm.models import maxxvit
from timm.models._efficientnet_builder import decode_arch_def
from timm.models._prune import adapt_model_from_string
from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg
from timm.models.convmixer import ConvMixer
from timm.models.cspnext import CspNext
from timm.models.densenet import DenseNet
from timm.models.efficientnet import EfficientNet
from timm.models.mambaout import MambaOut
from timm.models.nasnet import NASNetALarge
from timm.models.pnasnet import PNASNet5Large
from timm.models.rdnet import RDNet
from timm.models.regnet import RegNet, RegNetCfg
from timm.models.resnet import Bottleneck, ResNet
from timm.models.resnetv2 import ResNetV2
from timm.models.selecsls import SelecSls, SelecSlsBlock
from timm.models.tresnet import TResNet

from nets import thin


def group_std(x, groups=32, eps=1e-5, flatten=False):
    """timm's, which computes in float32, also for float64."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32)).reshape(len(x), groups, x.shape[1] // groups, *x.shape[2:])
    std = wide.var(dim=(2, 3, 4), unbiased=False, keepdim=True).add(eps).sqrt().to(x.dtype)
    return std.expand(wide.shape).reshape(x.shape)


evo_norm.group_std = group_std


def narrow_mambaout(**kwargs):
    return MambaOut(num_classes=10, depths=(1, 2, 1, 1), drop_rate=0.2, drop_path_rate=0.2, **kwargs)


def narrow_byoanet():
    """A stage each with halos, halos whose side is odd, functions of neighbours, attention of all, and functions of all distances."""
    stages = (("halo", 1, 2, dict(num_heads=2, block_size=4, halo_size=1)),
              ("halo", 2, 2, dict(num_heads=2, block_size=3, halo_size=1, qk_ratio=0.5)), ("lambda", 2, 2, dict(r=3)),
              ("bottleneck", 1, 1, dict(dim_head=8)), ("lambda", 1, 1, dict(r=None)))
    blocks = tuple(tuple(ByoBlockCfg("self_attn" if i == 0 else "bottle", 1, 64, s, gs=8, br=0.25, self_attn_layer=kind, self_attn_kwargs=kwargs)
                         for i in range(n)) for kind, n, s, kwargs in stages)
    return ByobNet(ByoModelCfg(blocks=blocks, stem_chs=8, stem_pool="", act_layer="silu", attn_layer="se"), num_classes=10, img_size=48,
                   drop_rate=0.2, drop_path_rate=0.2)


def narrow_regnetz_evos():
    blocks = tuple(ByoBlockCfg("bottle", 2, c, 2, gs=8, br=3) for c in (16, 24))
    return ByobNet(ByoModelCfg(blocks=blocks, stem_chs=8, stem_pool="", downsample="", num_features=40, act_layer="silu", attn_layer="se",
                               norm_layer=partial(EvoNorm2dS0a, group_size=4), attn_kwargs=dict(rd_ratio=0.25),
                               block_kwargs=dict(bottle_in=True, linear_out=True)), num_classes=10)


def narrow_selecsls():
    cfg = {"block": SelecSlsBlock, "features": [(32, 0, 16, 24, True, 2), (24, 24, 16, 32, False, 1), (32, 24, 24, 32, False, 1),
                                                (32, 0, 24, 24, True, 2), (24, 24, 24, 40, False, 1)],
           "head": [(40, 24, 3, 2), (24, 32, 3, 1), (32, 40, 3, 2), (40, 48, 1, 1)], "num_features": 48,
           "feature_info": [dict(num_chs=32, reduction=2, module="stem.2")]}
    return SelecSls(cfg, num_classes=10, drop_rate=0.2)


def narrow_regnetv(downsample):
    return RegNet(RegNetCfg(depth=5, w0=16, wa=8, wm=1.5, group_size=8, se_ratio=0.25, preact=True, act_layer="silu", downsample=downsample),
                  num_classes=10, drop_rate=0.2, drop_path_rate=0.2)


def narrow_rdnet():
    return RDNet(num_classes=10, growth_rates=(8, 8, 12, 12), num_blocks_list=(2, 1, 1, 2), block_type=("Block", "Block", "BlockESE", "BlockESE"),
                 is_downsample_block=(None, True, False, True), num_init_features=16, ls_init_value=0.2, drop_rate=0.2, drop_path_rate=0.2)


def narrow_coatnet():
    cfg = maxxvit.MaxxVitCfg(embed_dim=(8, 8, 16, 16), depths=(1, 1, 2, 1), stem_width=(8, 8),
                             **maxxvit._rw_coat_cfg(stride_mode="dw", conv_attn_early=True, transformer_shortcut_bias=False,
                                                    transformer_norm_layer="batchnorm2d"))
    cfg.transformer_cfg.dim_head = 4
    return maxxvit.MaxxVit(cfg, num_classes=10, img_size=64, drop_rate=0.2, drop_path_rate=0.2)


def fewer(m, cells, forward):
    """m with some of its cells, which have numbers of their own."""
    modules, at = m._modules, 0
    m._modules = {}
    for name in cells + ["act", "global_pool", "head_drop", "last_linear"]:
        number = name.startswith("cell_") and name[5:].isdigit()
        m._modules[f"cell_{at}" if number else name] = modules[name]
        at += number
    m.forward_features = lambda x: m.act(forward(m, x))
    return m


def nasnet_forward(m, x):
    first = m.conv0(x)
    before = m.cell_stem_0(first)
    x = m.cell_stem_1(first, before)
    x, before = m.cell_0(x, before), x
    x, before = m.cell_1(x, before), x
    x, last = m.reduction_cell_0(x, before), before
    x, before = m.cell_2(x, last), x
    x, before = m.cell_3(x, before), x
    return m.cell_4(m.reduction_cell_1(x, before), before)


def pnasnet_forward(m, x):
    first = m.conv_0(x)
    before = m.cell_stem_0(first)
    x = m.cell_stem_1(first, before)
    for i in range(5):
        x, before = getattr(m, f"cell_{i}")(before, x), x
    return x


def narrow_nasnet():
    net = NASNetALarge(num_classes=10, stem_size=8, num_features=24 * 8, drop_rate=0.2, pad_type="same")
    return fewer(net, ["conv0", "cell_stem_0", "cell_stem_1", "cell_0", "cell_1", "reduction_cell_0", "cell_6", "cell_7",
                       "reduction_cell_1", "cell_12"], nasnet_forward)


def narrow_pnasnet():
    net = fewer(PNASNet5Large(num_classes=10, drop_rate=0.2, pad_type="same"), [
        "conv_0", "cell_stem_0", "cell_stem_1", "cell_0", "cell_1", "cell_4", "cell_5", "cell_8"], pnasnet_forward)
    thin(net, 27)
    for m in net.modules():
        if hasattr(m, "reset_parameters"):
            m.reset_parameters()
    return net


def pruned(m, left):
    """m with other numbers of channels, of which left has some of the old ones."""
    shapes = {name: [left.get(n, n) for n in x.shape] for name, x in m.state_dict().items()}
    return adapt_model_from_string(m, "***".join(f"{name}:{shape}" for name, shape in shapes.items()))


def narrow_pruned_efficientnet():
    stages = [["ds_r1_k3_s1_e1_c16"], ["ir_r2_k3_s2_e4_c24_se0.25"]]
    net = EfficientNet(decode_arch_def(stages), stem_size=16, num_features=32, act_layer=nn.SiLU, num_classes=10, pad_type="same",
                       norm_layer=partial(nn.BatchNorm2d, eps=0.001))
    return pruned(net, {64: 30, 96: 41, 24: 12, 4: 3})


def narrow_condconv():
    stages = [["ds_r1_k3_s1_e1_c8"], ["ir_r2_k5_s2_e4_c16_se0.25_cc2"], ["ir_r1_k3_s1_e2_c16_cc2"]]
    return EfficientNet(decode_arch_def(stages, experts_multiplier=2), stem_size=8, num_features=32, act_layer=nn.SiLU, num_classes=10,
                        pad_type="same", norm_layer=partial(nn.BatchNorm2d, eps=0.001))


def narrow_pruned_resnet():
    net = ResNet(Bottleneck, (1, 2, 1, 1), channels=(8, 16, 24, 40), stem_width=4, stem_type="deep", avg_down=True, block_reduce_first=2,
                 block_args={"attn_layer": "eca"}, num_classes=10)
    return pruned(net, {4: 3, 8: 7, 12: 11, 16: 13, 20: 19, 24: 21, 40: 35, 32: 29, 64: 50, 96: 90, 160: 150})


def BLOCKS(model):
    """How many blocks have probabilities of dropping them."""
    if isinstance(model, TResNet):
        return sum(len(stage) for stage in model.body[2:])
    if isinstance(model, CspNext):
        return sum(len(stage[-1].blocks) for stage in model.stages[:-1])
    return None


VARIANTS = {
    "mambaout_narrow": (lambda: narrow_mambaout(dims=(8, 12, 16, 24)), 3, 64),
    "mambaout_rw_narrow": (lambda: narrow_mambaout(dims=(8, 12, 16, 24), expansion_ratio=2.5, conv_ratio=1.25, stem_mid_norm=False,
                                                   downsample="conv_nf", ls_init_value=0.2, act_layer="silu", head_fn="norm_mlp"), 3, 64),
    "byoanet_narrow": (narrow_byoanet, 3, 48),
    "convmixer_narrow": (lambda: ConvMixer(16, 2, kernel_size=5, patch_size=4, num_classes=10, drop_rate=0.2), 4, 32),
    "tresnet_narrow": (lambda: TResNet([1, 2, 2, 1], num_classes=10, width_factor=0.126, drop_rate=0.2, drop_path_rate=0.2), 4, 40),
    "selecsls_narrow": (narrow_selecsls, 8, 36),
    "regnetv_narrow": (lambda: narrow_regnetv("conv1x1"), 4, 32),
    "regnetv_avg_narrow": (lambda: narrow_regnetv("avg"), 4, 36),
    "rdnet_narrow": (narrow_rdnet, 4, 32),
    "cspnext_narrow": (lambda: CspNext(num_classes=10, depths=(1, 2, 1, 1), channels=(16, 32, 64, 128), drop_rate=0.2, drop_path_rate=0.2), 4, 40),
    "coatnet_bn_narrow": (narrow_coatnet, 3, 64),
    "nasnet_narrow": (narrow_nasnet, 3, 45),
    "pnasnet_narrow": (narrow_pnasnet, 3, 43),
    "efficientnet_pruned_narrow": (narrow_pruned_efficientnet, 4, 32),
    "ecaresnet_pruned_narrow": (narrow_pruned_resnet, 4, 32),
    "regnetz_evos_narrow": (narrow_regnetz_evos, 3, 24),
    "resnetv2_evos_narrow": (lambda: ResNetV2([1, 1, 1, 1], (16, 16, 24, 32), 10, stem_chs=16, stem_type="deep", avg_down=True,
                                              conv_layer=create_conv2d, norm_layer=partial(EvoNorm2dS0, groups=4)), 3, 32),
    "condconv_narrow": (narrow_condconv, 3, 25),
    "densenetblur_narrow": (lambda: DenseNet(8, (2, 1, 2), num_classes=10, stem_type="deep", aa_layer=BlurPool2d, drop_rate=0.2), 4, 32),
}

STEPS = dict.fromkeys(VARIANTS, 3)

TIMM = {f"mambaout_{size}": ({}, 2, 64) for size in ("femto", "kobe", "tiny", "small", "base", "small_rw", "base_short_rw", "base_tall_rw",
                                                    "base_wide_rw", "base_plus_rw")}
TIMM |= {name: ({}, 2, 256) for name in (
    "botnet26t_256", "eca_botnext26ts_256", "sebotnet33ts_256", "halonet26t", "eca_halonext26ts", "sehalonet33ts", "halonet50ts",
    "halo2botnet50ts_256", "lambda_resnet26t", "lambda_resnet26rpt_256", "lambda_resnet50ts", "lamhalobotnet50ts_256")}
TIMM |= {"haloregnetz_b": ({}, 2, 224)}

TIMM |= {name: ({}, 2, 96) for name in ("convmixer_768_32", "convmixer_1024_20_ks9_p14", "convmixer_1536_20")}
TIMM |= {f"tresnet_{size}": ({}, 2, 64) for size in ("m", "l", "xl", "v2_l")}
TIMM |= {f"selecsls{size}": ({}, 2, 128) for size in ("42b", "60", "60b")}
TIMM |= {f"regnetv_{size}": ({}, 2, 64) for size in ("040", "064")}
TIMM |= {f"rdnet_{size}": ({}, 2, 64) for size in ("tiny", "small", "base", "large")}
TIMM |= {f"cspnext_{size}": ({}, 2, 64) for size in ("tiny", "s", "m", "l", "x")}
TIMM |= {"densenetblur121d": ({}, 2, 64), "coatnet_bn_0_rw_224": ({}, 2, 224)}
TIMM |= {f"efficientnet_b{i}_pruned": ({}, 2, 64) for i in (1, 2, 3)} | {f"ecaresnet{n}d_pruned": ({}, 2, 64) for n in (50, 101)}
TIMM |= {name: ({}, 2, 64) for name in ("resnetv2_50d_evos", "regnetz_c16_evos", "regnetz_d8_evos")}
TIMM |= {f"tf_efficientnet_cc_{name}": ({}, 2, 64) for name in ("b0_4e", "b0_8e", "b1_8e")}
TIMM |= {"nasnetalarge": ({}, 2, 99), "pnasnet5large": ({}, 2, 99)}

# Products with distances are counted otherwise, and mixtures of experts' convolutions.
UNCOUNTED = {name for name in TIMM if "bot" in name or "halo" in name or "_cc_" in name}
