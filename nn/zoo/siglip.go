package zoo

import (
	"fmt"

	"onlinerna/nn"
)

func init() {
	giant := ViT{Width: 1536, Heads: 16, Depth: 40}
	for _, tower := range []struct {
		name  string
		patch int
		net   ViT
		sizes []int // of nets with attention to the patches
		means []int // of those with their mean
		tanh  bool
		part  float64 // timm's crop_pct
	}{
		{"base", 16, vitBase, []int{224, 256, 384, 512}, []int{224, 256, 384, 512}, false, .9},
		{"base", 32, vitBase, []int{256}, []int{256}, true, .9},
		{"large", 16, vitLarge, []int{256, 384}, []int{256, 384}, false, .9},
		{"large", 16, vitLarge, []int{512}, []int{512}, true, .9},
		{"so400m", 14, vitSO400M, []int{224, 378, 384}, []int{224, 378}, false, .9},
		{"so400m", 14, vitSO400M, nil, []int{384, 448, 896}, false, 1},
		{"so400m", 16, vitSO400M, []int{256, 384, 512}, []int{256, 384, 512}, true, .9},
		{"giantopt", 16, giant, []int{256, 384}, []int{256, 384}, true, .9},
	} {
		for i, sizes := range [][]int{tower.sizes, tower.means} {
			v := tower.net
			v.Patch, v.GELUTanh, v.AttentionPool, v.Mean = tower.patch, tower.tanh, i == 0, i > 0
			for _, size := range sizes {
				v.Truncate = size%v.Patch != 0
				a := nn.Architecture{
					Name:      fmt.Sprintf("vit_%s_patch%d_siglip_%d", tower.name, v.Patch, size),
					Summary:   fmt.Sprintf("SigLIP's image tower, %s, patches of %d×%[2]d", tower.name, v.Patch),
					Reference: "Zhai et al., Sigmoid loss for language image pre-training, 2023",
					Size:      size,
					Mean:      half,
					Std:       half,
					Resize:    cropped(size, tower.part),
				}
				if v.Mean {
					a.Name = fmt.Sprintf("vit_%s_patch%d_siglip_gap_%d", tower.name, v.Patch, size)
					a.Summary += ", by their mean"
				}
				v.timm(a)
			}
		}
	}
}
