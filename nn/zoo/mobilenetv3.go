package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, small := range []bool{false, true} {
		size := "large"
		if small {
			size = "small"
		}
		imageNet(nn.Architecture{
			Name:              "mobilenet_v3_" + size,
			Family:            "mobilenet",
			Summary:           "MobileNetV3, " + size,
			Reference:         "Howard et al., Searching for MobileNetV3, 2019",
			BatchNormEps:      .001,
			BatchNormMomentum: .01,
			Dropout:           .2,
			Init:              normal(.01),
			Build:             MobileNetV3{Small: small}.Build,
		})
	}
}

// MobileNetV3 are the options of a net of inverted residuals, some with squeeze-and-excitation.
type MobileNetV3 struct {
	Small bool
	Width float64 // factor of the channels; 0 means 1
}

// mobileBlock is an inverted residual of MobileNetV3: wide channels are convolved.
type mobileBlock struct {
	kernel, wide, out int
	excite, hardswish bool
	stride            int
}

var (
	mobileLarge = []mobileBlock{
		{3, 16, 16, false, false, 1},
		{3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
		{5, 72, 40, true, false, 2}, {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
		{3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
		{3, 184, 80, false, true, 1},
		{3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
		{5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
	}
	mobileSmall = []mobileBlock{
		{3, 16, 16, true, false, 2},
		{3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
		{5, 96, 40, true, true, 2}, {5, 240, 40, true, true, 1}, {5, 240, 40, true, true, 1},
		{5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},
		{5, 288, 96, true, true, 2}, {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
	}
)

// Build adds the layers to b.
func (o MobileNetV3) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, blocks, last := layer{builder}, mobileLarge, 1280
	if o.Small {
		blocks, last = mobileSmall, 1024
	}
	channels := func(n int) int { return divisible(float64(n) * cmp.Or(o.Width, 1)) }
	in := channels(16)
	x = b.norm("features.0", x, nn.Conv{Filters: in, Kernel: 3, Stride: 2}, (*nn.Builder).Hardswish)
	for i, s := range blocks {
		s.wide, s.out = channels(s.wide), channels(s.out)
		x = b.mobileBlock(fmt.Sprintf("features.%d", i+1), x, in, s)
		in = s.out
	}
	x = b.norm(fmt.Sprintf("features.%d", len(blocks)+1), x, nn.Conv{Filters: 6 * in, Kernel: 1}, (*nn.Builder).Hardswish)
	x = b.Linear("classifier.0", b.GlobalAvgPool("avgpool", x), channels(last))
	x = b.Dropout("classifier.2", b.Hardswish("classifier.1", x), b.Config().Dropout)
	return b.Linear("classifier.3", x, b.Config().Classes)
}

func (b layer) mobileBlock(name string, x *G.Node, in int, s mobileBlock) *G.Node {
	act := nn.Activation((*nn.Builder).ReLU)
	if s.hardswish {
		act = (*nn.Builder).Hardswish
	}
	y, at := x, 0
	next := func() string { at++; return fmt.Sprintf("%s.block.%d", name, at-1) }
	if s.wide != in {
		y = b.norm(next(), y, nn.Conv{Filters: s.wide, Kernel: 1}, act)
	}
	y = b.norm(next(), y, nn.Conv{Filters: s.wide, Kernel: s.kernel, Stride: s.stride, Groups: s.wide}, act)
	if s.excite {
		y = b.SqueezeExcite(next(), y, divisible(float64(s.wide/4)), (*nn.Builder).ReLU, (*nn.Builder).HardSigmoid)
	}
	y = b.norm(next(), y, nn.Conv{Filters: s.out, Kernel: 1}, nil)
	if s.stride == 1 && in == s.out {
		return b.Add(name+".add", y, x)
	}
	return y
}
