package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, percent := range []int{50, 100, 130} {
		imageNet(nn.Architecture{
			Name:          fmt.Sprintf("ghostnet_%03d", percent),
			Family:        "ghostnet",
			Summary:       fmt.Sprintf("GhostNet, width %g, as timm's", float64(percent)/100),
			Reference:     "Han et al., GhostNet: more features from cheap operations, 2020",
			Dropout:       .2,
			Resize:        256,
			Interpolation: bicubic,
			Block:         timmBlock,
			Init:          torchInit,
			Build:         GhostNet{Width: float64(percent) / 100}.Build,
		})
	}
	for _, percent := range []int{50, 58, 80, 100, 111, 130, 150, 200} {
		imageNet(nn.Architecture{
			Name:          fmt.Sprintf("repghostnet_%03d", percent),
			Family:        "ghostnet",
			Summary:       fmt.Sprintf("RepGhostNet with the branches of training, width %g, as timm's", float64(percent)/100),
			Reference:     "Chen et al., RepGhost: a hardware-efficient ghost module via re-parameterization, 2022",
			Dropout:       .2,
			Resize:        256,
			Interpolation: bicubic,
			Block:         timmBlock,
			Init:          torchInit,
			Build:         GhostNet{Width: float64(percent) / 100, Stages: repGhostNet, Rep: true}.Build,
		})
	}
}

// GhostNet are the options of a net whose convolutions make half of their channels from the other half, each from one.
type GhostNet struct {
	Width  float64        // factor of the channels, which are rounded to multiples of 4; 0 means 1; timm's width
	Stages [][]GhostBlock // nil means the paper's; timm's cfgs

	// Rep adds the depthwise convolution's channels to those that it takes, in place of joining them: timm's RepGhostNet.
	Rep bool
}

// GhostBlock are the options of a block: timm's k, t, c, s and se_ratio.
type GhostBlock struct {
	Kernel    int // of the depthwise convolutions of a stride of 2, odd
	Wide, Out int // channels between and of the result, before Width
	Stride    int
	Excite    float64 // channels of squeeze-and-excitation by those between; 0: there is none
}

var ghostNet = [][]GhostBlock{
	{{3, 16, 16, 1, 0}}, {{3, 48, 24, 2, 0}}, {{3, 72, 24, 1, 0}}, {{5, 72, 40, 2, .25}}, {{5, 120, 40, 1, .25}},
	{{3, 240, 80, 2, 0}},
	{{3, 200, 80, 1, 0}, {3, 184, 80, 1, 0}, {3, 184, 80, 1, 0}, {3, 480, 112, 1, .25}, {3, 672, 112, 1, .25}},
	{{5, 672, 160, 2, .25}},
	{{5, 960, 160, 1, 0}, {5, 960, 160, 1, .25}, {5, 960, 160, 1, 0}, {5, 960, 160, 1, .25}},
}

var repGhostNet = [][]GhostBlock{
	{{3, 8, 16, 1, 0}}, {{3, 24, 24, 2, 0}}, {{3, 36, 24, 1, 0}}, {{5, 36, 40, 2, .25}}, {{5, 60, 40, 1, .25}},
	{{3, 120, 80, 2, 0}},
	{{3, 100, 80, 1, 0}, {3, 120, 80, 1, 0}, {3, 120, 80, 1, 0}, {3, 240, 112, 1, .25}, {3, 336, 112, 1, .25}},
	{{5, 336, 160, 2, .25}},
	{{5, 480, 160, 1, 0}, {5, 480, 160, 1, .25}, {5, 480, 160, 1, 0}, {5, 480, 160, 1, .25}},
}

// check reports whether the options are right.
func (o GhostNet) check(b layer) bool {
	b.options("GhostNet", o).least(0, "Width").that(o.Stages == nil || len(o.Stages) > 0, "Stages", "nil or have a stage")
	for i, stage := range o.Stages {
		b.options("GhostNet", o).that(len(stage) > 0, "Stages", fmt.Sprintf("stages of blocks, but stage %d has none", i))
		for j, s := range stage {
			b.options(fmt.Sprintf("GhostNet.Stages[%d][%d]", i, j), s).least(1, "Kernel", "Wide", "Out", "Stride").
				least(0, "Excite").that(s.Kernel%2 == 1, "Kernel", "odd").that(s.Stride <= 2, "Stride", "1 or 2").
				that(s.Excite <= 1, "Excite", "at most 1")
		}
	}
	return b.Err() == nil
}

