package zoo

import (
	"fmt"

	"onlinerna/nn"
)

func init() {
	for _, size := range []struct {
		name  string
		large int // size of the images that published weights for classes take
		net   Eva
	}{
		{"tiny", 336, Eva{Width: 192, Heads: 3, Hidden: 512}},
		{"small", 336, Eva{Width: 384, Heads: 6, Hidden: 1024}},
		{"base", 448, Eva{Width: 768, Heads: 12, Hidden: 2048, SeparateQKV: true, ScaleMLP: true}},
		{"large", 448, Eva{Width: 1024, Heads: 16, Depth: 24, Hidden: 2730, SeparateQKV: true, ScaleMLP: true}},
	} {
		for _, pixels := range []int{224, size.large} {
			v := size.net
			v.Patch, v.Grid, v.SwiGLU = 14, 16, true
			a := nn.Architecture{
				Name:          fmt.Sprintf("eva02_%s_patch14_%d", size.name, pixels),
				Family:        "vit",
				Summary:       fmt.Sprintf("EVA-02, %s, patches of 14×14, with timm's names", size.name),
				Reference:     "Fang et al., EVA-02: a visual representation for neon genesis, 2023",
				Size:          pixels,
				Mean:          clipMean,
				Std:           clipStd,
				Resize:        pixels,
				Interpolation: bicubic,
			}
			if pixels == 224 {
				a.Resize = 248
			}
			imageNet(v.of(a))
		}
	}
}
