package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	register(map[string]nn.Architecture{
		"swin_s3_timm_narrow": like("swin_s3_tiny_224", zoo.Swin{Timm: true, Width: 8, Blocks: [4]int{2, 2, 1, 1}, Heads: 2,
			Windows: [4]int{4, 4, 4, 2}}.Build),
		"vit_rpn_timm_narrow": placed(3, like("vit_base_patch16_rpn_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			Mean: true, ClassBeside: true, NormMean: true, Registers: 2, NoQKVBias: true, LayerScale: 1e-5, PostNorm: true,
			ScaleNorms: true}.Build)),
		"dinov2_giant_narrow": like("vit_giant_patch14_reg4_dinov2", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			Hidden: 32, LayerScale: 1e-5, Registers: 2, NoEmbedClass: true, SwiGLU: true, NoNorm: true}.Build),
		"aimv2_narrow": like("aimv2_large_patch14_224", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3, Hidden: 40,
			Mean: true, NoQKVBias: true, NoLinearBias: true, SwiGLU: true, SeparateMLP: true, RMSNorm: true, EmbedNorm: true,
			Eps: 1e-5}.Build),
		"eva_clip_narrow": like("eva_giant_patch14_clip_224", zoo.Eva{Patch: 8, Width: 24, Depth: 2, Heads: 3, NoRope: true,
			PostNorm: true, ScaleHeads: true, ScaleMLP: true, Token: true}.Build),
		"vit_rope_narrow": like("vit_small_patch16_rope_ape_224", zoo.Eva{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			Token: true, BiasedKeys: true, LayerScale: 1e-5, Temperature: 100, ColumnsFirst: true, NoEmbedClass: true}.Build),
		"vit_rope_gap_narrow": like("vit_base_patch16_rope_reg1_gap_256", zoo.Eva{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			Registers: 2, NoClass: true, NoPlaces: true, Grid: 2, LayerScale: 1e-5}.Build),
		"vit_pe_core_narrow": like("vit_pe_core_tiny_patch16_384", zoo.Eva{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			PreNorm: true, BiasedKeys: true, Grid: 2, ColumnsFirst: true, Offset: 1, AttentionPool: 4, Eps: 1e-5}.Build),
		"vit_pwee_narrow": dropping(0, .1, like("vit_pwee_patch16_reg1_gap_256", zoo.ViT{Patch: 8, Width: 24, Depth: 2,
			Heads: 3, Mean: true, NormMean: true, NoEmbedClass: true, Registers: 1, LayerScale: 1e-5, Parallel: true}.Build)),
		"vit_dpwee_narrow": like("vit_dpwee_patch16_reg1_gap_256", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			Mean: true, NormMean: true, NoEmbedClass: true, Registers: 1, LayerScale: 1e-5, Parallel: true,
			Differential: true}.Build),
		"vit_dwee_narrow": like("vit_dwee_patch16_reg1_gap_256", zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			Mean: true, NormMean: true, NoEmbedClass: true, Registers: 1, LayerScale: 1e-5, Differential: true}.Build),
		"vitamin_narrow": like("vitamin_small_224", zoo.ViTamin{Stem: 8, Channels: [2]int{8, 16}, Blocks: [2]int{1, 2},
			Width: 24, Heads: 3, Depth: 2}.Build),
	})
}
