package zoo

import (
	"fmt"
	"strings"

	"onlinerna/nn"
)

func init() {
	relu, gelu := nn.Activation((*nn.Builder).ReLU), nn.Activation((*nn.Builder).GELU)
	for _, v := range []struct {
		name, summary string
		net           Mobile
		size, resize  int
		half          bool // the weights take pixels from −1 to 1
	}{
		{"conv_small_050", "of convolutions, small, width 0.5",
			Mobile{Stem: 32, Width: .5, Stages: universalSmall}, 224, 256, true},
		{"conv_small", "of convolutions, small", Mobile{Stem: 32, Stages: universalSmall}, 224, 256, false},
		{"conv_medium", "of convolutions, medium", Mobile{Stem: 32, Stages: universalMedium}, 256, 269, false},
		{"conv_blur_medium", "of convolutions, medium, blurred in place of strides",
			Mobile{Stem: 32, Stages: universalMedium, AntiAlias: "blurpc"}, 224, 235, false},
		{"conv_large", "of convolutions, large", Mobile{Stem: 24, Stages: universalLarge}, 384, 404, false},
		{"conv_aa_large", "of convolutions, large, means in place of strides",
			Mobile{Stem: 24, Stages: universalLarge, AntiAlias: "avg"}, 448, 471, false},
		{"hybrid_medium", "of convolutions and attention, medium",
			Mobile{Stem: 32, Stages: hybridMedium, Act: relu, LayerScale: 1e-5}, 256, 269, false},
		{"hybrid_large", "of convolutions and attention, large",
			Mobile{Stem: 24, Stages: hybridLarge, Act: gelu, LayerScale: 1e-5}, 384, 404, false},
	} {
		v.net.FixStem = v.net.Width > 0
		v.net.Last, v.net.Late, v.net.Norm, v.net.ExciteWide = 1280, true, true, true
		mobile(func(a *nn.Architecture) {
			a.Family, a.Interpolation = "mobilenet", bicubic
			a.Reference = "Qin et al., MobileNetV4: universal models for the mobile ecosystem, 2024"
			if v.half {
				a.Mean, a.Std = half, half
			}
		}, mobileNet{"mobilenetv4_" + v.name, "MobileNetV4 " + v.summary, v.size, v.resize, v.net})
	}
}

// universal is a stage of these blocks of timm's kinds uir and mqa with equal numbers of channels. The first has a
// stride of 2.
func universal(out int, blocks string) string {
	list := strings.Fields(blocks)
	for i, block := range list {
		if !strings.HasPrefix(block, "mqa_") {
			block = "uir_" + block
		}
		stride := 1
		if i == 0 {
			stride = 2
		}
		list[i] = fmt.Sprintf("%s_s%d_c%d", block, stride, out)
	}
	return strings.Join(list, " ")
}

var (
	universalSmall = []string{
		"cn_r1_k3_s2_c32 cn_r1_k1_s1_c32",
		"cn_r1_k3_s2_c96 cn_r1_k1_s1_c64",
		universal(96, "a5_k5_e3 a0_k3_e2_r4 a3_k0_e4"),
		universal(128, "a3_k3_e6 a5_k5_e4 a0_k5_e4 a0_k5_e3 a0_k3_e4_r2"),
		"cn_r1_k1_s1_c960",
	}
	universalMedium = []string{
		"er_r1_k3_s2_e4_c48",
		universal(80, "a3_k5_e4 a3_k3_e2"),
		universal(160, "a3_k5_e6 a3_k3_e4_r2 a3_k5_e4 a3_k3_e4 a3_k0_e4 a0_k0_e2 a3_k0_e4"),
		universal(256, "a5_k5_e6 a5_k5_e4 a3_k5_e4_r2 a0_k0_e4 a3_k0_e4 a3_k5_e2 a5_k5_e4 a0_k0_e4_r2 a5_k0_e2"),
		"cn_r1_k1_s1_c960",
	}
	universalLarge = []string{
		"er_r1_k3_s2_e4_c48",
		universal(96, "a3_k5_e4 a3_k3_e4"),
		universal(192, "a3_k5_e4 a3_k3_e4_r3 a3_k5_e4 a5_k3_e4_r5 a3_k0_e4"),
		universal(512, "a5_k5_e4_r4 a5_k0_e4 a5_k3_e4 a5_k0_e4_r2 a5_k3_e4 a5_k5_e4 a5_k0_e4_r3"),
		"cn_r1_k1_s1_c960",
	}
	hybridMedium = []string{
		"er_r1_k3_s2_e4_c48",
		universal(80, "a3_k5_e4 a3_k3_e2"),
		universal(160, "a3_k5_e6 a0_k0_e2 a3_k3_e4 a3_k5_e4 mqa_k3_h4_v2_d64 a3_k3_e4 mqa_k3_h4_v2_d64 a3_k0_e4 "+
			"mqa_k3_h4_v2_d64 a3_k3_e4 mqa_k3_h4_v2_d64 a3_k0_e4"),
		universal(256, "a5_k5_e6 a5_k5_e4 a3_k5_e4_r2 a0_k0_e2 a3_k5_e2 a0_k0_e2 a0_k0_e4 mqa_k3_h4_d64 a3_k0_e4 "+
			"mqa_k3_h4_d64 a5_k5_e4 mqa_k3_h4_d64 a5_k0_e4 mqa_k3_h4_d64 a5_k0_e4"),
		"cn_r1_k1_s1_c960",
	}
	hybridLarge = []string{
		"er_r1_k3_s2_e4_c48",
		universal(96, "a3_k5_e4 a3_k3_e4"),
		universal(192, "a3_k5_e4 a3_k3_e4_r3 a3_k5_e4 a5_k3_e4_r2 mqa_k3_h8_v2_d48 a5_k3_e4 mqa_k3_h8_v2_d48 "+
			"a5_k3_e4 mqa_k3_h8_v2_d48 a5_k3_e4 mqa_k3_h8_v2_d48 a3_k0_e4"),
		universal(512, "a5_k5_e4_r4 a5_k0_e4 a5_k3_e4 a5_k0_e4_r2 a5_k3_e4 a5_k5_e4 mqa_k3_h8_d64 a5_k0_e4 "+
			"mqa_k3_h8_d64 a5_k0_e4 mqa_k3_h8_d64 a5_k0_e4 mqa_k3_h8_d64 a5_k0_e4"),
		"cn_r1_k1_s1_c960",
	}
)
