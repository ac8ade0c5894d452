package zoo_test

import (
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/zoo"
)

// attends is a ByobNet whose block has attention.
func attends(a zoo.ByobAttention) zoo.ByobNet {
	a.Blocks = []int{0}
	return byob(func(_ *zoo.ByobNet, s *zoo.ByobStage) { s.Attention = a })
}

func init() {
	one, eights := [4]int{1, 1, 1, 1}, [4]int{8, 8, 8, 8}
	small = append(small, []struct {
		o    buildable
		size int
	}{
		{zoo.MambaOut{Blocks: one, Channels: eights, RW: true, Expansion: 2, Share: 1.5}, 32},
		{zoo.ConvMixer{Width: 8, Depth: 1, Kernel: 3, Patch: 5}, 5},
		{zoo.TResNet{Blocks: one, Width: .125}, 32},
		{zoo.SelecSLS{Stem: 8, Head: eights, Blocks: []zoo.SelecSLSBlock{{Inner: 8, Out: 8, Stride: 2}}}, 1},
		{zoo.RegNet{Depth: 6, Start: 16, Slope: 12.5, Factor: 2.2, GroupWidth: 8, Timm: true, PreAct: true,
			AvgDown: true}, 1},
		{zoo.RDNet{Stem: 16, Stages: []zoo.RDNetStage{{Blocks: 1, Growth: 8}, {Blocks: 1, Growth: 8, Halve: true}}}, 8},
		{zoo.CSPNeXt{Blocks: one, Width: 8}, 1},
		{zoo.DenseNet{Growth: 4, Blocks: []int{1, 1}, Stem: 8, Deep: true}, 5},
		{zoo.NASNet{Stem: 4, Width: 4, Blocks: [3]int{1, 1, 1}}, 32},
		{zoo.PNASNet{Stem: 4, Width: 4, Blocks: [3]int{1, 2, 1}}, 32},
		{nn.ResNet{Blocks: one, ECA: true, Inner: [][2]int{{3, 4}, {5, 6}, {7, 8}, {9, 10}}, Outer: [4]int{5, 6, 7, 8}}, 1},
		{zoo.ResNetV2{Blocks: one, EvoNorm: 4}, 1},
		{byob(func(o *zoo.ByobNet, _ *zoo.ByobStage) { o.EvoNorm = 4 }), 1},
		{attends(zoo.ByobAttention{Kind: "halo", Block: 16}), 0},
	}...)
}

// Options of the nets with attention in blocks and of those with few relatives that do not fit are refused by name.
func TestByoOptions(t *testing.T) {
	four := [4]int{1, 1, 1, 1}
	for _, c := range []struct {
		o    buildable
		want string
	}{
		{attends(zoo.ByobAttention{Kind: "swin"}),
			`zoo.ByobNet.Stages[0].Attention.Kind is "swin": must be "bottleneck", "halo" or "lambda"`},
		{attends(zoo.ByobAttention{Kind: "halo"}),
			`zoo.ByobNet.Stages[0].Attention.Block is 0: must be above 0 with "halo" alone`},
		{attends(zoo.ByobAttention{Kind: "bottleneck", Window: 3}),
			`zoo.ByobNet.Stages[0].Attention.Window is 3: must be 0, or odd and below 1000 with "lambda"`},
		{attends(zoo.ByobAttention{Kind: "halo", Block: 7}), "layer stages.0.0.self_attn: images of 32×32 pixels: " +
			"height and width must be multiples of 7"},
		{attends(zoo.ByobAttention{Kind: "bottleneck", Heads: 3}),
			"layer stages.0.0.self_attn: 8 channels are not divisible by 3 heads"},
		{byob(func(o *zoo.ByobNet, _ *zoo.ByobStage) { o.EvoNorm = 3 }),
			"zoo.ByobNet.EvoNorm is 3: must be a divisor of all channels"},
		{zoo.ResNetV2{Blocks: four, EvoNorm: 3}, "layer stages.0.blocks.0.norm1: 64 channels are not divisible by 3 groups"},
		{zoo.MambaOut{Blocks: four, Channels: [4]int{8, 8, 8, 8}, Share: 3},
			"zoo.MambaOut.Share is 3: must be below Expansion, by a channel at least"},
		{zoo.MambaOut{Blocks: four, Channels: [4]int{2, 2, 2, 2}, Expansion: 1.2, Share: 1.1},
			"zoo.MambaOut.Share is 1.1: must be below Expansion, by a channel at least"},
		{zoo.RDNet{Stem: 1, Stages: []zoo.RDNetStage{{Blocks: 1, Growth: 1}}}, "zoo.RDNet.Stem is 1: must be at least 2"},
		{zoo.ConvMixer{Width: 8, Depth: 1, Kernel: 4, Patch: 4}, "zoo.ConvMixer.Kernel is 4: must be odd and below 1000"},
		{zoo.TResNet{Blocks: four, Width: .01}, "zoo.TResNet.Width is 0.01: must be 0, or such that there are channels"},
		{zoo.SelecSLS{Stem: 8, Head: four, Blocks: []zoo.SelecSLSBlock{{Inner: 8, Out: 8, Stride: 1}}},
			"zoo.SelecSLS.Blocks is [{8 8 1}]: must be some, of which the first has the stride 2"},
		{zoo.RegNet{Depth: 6, Start: 16, Slope: 12.5, Factor: 2.2, GroupWidth: 8, PreAct: true},
			"zoo.RegNet.PreAct is true: must be false with Linear or without Timm"},
		{zoo.DenseNet{Growth: 4, Blocks: []int{1}, Stem: 8, Small: true, Deep: true},
			"zoo.DenseNet.Deep is true: must be false with Small"},
		{zoo.NASNet{Stem: 8, Width: 6, Blocks: [3]int{1, 1, 1}}, "zoo.NASNet.Width is 6: must be divisible by 4"},
		{zoo.PNASNet{Stem: 8, Width: 8, Blocks: [3]int{1, 1, 1}},
			"zoo.PNASNet.Blocks is [1 1 1]: must be at least 2 in the second stage"},
		{zoo.Mobile{Stem: 8, Stages: []string{"ds_k3_c8_w4"}},
			`zoo.Mobile.Stages is [ds_k3_c8_w4]: must be blocks without a w, b, o or cc unless ir: "ds_k3_c8_w4" is none`},
		{nn.ResNet{Blocks: four, Outer: [4]int{1, 1, 1, 1}},
			"nn.ResNet.Outer is [1 1 1 1]: must be 0 without Inner"},
	} {
		fails(t, c.o, 64, c.want)
	}
	strided := attends(zoo.ByobAttention{Kind: "bottleneck"})
	strided.Stages[0].Stride = 2
	fails(t, strided, 66, "layer stages.0.0.self_attn: images of 33×33 pixels: height and width must be even: choose an "+
		"input size that is a multiple of 32")
}
