package zoo

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name   string
		resize int
		net    ReXNet
	}{
		{"rexnet_100", 256, ReXNet{Width: 1, Divisor: 1}},
		{"rexnet_130", 256, ReXNet{Width: 1.3, Divisor: 1}},
		{"rexnet_150", 256, ReXNet{Width: 1.5, Divisor: 1}},
		{"rexnet_200", 256, ReXNet{Width: 2, Divisor: 1}},
		{"rexnet_300", 256, ReXNet{Width: 3, Divisor: 1}},
		{"rexnetr_200", 235, ReXNet{Width: 2, Divisor: 8}},
		{"rexnetr_300", 235, ReXNet{Width: 3, Divisor: 16}},
	} {
		v.net.Blocks, v.net.First, v.net.Growth, v.net.Excite = []int{1, 2, 2, 3, 3, 5}, 16, 180, 1./12
		a := nn.Architecture{
			Name:          v.name,
			Family:        "rexnet",
			Summary:       fmt.Sprintf("ReXNet of width %g, as timm's", v.net.Width),
			Reference:     "Han et al., Rethinking channel dimensions for efficient model design, 2021",
			Resize:        v.resize,
			Interpolation: bicubic,
			Dropout:       .2,
			Block:         `^(features\.\d+)\.`,
			Init:          google,
			Build:         v.net.Build,
		}
		if v.net.Divisor > 1 {
			a.Summary = fmt.Sprintf("ReXNet of width %g, channels multiples of %d, as timm's", v.net.Width, v.net.Divisor)
		}
		imageNet(a)
	}
}

// ReXNet are the options of a net of inverted residuals that each have more channels than the one before.
type ReXNet struct {
	Blocks  []int   // of the stages, at most 6
	First   int     // channels of the first block; timm's initial_chs
	Growth  int     // by which they grow in all; timm's final_chs
	Width   float64 // multiplies channels; at least 1; timm's width_mult
	Divisor int     // of the channels; timm's ch_div
	Excite  float64 // the share of channels of squeeze-and-excitation, from the third stage on; timm's se_ratio
}

// reXNetStrides are those of the stages' first blocks.
var reXNetStrides = []int{1, 2, 2, 2, 1, 2}

// channels are rounded to the divisor.
func (o ReXNet) channels(n float64) int { return divisibleBy(math.RoundToEven(n), o.Divisor) }

// Build adds the layers to b.
func (o ReXNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	check := b.options("ReXNet", o).least(1, "Blocks", "First", "Width", "Divisor").least(0, "Growth", "Excite").
		that(len(o.Blocks) <= len(reXNetStrides), "Blocks", "of 6 stages at most").that(o.Excite <= 1, "Excite", "at most 1")
	if !check.ok() {
		return nil
	}
	x = b.bnConv("stem", x, nn.Conv{Filters: o.channels(32 * o.Width), Kernel: 3, Stride: 2}, (*nn.Builder).SiLU)
	done, all, base := 0, sum(o.Blocks), float64(o.First)
	for i, n := range o.Blocks {
		for j := range n {
			s := reXNetBlock{out: o.channels(base * o.Width), expansion: 6, stride: 1, drop: b.Config().DropPathAt(done, all)}
			if j == 0 {
				s.stride = reXNetStrides[i]
			}
			if i == 0 {
				s.expansion = 1
			}
			x = o.block(b, fmt.Sprintf("features.%d", done), x, s, i >= 2)
			base += float64(o.Growth) / float64(all)
			done++
		}
	}
	last := nn.Conv{Filters: divisibleBy(1280*o.Width, o.Divisor), Kernel: 1}
	return b.byobHead(b.bnConv(fmt.Sprintf("features.%d", done), x, last, (*nn.Builder).SiLU))
}

// reXNetBlock are the options of a block.
type reXNetBlock struct {
	out, expansion, stride int
	drop                   float64
}

// block is an inverted residual, which adds x to the first of its channels where it keeps the extent.
func (o ReXNet) block(b layer, name string, x *G.Node, s reXNetBlock, excite bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	y, in := x, x.Shape()[1]
	wide := in
	if s.expansion > 1 {
		wide = o.channels(float64(in * s.expansion))
		y = b.bnConv(name+".conv_exp", x, nn.Conv{Filters: wide, Kernel: 1}, (*nn.Builder).SiLU)
	}
	y = b.bnConv(name+".conv_dw", y, nn.Conv{Filters: wide, Kernel: 3, Stride: s.stride, Groups: wide}, nil)
	if excite && o.Excite > 0 {
		y = b.exciteNormed(name+".se", y, divisibleBy(float64(int(float64(wide)*o.Excite)), o.Divisor))
	}
	y = relu6(b.Builder, name+".act_dw", y)
	y = b.bnConv(name+".conv_pwl", y, nn.Conv{Filters: s.out, Kernel: 1}, nil)
	if s.stride > 1 || in > s.out {
		return y
	}
	if in < s.out {
		x = b.Pad(name+".pad", x, []int{0, 0, 0, 0}, []int{0, s.out - in, 0, 0})
	}
	return b.pathAdd(name, y, x, s.drop)
}

// exciteNormed is a squeeze-and-excitation with a normalisation inside.
func (b layer) exciteNormed(name string, x *G.Node, outputs int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	m := b.Conv(name+".fc1", b.pixel(name+".mean", x), nn.Conv{Filters: outputs, Kernel: 1, Bias: true})
	m = b.ReLU(name+".act", b.BatchNorm(name+".bn", m, 1))
	m = b.Conv(name+".fc2", m, nn.Conv{Filters: x.Shape()[1], Kernel: 1, Bias: true})
	return b.Scale(name+".scale", x, b.Sigmoid(name+".gate", m))
}
