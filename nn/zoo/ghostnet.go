package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
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
	for _, v := range []struct{ version, percent int }{{2, 100}, {2, 130}, {2, 160}, {3, 100}} {
		a := nn.Architecture{
			Name:          fmt.Sprintf("ghostnetv%d_%03d", v.version, v.percent),
			Family:        "ghostnet",
			Summary:       fmt.Sprintf("GhostNetV%d, width %g, as timm's", v.version, float64(v.percent)/100),
			Reference:     "Tang et al., GhostNetV2: enhance cheap operation with long-range attention, 2022",
			MinSize:       33, // gates halve the last stage's images
			Dropout:       .2,
			Resize:        256,
			Interpolation: bicubic,
			Block:         timmBlock,
			Init:          torchInit,
			Build:         GhostNet{Width: float64(v.percent) / 100, Version: v.version}.Build,
		}
		if v.version == 3 {
			a.Summary = fmt.Sprintf("GhostNetV3 with the branches of training, width %g, as timm's", float64(v.percent)/100)
			a.Reference = "Liu et al., GhostNetV3: exploring the training strategies for compact models, 2024"
		}
		imageNet(a)
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

	// Version 2 multiplies the channels between, from the third block on, by gates of rows and columns; 3 has branches in
	// training, too; 0 means 1; timm's version.
	Version int
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
	b.options("GhostNet", o).least(0, "Width", "Version").that(o.Version <= 3, "Version", "at most 3").
		that(!o.Rep || o.Version == 0, "Version", "0 with Rep").
		that(o.Stages == nil || len(o.Stages) > 0, "Stages", "nil or have a stage")
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
	stages, wide, at := o.Stages, 0, 0
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
			x = o.block(b, fmt.Sprintf("blocks.%d.%d", i, j), x, in, s, o.Version > 1 && at > 1)
			in, at = s.Out, at+1
		}
	}
	end := fmt.Sprintf("blocks.%d.0", len(stages))
	x = b.convNorm([2]string{end + ".conv", end + ".bn1"}, x, nn.Conv{Filters: wide, Kernel: 1}, (*nn.Builder).ReLU)
	x = b.Conv("conv_head", b.pixel("pool", x), nn.Conv{Filters: 1280, Kernel: 1, Bias: true})
	x = b.Dropout("dropout", b.Flatten("flatten", b.ReLU("act2", x)), b.Config().Dropout)
	return b.Linear("classifier", x, b.Config().Classes)
}

// block adds the result of two ghost modules to x, which is convolved where shapes differ.
func (o GhostNet) block(b layer, name string, x *G.Node, in int, s GhostBlock, gated bool) *G.Node {
	deep := nn.Conv{Filters: s.Wide, Kernel: s.Kernel, Stride: s.Stride, Groups: s.Wide}
	y := o.ghost(b, name+".ghost1", x, s.Wide, (*nn.Builder).ReLU)
	if gated {
		y = b.ghostGate(name+".ghost1", y, x)
	}
	switch {
	case s.Stride > 1 && o.Version == 3:
		y = b.ghostBranches(name+".dw_rpr", nil, y, deep)
	case s.Stride > 1:
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

// ghost is a 1×1 convolution for half of the channels, and a depthwise one that makes the others from them. With Rep
// both have all channels, and are added.
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
	if o.Version == 3 {
		var one *G.Node
		for i := range ghostBranchCount {
			branch := fmt.Sprintf("%s.primary_rpr_conv.%d", name, i)
			y := b.convNorm([2]string{branch + ".conv", branch + ".bn1"}, x, nn.Conv{Filters: half, Kernel: 1}, nil)
			if i > 0 {
				y = b.Add(branch+".add", one, y)
			}
			one = y
		}
		if act != nil {
			one = act(b.Builder, name+".primary_activation", one)
		}
		two := b.ghostBranches(name+".cheap_rpr", b.BatchNorm(name+".cheap_rpr_skip", one, 1), one,
			nn.Conv{Filters: half, Kernel: 3, Groups: half})
		if act != nil {
			two = act(b.Builder, name+".cheap_activation", two)
		}
		return b.Concat(name+".concat", 1, one, two)
	}
	one := b.convNorm([2]string{primary + "0", primary + "1"}, x, nn.Conv{Filters: half, Kernel: 1}, act)
	deep := nn.Conv{Filters: half, Kernel: 3, Groups: half}
	two := b.convNorm([2]string{cheap + "0", cheap + "1"}, one, deep, act)
	return b.Concat(name+".concat", 1, one, two)
}

// ghostBranchCount is the number of a convolution's branches in training.
const ghostBranchCount = 3

// ghostBranches is the sum of normalised branches of images x: the convolution c several times, one of 1×1, and more
// unless that is nil.
func (b layer) ghostBranches(name string, more, x *G.Node, c nn.Conv) *G.Node {
	add := func(branch string, c nn.Conv) {
		y := b.convNorm([2]string{name + branch + ".conv", name + branch + ".bn1"}, x, c, nil)
		if more != nil {
			y = b.Add(name+branch+".add", more, y)
		}
		more = y
	}
	for i := range ghostBranchCount {
		add(fmt.Sprintf("_conv.%d", i), c)
	}
	c.Kernel = 1
	add("_scale", c)
	return more
}

// ghostGate multiplies y by gates, of a convolution of the means of 2×2 pixels of x, and one along rows and columns.
func (b layer) ghostGate(name string, y, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	if s := x.Shape(); min(s[2], s[3]) < 2 {
		b.Fail(fmt.Errorf("layer %s: images of %d×%d pixels: height and width must be at least 2: choose a larger input size",
			name, s[2], s[3]))
		return nil
	}
	c, short := y.Shape()[1], name+".short_conv."
	g := b.AvgPool(name+".pool", x, 2, 2, 0)
	g = b.convNorm([2]string{short + "0", short + "1"}, g, nn.Conv{Filters: c, Kernel: 1}, nil)
	g = b.convNorm([2]string{short + "2", short + "3"}, g, nn.Conv{Filters: c, Kernel: 1, Width: 5, Groups: c}, nil)
	g = b.convNorm([2]string{short + "4", short + "5"}, g, nn.Conv{Filters: c, Kernel: 5, Width: 1, Groups: c}, nil)
	g = b.nearest(name+".nearest", b.Sigmoid(name+".gate", g), y)
	return b.Map(name+".gated", expr.Arg(0).Mul(expr.Arg(1)), y, g)
}

// nearest repeats pixels of images x until they are as many as like's: PyTorch's interpolation "nearest".
func (b layer) nearest(name string, x, like *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	for i, n := range like.Shape()[2:] {
		index := make([]int32, n)
		for k := range index {
			index[k] = int32(k * s[2+i] / n)
		}
		axis := fmt.Sprintf("%s.axis%d", name, i)
		x = b.Gather(axis, x, 2+i, b.Constant(axis+".index", op.Tensor{Shape: op.Shape{n}, Data: index}))
	}
	return x
}
