package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	register(map[string]nn.Architecture{
		"convnext_hnf_narrow": like("convnext_tiny_hnf", zoo.ConvNeXt{Width: 8, Blocks: [4]int{1, 2, 1, 1}, LayerScale: .2,
			Timm: true, ConvMLP: true, Stem: "overlap_tiered", NormFirst: true}.Build),
		"convnext_simple_narrow": like("convnext_zepto_rms_ols", zoo.ConvNeXt{Width: 8, Blocks: [4]int{1, 2, 1, 1},
			LayerScale: .2, Timm: true, ConvMLP: true, Stem: "overlap_act", SimpleNorm: true, Eps: 1e-3, Hidden: 40}.Build),
		"ese_vovnet_narrow":    dropping(.2, .2, like("ese_vovnet39b", voVNet(false).Build)),
		"ese_vovnet_dw_narrow": dropping(.2, .2, like("ese_vovnet19b_dw", voVNet(true).Build)),
		"hrnet_narrow": dropping(.2, 0, like("hrnet_w32", zoo.HRNet{First: 2, FirstWidth: 8, Blocks: 1, Width: 4,
			Modules: [3]int{1, 2, 1}, Narrow: 8}.Build)),
		"dla_narrow": dropping(.2, 0, like("dla102x", zoo.DLA{Levels: [6]int{2, 1, 1, 3, 1, 1},
			Channels: [6]int{8, 8, 16, 16, 24, 32}, Groups: 4, GroupWidth: 16, RootShortcut: true}.Build)),
		"dla_res2net_narrow": dropping(.2, 0, like("dla60_res2next", zoo.DLA{Levels: [6]int{1, 2, 2, 1, 1, 1},
			Channels: [6]int{8, 8, 16, 16, 24, 32}, Groups: 2, GroupWidth: 16, Scale: 4}.Build)),
		"dpn_narrow": dropping(.2, 0, like("dpn68", zoo.DPN{Small: true, Stem: 8, Inner: 8, Groups: 4,
			Blocks: [4]int{2, 1, 2, 1}, Growth: [4]int{4, 8, 4, 8}}.Build)),
		"dpn_split_narrow": dropping(.2, 0, like("dpn68b", zoo.DPN{Small: true, Stem: 8, Inner: 8, Groups: 4,
			Blocks: [4]int{2, 1, 2, 1}, Growth: [4]int{4, 8, 4, 8}, Split: true}.Build)),
		"xception_aligned_narrow": dropping(.2, .2, like("xception41", zoo.XceptionAligned{Narrow: 16, Middle: 1,
			Entry: []zoo.XceptionStage{{Out: 128, Stride: 2}, {Out: 256, Stride: 1}}}.Build)),
		"xception_aligned_p_narrow": dropping(.2, .2, like("xception65p", zoo.XceptionAligned{Narrow: 16, Middle: 1,
			Entry: []zoo.XceptionStage{{Out: 128, Stride: 2}, {Out: 256, Stride: 1}}, PreAct: true}.Build)),
		"byobnet_narrow": dropping(.2, .2, like("resnet61q", zoo.ByobNet{Stem: []int{4, 8, 16, 32}, StemPlain: 2,
			Stages: []zoo.ByobStage{{Kind: "edge", Blocks: 1, Out: 16, Stride: 1, Ratio: 1},
				{Kind: "basic", Blocks: 2, Out: 24, Stride: 2, Ratio: 1},
				{Kind: "bottle", Blocks: 2, Out: 32, Stride: 2, Group: 8, Ratio: .5},
				{Kind: "bottle", Blocks: 2, Out: 32, Stride: 1, Group: 1, Ratio: 1}},
			Last: 40, SiLU: true, Shortcut: "conv1x1", Attention: "gca", Extra: true}.Build)),
		"byobnet_eca_narrow": dropping(.2, .2, like("eca_resnext26ts", zoo.ByobNet{Stem: []int{12, 16, 32},
			StemPool: "maxpool", Stages: []zoo.ByobStage{{Kind: "bottle", Blocks: 2, Out: 32, Stride: 1, Group: 8, Ratio: .5},
				{Kind: "bottle", Blocks: 1, Out: 64, Stride: 2, Group: 8, Ratio: .5}},
			SiLU: true, Shortcut: "conv1x1", Attention: "eca"}.Build)),
		"regnetz_narrow": dropping(.2, 0, like("regnetz_b16", zoo.ByobNet{Stem: []int{8},
			Stages: []zoo.ByobStage{{Kind: "bottle", Blocks: 2, Out: 16, Stride: 2, Group: 8, Ratio: 3},
				{Kind: "bottle", Blocks: 2, Out: 24, Stride: 2, Group: 8, Ratio: 3}},
			Last: 40, SiLU: true, Attention: "se", Excite: .25, BottleIn: true, Linear: true}.Build)),
		"resnet_clip_narrow": dropping(.2, .2, like("resnet50_clip", zoo.ByobNet{Stem: []int{8, 8, 16}, StemPool: "avg2",
			Stages: []zoo.ByobStage{{Kind: "bottle", Blocks: 2, Out: 32, Stride: 1, Ratio: .25},
				{Kind: "bottle", Blocks: 1, Out: 64, Stride: 2, Ratio: .25},
				{Kind: "bottle", Blocks: 1, Out: 64, Stride: 2, Ratio: .25},
				{Kind: "bottle", Blocks: 1, Out: 128, Stride: 2, Ratio: .25}},
			Shortcut: "avg", Pool: true, AttentionPool: true}.Build)),
		"mobileone_narrow": dropping(.2, .2, like("mobileone_s4", zoo.MobileOne{Stem: 8, First: 8, Blocks: [4]int{2, 1, 2, 1},
			Channels: [4]int{16, 24, 24, 24}, Branches: 2, Excite: [4]int{0, 0, 1, 1}}.Build)),
		"repvgg_se_narrow": like("repvgg_d2se", zoo.RepVGG{Stem: 16, Blocks: [4]int{2, 1, 1, 1},
			Channels: [4]int{16, 16, 24, 40}, Excite: true}.Build),
		"cspnet_narrow": dropping(.2, .2, like("cspresnext50", zoo.CspNet{Stem: []int{16}, StemKernel: 7, StemStride: 4,
			Kind: "csp", Block: "bottle", CrossLinear: true, Stages: []zoo.CspStage{
				{Blocks: 1, Out: 16, Stride: 1, Groups: 2, Block: 1, Bottle: .5, Expand: 2},
				{Blocks: 2, Out: 32, Stride: 2, Groups: 2, Block: 1, Bottle: .5, Expand: 2}}}.Build)),
		"cspnet_cs3_narrow": dropping(.2, .2, like("cs3se_edgenet_x", zoo.CspNet{Stem: []int{16}, StemKernel: 6,
			StemStride: 2, Kind: "cs3", Block: "edge", SiLU: true, Excite: .25, Stages: []zoo.CspStage{
				{Blocks: 1, Out: 32, Stride: 2, Block: .5, Bottle: 1.5},
				{Blocks: 2, Out: 48, Stride: 2, Block: .5, Bottle: 1.5}}}.Build)),
		"cspnet_dark_narrow": dropping(.2, .2, like("darknetaa53", zoo.CspNet{Stem: []int{8}, StemStride: 1,
			Kind: "dark", Block: "dark", AvgDown: true, Stages: []zoo.CspStage{
				{Blocks: 1, Out: 16, Stride: 2, Block: 1, Bottle: .5},
				{Blocks: 2, Out: 32, Stride: 2, Block: 1, Bottle: .5}}}.Build)),
		"rexnet_narrow": dropping(.2, .2, like("rexnet_100", zoo.ReXNet{Blocks: []int{1, 2, 2}, First: 12, Growth: 20,
			Width: 1, Divisor: 1, Excite: .25}.Build)),
		"inception_next_narrow": dropping(0, .2, like("inception_next_atto", zoo.InceptionNeXt{Blocks: [4]int{1, 2, 1, 1},
			Width: 16, Band: 9, Share: .25, LayerScale: .2}.Build)),
		"hgnet_narrow": dropping(.2, .2, like("hgnet_tiny", zoo.HGNet{First: []int{8, 8, 12}, Last: 40, Stages: []zoo.HGStage{
			{Inner: 8, Out: 16, Blocks: 1, Layers: 2, Kernel: 3}, {Inner: 8, Out: 24, Blocks: 2, Layers: 2, Kernel: 3},
			{Inner: 12, Out: 24, Blocks: 1, Layers: 1, Kernel: 3},
			{Inner: 16, Out: 32, Blocks: 2, Layers: 1, Kernel: 3}}}.Build)),
		"regnetz_timm_narrow": like("regnetz_040", zoo.RegNet{Depth: 6, Start: 8, Slope: 12.5, Factor: 2.2, GroupWidth: 8,
			Excite: .25, Bottleneck: 2, Timm: true, SiLU: true, Linear: true}.Build),
	})
}

// voVNet is a narrow VoVNet.
func voVNet(depthwise bool) zoo.VoVNet {
	o := zoo.VoVNet{Stem: [3]int{8, 8, 12}, Inner: [4]int{12, 8, 12, 8}, Channels: [4]int{16, 16, 24, 24},
		Blocks: [4]int{1, 2, 1, 1}, Layers: 2, Depthwise: depthwise}
	if depthwise {
		o.Blocks[1] = 1
	}
	return o
}
