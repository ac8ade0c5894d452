package zoo

import (
	"fmt"
	"strings"

	"onlinerna/nn"
)

const prunedReference = "Aflalo et al., Knapsack pruning with inner distillation, 2020"

// init registers nets of which pruning left some channels. They start as PyTorch's layers do, which timm replaces them
// by.
func init() {
	share := func(a *nn.Architecture) {
		a.Family, a.Reference, a.Interpolation = "efficientnet", prunedReference, bicubic
		a.SamePadding, a.BatchNormEps = true, .001
		a.Mean, a.Std = half, half
		a.Init = torchInit
	}
	mobile(share, mobileNet{"efficientnet_b1_pruned", "EfficientNet-B1, pruned", 240, 272, prunedEfficientNet(1, 1280,
		[6]int{3, 3, 4, 4, 5, 2}, [6]int{12, 35, 74, 67, 192, 320}, 27, 48, 62, 48, 70, 61, 51, 175, 188, 137, 164, 399, 201,
		160, 213, 637, 806, 798, 891, 990, 1152, 1912)},
		mobileNet{"efficientnet_b2_pruned", "EfficientNet-B2, pruned", 260, 292, prunedEfficientNet(1.1, 1408,
			[6]int{3, 3, 4, 4, 5, 2}, [6]int{17, 42, 85, 116, 208, 352}, 0, 54, 69, 61, 86, 72, 98, 245, 274, 254, 292, 502, 315,
			354, 443, 719, 1148, 1160, 1182, 1228, 1248, 2112)},
		mobileNet{"efficientnet_b3_pruned", "EfficientNet-B3, pruned", 300, 331, prunedEfficientNet(1.2, 1536,
			[6]int{3, 3, 5, 5, 6, 2}, [6]int{12, 40, 93, 120, 232, 384}, 33, 27, 49, 48, 83, 90, 85, 215, 261, 219, 254, 236,
			480, 235, 217, 226, 340, 802, 1030, 924, 1016, 1130, 1266, 1392, 2301)})
	for _, v := range []struct {
		layers string
		inner  [][2]int
		outer  [4]int
	}{
		{"50", [][2]int{{47, 18}, {52, 22}, {64, 35}, {85, 37}, {107, 80}, {120, 85}, {125, 87}, {198, 126}, {255, 232},
			{256, 233}, {253, 235}, {256, 225}, {256, 239}, {492, 237}, {512, 500}, {512, 490}}, [4]int{19, 171, 818, 2022}},
		{"101", [][2]int{{45, 25}, {53, 20}, {60, 27}, {81, 24}, {93, 49}, {102, 54}, {122, 78}, {101, 25}, {239, 160},
			{234, 156}, {250, 176}, {253, 191}, {251, 175}, {230, 128}, {244, 154}, {244, 159}, {238, 97}, {244, 149},
			{253, 181}, {245, 119}, {255, 216}, {256, 201}, {253, 149}, {254, 141}, {256, 190}, {256, 217}, {255, 156}, {256, 155},
			{256, 232}, {256, 214}, {499, 289}, {512, 512}, {512, 502}}, [4]int{26, 142, 278, 2042}},
	} {
		net, _ := timmResNet("ecaresnet" + v.layers + "d")
		net.Inner, net.Outer = v.inner, v.outer
		imageNet(nn.Architecture{
			Name:          "ecaresnet" + v.layers + "d_pruned",
			Family:        "resnet",
			Summary:       "ECA-ResNet-" + v.layers + "-D, pruned, as timm's",
			Reference:     prunedReference,
			Resize:        256,
			Interpolation: bicubic,
			Block:         deepStem,
			Init:          torchInit,
			Build:         net.Build,
		})
	}
}

// prunedEfficientNet is an EfficientNet of a width, pruned behind the first stage: out are the channels of the stages'
// results, wide those between the convolutions of each block, and between, unless it is 0, those of the excitation in
// block 14.
func prunedEfficientNet(width float64, last int, blocks, out [6]int, between int, wide ...int) Mobile {
	net := Mobile{Width: width, Stem: 32, Last: last, Act: (*nn.Builder).SiLU,
		Stages: []string{"ds_r2_k3_s1_e1_c16_se0.25"}}
	at := 0
	for i, stage := range []string{"_k3_s2_e6_c24", "_k5_s2_e6_c40", "_k3_s2_e6_c80", "_k5_s1_e6_c112", "_k5_s2_e6_c192",
		"_k3_s1_e6_c320"} {
		var list []string
		for range blocks[i] {
			block := fmt.Sprintf("ir%s_se0.25_w%d_o%d", stage, wide[at], out[i])
			if at == 14 && between > 0 {
				block += fmt.Sprintf("_b%d", between)
			}
			list = append(list, block)
			at++
		}
		net.Stages = append(net.Stages, strings.Join(list, " "))
	}
	return net
}
