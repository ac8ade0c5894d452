package zoo

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for i, v := range []struct {
		width, depth, dropout float64
		size, resize          int
		interpolation         string
	}{
		{1, 1, .2, 224, 256, bicubic}, {1, 1.1, .2, 240, 255, ""}, {1.1, 1.2, .3, 288, 288, bicubic},
		{1.2, 1.4, .3, 300, 320, bicubic}, {1.4, 1.8, .4, 380, 384, bicubic}, {1.6, 2.2, .4, 456, 456, bicubic},
		{1.8, 2.6, .5, 528, 528, bicubic}, {2, 3.1, .5, 600, 600, bicubic},
	} {
		a := efficientNet(fmt.Sprintf("b%d", i), fmt.Sprintf("EfficientNet-B%d", i), v.size, v.dropout)
		a.Reference = "Tan, Le, EfficientNet: rethinking model scaling for convolutional neural networks, 2019"
		a.Resize, a.Interpolation = v.resize, v.interpolation
		a.Build = EfficientNet{Width: v.width, Depth: v.depth}.Build
		if i >= 5 {
			a.BatchNormEps, a.BatchNormMomentum = .001, .01
		}
		imageNet(a)
	}
	for _, v := range []struct {
		name    string
		stages  []MBConv
		size    int
		dropout float64
	}{
		{"S", efficientV2S, 384, .2}, {"M", efficientV2M, 480, .3},
	} {
		a := efficientNet("v2_"+string(v.name[0]+'a'-'A'), "EfficientNetV2-"+v.name, v.size, v.dropout)
		a.Reference = "Tan, Le, EfficientNetV2: smaller models and faster training, 2021"
		a.Build = EfficientNet{Stages: v.stages, Last: 1280}.Build
		a.BatchNormEps, a.Resize = .001, v.size
		imageNet(a)
	}
}

func efficientNet(name, summary string, size int, dropout float64) nn.Architecture {
	return nn.Architecture{Name: "efficientnet_" + name, Family: "efficientnet", Summary: summary, Size: size,
		Dropout: dropout, DropPath: .2, Block: `^(features\.\d+\.\d+)\.block\.`, Init: uniform(1)}
}

// EfficientNet are the options of a net of MBConv blocks.
type EfficientNet struct {
	Width, Depth float64  // factors of the channels and of the blocks of a stage; 0 means 1
	Stages       []MBConv // nil means those of EfficientNet-B0
	Last         int      // channels of the last convolution; 0 means four times those before it
}

// MBConv are the options of a stage.
type MBConv struct {
	Fused           bool // a convolution takes the place of the expansion and the depthwise one, without excitation
	Expansion       int
	Kernel, Stride  int
	In, Out, Blocks int
}

var (
	efficientB0 = []MBConv{
		{false, 1, 3, 1, 32, 16, 1}, {false, 6, 3, 2, 16, 24, 2}, {false, 6, 5, 2, 24, 40, 2}, {false, 6, 3, 2, 40, 80, 3},
		{false, 6, 5, 1, 80, 112, 3}, {false, 6, 5, 2, 112, 192, 4}, {false, 6, 3, 1, 192, 320, 1},
	}
	efficientV2S = []MBConv{
		{true, 1, 3, 1, 24, 24, 2}, {true, 4, 3, 2, 24, 48, 4}, {true, 4, 3, 2, 48, 64, 4}, {false, 4, 3, 2, 64, 128, 6},
		{false, 6, 3, 1, 128, 160, 9}, {false, 6, 3, 2, 160, 256, 15},
	}
	efficientV2M = []MBConv{
		{true, 1, 3, 1, 24, 24, 3}, {true, 4, 3, 2, 24, 48, 5}, {true, 4, 3, 2, 48, 80, 5}, {false, 4, 3, 2, 80, 160, 7},
		{false, 6, 3, 1, 160, 176, 14}, {false, 6, 3, 2, 176, 304, 18}, {false, 6, 3, 1, 304, 512, 5},
	}
)

// Build adds the layers to b.
func (o EfficientNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, stages := layer{builder}, o.Stages
	if stages == nil {
		stages = efficientB0
	}
	channels := func(n int) int { return divisible(float64(n) * cmp.Or(o.Width, 1)) }
	blocks := func(s MBConv) int { return int(math.Ceil(float64(s.Blocks) * cmp.Or(o.Depth, 1))) }
	all, done := 0, 0
	for _, s := range stages {
		all += blocks(s)
	}
	x = b.norm("features.0", x, nn.Conv{Filters: channels(stages[0].In), Kernel: 3, Stride: 2}, (*nn.Builder).SiLU)
	for i, s := range stages {
		n := blocks(s)
		s.In, s.Out = channels(s.In), channels(s.Out)
		for j := range n {
			name, drop := fmt.Sprintf("features.%d.%d", i+1, j), b.Config().DropPath*float64(done)/float64(all)
			if s.Fused {
				x = b.fusedMBConv(name, x, s, drop)
			} else {
				x = b.mbConv(name, x, s, drop)
			}
			s.In, s.Stride = s.Out, 1
			done++
		}
	}
	last := cmp.Or(o.Last, 4*channels(stages[len(stages)-1].Out))
	x = b.norm(fmt.Sprintf("features.%d", len(stages)+1), x, nn.Conv{Filters: last, Kernel: 1}, (*nn.Builder).SiLU)
	return b.Linear("classifier.1", b.pooled("classifier.0", x), b.Config().Classes)
}

func (b layer) mbConv(name string, x *G.Node, s MBConv, drop float64) *G.Node {
	y, wide, at := x, divisible(float64(s.In*s.Expansion)), 0
	next := func() string { at++; return fmt.Sprintf("%s.block.%d", name, at-1) }
	if wide != s.In {
		y = b.norm(next(), y, nn.Conv{Filters: wide, Kernel: 1}, (*nn.Builder).SiLU)
	}
	y = b.norm(next(), y, nn.Conv{Filters: wide, Kernel: s.Kernel, Stride: s.Stride, Groups: wide}, (*nn.Builder).SiLU)
	y = b.SqueezeExcite(next(), y, max(1, s.In/4), (*nn.Builder).SiLU, (*nn.Builder).Sigmoid)
	y = b.norm(next(), y, nn.Conv{Filters: s.Out, Kernel: 1}, nil)
	return b.connect(name, y, x, s, drop)
}

func (b layer) fusedMBConv(name string, x *G.Node, s MBConv, drop float64) *G.Node {
	wide := divisible(float64(s.In * s.Expansion))
	if wide == s.In {
		y := b.norm(name+".block.0", x, nn.Conv{Filters: s.Out, Kernel: s.Kernel, Stride: s.Stride}, (*nn.Builder).SiLU)
		return b.connect(name, y, x, s, drop)
	}
	y := b.norm(name+".block.0", x, nn.Conv{Filters: wide, Kernel: s.Kernel, Stride: s.Stride}, (*nn.Builder).SiLU)
	y = b.norm(name+".block.1", y, nn.Conv{Filters: s.Out, Kernel: 1}, nil)
	return b.connect(name, y, x, s, drop)
}

// connect adds x where the block keeps its shape.
func (b layer) connect(name string, y, x *G.Node, s MBConv, drop float64) *G.Node {
	if s.Stride != 1 || s.In != s.Out {
		return y
	}
	return b.residual(name, y, x, drop)
}
