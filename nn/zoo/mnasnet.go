package zoo

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name   string
		alpha  float64
		resize int
	}{{"0_5", .5, 0}, {"0_75", .75, 232}, {"1_0", 1, 0}, {"1_3", 1.3, 232}} {
		imageNet(nn.Architecture{
			Name:              "mnasnet" + v.name,
			Family:            "mnasnet",
			Summary:           fmt.Sprintf("MNASNet-B1, width %g", v.alpha),
			Reference:         "Tan et al., MnasNet: platform-aware neural architecture search for mobile, 2019",
			Block:             `^(layers\.\d+\.\d+)\.layers\.`,
			BatchNormMomentum: 1 - .9997,
			Dropout:           .2,
			Resize:            v.resize,
			Init:              uniform(math.Sqrt(3)),
			Build:             MNASNet{Alpha: v.alpha}.Build,
		})
	}
}

// MNASNet are the options of a net of inverted residuals with 3×3 and 5×5 convolutions.
type MNASNet struct {
	Alpha float64 // factor of the channels; 0 means 1
}

// Build adds the layers to b.
func (o MNASNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("MNASNet", o).least(0, "Alpha").ok() {
		return nil
	}
	channels := func(n int) int { return divisible(float64(n) * cmp.Or(o.Alpha, 1)) }
	in := channels(32)
	x = b.normed("layers", 0, x, nn.Conv{Filters: in, Kernel: 3, Stride: 2})
	x = b.ReLU("layers.2", x)
	x = b.normed("layers", 3, x, nn.Conv{Filters: in, Kernel: 3, Groups: in})
	x = b.ReLU("layers.5", x)
	in = channels(16)
	x = b.normed("layers", 6, x, nn.Conv{Filters: in, Kernel: 1})
	for i, s := range []struct{ out, kernel, stride, expansion, blocks int }{
		{24, 3, 2, 3, 3}, {40, 5, 2, 3, 3}, {80, 5, 2, 6, 3}, {96, 3, 1, 6, 2}, {192, 5, 2, 6, 4}, {320, 3, 1, 6, 1},
	} {
		out, stride := channels(s.out), s.stride
		for j := range s.blocks {
			x = b.mnasBlock(fmt.Sprintf("layers.%d.%d", 8+i, j), x, in, out, s.kernel, stride, s.expansion)
			in, stride = out, 1
		}
	}
	x = b.ReLU("layers.16", b.normed("layers", 14, x, nn.Conv{Filters: 1280, Kernel: 1}))
	return b.Linear("classifier.1", b.pooled("classifier.0", x), b.Config().Classes)
}

// normed adds a convolution, name.at, and a batch normalisation with the next number.
func (b layer) normed(name string, at int, x *G.Node, c nn.Conv) *G.Node {
	x = b.conv(fmt.Sprintf("%s.%d", name, at), x, c)
	return b.BatchNorm(fmt.Sprintf("%s.%d", name, at+1), x, 1)
}

func (b layer) mnasBlock(name string, x *G.Node, in, out, kernel, stride, expansion int) *G.Node {
	layers, wide := name+".layers", in*expansion
	y := b.ReLU(layers+".2", b.normed(layers, 0, x, nn.Conv{Filters: wide, Kernel: 1}))
	y = b.normed(layers, 3, y, nn.Conv{Filters: wide, Kernel: kernel, Stride: stride, Groups: wide})
	y = b.normed(layers, 6, b.ReLU(layers+".5", y), nn.Conv{Filters: out, Kernel: 1})
	if in == out && stride == 1 {
		return b.Add(name+".add", y, x)
	}
	return y
}
