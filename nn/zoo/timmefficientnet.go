package zoo

import (
	"fmt"
	"strings"

	"onlinerna/nn"
)

func init() {
	mobile(func(a *nn.Architecture) {
		if a.Family, a.Interpolation = "efficientnet", bicubic; strings.HasPrefix(a.Name, "tf_") {
			a.Mean, a.Std = half, half
		}
		a.Reference = "Gupta, Tan, EfficientNet-EdgeTPU: creating accelerator-optimized neural networks with AutoML, 2019"
	}, efficientEdges()...)
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "mixnet", bicubic
		a.Reference = "Tan, Le, MixConv: mixed depthwise convolutional kernels, 2019"
	}, mixNets()...)
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "tinynet", bicubic
		a.Reference = "Han et al., Model Rubik's cube: twisting resolution, depth and width for TinyNets, 2020"
	}, tinyNets()...)
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "efficientnet", bicubic
		a.Reference = "Tan, Le, EfficientNetV2: smaller models and faster training, 2021"
	}, efficientRWs()...)
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "efficientnet", bicubic
		a.Reference = "Li et al., Searching for fast model families on datacenter accelerators, 2021"
	}, mobileNet{"efficientnet_x_b5", "EfficientNet-X-B5", 448, 448, efficientX(1.6, 6)},
		mobileNet{"efficientnet_h_b5", "EfficientNet-H-B5", 448, 448, efficientX(1.92, 4)})
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "mnasnet", bicubic
		a.Reference = "Tan et al., MnasNet: platform-aware neural architecture search for mobile, 2019"
	}, mobileNet{"semnasnet_075", "MNASNet-A1, width 0.75", 224, 256, semNASNet(.75)},
		mobileNet{"semnasnet_100", "MNASNet-A1", 224, 256, semNASNet(1)},
		mobileNet{"mnasnet_small", "MNASNet-small", 224, 256, Mobile{Stem: 8, Last: 1280, Stages: []string{
			"ds_r1_k3_s1_c8", "ir_r1_k3_s2_e3_c16", "ir_r2_k3_s2_e6_c16", "ir_r4_k5_s2_e6_c32_se0.25",
			"ir_r3_k3_s1_e6_c32_se0.25", "ir_r3_k5_s2_e6_c88_se0.25", "ir_r1_k3_s1_e6_c144"}}})
	mobile(func(a *nn.Architecture) {
		a.Family = "mnasnet"
		a.Reference = "Stamoulis et al., Single-path NAS: designing hardware-efficient ConvNets in less than 4 hours, 2019"
	}, mobileNet{"spnasnet_100", "Single-path NAS for Pixel 1", 224, 256, Mobile{Stem: 32, Last: 1280, Stages: []string{
		"ds_r1_k3_s1_c16_noskip", "ir_r3_k3_s2_e3_c24", "ir_r1_k5_s2_e6_c40 ir_r3_k3_s1_e3_c40",
		"ir_r1_k5_s2_e6_c80 ir_r3_k3_s1_e3_c80", "ir_r1_k5_s1_e6_c96 ir_r3_k5_s1_e3_c96", "ir_r4_k5_s2_e6_c192",
		"ir_r1_k3_s1_e6_c320_noskip"}}})
	mobile(func(a *nn.Architecture) {
		a.Family, a.BatchNormEps = "fbnet", .001
		a.Reference = "Wu et al., FBNet: hardware-aware efficient ConvNet design via differentiable neural architecture " +
			"search, 2019"
	}, mobileNet{"fbnetc_100", "FBNet-C", 224, 256, Mobile{Stem: 16, Last: 1984, Stages: []string{
		"ir_r1_k3_s1_e1_c16", "ir_r1_k3_s2_e6_c24 ir_r2_k3_s1_e1_c24",
		"ir_r1_k5_s2_e6_c32 ir_r1_k5_s1_e3_c32 ir_r1_k5_s1_e6_c32 ir_r1_k3_s1_e6_c32",
		"ir_r1_k5_s2_e6_c64 ir_r1_k5_s1_e3_c64 ir_r2_k5_s1_e6_c64", "ir_r3_k5_s1_e6_c112 ir_r1_k5_s1_e3_c112",
		"ir_r4_k5_s2_e6_c184", "ir_r1_k3_s1_e6_c352"}}})
	v1 := []string{"dsa_r1_k3_s1_c64", "dsa_r2_k3_s2_c128", "dsa_r2_k3_s2_c256", "dsa_r6_k3_s2_c512", "dsa_r2_k3_s2_c1024"}
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "mobilenet", bicubic
		a.Mean, a.Std = half, half
		a.Reference = "Howard et al., MobileNets: efficient convolutional neural networks for mobile vision " +
			"applications, 2017"
	}, mobileNet{"mobilenetv1_100", "MobileNetV1", 224, 256, Mobile{Stem: 32, Stages: v1, Act: relu6}},
		mobileNet{"mobilenetv1_100h", "MobileNetV1 with a last convolution", 224, 256,
			Mobile{Stem: 32, Stages: v1, Act: relu6, Last: 1024}},
		mobileNet{"mobilenetv1_125", "MobileNetV1, width 1.25", 224, 248,
			Mobile{Stem: 32, Stages: v1, Act: relu6, Width: 1.25}})
	mobile(func(a *nn.Architecture) {
		a.Family, a.Interpolation = "mobilenet", bicubic
		a.Mean, a.Std = half, half
		a.Reference = "Akin et al., Searching for efficient neural architectures for on-device ML on edge TPUs, 2022"
	}, mobileNet{"mobilenet_edgetpu_v2_m", "MobileNet-EdgeTPU V2, medium", 224, 248,
		Mobile{Stem: 64, StemKernel: 5, Last: 1344, Stages: []string{
			"cn_r1_k1_s1_c32", "er_r1_k3_s2_e8_c64 er_r1_k3_s1_e4_gs64_c64",
			"er_r1_k3_s2_e8_c80 er_r1_k3_s1_e4_gs64_c80 er_r1_k3_s1_e4_c80 er_r1_k3_s1_e4_gs64_c80",
			"er_r1_k3_s2_e8_c160 ir_r3_k3_s1_e4_c160", "ir_r1_k3_s1_e8_c192 ir_r3_k3_s1_e4_c192",
			"ir_r1_k3_s2_e8_c240 ir_r3_k3_s1_e4_c240", "ir_r1_k3_s1_e8_c320"}}})
	for _, size := range []string{"es", "el"} { // with fewer channels in use
		nn.Alias("efficientnet_"+size+"_pruned", "efficientnet_"+size)
	}
}

