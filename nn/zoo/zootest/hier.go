package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	channels, stem := [4]int{8, 8, 16, 16}, [2]int{8, 8}
	register(map[string]nn.Architecture{
		"maxvit_tf_narrow": dropping(0, .2, likeOwn("maxvit_tiny_tf_224", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{1, 2, 1, 1}, Stem: stem, Head: 4, TF: true, Hidden: 12})),
		"maxvit_rmlp_narrow": dropping(0, .2, likeOwn("maxvit_rmlp_nano_rw_256", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{1, 1, 1, 1}, Stem: stem, Head: 4, Excite: .2, NoConvBias: true, BiasHidden: 12,
			BiasDropout: nothing})),
		"coatnet_narrow": dropping(0, .2, likeOwn("coatnet_0_rw_224", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{2, 1, 2, 1}, Stem: stem, Head: 4, CoAtNet: true, ExciteReLU: true, EarlyExcite: true,
			PreNormAct: true, PoolStride: true, NoConvBias: true, LayerScale: .2, MaxPool: true, NoShortcutBias: true})),
		"coatnext_narrow": dropping(0, .2, likeOwn("coatnext_nano_rw_224", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{2, 1, 1, 1}, Stem: stem, Head: 4, CoAtNet: true, ConvNeXt: true, ConvScale: .1, Normal: true})),
		"maxxvit_narrow": dropping(0, .2, likeOwn("maxxvit_rmlp_small_rw_256", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{1, 1, 1, 1}, Stem: stem, Head: 4, GridOnly: true, ConvNeXt: true, ConvScale: .1, LayerScale: .2,
			BiasHidden: 12, BiasDropout: nothing})),
		"pvt_v2_narrow": dropping(0, .2, like("pvt_v2_b0", zoo.PVTv2{Channels: [4]int{8, 16, 24, 32},
			Heads: [4]int{1, 2, 3, 4}, Blocks: [4]int{1, 2, 1, 1}}.Build)),
		"pvt_v2_li_narrow": sized(56, dropping(0, .2, like("pvt_v2_b2_li", zoo.PVTv2{Channels: channels,
			Heads: [4]int{1, 2, 1, 2}, Blocks: [4]int{1, 1, 1, 1}, MLPRatios: [4]int{2, 3, 4, 1}, Linear: true}.Build))),
		"hiera_narrow": dropping(0, .2, likeOwn("hiera_tiny_224", zoo.Hiera{Width: 8, Heads: 2,
			Blocks: [4]int{1, 2, 2, 1}})),
		"hiera_abswin_narrow": dropping(0, .2, likeOwn("hiera_small_abswin_256", zoo.Hiera{Width: 8, Heads: 1,
			Blocks: [4]int{1, 1, 2, 1}, Grid: 6, LayerScale: .2, PoolShortcut: true})),
		"davit_narrow": sized(58, dropping(0, .2, like("davit_tiny", zoo.DaViT{Width: 8, Heads: 2, Blocks: [4]int{1, 2, 1, 1},
			Window: 3}.Build))),
		"focalnet_narrow": dropping(0, .2, like("focalnet_tiny_srf", zoo.FocalNet{Width: 8, Blocks: [4]int{1, 2, 1, 1},
			Levels: 2}.Build)),
		"focalnet_post_narrow": dropping(0, .2, like("focalnet_huge_fl3", zoo.FocalNet{Width: 8, Blocks: [4]int{1, 1, 1, 1},
			Levels: 3, Window: 5, PostNorm: true, NormModulation: true, LayerScale: .2}.Build)),
		"twins_narrow": dropping(0, .2, like("twins_svt_small", zoo.Twins{Channels: [4]int{8, 16, 24, 32},
			Heads: [4]int{1, 2, 3, 4}, Blocks: [4]int{2, 1, 2, 1}, MLPRatios: [4]int{2, 3, 4, 2}, Window: 3}.Build)),
		"pit_narrow": sized(32, dropping(0, .2, like("pit_ti_distilled_224", zoo.PiT{Patch: 8, Stride: 4, Head: 4,
			Heads: [3]int{2, 4, 4}, Blocks: [3]int{1, 2, 1}, Distilled: true}.Build))),
		"visformer_narrow": dropping(0, .2, like("visformer_tiny", zoo.Visformer{Stem: 8, Width: 16,
			Blocks: [3]int{2, 1, 2}, Heads: 2, Groups: 4}.Build)),
		"nextvit_narrow": dropping(0, .2, like("nextvit_small", zoo.NextViT{Blocks: [4]int{1, 2, 5, 1},
			Stem: [3]int{8, 8, 12}, Channels: [4]int{8, 16, 16, 16}, Wide: [4]int{0, 40, 40, 40}, Head: 8}.Build)),
		"gcvit_narrow": dropping(0, .2, like("gcvit_small", zoo.GCViT{Width: 8, Blocks: [4]int{2, 2, 2, 2}, Heads: 2,
			MLPRatio: 2, LayerScale: .2}.Build)),
		"mvitv2_narrow": dropping(0, .2, like("mvitv2_tiny", zoo.MViTv2{Width: 8, Heads: 1,
			Blocks: [4]int{1, 2, 1, 1}}.Build)),
		"mvitv2_large_narrow": sized(32, dropping(0, .2, like("mvitv2_large", zoo.MViTv2{Width: 8, Heads: 2,
			Blocks: [4]int{1, 1, 2, 1}, ExpandMLP: true}.Build))),
		"crossvit_narrow": sized(48, dropping(0, .2, like("crossvit_9_dagger_240", zoo.CrossViT{Width: [2]int{8, 16},
			Depth: 2, Blocks: 2, Heads: 2, MLPRatio: 3, Convs: true, Scale: 2. / 3}.Build))),
		"nest_narrow": sized(32, dropping(0, .2, like("nest_tiny_jx", zoo.NesT{Channels: [3]int{8, 12, 16},
			Heads: [3]int{2, 3, 4}, Blocks: [3]int{1, 2, 1}}.Build))),
	})
}
