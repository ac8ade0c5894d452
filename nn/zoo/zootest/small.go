package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	register(map[string]nn.Architecture{
		"efficientvit_msra_narrow": sized(80, dropping(.2, 0, like("efficientvit_m0", zoo.EfficientViTMSRA{
			Channels: [3]int{16, 24, 24}, Blocks: [3]int{1, 2, 1}, Heads: [3]int{2, 3, 2}, Kernels: []int{5, 3, 3}, Key: 4,
			Window: 3}.Build))),
		"iformer_narrow": dropping(.2, .2, like("iformer_m_distilled", zoo.IFormer{Channels: [4]int{8, 12, 16, 24},
			Blocks: [4]int{1, 1, 6, 3}, Attention: [4]int{0, 0, 1, 1}, Reduce: [4]int{0, 0, 2, 4}, ConvRatio: 3, MLPRatio: 2,
			LayerScale: .2, Distilled: true}.Build)),
		"coat_narrow": dropping(.2, .2, like("coat_tiny", zoo.CoaT{Channels: [4]int{8, 16, 16, 16},
			Blocks: [4]int{1, 2, 1, 1}, MLPRatios: [4]int{2, 3, 3, 3}, Parallel: 2}.Build)),
		"coat_lite_narrow": sized(32, dropping(0, .2, like("coat_lite_tiny", zoo.CoaT{Channels: [4]int{8, 8, 16, 24},
			Blocks: [4]int{1, 1, 2, 1}, MLPRatios: [4]int{2, 3, 1, 2}}.Build))),
		"efficientvim_narrow": sized(96, dropping(.2, .2, like("efficientvim_m1_dist", zoo.EfficientViM{
			Channels: [3]int{8, 12, 16}, Blocks: [3]int{2, 1, 1}, States: [3]int{5, 4, 3}, Distilled: true}.Build))),
		"lowformer_narrow": sized(72, dropping(.2, .2, like("lowformer_e3", zoo.LowFormer{
			Channels: [5]int{4, 6, 8, 120, 8}, Blocks: [5]int{1, 2, 1, 1, 2}, Head: [2]int{12, 16}, StemExpand: 1,
			DownExpand: 3, NoMLP: true}.Build))),
		"cpubone_narrow": sized(72, dropping(.2, .2, like("cpubone_b1_dwnorm", zoo.LowFormer{
			Channels: [5]int{4, 6, 8, 10, 256}, Blocks: [5]int{0, 1, 1, 2, 1}, Head: [2]int{12, 16}, CPU: true, Norms: 2,
			Dropout: nothing}.Build))),
		"swinv2_cr_narrow": dropping(0, .2, like("swinv2_cr_tiny_ns_224", zoo.Swin{Width: 8, Blocks: [4]int{2, 2, 1, 1},
			Heads: 2, V2: true, Timm: true, CR: true, StageNorm: true, BiasDropout: nothing}.Build)),
	})
}
