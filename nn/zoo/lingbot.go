package zoo

import "onlinerna/nn"

// LingBot-Vision's nets are DINOv3's, with the class token for the head.
func init() {
	for _, size := range []struct {
		name string
		net  Eva
	}{
		{"small", Eva{Width: 384, Heads: 6}},
		{"base", Eva{Width: 768, Heads: 12}},
		{"large", Eva{Width: 1024, Heads: 16, Depth: 24}},
		{"giant", Eva{Width: 1536, Heads: 24, Depth: 40, Hidden: 4096, NoQKVBias: true, SwiGLU: true, SeparateMLP: true}},
	} {
		v := size.net
		v.DINOv3, v.Token, v.Patch, v.Registers, v.LayerScale, v.Eps = true, true, 16, 4, 1e-5, 1e-5
		v.timm(nn.Architecture{
			Name:          "vit_" + size.name + "_patch16_lingbot",
			Summary:       "LingBot-Vision, " + size.name,
			Reference:     "Fu et al., Vision pretraining for dense spatial perception, 2026",
			Size:          512,
			Interpolation: "bilinear",
		})
	}
}
