package zoo

import (
	"strings"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name   string
		stages []string // between the first and the last
	}{
		{"a", []string{
			"ir_r1_k5_s2_e3_c24_nre ir_r1_k5_s1_e3_c24_nre_se0.25",
			"ir_r1_k5_s2_e3_c40_nre ir_r1_k5_s1_e6_c40_nre_se0.25",
			"ir_r1_k5_s2_e6_c80_se0.25 ir_r1_k5_s1_e6_c80_se0.25",
			"ir_r2_k5_s1_e6_c112_se0.25",
			"ir_r1_k5_s2_e6_c192_se0.25 ir_r1_k5_s1_e6_c192_se0.25",
		}},
		{"b", []string{
			"ir_r1_k5_s2_e3_c24_nre ir_r1_k5_s1_e3_c24_nre_se0.25 ir_r1_k3_s1_e3_c24_nre",
			"ir_r1_k5_s2_e3_c40_nre ir_r2_k5_s1_e3_c40_nre",
			"ir_r1_k5_s2_e3_c80 ir_r1_k5_s1_e3_c80 ir_r2_k3_s1_e3_c80",
			"ir_r1_k5_s1_e3_c112 ir_r3_k3_s1_e3_c112",
			"ir_r1_k5_s2_e6_c192_se0.25 ir_r1_k5_s1_e6_c192_se0.25 ir_r1_k3_s1_e3_c192_se0.25",
		}},
		{"c", []string{
			"ir_r1_k5_s2_e3_c24_nre ir_r1_k5_s1_e3_c24_nre_se0.25",
			"ir_r1_k5_s2_e3_c40_nre ir_r3_k5_s1_e3_c40_nre",
			"ir_r1_k5_s2_e4_c80 ir_r1_k5_s1_e6_c80_se0.25 ir_r2_k3_s1_e3_c80",
			"ir_r1_k5_s1_e6_c112_se0.25 ir_r3_k3_s1_e3_c112",
			"ir_r1_k5_s2_e6_c192_se0.25 ir_r1_k5_s1_e6_c192_se0.25 ir_r1_k3_s1_e3_c192_se0.25",
		}},
		{"d", []string{
			"ir_r1_k5_s2_e3_c24_nre_se0.25 ir_r1_k5_s1_e3_c24_nre_se0.25",
			"ir_r1_k5_s2_e3_c40_nre_se0.25 ir_r1_k5_s1_e4_c40_nre_se0.25 ir_r1_k3_s1_e3_c40_nre_se0.25",
			"ir_r1_k5_s2_e4_c80_se0.25 ir_r3_k3_s1_e3_c80_se0.25",
			"ir_r1_k3_s1_e4_c112_se0.25 ir_r1_k5_s1_e4_c112_se0.25 ir_r1_k3_s1_e3_c112_se0.25 ir_r1_k5_s1_e3_c112_se0.25",
			"ir_r1_k5_s2_e6_c192_se0.25 ir_r2_k5_s1_e6_c192_se0.25 ir_r1_k3_s1_e6_c192_se0.25",
		}},
		{"e", []string{
			"ir_r1_k5_s2_e3_c24_nre_se0.25 ir_r1_k5_s1_e3_c24_nre_se0.25",
			"ir_r1_k5_s2_e6_c40_nre_se0.25 ir_r2_k5_s1_e4_c40_nre_se0.25 ir_r1_k3_s1_e3_c40_nre_se0.25",
			"ir_r1_k5_s2_e4_c80_se0.25 ir_r1_k3_s1_e6_c80_se0.25",
			"ir_r3_k5_s1_e6_c112_se0.25 ir_r1_k5_s1_e3_c112_se0.25",
			"ir_r1_k5_s2_e6_c192_se0.25 ir_r2_k5_s1_e6_c192_se0.25 ir_r1_k3_s1_e6_c192_se0.25",
		}},
		{"f", []string{
			"ir_r1_k5_s2_e3_c24_nre_se0.25 ir_r1_k5_s1_e3_c24_nre_se0.25",
			"ir_r1_k5_s2_e6_c40_nre_se0.25 ir_r1_k5_s1_e6_c40_nre_se0.25",
			"ir_r1_k5_s2_e6_c80_se0.25 ir_r1_k5_s1_e6_c80_se0.25 ir_r2_k3_s1_e3_c80_se0.25",
			"ir_r1_k3_s1_e6_c112_se0.25 ir_r2_k5_s1_e6_c112_se0.25 ir_r1_k3_s1_e3_c112_se0.25",
			"ir_r1_k5_s2_e6_c192_se0.25 ir_r1_k5_s1_e6_c192_se0.25 ir_r2_k3_s1_e6_c192_se0.25",
		}},
	} {
		stages := append([]string{"ds_r1_k3_s1_e1_c16_nre"}, v.stages...)
		mobile(func(a *nn.Architecture) {
			a.Family = "hardcorenas"
			a.Reference = "Nayman et al., HardCoRe-NAS: hard constrained differentiable neural architecture search, 2021"
		}, mobileNet{"hardcorenas_" + v.name, "HardCoRe-NAS " + strings.ToUpper(v.name), 224, 256, Mobile{Stem: 32,
			Last: 1280, Late: true, Bias: true, Act: (*nn.Builder).Hardswish, HardGate: true, ExciteWide: true, ExciteReLU: true,
			ExciteEight: true, Stages: append(stages, "cn_r1_k1_s1_c960")}})
	}
}