// Build adds the layers to b.
func (o GhostNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !o.check(b) {
		return nil
	}
	stages, wide := o.Stages, 0
	if stages == nil {
		stages = ghostNet
	}
	channels := func(n int) int { return divisibleBy(float64(n)*cmp.Or(o.Width, 1), 4) }
	in := channels(16)
	x = b.convNorm([2]string{"conv_stem", "bn1"}, x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, (*nn.Builder).ReLU)
	for i, stage := range stages {
		for j, s := range stage {
			if wide = channels(s.Wide); o.Rep {
				wide = channels(2 * s.Wide)
			}
			s.Wide, s.Out = channels(s.Wide), channels(s.Out)
			x = o.block(b, fmt.Sprintf("blocks.%d.%d", i, j), x, in, s)
			in = s.Out
		}
	}
	end := fmt.Sprintf("blocks.%d.0", len(stages))
	x = b.convNorm([2]string{end + ".conv", end + ".bn1"}, x, nn.Conv{Filters: wide, Kernel: 1}, (*nn.Builder).ReLU)
	x = b.Conv("conv_head", b.pixel("pool", x), nn.Conv{Filters: 1280, Kernel: 1, Bias: true})
	x = b.Dropout("dropout", b.Flatten("flatten", b.ReLU("act2", x)), b.Config().Dropout)
	return b.Linear("classifier", x, b.Config().Classes)
}

// block adds the result of two ghost modules to x, which is convolved where shapes differ.
func (o GhostNet) block(b layer, name string, x *G.Node, in int, s GhostBlock) *G.Node {
	deep := nn.Conv{Filters: s.Wide, Kernel: s.Kernel, Stride: s.Stride, Groups: s.Wide}
	y := o.ghost(b, name+".ghost1", x, s.Wide, (*nn.Builder).ReLU)
	if s.Stride > 1 {
		y = b.convNorm([2]string{name + ".conv_dw", name + ".bn_dw"}, y, deep, nil)
	}
	if s.Excite > 0 {
		names := [2]string{name + ".se.conv_reduce", name + ".se.conv_expand"}
		outputs := divisibleBy(float64(s.Wide)*s.Excite, 4)
		y = b.excite(names, y, outputs, (*nn.Builder).ReLU, (*nn.Builder).HardSigmoid)
	}
	y = o.ghost(b, name+".ghost2", y, s.Out, nil)
	if s.Stride > 1 || in != s.Out {
		deep.Filters, deep.Groups = in, in
		x = b.convNorm([2]string{name + ".shortcut.0", name + ".shortcut.1"}, x, deep, nil)
		x = b.convNorm([2]string{name + ".shortcut.2", name + ".shortcut.3"}, x, nn.Conv{Filters: s.Out, Kernel: 1}, nil)
	}
	return b.Add(name+".add", y, x)
}

// ghost is a 1×1 convolution for half of the channels, and a depthwise one that makes the others from them. With Rep both
// have all channels, and are added.
func (o GhostNet) ghost(b layer, name string, x *G.Node, channels int, act nn.Activation) *G.Node {
	primary, cheap := name+".primary_conv.", name+".cheap_operation."
	if o.Rep {
		one := b.convNorm([2]string{primary + "0", primary + "1"}, x, nn.Conv{Filters: channels, Kernel: 1}, act)
		same := b.BatchNorm(name+".fusion_bn.0", one, 1)
		deep := nn.Conv{Filters: channels, Kernel: 3, Groups: channels}
		two := b.Add(name+".add", b.convNorm([2]string{cheap + "0", cheap + "1"}, one, deep, nil), same)
		if act == nil {
			return two
		}
		return act(b.Builder, name+".relu", two)
	}
	half := channels / 2
	one := b.convNorm([2]string{primary + "0", primary + "1"}, x, nn.Conv{Filters: half, Kernel: 1}, act)
	deep := nn.Conv{Filters: half, Kernel: 3, Groups: half}
	two := b.convNorm([2]string{cheap + "0", cheap + "1"}, one, deep, act)
	return b.Concat(name+".concat", 1, one, two)
}
