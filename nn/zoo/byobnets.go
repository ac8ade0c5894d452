package zoo

import (
	"fmt"
	"math"
	"strings"

	"onlinerna/nn"
)

func init() {
	gerNets()
	smallResNets()
	regNetZs()
	clipResNets()
}

// of completes the architecture of the net.
func (o ByobNet) of(a nn.Architecture) nn.Architecture {
	a.Summary += ", as timm's"
	a.Block, a.Init, a.Build = `^(stem|stages\.\d+\.\d+)\.`, byobNetInit, o.Build
	return a
}

// bottles are stages of bottlenecks.
func bottles(ratio float64, group int, blocks, out [4]int) (list []ByobStage) {
	for i, n := range blocks {
		list = append(list, ByobStage{Kind: "bottle", Blocks: n, Out: out[i], Stride: 2, Group: group, Ratio: ratio})
	}
	list[0].Stride = 1
	return list
}

func gerNets() {
	for _, v := range []struct {
		name, letter    string
		size, stem, end int
		blocks, out     [5]int
	}{
		{"s", "S", 224, 13, 1920, [5]int{1, 3, 7, 2, 1}, [5]int{48, 48, 384, 560, 256}},
		{"m", "M", 224, 32, 2560, [5]int{1, 2, 6, 4, 1}, [5]int{128, 192, 640, 640, 640}},
		{"l", "L", 256, 32, 2560, [5]int{1, 2, 6, 5, 4}, [5]int{128, 192, 640, 640, 640}},
	} {
		o := ByobNet{Stem: []int{v.stem}, Last: v.end, Shortcut: "conv1x1"}
		for i, n := range v.blocks {
			s := ByobStage{Kind: "bottle", Blocks: n, Out: v.out[i], Stride: 2, Group: 1, Ratio: 3}
			switch i {
			case 0, 1:
				s.Kind, s.Group, s.Ratio = "basic", 0, 1
			case 2:
				s.Group, s.Ratio = 0, .25
			case 4:
				s.Stride = 1
			}
			o.Stages = append(o.Stages, s)
		}
		imageNet(o.of(nn.Architecture{
			Name:      "gernet_" + v.name,
			Family:    "gernet",
			Summary:   "GENet-" + v.letter,
			Reference: "Lin et al., Neural architecture design for GPU-efficient networks, 2020",
			Size:      v.size,
			Resize:    v.size * 8 / 7,
		}))
	}
}

// smallResNets are timm's own ResNets.
func smallResNets() {
	tiered := []int{24, 32, 64}
	resNeXt := ByobNet{Stem: tiered, StemPool: "maxpool", SiLU: true,
		Stages: bottles(.25, 32, [4]int{2, 2, 2, 2}, [4]int{256, 512, 1024, 2048})}
	resNet := ByobNet{Stem: tiered, SiLU: true, Last: 1280,
		Stages: bottles(.25, 0, [4]int{2, 3, 3, 2}, [4]int{256, 512, 1536, 1536})}
	bare, deep, wide := resNet, resNeXt, resNet
	bare.Last = 0
	deep.Stages = bottles(.25, 32, [4]int{3, 4, 6, 3}, [4]int{256, 512, 1024, 2048})
	wide = ByobNet{Stem: tiered, Stages: bottles(.25, 0, [4]int{3, 4, 6, 3}, [4]int{256, 512, 1024, 2048})}
	quad := ByobNet{Stem: []int{16, 32, 64, 128}, StemPlain: 2, SiLU: true, Last: 2048,
		Stages: bottles(.25, 32, [4]int{2, 4, 6, 4}, [4]int{256, 512, 1536, 1536})}
	quad.Stages[3].Group, quad.Stages[3].Ratio = 1, 1
	edge := quad
	edge.StemPlain, edge.Extra = 0, true
	edge.Stages = append([]ByobStage{{Kind: "edge", Blocks: 1, Out: 256, Stride: 1, Ratio: 1}}, quad.Stages[1:]...)
	for _, v := range []struct {
		name, summary, attention string
		net                      ByobNet
	}{
		{"resnext26ts", "ResNeXt-26-TS", "", resNeXt},
		{"seresnext26ts", "SE-ResNeXt-26-TS", "se", resNeXt},
		{"gcresnext26ts", "GC-ResNeXt-26-TS", "gca", resNeXt},
		{"eca_resnext26ts", "ECA-ResNeXt-26-TS", "eca", resNeXt},
		{"resnet32ts", "ResNet-32-TS", "", bare},
		{"resnet33ts", "ResNet-33-TS", "", resNet},
		{"seresnet33ts", "SE-ResNet-33-TS", "se", resNet},
		{"gcresnet33ts", "GC-ResNet-33-TS", "gca", resNet},
		{"eca_resnet33ts", "ECA-ResNet-33-TS", "eca", resNet},
		{"gcresnet50t", "GC-ResNet-50-T", "gca", wide},
		{"gcresnext50ts", "GC-ResNeXt-50-TS", "gca", deep},
		{"resnet51q", "ResNet-51-Q", "", quad},
		{"resnet61q", "ResNet-61-Q", "", edge},
	} {
		v.net.Shortcut, v.net.Attention = "conv1x1", v.attention
		a := v.net.of(nn.Architecture{
			Name:          v.name,
			Family:        "resnet",
			Summary:       v.summary,
			Reference:     "Wightman et al., ResNet strikes back: an improved training procedure in timm, 2021",
			Size:          256,
			Resize:        284,
			Interpolation: bicubic,
		})
		if v.name == "resnet51q" {
			a.Resize, a.Interpolation = 292, ""
		}
		imageNet(a)
	}
}

