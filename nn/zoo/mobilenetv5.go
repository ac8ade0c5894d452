package zoo

import (
	"strings"

	"onlinerna/nn"
)

func init() {
	pairs := func(attention string, n int) string { return strings.Repeat(" "+attention+" a0_k0_e2", n) }
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "mobilenet", bicubic
		a.Mean, a.Std = []float64{0, 0, 0}, []float64{1, 1, 1}
		a.Reference = "Gemma team, Gemma 3n, 2025"
	}, mobileNet{"mobilenetv5_300m", "MobileNetV5, the image encoder of Gemma 3n", 768, 768,
		Mobile{Stem: 64, Last: 2048, Act: (*nn.Builder).GELUTanh, LayerScale: 1e-5, Fuse: 16, Stages: []string{
			"er_r3_k3_s2_e4_c128",
			universal(256, "a3_k5_e6 a5_k0_e4 a3_k0_e4 a5_k0_e4 a3_k0_e4"),
			universal(640, "a5_k5_e6 a5_k0_e4_r7 a0_k0_e1"+pairs("mqa_k3_h12_v2_d64", 14)),
			universal(1280, "a5_k5_e6"+pairs("mqa_k3_h16_d96", 19))}}})
}
