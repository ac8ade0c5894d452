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
	})
}

// likeMaxxViT is like, with the initial values of the net.
func likeMaxxViT(name string, net zoo.MaxxViT) nn.Architecture {
	a := like(name, net.Build)
	a.Init = net.Initial
	return a
}
