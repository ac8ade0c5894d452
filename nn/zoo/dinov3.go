package zoo

import "onlinerna/nn"

func init() {
	for _, size := range []struct {
		name, words string
		net         Eva
		biased      bool // it exists with biases alone; 7b without alone
	}{
		{"tiny", "tiny", Eva{Width: 192, Heads: 3}, true},
		{"small", "small", Eva{Width: 384, Heads: 6}, false},
		{"small_plus", "small with SwiGLU", Eva{Width: 384, Heads: 6, SwiGLU: true}, false},
		{"base", "base", Eva{Width: 768, Heads: 12}, false},
		{"large", "large", Eva{Width: 1024, Heads: 16, Depth: 24}, false},
		{"huge_plus", "huge with SwiGLU", Eva{Width: 1280, Heads: 20, Depth: 32, SwiGLU: true}, false},
		{"7b", "7 billion parameters", Eva{Width: 4096, Heads: 32, Depth: 40, Hidden: 8192, SwiGLU: true}, false},
	} {
		for _, bias := range []bool{false, true} {
			if size.biased && !bias || bias && size.name == "7b" {
				continue
			}
			v := size.net
			v.DINOv3, v.Patch, v.Registers, v.LayerScale, v.Eps = true, 16, 4, 1e-5, 1e-5
			v.NoQKVBias, v.SeparateMLP = !bias, v.SwiGLU
			a := nn.Architecture{
				Name:      "vit_" + size.name + "_patch16_dinov3",
				Summary:   "DINOv3, " + size.words,
				Reference: "Siméoni et al., DINOv3, 2025",
				Size:      256,
			}
			if bias {
				a.Name += "_qkvb"
				a.Summary += ", with biases of queries and values"
			}
			v.timm(a)
		}
	}
}
