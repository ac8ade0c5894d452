package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	vit := zoo.ViT{Width: 24, Heads: 3, Depth: 2}
	relative := vit
	relative.Patch, relative.Mean = 8, true
	class, post := relative, relative
	class.ClassBeside, class.NormMean, class.LayerScale = true, true, .2
	post.PostNorm, post.NoQKVBias, post.LayerScale = true, true, 1e-6
	mci := vit
	mci.NoEmbedClass = true
	register(map[string]nn.Architecture{
		"vit_hybrid_narrow": sized(48, dropping(0, .2, likeOwn("vit_small_r26_s32_224", zoo.HybridViT{ViT: vit,
			Backbone: zoo.ResNetV2{Blocks: [4]int{1, 2}, Channels: [4]int{16, 32}, Stem: 8, GroupNorm: 4, StdEps: 1e-2}}))),
		"vit_mci_narrow": sized(48, dropping(0, .2, likeOwn("vit_base_mci_224", zoo.HybridViT{ViT: mci, Convs: true}))),
		"vit_relpos_narrow": sized(24, dropping(0, .2, likeOwn("vit_relpos_base_patch16_clsgap_224", zoo.RelPosViT{ViT: class,
			BiasHidden: 12, BiasDropout: nothing}))),
		"vit_srelpos_narrow": sized(24, dropping(0, .2, likeOwn("vit_srelpos_small_patch16_224", zoo.RelPosViT{ViT: post,
			BiasHidden: 12, BiasDropout: nothing, Shared: true}))),
		"volo_narrow": dropping(0, .2, like("volo_d1_224", zoo.VOLO{Blocks: [4]int{2, 1, 1, 1}, Width: [2]int{8, 16},
			Heads: [2]int{2, 4}, Stem: 8, MLPRatio: 2}.Build)),
		"samvit_narrow": sized(40, dropping(0, .2, like("samvit_base_patch16", zoo.SAMViT{Patch: 8, Width: 24, Heads: 3,
			Depth: 2, Window: 3, Global: []int{0}, Neck: 8}.Build))),
		"mvitv2_cls_narrow": sized(32, dropping(0, .2, like("mvitv2_small_cls", zoo.MViTv2{Width: 8, Heads: 1,
			Blocks: [4]int{1, 1, 1, 1}, Class: true}.Build))),
		"tnt_narrow": sized(32, dropping(0, .2, like("tnt_s_patch16_224", zoo.TNT{Patch: 16, Width: 24, Inner: 8, Heads: 3,
			InnerHeads: 2, Depth: 2}.Build))),
		"tnt_legacy_narrow": sized(32, dropping(0, .2, like("tnt_s_legacy_patch16_224", zoo.TNT{Patch: 16, Width: 24,
			Inner: 8, Heads: 3, InnerHeads: 2, Depth: 2, Legacy: true}.Build))),
		"convit_narrow": sized(32, dropping(0, .2, likeOwn("convit_tiny", zoo.ConViT{Patch: 8, Width: 24, Heads: 4,
			Depth: 3, Local: 2}))),
		"davit_fl_narrow": sized(58, dropping(0, .2, like("davit_base_fl", zoo.DaViT{Width: 8, Heads: 2,
			Blocks: [4]int{1, 2, 1, 1}, Window: 3, Florence: true}.Build))),
		"gmixer_narrow": sized(24, dropping(0, .2, like("gmixer_24_224", zoo.Mixer{Patch: 8, Width: 24, Blocks: 2,
			TokenRatio: 1, MLPRatio: 2.5, SwiGLU: true}.Build))),
	})
}
