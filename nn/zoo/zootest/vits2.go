package zootest

import (
	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

func init() {
	naFlex := zoo.ViT{Patch: 8, Width: 24, Depth: 2, Heads: 3}
	attended, mean, radio := naFlex, naFlex, naFlex
	attended.NaFlex, attended.AttentionPool, attended.GELUTanh = &zoo.NaFlex{Grid: 2}, true, true
	attended.Registers, attended.LayerScale = 1, .2
	mean.NaFlex, mean.Mean, mean.NormMean, mean.Registers = &zoo.NaFlex{Grid: 4, Factorized: true}, true, true, 2
	radio.NaFlex, radio.NoNorm = &zoo.NaFlex{Grid: 5, Linear: true, NoAntialias: true, Corners: true}, true
	radio.Registers = 2
	register(map[string]nn.Architecture{
		"hieradet_narrow": dropping(0, .2, like("sam2_hiera_tiny", zoo.HieraDet{Width: 8, Heads: 2,
			Blocks: [4]int{1, 1, 2, 1}, Windows: [4]int{8, 4, 6, 3}, Global: []int{3}, Grid: 5}.Build)),
		"vit_rope_mixed_narrow": like("vit_small_patch16_rope_mixed_ape_224", zoo.Eva{Patch: 8, Width: 24, Depth: 2,
			Heads: 3, Token: true, BiasedKeys: true, LayerScale: 1e-5, Temperature: 10, Mixed: true, NoEmbedClass: true}.Build),
		"sapiens2_narrow": like("vit_base_patch16_sapiens2", zoo.Eva{Patch: 8, Width: 32, Depth: 3, Heads: 4, KeyHeads: 2,
			FullBlocks: 1, Hidden: 64, DINOv3: true, Token: true, Registers: 2, SeparateQKV: true, BiasedKeys: true,
			NormKeys: true, RMSNorm: true, SwiGLU: true, LayerScale: .5, ScaleBranch: true}.Build),
		"naflexvit_narrow":        likeNaFlex("naflexvit_base_patch16_siglip", attended),
		"naflexvit_parfac_narrow": likeNaFlex("naflexvit_base_patch16_parfac_gap", mean),
		"naflexvit_radio_narrow":  likeNaFlex("naflexvit_base_patch16_radio_v3", radio),
		"qwen3_vit_narrow": sized(32, dropping(0, .2, like("qwen3_vit_88m", zoo.LanguageViT{Patch: 8, Width: 24, Depth: 2,
			Heads: 3, Hidden: 48, Grid: 3, Projector: 20}.Build))),
		"deepseek_vit_narrow": sized(32, dropping(0, .2, like("deepseek_vit_412m", zoo.LanguageViT{Patch: 8, Width: 24,
			Depth: 2, Heads: 3, Hidden: 36, DeepSeek: true, Projector: 20}.Build))),
		"gemma4_vit_narrow": dropping(0, .2, like("gemma4_vit_570m", zoo.GemmaViT{Patch: 8, Width: 24, Depth: 2, Heads: 3,
			Hidden: 36, Places: 9, Standard: true}.Build)),
	})
}

// likeNaFlex is like, with drops.
func likeNaFlex(name string, v zoo.ViT) nn.Architecture { return dropping(0, .2, like(name, v.Build)) }
