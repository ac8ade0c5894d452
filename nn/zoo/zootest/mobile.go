package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	register(map[string]nn.Architecture{
		"tf_mixnet_narrow": like("tf_mixnet_s", zoo.Mobile{Depth: []float64{.7}, RoundDepth: true, Stem: 12, Last: 64,
			Stages: []string{"ds_r1_k3_s1_e1_c16",
				"ir_r1_k3.5.7_a1.1_p1.1_s2_e3_c24 ir_r1_k3_a1.1_p1.1_s1_e2_c24_se0.5_nsw",
				"ir_r2_k3.5_p1.1_s2_e2_c32_se0.25_nsw ir_r3_k5_s1_e2.5_c32_nr6", "ir_r1_k5_s1_e2_c40"}}.Build),
		"gc_efficientnet_narrow": like("gc_efficientnetv2_rw_t", zoo.Mobile{Width: .8, Stem: 12, StemKernel: 5, FixStem: true,
			Act: (*nn.Builder).SiLU, GlobalContext: true, Stages: []string{"cn_r1_k1_s1_c16",
				"er_r1_k3_s2_e4_c24_fc16_noskip er_r1_k3_s1_e4_gs32_c24", "ir_r2_k5_s2_e3_c32_se0.25", "dsa_r2_k3_s2_c40"}}.Build),
		"fbnetv3_narrow": like("fbnetv3_b", zoo.Mobile{Width: 1.3, Limit: .95, Stem: 16, Last: 96, Late: true,
			Act: (*nn.Builder).Hardswish, AntiAlias: "blurpc", HardGate: true, ExciteEight: true,
			Stages: []string{"ds_r2_k3_s1_e1_c16", "ir_r1_k5_s2_e4_c24_se0.5 ir_r1_k3_s1_e3_c24_se0.25_nre"}}.Build),
		"lcnet_narrow": dropping(.2, 0, like("lcnet_100", zoo.Mobile{Width: .5, Stem: 16, Last: 96, Late: true, Bias: true,
			Act: (*nn.Builder).Hardswish, HardGate: true, ExciteWide: true, ExciteReLU: true,
			Stages: []string{"dsa_r1_k3_s1_c24", "dsa_r2_k5_s2_c40_se0.25", "dsa_r1_k3_s2_c64_se0.25"}}.Build)),
		"mobilenetv4_hybrid_narrow": dropping(0, .2, like("mobilenetv4_hybrid_large", zoo.Mobile{Stem: 12, FixStem: true,
			Last: 64, Late: true, Norm: true, Act: (*nn.Builder).GELU, LayerScale: 1e-5, AntiAlias: "avg", ExciteWide: true,
			Stages: []string{"er_r1_k3_s2_e3_c16",
				"uir_r1_a3_k5_s2_e2_c24 mqa_r1_k3_h3_s1_v2_d8_c24 uir_r1_a3_k0_s1_e2_c24",
				"uir_r1_a3_k0_s2_e2_c32 mqa_r1_k3_h2_s1_d16_c32", "cn_r1_k1_s1_c48"}}.Build)),
		"mobilenetv4_narrow": dropping(0, .2, like("mobilenetv4_conv_small", zoo.Mobile{Stem: 32, FixStem: true, Width: .25,
			Last: 1280, Late: true, Norm: true, Stages: []string{"cn_r1_k3_s2_c64 cn_r1_k1_s1_c64", "er_r2_k3_s2_e2_c64",
				"uir_r2_a5_k3_s2_e3_c96 uir_r1_a3_k0_s1_e2_c96 uir_r1_a0_k3_s1_e2_c96 uir_r1_a0_k0_s1_e2_c96",
				"uir_r1_a3_k0_s2_e2_c128"}}.Build)),
		"repvit_narrow": like("repvit_m0_9", zoo.RepViT{Blocks: [4]int{1, 2, 1, 1}, Channels: [4]int{8, 16, 24, 32}}.Build),
		"repvit_legacy_narrow": like("repvit_m1",
			zoo.RepViT{Blocks: [4]int{1, 1, 2, 1}, Channels: [4]int{8, 16, 16, 24}, Legacy: true}.Build),
		"efficientvit_narrow": dropping(.2, 0, like("efficientvit_b0", zoo.EfficientViT{Channels: [5]int{8, 8, 16, 24, 32},
			Blocks: [5]int{1, 2, 1, 1, 1}, HeadWidth: 8, Head: [2]int{48, 40}}.Build)),
		"efficientvit_large_narrow": dropping(.2, 0, like("efficientvit_l1", zoo.EfficientViT{
			Channels: [5]int{8, 8, 8, 12, 16}, Blocks: [5]int{1, 1, 1, 1, 1}, HeadWidth: 8,
			Head: [2]int{48, 40}, Large: true}.Build)),
		"efficientformer_narrow": dropping(.2, .2, like("efficientformer_l1", zoo.EfficientFormer{Blocks: [4]int{1, 1, 1, 3},
			Channels: [4]int{8, 12, 16, 24}, Attention: 2}.Build)),
		"efficientformerv2_narrow": dropping(.2, .2, like("efficientformerv2_s0", zoo.EfficientFormerV2{
			Channels: [4]int{8, 12, 16, 24}, MLPRatios: [4]string{"2", "3", "21", "12"}, Attention: 1}.Build)),
		"levit_narrow": dropping(0, .1, sized(96, like("levit_conv_128", zoo.LeViT{Width: [3]int{16, 24, 32}, Key: 4,
			Heads: [3]int{2, 3, 5}, Blocks: [3]int{2, 1, 1}}.Build))),
		"edgenext_narrow": dropping(.2, .1, like("edgenext_small", zoo.EdgeNeXt{Blocks: [4]int{1, 1, 2, 1},
			Channels: [4]int{8, 16, 20, 24}, Heads: 4}.Build)),
		"edgenext_overlap_narrow": dropping(0, 0, like("edgenext_small_rw", zoo.EdgeNeXt{Blocks: [4]int{1, 2, 2, 1},
			Channels: [4]int{8, 16, 32, 32}, Heads: 4, Overlap: true}.Build)),
		"starnet_narrow": dropping(.2, .2, like("starnet_s1", zoo.StarNet{Width: 8, Blocks: [4]int{1, 1, 2, 1}}.Build)),
		"fasternet_narrow": dropping(.2, .2, like("fasternet_t0",
			zoo.FasterNet{Width: 8, Blocks: [4]int{1, 1, 2, 1}, GELU: true}.Build)),
		"shvit_narrow": dropping(.2, 0, sized(96, like("shvit_s1", zoo.SHViT{Channels: [3]int{16, 24, 32},
			Blocks: [3]int{1, 2, 1}, Part: [3]int{0, 9, 12}}.Build))),
		"repghostnet_narrow": like("repghostnet_100", zoo.GhostNet{Width: .5, Rep: true, Stages: [][]zoo.GhostBlock{
			{{Kernel: 3, Wide: 16, Out: 16, Stride: 1}},
			{{Kernel: 3, Wide: 24, Out: 24, Stride: 2}},
			{{Kernel: 5, Wide: 36, Out: 40, Stride: 2, Excite: .25},
				{Kernel: 3, Wide: 40, Out: 40, Stride: 1, Excite: .25}}}}.Build),
		"ghostnetv2_narrow": like("ghostnetv2_100", zoo.GhostNet{Width: .5, Version: 2, Stages: ghostStages}.Build),
		"ghostnetv3_narrow": like("ghostnetv3_100", zoo.GhostNet{Width: .5, Version: 3, Stages: ghostStages}.Build),
		"lcnetv2_narrow": dropping(.2, 0, like("lcnetv2_base",
			zoo.LCNetV2{Width: .125, Blocks: [4]int{1, 1, 2, 2}}.Build)),
		"swiftformer_narrow": dropping(.2, .2, like("swiftformer_xs",
			zoo.SwiftFormer{Blocks: [4]int{2, 1, 1, 1}, Channels: [4]int{8, 12, 16, 20}}.Build)),
		"fastvit_mci_narrow": dropping(0, .1, like("fastvit_mci3", zoo.FastViT{Blocks: []int{1, 1, 1},
			Channels: []int{8, 32, 64}, MLPRatio: 2, Attention: 2, Excite: []bool{false, true, false}, LargeAct: true,
			LayerNorm: true, PlainStem: true}.Build)),
	})
}

var ghostStages = [][]zoo.GhostBlock{{{Kernel: 3, Wide: 16, Out: 16, Stride: 1}},
	{{Kernel: 3, Wide: 24, Out: 24, Stride: 2}},
	{{Kernel: 5, Wide: 40, Out: 40, Stride: 2, Excite: .25}, {Kernel: 3, Wide: 48, Out: 40, Stride: 1}}}