// mobileNet is a net that mobile registers.
type mobileNet struct {
	name, summary string
	size, resize  int
	net           Mobile
}

// mobile registers nets, completed by a function that says what they share. Nets named tf_ have TensorFlow's padding.
func mobile(share func(a *nn.Architecture), list ...mobileNet) {
	for _, v := range list {
		a := nn.Architecture{
			Name:    v.name,
			Summary: v.summary + ", as timm's",
			Block:   timmBlock,
			Init:    mobileInit,
			Build:   v.net.Build,
		}
		if share(&a); strings.HasPrefix(v.name, "tf_") {
			a.Summary = v.summary + ", with TensorFlow's padding, as timm's"
			a.SamePadding, a.BatchNormEps = true, .001
		}
		a.Size, a.Resize = v.size, v.resize
		imageNet(a)
	}
}

// efficientEdges are EfficientNet-EdgeTPUs.
func efficientEdges() (list []mobileNet) {
	for _, v := range []struct {
		name, summary string
		width, depth  float64
		size, resize  int
	}{
		{"es", "small", 1, 1, 224, 256}, {"em", "medium", 1, 1.1, 240, 272}, {"el", "large", 1.2, 1.4, 300, 331},
	} {
		o := Mobile{Width: v.width, Depth: []float64{v.depth}, Stem: 32, Last: divisible(1280 * v.width), Stages: []string{
			"er_r1_k3_s1_e4_c24_fc24_noskip", "er_r2_k3_s2_e8_c32", "er_r4_k3_s2_e8_c48", "ir_r5_k5_s2_e8_c96",
			"ir_r4_k5_s1_e8_c144", "ir_r2_k5_s2_e8_c192"}}
		for _, tf := range []string{"", "tf_"} {
			name := tf + "efficientnet_" + v.name
			list = append(list, mobileNet{name, "EfficientNet-EdgeTPU, " + v.summary, v.size, v.resize, o})
		}
	}
	return list
}

