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
		"swinv2_cr_narrow": dropping(0, .2, like("swinv2_cr_tiny_ns_224", zoo.Swin{Width: 8, Blocks: [4]int{2, 1, 2, 1},
			Heads: 1, V2: true, Timm: true, CR: true, StageNorm: true, BiasHidden: 12, BiasDropout: nothing}.Build)),
		"efficientnet_x_narrow": dropping(0, .2, like("efficientnet_x_b5", zoo.Mobile{Stem: 8, Last: 32,
			Act: (*nn.Builder).SiLU, Stages: []string{"ds_r2_k3_s1_e1_c8_se0.25_d1", "er_r2_k3_s2_e6_c16_se0.25_nre",
				"ir_r1_k3_s2_e4_c24_se0.25"}}.Build)),
		"mobilenetv5_narrow": dropping(.2, .2, like("mobilenetv5_300m", zoo.Mobile{Stem: 8, Last: 16,
			Act: (*nn.Builder).GELUTanh, LayerScale: .2, Fuse: 4, Stages: []string{"er_r2_k3_s2_e4_c8",
				"uir_a3_k5_s2_e2_c8 mqa_k3_h2_v2_d4_c8 uir_a0_k0_e2_c8",
				"uir_a5_k0_s2_e2_c16 mqa_k3_h2_d4_c16 uir_a0_k0_e2_c16"}}.Build)),
	})
}
