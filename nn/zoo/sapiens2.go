package zoo

import "onlinerna/nn"

// Sapiens2's images of 1,024×768 pixels are squares here. Places are not scaled at random in Train: timm's
// rope_rescale_coords, which is 2 for these nets, would.
func init() {
	for _, v := range []struct {
		name                          string
		width, depth, heads, keyHeads int
	}{
		{"base", 768, 12, 12, 6}, {"large", 1024, 24, 16, 8}, {"huge", 1280, 32, 16, 8}, {"giant", 1536, 40, 24, 12},
		{"5b", 2432, 56, 32, 16},
	} {
		Eva{Patch: 16, Width: v.width, Depth: v.depth, Heads: v.heads, KeyHeads: v.keyHeads, FullBlocks: 8, DINOv3: true,
			Token: true, Registers: 8, SeparateQKV: true, BiasedKeys: true, NormKeys: true, RMSNorm: true, SwiGLU: true,
			LayerScale: 1, ScaleBranch: true}.timm(nn.Architecture{
			Name:          "vit_" + v.name + "_patch16_sapiens2",
			Summary:       "Sapiens2, " + v.name,
			Reference:     "Khirodkar et al., Sapiens2, 2026",
			Size:          1024,
			Interpolation: "bilinear",
		})
	}
}