// mixNets are MixNets.
func mixNets() (list []mobileNet) {
	small := Mobile{Stem: 16, Last: 1536, Stages: []string{
		"ds_r1_k3_s1_e1_c16", "ir_r1_k3_a1.1_p1.1_s2_e6_c24 ir_r1_k3_a1.1_p1.1_s1_e3_c24",
		"ir_r1_k3.5.7_s2_e6_c40_se0.5_nsw ir_r3_k3.5_a1.1_p1.1_s1_e6_c40_se0.5_nsw",
		"ir_r1_k3.5.7_p1.1_s2_e6_c80_se0.25_nsw ir_r2_k3.5_p1.1_s1_e6_c80_se0.25_nsw",
		"ir_r1_k3.5.7_a1.1_p1.1_s1_e6_c120_se0.5_nsw ir_r2_k3.5.7.9_a1.1_p1.1_s1_e3_c120_se0.5_nsw",
		"ir_r1_k3.5.7.9.11_s2_e6_c200_se0.5_nsw ir_r2_k3.5.7.9_p1.1_s1_e6_c200_se0.5_nsw"}}
	medium := func(width, depth float64) Mobile {
		return Mobile{Width: width, Depth: []float64{depth}, RoundDepth: true, Stem: 24, Last: 1536, Stages: []string{
			"ds_r1_k3_s1_e1_c24", "ir_r1_k3.5.7_a1.1_p1.1_s2_e6_c32 ir_r1_k3_a1.1_p1.1_s1_e3_c32",
			"ir_r1_k3.5.7.9_s2_e6_c40_se0.5_nsw ir_r3_k3.5_a1.1_p1.1_s1_e6_c40_se0.5_nsw",
			"ir_r1_k3.5.7_s2_e6_c80_se0.25_nsw ir_r3_k3.5.7.9_a1.1_p1.1_s1_e6_c80_se0.25_nsw",
			"ir_r1_k3_s1_e6_c120_se0.5_nsw ir_r3_k3.5.7.9_a1.1_p1.1_s1_e3_c120_se0.5_nsw",
			"ir_r1_k3.5.7.9_s2_e6_c200_se0.5_nsw ir_r3_k3.5.7.9_p1.1_s1_e6_c200_se0.5_nsw"}}
	}
	for _, v := range []struct {
		size string
		net  Mobile
	}{{"s", small}, {"m", medium(1, 1)}, {"l", medium(1.3, 1)}, {"xl", medium(1.6, 1.2)}} {
		for _, tf := range []string{"", "tf_"} {
			if tf+v.size != "tf_xl" {
				list = append(list, mobileNet{tf + "mixnet_" + v.size, "MixNet-" + strings.ToUpper(v.size), 224, 256, v.net})
			}
		}
	}
	return list
}

