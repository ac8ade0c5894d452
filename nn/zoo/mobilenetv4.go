package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name, summary string
		stem          int
		width         float64
		stages        [][]UniversalBlock
		size, resize  int
		half          bool // the weights take pixels from −1 to 1
	}{
		{"small_050", "small, width 0.5", 32, .5, universalSmall, 224, 256, true},
		{"small", "small", 32, 1, universalSmall, 224, 256, false},
		{"medium", "medium", 32, 1, universalMedium, 256, 269, false},
		{"large", "large", 24, 1, universalLarge, 384, 404, false},
	} {
		a := nn.Architecture{
			Name:          "mobilenetv4_conv_" + v.name,
			Family:        "mobilenet",
			Summary:       "MobileNetV4 of convolutions, " + v.summary + ", as timm's",
			Reference:     "Qin et al., MobileNetV4: universal models for the mobile ecosystem, 2024",
			Size:          v.size,
			Resize:        v.resize,
			Interpolation: bicubic,
			Block:         timmBlock,
			Init:          google,
			Build:         MobileNetV4{Stem: v.stem, Width: v.width, Stages: v.stages}.Build,
		}
		if v.half {
			a.Mean, a.Std = half, half
		}
		imageNet(a)
	}
}

// MobileNetV4 are the options of a net of universal inverted residuals.
type MobileNetV4 struct {
	Stem   int     // channels of the first convolution
	Width  float64 // factor of the channels; below 1 the first convolution keeps its own; 0 means 1
	Stages [][]UniversalBlock
}

// UniversalBlock are the options of equal blocks, one after the other: inverted residuals with depthwise convolutions
// in two places, or others. timm writes one as uir_r2_a3_k5_s1_e4_c512.
type UniversalBlock struct {
	Start, Middle int // extents of the depthwise convolutions before and behind the expansion, odd; 0: there is none
	Plain, Fused  int // extent of a single convolution, timm's cn, or of one that expands, timm's er, in place of both
	Stride        int // of the first block, 1 or 2
	Expansion     int // channels between by those of the input; 0 for Plain
	Out           int // channels, before Width
	Blocks        int
}

var (
	universalSmall = [][]UniversalBlock{
		{plain(3, 2, 32), plain(1, 1, 32)},
		{plain(3, 2, 96), plain(1, 1, 64)},
		{uib(5, 5, 2, 3, 96, 1), uib(0, 3, 1, 2, 96, 4), uib(3, 0, 1, 4, 96, 1)},
		{uib(3, 3, 2, 6, 128, 1), uib(5, 5, 1, 4, 128, 1), uib(0, 5, 1, 4, 128, 1), uib(0, 5, 1, 3, 128, 1),
			uib(0, 3, 1, 4, 128, 2)},
		{plain(1, 1, 960)},
	}
	universalMedium = [][]UniversalBlock{
		{fused(3, 2, 4, 48)},
		{uib(3, 5, 2, 4, 80, 1), uib(3, 3, 1, 2, 80, 1)},
		{uib(3, 5, 2, 6, 160, 1), uib(3, 3, 1, 4, 160, 2), uib(3, 5, 1, 4, 160, 1), uib(3, 3, 1, 4, 160, 1),
			uib(3, 0, 1, 4, 160, 1), uib(0, 0, 1, 2, 160, 1), uib(3, 0, 1, 4, 160, 1)},
		{uib(5, 5, 2, 6, 256, 1), uib(5, 5, 1, 4, 256, 1), uib(3, 5, 1, 4, 256, 2), uib(0, 0, 1, 4, 256, 1),
			uib(3, 0, 1, 4, 256, 1), uib(3, 5, 1, 2, 256, 1), uib(5, 5, 1, 4, 256, 1), uib(0, 0, 1, 4, 256, 2),
			uib(5, 0, 1, 2, 256, 1)},
		{plain(1, 1, 960)},
	}
	universalLarge = [][]UniversalBlock{
		{fused(3, 2, 4, 48)},
		{uib(3, 5, 2, 4, 96, 1), uib(3, 3, 1, 4, 96, 1)},
		{uib(3, 5, 2, 4, 192, 1), uib(3, 3, 1, 4, 192, 3), uib(3, 5, 1, 4, 192, 1), uib(5, 3, 1, 4, 192, 5),
			uib(3, 0, 1, 4, 192, 1)},
		{uib(5, 5, 2, 4, 512, 4), uib(5, 0, 1, 4, 512, 1), uib(5, 3, 1, 4, 512, 1), uib(5, 0, 1, 4, 512, 2),
			uib(5, 3, 1, 4, 512, 1), uib(5, 5, 1, 4, 512, 1), uib(5, 0, 1, 4, 512, 3)},
		{plain(1, 1, 960)},
	}
)

// plain is a convolution.
func plain(kernel, stride, out int) UniversalBlock {
	return UniversalBlock{Plain: kernel, Stride: stride, Out: out, Blocks: 1}
}

// fused is a convolution that expands, and one of 1×1.
func fused(kernel, stride, expansion, out int) UniversalBlock {
	return UniversalBlock{Fused: kernel, Stride: stride, Expansion: expansion, Out: out, Blocks: 1}
}

