package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	one, few := [4]int{1, 1, 1, 1}, [4]int{8, 16, 16, 24}
	nfNet := zoo.NFNet{Blocks: [4]int{1, 2, 1, 1}, Channels: [4]int{16, 24, 32, 32}, Stem: "deep_quad", StemWidth: 16,
		GroupSize: 8, Ratio: .5, Features: 40, ExtraConv: true, Excite: .5, Activation: "gelu", GammaInAct: true,
		SkipInit: true}
	register(map[string]nn.Architecture{
		"resnetblur_timm_narrow": like("resnet18d", nn.ResNet{Blocks: one, Basic: true, Channels: few, Stem: [3]int{4, 4, 8},
			AntiAlias: "blur", ReduceFirst: 2, DownKernel: 3, ECA: true}.Build),
		"resnetaa_timm_narrow": like("resnetaa50", nn.ResNet{Blocks: [4]int{1, 2, 1, 1}, Channels: few, AntiAlias: "avg",
			ReduceFirst: 2, GroupNorm: 4}.Build),
		"resnetv2_timm_narrow": dropping(.2, .2, like("resnetv2_18d", zoo.ResNetV2{Blocks: [4]int{1, 2, 1, 1}, Channels: few,
			Stem: 8, Basic: true, Deep: true, AvgDown: true}.Build)),
		"resnetv2_bit_narrow": like("resnetv2_50x1_bit", zoo.ResNetV2{Blocks: [4]int{1, 2, 1, 1},
			Channels: [4]int{32, 32, 48, 64}, Width: 2, Stem: 8, Fixed: true, GroupNorm: 4, StdEps: 1e-2}.Build),
		"skresnet_timm_narrow": like("skresnet18", zoo.SKNet{Blocks: [4]int{1, 1, 2, 1}, Channels: few, Groups: 2,
			GroupWidth: 32, Ratio: .5, Divisor: 4, SplitInput: true, StemConv: true}.Build),
		"resnest_timm_narrow": like("resnest14d", zoo.ResNeSt{Blocks: [4]int{1, 1, 2, 1}, Channels: few,
			Stem: [3]int{4, 4, 8}, Radix: 4, Groups: 2, GroupWidth: 32}.Build),
		"nfnet_dm_narrow": dropping(.2, .2, like("dm_nfnet_f0", nfNet.Build)),
		"nf_regnet_narrow": dropping(0, .2, like("nf_regnet_b1", zoo.NFNet{Blocks: [4]int{1, 1, 2, 1},
			Channels: [4]int{16, 24, 32, 40}, Width: .75, Stem: "3x3", GroupSize: 8, Ratio: 2.25, Features: 40, Reg: true,
			ECA: true, Activation: "silu"}.Build)),
		"legacy_seresnet_narrow": like("legacy_seresnet50", zoo.SENet{Blocks: [4]int{1, 1, 2, 1}, Kind: "resnet",
			Width: 8}.Build),
		"legacy_senet_narrow": like("legacy_senet154", zoo.SENet{Blocks: [4]int{1, 1, 1, 1}, Kind: "senet", Groups: 2,
			Width: 4}.Build),
	})
}