// tinyNets are EfficientNets of fewer channels and pixels.
func tinyNets() (list []mobileNet) {
	for _, v := range []struct {
		name         string
		width, depth float64
		size, resize int
	}{
		{"a", 1, 1.2, 192, 219}, {"b", .75, 1.1, 188, 214}, {"c", .54, .85, 184, 210}, {"d", .54, .695, 152, 173},
		{"e", .51, .6, 106, 121},
	} {
		list = append(list, mobileNet{"tinynet_" + v.name, "TinyNet-" + strings.ToUpper(v.name), v.size, v.resize,
			Mobile{Width: v.width, Depth: []float64{v.depth}, RoundDepth: true, Stem: 32, FixStem: true, Last: 1280,
				Act: (*nn.Builder).SiLU, Stages: []string{
					"ds_r1_k3_s1_e1_c16_se0.25", "ir_r2_k3_s2_e6_c24_se0.25", "ir_r2_k5_s2_e6_c40_se0.25",
					"ir_r3_k3_s2_e6_c80_se0.25", "ir_r3_k5_s1_e6_c112_se0.25", "ir_r4_k5_s2_e6_c192_se0.25",
					"ir_r1_k3_s1_e6_c320_se0.25"}}})
	}
	return list
}

// efficientRWs are Ross Wightman's EfficientNets V2.
func efficientRWs() []mobileNet {
	net := func(first, last string, features, width float64, depth ...float64) Mobile {
		return Mobile{Width: width, Depth: depth, Stem: 24, Last: divisible(features * width), Act: (*nn.Builder).SiLU,
			Stages: []string{first, "er_r4_k3_s2_e4_c48", "er_r4_k3_s2_e4_c64", "ir_r6_k3_s2_e4_c128_se0.25",
				"ir_r9_k3_s1_e6_c160_se0.25", last}}
	}
	const first, last = "er_r2_k3_s1_e1_c24", "ir_r15_k3_s2_e6_c272_se0.25"
	tiny := net("cn_r2_k3_s1_e1_c24_skip", "ir_r15_k3_s2_e6_c256_se0.25", 1280, .8, .9)
	context := tiny
	context.GlobalContext = true
	return []mobileNet{
		{"efficientnetv2_rw_t", "EfficientNetV2-T", 224, 224, tiny},
		{"gc_efficientnetv2_rw_t", "EfficientNetV2-T with global context", 224, 224, context},
		{"efficientnetv2_rw_s", "EfficientNetV2-S by Wightman", 288, 288, net(first, last, 1792, 1, 1)},
		{"efficientnetv2_rw_m", "EfficientNetV2-M by Wightman", 320, 320,
			net(first, last, 1792, 1.2, 1.2, 1.2, 1.2, 1.2, 1.6, 1.6)},
	}
}

// efficientX is an EfficientNet-X-B5 of a width, with an expansion of the stages before the last three.
func efficientX(width float64, expansion int) Mobile {
	o := Mobile{Width: width, Depth: []float64{2.2}, Stem: 32, Act: (*nn.Builder).SiLU, Stages: []string{
		"ds_r1_k3_s1_e1_c16_se0.25_d1", "er_r2_k3_s2_e%d_c24_se0.25_nre", "er_r2_k5_s2_e%d_c40_se0.25_nre",
		"ir_r3_k3_s2_e%d_c80_se0.25", "ir_r3_k5_s1_e6_c112_se0.25", "ir_r4_k5_s2_e6_c192_se0.25",
		"ir_r1_k3_s1_e6_c320_se0.25"}}
	for i := range o.Stages[1:4] {
		o.Stages[1+i] = fmt.Sprintf(o.Stages[1+i], expansion)
	}
	o.Last = o.channels(1280 * width)
	return o
}

// semNASNet is MNASNet-A1 of a width.
func semNASNet(width float64) Mobile {
	return Mobile{Width: width, Stem: 32, Last: 1280, Stages: []string{
		"ds_r1_k3_s1_e1_c16_noskip", "ir_r2_k3_s2_e6_c24", "ir_r3_k5_s2_e3_c40_se0.25", "ir_r4_k3_s2_e6_c80",
		"ir_r2_k3_s1_e6_c112_se0.25", "ir_r3_k5_s2_e6_c160_se0.25", "ir_r1_k3_s1_e6_c320"}}
}
