package zoo

import (
	"slices"

	"onlinerna/nn"
)

// The attention of timm's nets.
var (
	byobBottleneck = ByobAttention{Kind: "bottleneck"}
	byobHalo       = ByobAttention{Kind: "halo", Block: 8, Border: 3}
	byobLambda     = ByobAttention{Kind: "lambda", Window: 9}
)

const (
	botReference    = "Srinivas et al., Bottleneck transformers for visual recognition, 2021"
	haloReference   = "Vaswani et al., Scaling local self-attention for parameter efficient visual backbones, 2021"
	lambdaReference = "Bello, LambdaNetworks: modeling long-range interactions without attention, 2021"
)

func init() {
	narrowHalo, relative := byobHalo, byobLambda
	narrowHalo.Border, relative.Window = 2, 0
	sixteen := func(o ByobAttention) ByobAttention { o.Query = 16; return o }
	four, wide := byobHalo, byobLambda
	four.Heads, wide.Window = 4, 13
	every := []int{0, 1}
	of := func(o ByobAttention, blocks ...int) ByobAttention { o.Blocks = blocks; return o }
	last := func(o ByobAttention) [4]ByobAttention { return [4]ByobAttention{2: of(o, 1), 3: of(o, every...)} }
	mixed := func(second, third, fourth ByobAttention) [4]ByobAttention {
		return [4]ByobAttention{1: of(second, 1, 3), 2: of(third, 1, 3, 5), 3: of(fourth, 1)}
	}
	deep := func(second, o ByobAttention) [4]ByobAttention {
		return [4]ByobAttention{1: of(second, 3), 2: of(o, 1, 3, 5), 3: of(o, 1)}
	}
	squeezed := func(o ByobAttention) [4]ByobAttention {
		return [4]ByobAttention{1: of(o, 2), 2: of(o, 2), 3: of(o, every...)}
	}
	of26, of50 := [4]int{2, 2, 2, 2}, [4]int{3, 4, 6, 3}
	tiered := ByobNet{Stem: []int{24, 32, 64}, Shortcut: "conv1x1"}
	pooled, silu := tiered, tiered
	pooled.StemPool, silu.SiLU = "maxpool", true
	both := pooled
	both.SiLU = true
	eca, se := both, silu
	eca.Attention, se.Attention, se.Last = "eca", "se", 1280
	large := [4]int{256, 512, 1024, 2048}
	stages33 := bottles(.25, 0, [4]int{2, 3, 3, 2}, [4]int{256, 512, 1024, 1536})
	stages33[3].Ratio = .333
	for _, v := range []struct {
		name, summary, reference string
		resize                   int
		net                      ByobNet
		stages                   []ByobStage
		attention                [4]ByobAttention
	}{
		{"botnet26t_256", "BoTNet-26-T", botReference, 269, pooled, bottles(.25, 0, of26, large), last(byobBottleneck)},
		{"eca_botnext26ts_256", "ECA-BoTNeXt-26-TS", botReference, 269, eca, bottles(.25, 16, of26, large),
			last(sixteen(byobBottleneck))},
		{"sebotnet33ts_256", "SE-BoTNet-33-TS", botReference, 272, se, stages33, squeezed(byobBottleneck)},
		{"halonet26t", "HaloNet-26-T", haloReference, 269, pooled, bottles(.25, 0, of26, large), last(narrowHalo)},
		{"eca_halonext26ts", "ECA-HaloNeXt-26-TS", haloReference, 272, eca, bottles(.25, 16, of26, large),
			last(sixteen(narrowHalo))},
		{"sehalonet33ts", "SE-HaloNet-33-TS", haloReference, 272, se, stages33, squeezed(byobHalo)},
		{"halonet50ts", "HaloNet-50-TS", haloReference, 272, both, bottles(.25, 0, of50, large), deep(four, byobHalo)},
		{"halo2botnet50ts_256", "BoTNet-50-TS with halos", haloReference, 269, silu, bottles(.25, 0, of50, large),
			mixed(byobHalo, byobHalo, byobBottleneck)},
		{"lambda_resnet26t", "Lambda-ResNet-26-T", lambdaReference, 272, pooled, bottles(.25, 0, of26, large),
			last(byobLambda)},
		{"lambda_resnet26rpt_256", "Lambda-ResNet-26-T with all distances", lambdaReference, 272, pooled,
			bottles(.25, 0, of26, large), last(relative)},
		{"lambda_resnet50ts", "Lambda-ResNet-50-TS", lambdaReference, 269, both, bottles(.25, 0, of50, large),
			deep(byobLambda, byobLambda)},
		{"lamhalobotnet50ts_256", "BoTNet-50-TS with lambdas and halos", lambdaReference, 269, silu,
			bottles(.25, 0, of50, large), mixed(wide, byobHalo, byobBottleneck)},
	} {
		byoaNet(v.net, v.stages, v.attention, nn.Architecture{
			Name:      v.name,
			Summary:   v.summary,
			Reference: v.reference,
			Size:      256,
			Resize:    v.resize,
		})
	}
	seven := ByobAttention{Kind: "halo", Block: 7, Border: 2, Ratio: .33}
	stages := bottles(3, 16, [4]int{2, 6, 12, 2}, [4]int{48, 96, 192, 288})
	stages[0].Stride = 2
	byoaNet(ByobNet{Stem: []int{32}, Last: 1536, SiLU: true, Attention: "se", Excite: .25, BottleIn: true, Linear: true},
		stages, [4]ByobAttention{2: of(seven, 3, 7, 11), 3: of(seven, every...)}, nn.Architecture{
			Name:      "haloregnetz_b",
			Summary:   "RegNetZ-B with halos",
			Reference: haloReference,
			Resize:    238,
			Mean:      half,
			Std:       half,
		})
}

// byoaNet registers a net whose stages have attention.
func byoaNet(net ByobNet, stages []ByobStage, attention [4]ByobAttention, a nn.Architecture) {
	net.Stages = slices.Clone(stages)
	for i, of := range attention {
		net.Stages[i].Attention = of
	}
	a.Family, a.Interpolation = "byoanet", bicubic
	imageNet(net.of(a))
}
