package zoo

import (
	"fmt"
	"strings"

	"onlinerna/nn"
)

func init() {
	hardswish := nn.Activation((*nn.Builder).Hardswish)
	large := []string{"ds_r1_k3_s1_e1_c16_nre", "ir_r1_k3_s2_e4_c24_nre ir_r1_k3_s1_e3_c24_nre",
		"ir_r3_k5_s2_e3_c40_se0.25_nre",
		"ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80", "ir_r2_k3_s1_e6_c112_se0.25",
		"ir_r3_k5_s2_e6_c160_se0.25", "cn_r1_k1_s1_c960"}
	wightman := append([]string{large[0] + "_noskip"}, large[1:]...)
	mobile(func(a *nn.Architecture) {
		a.Family = "mobilenet"
		a.Reference = "Howard et al., Searching for MobileNetV3, 2019"
		switch {
		case a.Name == "mobilenetv3_rw":
			a.Interpolation, a.BatchNormEps = bicubic, .001
		default:
			a.Mean, a.Std = half, half
		}
	}, mobileNet{"mobilenetv3_rw", "MobileNetV3, large, by Wightman", 224, 256, Mobile{Stem: 16, Last: 1280, Late: true,
		Act: hardswish, HardGate: true, ExciteWide: true, Stages: wightman}},
		mobileNet{"mobilenetv3_large_150d", "MobileNetV3, large, width 1.5, deeper", 256, 269, Mobile{Width: 1.5,
			Depth: []float64{1.2}, Stem: 16, Last: 1280, Late: true, Bias: true, Act: hardswish, HardGate: true,
			ExciteWide: true, ExciteReLU: true, ExciteEight: true, Stages: large}},
		mobileNet{"tf_mobilenetv3_large_minimal_100", "MobileNetV3, large, of ReLUs and 3×3 convolutions", 224, 256,
			Mobile{Stem: 16, Last: 1280, Late: true, Bias: true, Stages: []string{"ds_r1_k3_s1_e1_c16",
				"ir_r1_k3_s2_e4_c24 ir_r1_k3_s1_e3_c24", "ir_r3_k3_s2_e3_c40",
				"ir_r1_k3_s2_e6_c80 ir_r1_k3_s1_e2.5_c80 ir_r2_k3_s1_e2.3_c80", "ir_r2_k3_s1_e6_c112", "ir_r3_k3_s2_e6_c160",
				"cn_r1_k1_s1_c960"}}},
		mobileNet{"tf_mobilenetv3_small_minimal_100", "MobileNetV3, small, of ReLUs and 3×3 convolutions", 224, 256,
			Mobile{Stem: 16, Last: 1024, Late: true, Bias: true, Stages: []string{"ds_r1_k3_s2_e1_c16",
				"ir_r1_k3_s2_e4.5_c24 ir_r1_k3_s1_e3.67_c24", "ir_r1_k3_s2_e4_c40 ir_r2_k3_s1_e6_c40", "ir_r2_k3_s1_e3_c48",
				"ir_r3_k3_s2_e6_c96", "cn_r1_k1_s1_c576"}}})
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "lcnet", bicubic
		a.Reference = "Cui et al., PP-LCNet: a lightweight CPU convolutional neural network, 2021"
	}, lcNets(50, 75, 100)...)
	mobile(func(a *nn.Architecture) {
		a.Family = "fbnet"
		a.Reference = "Dai et al., FBNetV3: joint architecture-recipe search using predictor pretraining, 2021"
	}, fbNets()...)
}

// lcNets are PP-LCNets of these widths in percent.
func lcNets(percents ...int) (list []mobileNet) {
	for _, percent := range percents {
		width := float64(percent) / 100
		o := Mobile{Width: width, Stem: 16, Last: 1280, Late: true, Bias: true, Act: (*nn.Builder).Hardswish, HardGate: true,
			ExciteWide: true, ExciteReLU: true, Stages: []string{"dsa_r1_k3_s1_c32", "dsa_r2_k3_s2_c64", "dsa_r2_k3_s2_c128",
				"dsa_r1_k3_s2_c256 dsa_r1_k5_s1_c256", "dsa_r4_k5_s1_c256", "dsa_r2_k5_s2_c512_se0.25"}}
		name := fmt.Sprintf("lcnet_%03d", percent)
		list = append(list, mobileNet{name, fmt.Sprintf("PP-LCNet, width %g", width), 224, 256, o})
	}
	return list
}

// fbNets are FBNets V3.
func fbNets() (list []mobileNet) {
	for _, v := range []struct {
		name         string
		size, resize int
		stem         int
		stages       []string
	}{
		{"b", 224, 235, 16, []string{"ds_r2_k3_s1_e1_c16", "ir_r1_k5_s2_e4_c24 ir_r3_k5_s1_e2_c24",
			"ir_r1_k5_s2_e5_c40_se0.25 ir_r4_k5_s1_e3_c40_se0.25", "ir_r1_k5_s2_e5_c72 ir_r4_k3_s1_e3_c72",
			"ir_r1_k3_s1_e5_c120_se0.25 ir_r5_k5_s1_e3_c120_se0.25",
			"ir_r1_k3_s2_e6_c184_se0.25 ir_r5_k5_s1_e4_c184_se0.25 ir_r1_k5_s1_e6_c224_se0.25", "cn_r1_k1_s1_c1344"}},
		{"d", 224, 235, 24, []string{"ds_r2_k3_s1_e1_c16", "ir_r1_k3_s2_e5_c24 ir_r5_k3_s1_e2_c24",
			"ir_r1_k5_s2_e4_c40_se0.25 ir_r4_k3_s1_e3_c40_se0.25", "ir_r1_k3_s2_e5_c72 ir_r4_k3_s1_e3_c72",
			"ir_r1_k3_s1_e5_c128_se0.25 ir_r6_k5_s1_e3_c128_se0.25",
			"ir_r1_k3_s2_e6_c208_se0.25 ir_r5_k5_s1_e5_c208_se0.25 ir_r1_k5_s1_e6_c240_se0.25", "cn_r1_k1_s1_c1440"}},
		{"g", 240, 252, 32, []string{"ds_r3_k3_s1_e1_c24", "ir_r1_k5_s2_e4_c40 ir_r4_k5_s1_e2_c40",
			"ir_r1_k5_s2_e4_c56_se0.25 ir_r4_k5_s1_e3_c56_se0.25", "ir_r1_k5_s2_e5_c104 ir_r4_k3_s1_e3_c104",
			"ir_r1_k3_s1_e5_c160_se0.25 ir_r8_k5_s1_e3_c160_se0.25",
			"ir_r1_k3_s2_e6_c264_se0.25 ir_r6_k5_s1_e5_c264_se0.25 ir_r2_k5_s1_e6_c288_se0.25", "cn_r1_k1_s1_c1728"}},
	} {
		list = append(list, mobileNet{"fbnetv3_" + v.name, "FBNetV3-" + strings.ToUpper(v.name), v.size, v.resize,
			Mobile{Limit: .95, Stem: v.stem, Last: 1984, Late: true, Act: (*nn.Builder).Hardswish, HardGate: true,
				ExciteEight: true, Stages: v.stages}})
	}
	return list
}
