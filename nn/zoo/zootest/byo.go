package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	few := [4]int{8, 12, 16, 24}
	register(map[string]nn.Architecture{
		"mambaout_narrow": dropping(.2, .2, like("mambaout_tiny", zoo.MambaOut{Blocks: [4]int{1, 2, 1, 1},
			Channels: few}.Build)),
		"mambaout_rw_narrow": dropping(.2, .2, like("mambaout_base_wide_rw", zoo.MambaOut{Blocks: [4]int{1, 2, 1, 1},
			Channels: few, RW: true, Expansion: 2.5, Share: 1.25, SiLU: true}.Build)),
		"byoanet_narrow": sized(48, dropping(.2, .2, like("sehalonet33ts", byoaNet().Build))),
		"convmixer_narrow": sized(32, dropping(.2, 0, like("convmixer_1536_20", zoo.ConvMixer{Width: 16, Depth: 2, Kernel: 5,
			Patch: 4}.Build))),
		"tresnet_narrow": sized(40, dropping(.2, .2, like("tresnet_m", zoo.TResNet{Blocks: [4]int{1, 2, 2, 1},
			Width: .126}.Build))),
		"selecsls_narrow": sized(36, dropping(.2, 0, like("selecsls60", zoo.SelecSLS{Stem: 32, Head: [4]int{24, 32, 40, 48},
			Blocks: selecBlocks([3]int{16, 24, 2}, [3]int{16, 32, 1}, [3]int{24, 32, 1}, [3]int{24, 24, 2},
				[3]int{24, 40, 1})}.Build))),
		"regnetv_narrow":     sized(32, dropping(.2, .2, like("regnetv_040", regNetV(false).Build))),
		"regnetv_avg_narrow": sized(36, dropping(.2, .2, like("regnetv_064", regNetV(true).Build))),
		"rdnet_narrow": sized(32, dropping(.2, .2, like("rdnet_tiny", zoo.RDNet{Stem: 16, LayerScale: .2,
			Stages: []zoo.RDNetStage{{Blocks: 2, Growth: 8}, {Blocks: 1, Growth: 8, Halve: true},
				{Blocks: 1, Growth: 12, Excite: true}, {Blocks: 2, Growth: 12, Halve: true, Excite: true}}}.Build))),
		"cspnext_narrow": sized(40, dropping(.2, .2, like("cspnext_s", zoo.CSPNeXt{Blocks: [4]int{1, 2, 1, 1},
			Width: 16}.Build))),
		"coatnet_bn_narrow": dropping(.2, .2, likeOwn("coatnet_bn_0_rw_224", zoo.MaxxViT{Channels: [4]int{8, 8, 16, 16},
			Blocks: [4]int{1, 1, 2, 1}, Stem: [2]int{8, 8}, Head: 4, CoAtNet: true, ExciteReLU: true, EarlyExcite: true,
			PreNormAct: true, NoConvBias: true, NoShortcutBias: true, BatchNorm: true})),
		"nasnet_narrow": sized(45, dropping(.2, 0, like("nasnetalarge", zoo.NASNet{Stem: 8, Width: 8,
			Blocks: [3]int{2, 2, 1}}.Build))),
		"pnasnet_narrow": sized(43, dropping(.2, 0, like("pnasnet5large", zoo.PNASNet{Stem: 3, Width: 8,
			Blocks: [3]int{2, 2, 1}}.Build))),
		"efficientnet_pruned_narrow": sized(32, like("efficientnet_b1_pruned", zoo.Mobile{Stem: 16, Last: 32,
			Act: (*nn.Builder).SiLU, Stages: []string{"ds_r1_k3_s1_e1_c16",
				"ir_k3_s2_e4_c24_se0.25_w30_o12_b3 ir_k3_s1_e4_c24_se0.25_w41_o12"}}.Build)),
		"ecaresnet_pruned_narrow": sized(32, like("ecaresnet50d_pruned", nn.ResNet{Blocks: [4]int{1, 2, 1, 1},
			Stem: [3]int{3, 3, 7}, AvgDown: true, ECA: true, Channels: [4]int{8, 16, 24, 40},
			Inner: [][2]int{{3, 7}, {7, 13}, {7, 13}, {11, 21}, {19, 35}}, Outer: [4]int{29, 50, 90, 150}}.Build)),
		"regnetz_evos_narrow": sized(24, like("regnetz_c16_evos", zoo.ByobNet{Stem: []int{8}, Stages: []zoo.ByobStage{
			{Kind: "bottle", Blocks: 2, Out: 16, Stride: 2, Group: 8, Ratio: 3},
			{Kind: "bottle", Blocks: 2, Out: 24, Stride: 2, Group: 8, Ratio: 3}}, Last: 40, SiLU: true, Attention: "se",
			Excite: .25, BottleIn: true, Linear: true, EvoNorm: 4}.Build)),
		"resnetv2_evos_narrow": sized(32, like("resnetv2_50d_evos", zoo.ResNetV2{Blocks: [4]int{1, 1, 1, 1},
			Channels: [4]int{16, 16, 24, 32}, Stem: 16, Deep: true, AvgDown: true, EvoNorm: 4}.Build)),
		"condconv_narrow": sized(25, like("tf_efficientnet_cc_b0_4e", zoo.Mobile{Stem: 8, Last: 32,
			Act: (*nn.Builder).SiLU, Stages: []string{"ds_r1_k3_s1_e1_c8", "ir_r2_k5_s2_e4_c16_se0.25_cc4",
				"ir_r1_k3_s1_e2_c16_cc4"}}.Build)),
		"densenetblur_narrow": sized(32, dropping(.2, 0, like("densenetblur121d", zoo.DenseNet{Growth: 8,
			Blocks: []int{2, 1, 2}, Stem: 16, Deep: true}.Build))),
	})
}

func regNetV(avg bool) zoo.RegNet {
	return zoo.RegNet{Depth: 5, Start: 16, Slope: 8, Factor: 1.5, GroupWidth: 8, Excite: .25, Timm: true, SiLU: true,
		PreAct: true, AvgDown: avg}
}

// byoaNet has a stage of each kind of attention.
func byoaNet() zoo.ByobNet {
	o := zoo.ByobNet{Stem: []int{8}, SiLU: true, Shortcut: "conv1x1", Attention: "se"}
	for _, s := range []struct {
		blocks, stride int
		attention      zoo.ByobAttention
	}{
		{1, 2, zoo.ByobAttention{Kind: "halo", Heads: 2, Block: 4, Border: 1}},
		{2, 2, zoo.ByobAttention{Kind: "halo", Heads: 2, Block: 3, Border: 1, Ratio: .5}},
		{2, 2, zoo.ByobAttention{Kind: "lambda", Window: 3}},
		{1, 1, zoo.ByobAttention{Kind: "bottleneck", Query: 8}},
		{1, 1, zoo.ByobAttention{Kind: "lambda"}},
	} {
		s.attention.Blocks = []int{0}
		o.Stages = append(o.Stages, zoo.ByobStage{Kind: "bottle", Blocks: s.blocks, Out: 64, Stride: s.stride, Group: 8,
			Ratio: .25, Attention: s.attention})
	}
	return o
}

// selecBlocks are blocks with inner channels, channels and a stride each.
func selecBlocks(list ...[3]int) (blocks []zoo.SelecSLSBlock) {
	for _, v := range list {
		blocks = append(blocks, zoo.SelecSLSBlock{Inner: v[0], Out: v[1], Stride: v[2]})
	}
	return blocks
}
