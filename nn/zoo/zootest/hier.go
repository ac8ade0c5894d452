package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	channels, stem := [4]int{8, 8, 16, 16}, [2]int{8, 8}
	register(map[string]nn.Architecture{
		"maxvit_tf_narrow": dropping(0, .2, likeMaxxViT("maxvit_tiny_tf_224", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{1, 2, 1, 1}, Stem: stem, Head: 4, TF: true, Hidden: 12})),
		"maxvit_rmlp_narrow": dropping(0, .2, likeMaxxViT("maxvit_rmlp_nano_rw_256", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{1, 1, 1, 1}, Stem: stem, Head: 4, Excite: .2, NoConvBias: true, BiasHidden: 12,
			BiasDropout: nothing})),
		"coatnet_narrow": dropping(0, .2, likeMaxxViT("coatnet_0_rw_224", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{2, 1, 2, 1}, Stem: stem, Head: 4, CoAtNet: true, ExciteReLU: true, EarlyExcite: true,
			PreNormAct: true, PoolStride: true, NoConvBias: true, LayerScale: .2, MaxPool: true, NoShortcutBias: true})),
		"coatnext_narrow": dropping(0, .2, likeMaxxViT("coatnext_nano_rw_224", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{2, 1, 1, 1}, Stem: stem, Head: 4, CoAtNet: true, ConvNeXt: true, ConvScale: .1, Normal: true})),
		"maxxvit_narrow": dropping(0, .2, likeMaxxViT("maxxvit_rmlp_small_rw_256", zoo.MaxxViT{Channels: channels,
			Blocks: [4]int{1, 1, 1, 1}, Stem: stem, Head: 4, GridOnly: true, ConvNeXt: true, ConvScale: .1, LayerScale: .2,
			BiasHidden: 12, BiasDropout: nothing})),
		"pvt_v2_narrow": dropping(0, .2, like("pvt_v2_b0", zoo.PVTv2{Channels: [4]int{8, 16, 24, 32},
			Heads: [4]int{1, 2, 3, 4}, Blocks: [4]int{1, 2, 1, 1}}.Build)),
		"pvt_v2_li_narrow": sized(56, dropping(0, .2, like("pvt_v2_b2_li", zoo.PVTv2{Channels: channels,
			Heads: [4]int{1, 2, 1, 2}, Blocks: [4]int{1, 1, 1, 1}, MLPRatios: [4]int{2, 3, 4, 1}, Linear: true}.Build))),
		"hiera_narrow": likeHiera("hiera_tiny_224", zoo.Hiera{Width: 8, Heads: 2, Blocks: [4]int{1, 2, 2, 1}}),
		"hiera_abswin_narrow": likeHiera("hiera_small_abswin_256", zoo.Hiera{Width: 8, Heads: 1, Blocks: [4]int{1, 1, 2, 1},
			Grid: 6, LayerScale: .2, PoolShortcut: true}),
		"davit_narrow": sized(58, dropping(0, .2, like("davit_tiny", zoo.DaViT{Width: 8, Heads: 2, Blocks: [4]int{1, 2, 1, 1},
			Window: 3}.Build))),
		"focalnet_narrow": dropping(0, .2, like("focalnet_tiny_srf", zoo.FocalNet{Width: 8, Blocks: [4]int{1, 2, 1, 1},
			Levels: 2}.Build)),
		"focalnet_post_narrow": dropping(0, .2, like("focalnet_huge_fl3", zoo.FocalNet{Width: 8, Blocks: [4]int{1, 1, 1, 1},
			Levels: 3, Window: 5, PostNorm: true, NormModulation: true, LayerScale: .2}.Build)),
		"twins_narrow": dropping(0, .2, like("twins_svt_small", zoo.Twins{Channels: [4]int{8, 16, 24, 32},
			Heads: [4]int{1, 2, 3, 4}, Blocks: [4]int{2, 1, 2, 1}, MLPRatios: [4]int{2, 3, 4, 2}, Window: 3}.Build)),
	})
}

// likeMaxxViT is like, with the initial values of the net.
func likeMaxxViT(name string, net zoo.MaxxViT) nn.Architecture {
	a := like(name, net.Build)
	a.Init = net.Initial
	return a
}

// likeHiera is like, with the initial values of the net.
func likeHiera(name string, net zoo.Hiera) nn.Architecture {
	a := like(name, net.Build)
	a.Init = net.Initial
	return dropping(0, .2, a)
}
