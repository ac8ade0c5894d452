package zoo

import (
	"strings"

	"onlinerna/nn"
)

func init() {
	const large = 6 // DownExpand
	for _, v := range []struct {
		name string
		net  LowFormer
		size int
	}{
		{"nano", LowFormer{Channels: [5]int{12, 24, 48, 96, 192}, Blocks: [5]int{0, 1, 1, 1, 2}}, 224},
		{"t0", LowFormer{Channels: [5]int{12, 24, 48, 96, 192}, Blocks: [5]int{0, 1, 1, 2, 3}}, 224},
		{"s0", LowFormer{Channels: [5]int{14, 28, 56, 112, 224}, Blocks: [5]int{0, 1, 1, 2, 3}}, 224},
		{"b3", LowFormer{Channels: [5]int{32, 64, 128, 256, 512}, Blocks: [5]int{1, 2, 3, 6, 6}, StemExpand: 4,
			DownExpand: large}, 224},
		{"b0_bfrobust", LowFormer{Channels: [5]int{16, 32, 64, 128, 256}, Blocks: [5]int{0, 1, 1, 3, 4}, Norms: 3}, 224},
		{"b1_bfrobust", LowFormer{Channels: [5]int{16, 32, 64, 128, 256}, Blocks: [5]int{0, 1, 1, 5, 5}, Norms: 3,
			DownExpand: large}, 224},
		{"b2_bfrobust", LowFormer{Channels: [5]int{20, 40, 80, 160, 320}, Blocks: [5]int{0, 1, 1, 6, 6}, Norms: 3,
			Head: [2]int{2304, 2560}, DownExpand: large}, 224},
		{"b1_dwnorm", LowFormer{Channels: [5]int{16, 32, 64, 128, 256}, Blocks: [5]int{0, 1, 1, 5, 5}, Norms: 2,
			DownExpand: large}, 256},
		{"b2pt5_dwnorm", LowFormer{Channels: [5]int{24, 48, 96, 192, 384}, Blocks: [5]int{0, 1, 1, 6, 6}, Norms: 2,
			Head: [2]int{2304, 2560}, DownExpand: large}, 256},
	} {
		v.net.CPU, v.net.Dropout = true, .1
		size, kind, _ := strings.Cut(v.name, "_")
		a := nn.Architecture{
			Name:    "cpubone_" + v.name,
			Family:  "lowformer",
			Summary: "CPUBone-" + strings.ToUpper(strings.Replace(size, "pt", ".", 1)) + ", with timm's names",
			Reference: "Nottebaum et al., CPUBone: efficient vision backbone design for devices with low parallelization " +
				"capabilities, 2026",
			Size:          v.size,
			MinSize:       32,
			Resize:        int(float64(v.size) / .95),
			Interpolation: bicubic,
			Block:         lowFormerBlock,
			Init:          torchInit,
			Build:         v.net.Build,
		}
		switch kind {
		case "bfrobust":
			a.Summary = strings.Replace(a.Summary, ",", " for bfloat16,", 1)
		case "dwnorm":
			a.Summary = strings.Replace(a.Summary, ",", " with normalised depthwise convolutions,", 1)
		}
		if v.name == "b2_bfrobust" {
			a.DropPath = .1
		}
		imageNet(a)
	}
}
