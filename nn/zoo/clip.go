package zoo

import (
	"fmt"

	"onlinerna/nn"
)

// Of pixels on the scale 0 to 1, as OpenAI's weights of CLIP take them.
var (
	clipMean = []float64{.48145466, .4578275, .40821073}
	clipStd  = []float64{.26862954, .26130258, .27577711}
)

func init() {
	for _, tower := range []struct {
		name   string
		net    ViT
		patch  int
		resize int   // of images of 224 pixels; larger ones are not cropped
		sizes  []int // of nets with GELU
		quick  []int // and with the quick one
	}{
		{"xsmall", ViT{Width: 256, Heads: 4, Depth: 10}, 16, 248, []int{224}, nil},
		{"medium", vitMedium, 32, 248, []int{224}, nil},
		{"medium", vitMedium, 16, 248, []int{224}, nil},
		{"betwixt", vitBetwixt, 32, 248, []int{224}, nil},
		{"base", vitBase, 32, 248, []int{224, 256, 384, 448}, []int{224}},
		{"base", vitBase, 16, 235, []int{224, 384}, nil},
		{"base", vitBase, 16, 224, nil, []int{224}},
		{"large", vitLarge, 14, 224, []int{224, 336}, []int{224, 336}},
		{"huge", vitHuge, 14, 224, []int{224, 336, 378}, []int{224, 378}},
		{"giant", vitGiant, 14, 224, []int{224}, nil},
		{"gigantic", vitGigantic, 14, 224, []int{224, 378}, []int{224}},
		{"base", vitPlus, 16, 240, []int{240}, nil},
	} {
		for i, sizes := range [][]int{tower.sizes, tower.quick} {
			v := tower.net
			v.Patch, v.PreNorm, v.QuickGELU, v.Eps = tower.patch, true, i > 0, 1e-5
			for _, size := range sizes {
				kind := "clip"
				a := nn.Architecture{
					Summary:   fmt.Sprintf("CLIP's image tower, %s, patches of %d×%[2]d", tower.name, v.Patch),
					Reference: "Radford et al., Learning transferable visual models from natural language supervision, 2021",
					Size:      size,
					Mean:      clipMean,
					Std:       clipStd,
				}
				switch {
				case v.QuickGELU:
					kind = "clip_quickgelu"
					a.Summary += ", quick GELU"
				case size == 240:
					kind = "plus_clip"
				case tower.name == "large": // timm's weights of this size were fine-tuned with others
					a.Mean, a.Std = half, half
				}
				if size == 224 {
					a.Resize = tower.resize
				}
				a.Name = fmt.Sprintf("vit_%s_patch%d_%s_%d", tower.name, v.Patch, kind, size)
				v.timm(a)
			}
		}
	}
}
