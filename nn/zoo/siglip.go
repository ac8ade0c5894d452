package zoo

import (
	"fmt"

	"onlinerna/nn"
)

func init() {
	base := ViT{Width: 768, Heads: 12}
	large := ViT{Width: 1024, Heads: 16, Depth: 24}
	so400m := ViT{Width: 1152, Heads: 16, Depth: 27, Hidden: 4304}
	for _, tower := range []struct {
		name  string
		patch int
		tanh  bool
		net   ViT
		sizes []int
	}{
		{"base", 16, false, base, []int{224, 256, 384}},
		{"base", 32, true, base, []int{256}},
		{"large", 16, false, large, []int{256, 384}},
		{"so400m", 14, false, so400m, []int{224, 384}},
		{"so400m", 16, true, so400m, []int{256, 384}},
	} {
		v := tower.net
		v.Patch, v.GELUTanh, v.AttentionPool = tower.patch, tower.tanh, true
		for _, size := range tower.sizes {
			v.Truncate = size%v.Patch != 0
			siglip(v, fmt.Sprintf("vit_%s_patch%d_siglip_%d", tower.name, v.Patch, size), size,
				fmt.Sprintf("SigLIP's image tower, %s, patches of %d×%[2]d, with timm's names", tower.name, v.Patch))
		}
	}
	base.Patch, base.Mean = 16, true
	siglip(base, "vit_base_patch16_siglip_gap_224", 224, "SigLIP's image tower, base, by the mean of its tokens")
}

// siglip registers a net for images of a size.
func siglip(v ViT, name string, size int, summary string) {
	imageNet(v.of(nn.Architecture{
		Name:          name,
		Family:        "vit",
		Summary:       summary,
		Reference:     "Zhai et al., Sigmoid loss for language image pre-training, 2023",
		Size:          size,
		MinSize:       v.Patch,
		Mean:          half,
		Std:           half,
		Resize:        size * 10 / 9, // timm's crop_pct is 0.9
		Interpolation: bicubic,
	}))
}