func regNetZs() {
	for _, v := range []struct {
		name         string
		size, resize int
		stem         []int
		group, last  int
		ratio        float64
		blocks, out  [4]int
	}{
		{"b16", 224, 238, []int{32}, 16, 1536, 3, [4]int{2, 6, 12, 2}, [4]int{48, 96, 192, 288}},
		{"c16", 256, 272, []int{32}, 16, 1536, 4, [4]int{2, 6, 12, 2}, [4]int{48, 96, 192, 288}},
		{"d32", 256, 269, []int{24, 32, 64}, 32, 1792, 4, [4]int{3, 6, 12, 3}, [4]int{64, 128, 256, 384}},
		{"d8", 256, 272, []int{24, 32, 64}, 8, 1792, 4, [4]int{3, 6, 12, 3}, [4]int{64, 128, 256, 384}},
		{"e8", 256, 272, []int{24, 32, 64}, 8, 2048, 4, [4]int{3, 8, 16, 3}, [4]int{96, 192, 384, 512}},
	} {
		o := ByobNet{Stem: v.stem, Stages: bottles(v.ratio, v.group, v.blocks, v.out), Last: v.last, SiLU: true,
			Attention: "se", Excite: .25, BottleIn: true, Linear: true}
		if len(v.stem) == 1 {
			o.Stages[0].Stride = 2
		}
		a := nn.Architecture{
			Name:          "regnetz_" + v.name,
			Family:        "regnet",
			Summary:       "RegNetZ-" + strings.ToUpper(v.name),
			Reference:     "Dollár, Singh, Girshick, Fast and accurate model scaling, 2021",
			Size:          v.size,
			Resize:        v.resize,
			Interpolation: bicubic,
			Mean:          half,
			Std:           half,
		}
		imageNet(o.of(a))
		if v.name == "c16" || v.name == "d8" {
			if o.EvoNorm = 16; v.name == "d8" {
				o.Stem = []int{64, 64, 64}
			}
			a.Name, a.Summary, a.Resize, a.Reference = a.Name+"_evos", a.Summary+" with evolved layers", 269, evoReference
			imageNet(o.of(a))
		}
	}
}

// clipResNets are the image towers of OpenAI's CLIP.
func clipResNets() {
	for _, v := range []struct {
		name, summary string
		size          int
		width         float64
		blocks        [4]int
	}{
		{"50", "50", 224, 1, [4]int{3, 4, 6, 3}},
		{"101", "101", 224, 1, [4]int{3, 4, 23, 3}},
		{"50x4", "50x4", 288, 1.25, [4]int{4, 6, 10, 6}},
		{"50x16", "50x16", 384, 1.5, [4]int{6, 8, 18, 8}},
		{"50x64", "50x64", 448, 2, [4]int{3, 15, 36, 10}},
	} {
		wide := func(n float64) int { return int(math.RoundToEven(n * v.width)) }
		o := ByobNet{Stem: []int{wide(32), wide(32), wide(64)}, StemPool: "avg2", Shortcut: "avg", Pool: true,
			Stages: bottles(.25, 0, v.blocks, [4]int{wide(256), wide(512), wide(1024), wide(2048)})}
		for _, gap := range []bool{false, true} {
			a := nn.Architecture{
				Name:          "resnet" + v.name + "_clip",
				Family:        "resnet",
				Summary:       fmt.Sprintf("ResNet-%s of CLIP, attention in place of the mean", v.summary),
				Reference:     "Radford et al., Learning transferable visual models from natural language supervision, 2021",
				Size:          v.size,
				Resize:        v.size * 10 / 9,
				Interpolation: bicubic,
				Mean:          clipMean,
				Std:           clipStd,
			}
			if o.AttentionPool = !gap; gap {
				a.Name, a.Summary = a.Name+"_gap", fmt.Sprintf("ResNet-%s of CLIP", v.summary)
			} else {
				a.Positions = nn.Positions{Name: "head.pos_embed", First: 1}
			}
			imageNet(o.of(a))
		}
	}
}
