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
	for _, size := range []struct {
		name   string
		resize [2]int // of the net with GELU, and with the quick one
		net    ViT
	}{
		{"base", [2]int{248, 248}, ViT{Patch: 32, Width: 768, Heads: 12}},
		{"base", [2]int{235, 224}, ViT{Patch: 16, Width: 768, Heads: 12}},
		{"large", [2]int{224, 224}, ViT{Patch: 14, Width: 1024, Heads: 16, Depth: 24}},
	} {
		for i, kind := range []string{"", "_quickgelu"} {
			v := size.net
			v.PreNorm, v.QuickGELU, v.Eps = true, i > 0, 1e-5
			a := nn.Architecture{
				Name:          fmt.Sprintf("vit_%s_patch%d_clip%s_224", size.name, v.Patch, kind),
				Family:        "vit",
				Summary:       fmt.Sprintf("CLIP's image tower, %s, patches of %d×%[2]d, with timm's names", size.name, v.Patch),
				Reference:     "Radford et al., Learning transferable visual models from natural language supervision, 2021",
				MinSize:       v.Patch,
				Mean:          clipMean,
				Std:           clipStd,
				Resize:        size.resize[i],
				Interpolation: bicubic,
			}
			if v.QuickGELU {
				a.Summary = fmt.Sprintf("CLIP's image tower, %s, patches of %d×%[2]d, quick GELU", size.name, v.Patch)
			} else if v.Patch == 14 { // timm's weights of this size were fine-tuned with others
				a.Mean, a.Std = half, half
			}
			imageNet(v.of(a))
		}
	}
}