// uib is the paper's universal inverted bottleneck, with depthwise convolutions of the extents start and middle.
func uib(start, middle, stride, expansion, out, blocks int) UniversalBlock {
	return UniversalBlock{Start: start, Middle: middle, Stride: stride, Expansion: expansion, Out: out, Blocks: blocks}
}

// check reports whether the options are right.
func (o MobileNetV4) check(b layer) bool {
	b.options("MobileNetV4", o).least(1, "Stem").least(0, "Width").that(len(o.Stages) > 0, "Stages", "at least one")
	for i, stage := range o.Stages {
		b.options("MobileNetV4", o).that(len(stage) > 0, "Stages", fmt.Sprintf("stages of blocks, but stage %d has none", i))
		for j, s := range stage {
			none := s.Start+s.Middle == 0
			b.options(fmt.Sprintf("MobileNetV4.Stages[%d][%d]", i, j), s).least(1, "Out", "Blocks", "Stride").
				least(0, "Start", "Middle", "Plain", "Fused", "Expansion").that(s.Stride <= 2, "Stride", "1 or 2").
				that(s.Start == 0 || s.Start%2 == 1, "Start", "odd, or 0").
				that(s.Middle == 0 || s.Middle%2 == 1, "Middle", "odd, or 0").
				that(s.Plain == 0 || s.Plain%2 == 1 && none && s.Fused == 0, "Plain",
					"odd, and without Start, Middle and Fused, or 0").
				that(s.Fused == 0 || s.Fused%2 == 1 && none, "Fused", "odd, and without Start and Middle, or 0").
				that((s.Expansion == 0) == (s.Plain > 0), "Expansion", "0 with Plain, else at least 1").
				that(s.Stride == 1 || !none || s.Plain+s.Fused > 0, "Stride",
					"1 for a block without a larger kernel than 1×1")
		}
	}
	return b.Err() == nil
}

// Build adds the layers to b.
func (o MobileNetV4) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, width := layer{builder}, cmp.Or(o.Width, 1)
	if !o.check(b) {
		return nil
	}
	in := divisible(float64(o.Stem) * max(width, 1))
	x = b.convNorm([2]string{"conv_stem", "bn1"}, x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, (*nn.Builder).ReLU)
	all, done := 0, 0
	for _, stage := range o.Stages {
		for _, s := range stage {
			all += s.Blocks
		}
	}
	for i, stage := range o.Stages {
		at := 0
		for _, s := range stage {
			s.Out = divisible(float64(s.Out) * width)
			for range s.Blocks {
				drop := b.Config().DropPath * float64(done) / float64(all)
				x = b.universal(fmt.Sprintf("blocks.%d.%d", i, at), x, in, s, drop)
				in, s.Stride, at, done = s.Out, 1, at+1, done+1
			}
		}
	}
	x = b.convNorm([2]string{"conv_head", "norm_head"}, b.pixel("pool", x), nn.Conv{Filters: 1280, Kernel: 1},
		(*nn.Builder).ReLU)
	x = b.Dropout("dropout", b.Flatten("flatten", x), b.Config().Dropout)
	return b.Linear("classifier", x, b.Config().Classes)
}

// universal adds a block of the given input channels. Its residual branch is dropped with probability drop in Train.
func (b layer) universal(name string, x *G.Node, in int, s UniversalBlock, drop float64) *G.Node {
	const relu = true
	part := func(y *G.Node, conv, norm string, c nn.Conv, act bool) *G.Node {
		names := [2]string{name + "." + conv, name + "." + norm}
		if act {
			return b.convNorm(names, y, c, (*nn.Builder).ReLU)
		}
		return b.convNorm(names, y, c, nil)
	}
	wide := divisible(float64(in) * float64(s.Expansion))
	y := x
	switch {
	case s.Plain > 0:
		return part(y, "conv", "bn1", nn.Conv{Filters: s.Out, Kernel: s.Plain, Stride: s.Stride}, relu)
	case s.Fused > 0:
		y = part(y, "conv_exp", "bn1", nn.Conv{Filters: wide, Kernel: s.Fused, Stride: s.Stride}, relu)
		y = part(y, "conv_pwl", "bn2", nn.Conv{Filters: s.Out, Kernel: 1}, !relu)
	default:
		if s.Start > 0 {
			stride := s.Stride
			if s.Middle > 0 {
				stride = 1
			}
			c := nn.Conv{Filters: in, Kernel: s.Start, Stride: stride, Groups: in}
			y = part(y, "dw_start.conv", "dw_start.bn", c, !relu)
		}
		y = part(y, "pw_exp.conv", "pw_exp.bn", nn.Conv{Filters: wide, Kernel: 1}, relu)
		if s.Middle > 0 {
			c := nn.Conv{Filters: wide, Kernel: s.Middle, Stride: s.Stride, Groups: wide}
			y = part(y, "dw_mid.conv", "dw_mid.bn", c, relu)
		}
		y = part(y, "pw_proj.conv", "pw_proj.bn", nn.Conv{Filters: s.Out, Kernel: 1}, !relu)
	}
	if s.Stride > 1 || in != s.Out {
		return y
	}
	return b.residual(name, y, x, drop)
}
