package zoo

import (
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	const reference = "Yang et al., CondConv: conditionally parameterized convolutions for efficient inference, 2019"
	for _, v := range []struct {
		name, summary string
		experts       int
		depth         float64
		size, resize  int
	}{
		{"b0_4e", "B0 of 4 experts", 4, 1, 224, 256}, {"b0_8e", "B0 of 8 experts", 8, 1, 224, 256},
		{"b1_8e", "B1 of 8 experts", 8, 1.1, 240, 272},
	} {
		net := Mobile{Depth: []float64{v.depth}, Stem: 32, Last: 1280, Act: (*nn.Builder).SiLU, Stages: []string{
			"ds_r1_k3_s1_e1_c16_se0.25", "ir_r2_k3_s2_e6_c24_se0.25", "ir_r2_k5_s2_e6_c40_se0.25", "ir_r3_k3_s2_e6_c80_se0.25"}}
		for _, stage := range []string{"ir_r3_k5_s1_e6_c112_se0.25", "ir_r4_k5_s2_e6_c192_se0.25",
			"ir_r1_k3_s1_e6_c320_se0.25"} {
			net.Stages = append(net.Stages, fmt.Sprintf("%s_cc%d", stage, v.experts))
		}
		mobile(func(a *nn.Architecture) {
			a.Family, a.Reference, a.Interpolation = "efficientnet", reference, bicubic
			a.Mean, a.Std = half, half
		}, mobileNet{"tf_efficientnet_cc_" + v.name, "EfficientNet-CondConv-" + v.summary, v.size, v.resize, net})
	}
}

// conditional is the branch of an ir with the given number of channels between its convolutions, whose weights are, for
// each image, the sum of those of experts times a gate of each.
func (p mobileBlock) conditional(x *G.Node, wide int) *G.Node {
	if p.Err() != nil {
		return nil
	}
	in, fan := x.Shape()[1], float64(x.Shape()[1]+p.experts)
	name := p.name + ".routing_fn"
	weight := p.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{p.experts, in},
		Init: nn.Init{Distribution: nn.Uniform, Scale: 1 / math.Sqrt(fan)}})
	gates := p.Apply(name, op.Linear{}, p.GlobalAvgPool(name+".mean", x), weight, p.bias(name, p.experts))
	gates = p.Sigmoid(name+".gates", gates)
	normal := func(norm string, x *G.Node, act nn.Activation) *G.Node {
		return p.normThen(p.name+"."+norm, x, 1, act)
	}
	y := normal("bn1", p.expertPoints("conv_pw", x, gates, wide), p.act)
	y = normal("bn2", p.expertPlanes("conv_dw", y, gates), p.act)
	return normal("bn3", p.expertPoints("conv_pwl", p.exciting(y, wide), gates, p.out), nil)
}

// expertWeights adds the weights of a convolution with these numbers of weights and of outputs of a pixel, for each
// expert.
func (p mobileBlock) expertWeights(name string, weights, fan int) *G.Node {
	return p.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{p.experts, weights},
		Init: nn.Init{Distribution: nn.Normal, Scale: math.Sqrt(2 / float64(fan))}})
}

// expertPoints is a convolution 1×1 by weights of each image.
func (p mobileBlock) expertPoints(name string, x, gates *G.Node, out int) *G.Node {
	if p.Err() != nil {
		return nil
	}
	name = p.name + "." + name
	s := x.Shape()
	weights := p.MatMul(name+".weights", gates, p.expertWeights(name, out*s[1], out), false)
	weights = p.Reshape(name+".matrices", weights, s[0], out, s[1])
	y := p.MatMul(name, p.Apply(name+".tokens", op.Tokens{}, x), weights, true)
	return p.Apply(name+".planes", op.Planes{Height: s[2], Width: s[3]}, y)
}

// expertPlanes is a convolution of channels. It sums the experts' results, which are small, as their weights would need
// groups of channels and of images.
func (p mobileBlock) expertPlanes(name string, x, gates *G.Node) *G.Node {
	if p.Err() != nil {
		return nil
	}
	name = p.name + "." + name
	n, c, k := x.Shape()[0], x.Shape()[1], p.kernel[0]
	weights := p.expertWeights(name, c*k*k, k*k)
	all, parts := expr.Const(0), []*G.Node{}
	for i := range p.experts {
		expert := fmt.Sprintf("%s.%d", name, i)
		w := p.Reshape(expert+".taps", p.Slice(expert+".weights", weights, 0, i, i+1), 1, c, k*k, 1)
		w = p.Apply(expert+".filters", op.Filters{Height: k, Width: k}, w)
		gate := p.Expand(expert+".gates", p.Slice(expert+".gate", gates, 1, i, i+1), n, c)
		y := p.ConvBy(expert, x, w, padded(nn.Conv{Filters: c, Kernel: k, Stride: p.stride, Groups: c}))
		all = all.Add(expr.Arg(2 * i).Mul(expr.Arg(2*i + 1)))
		parts = append(parts, y, gate)
	}
	return p.Map(name, all, parts...)
}

// routingLast is a rank of tensors by which those of gates follow the others of their blocks, as timm lists them.
func routingLast(name string) int {
	var stage, block int
	switch n, _ := fmt.Sscanf(name, "blocks.%d.%d.", &stage, &block); {
	case n == 2 && strings.Contains(name, ".routing_fn."):
		return 2*(stage<<20+block) + 2
	case n == 2:
		return 2*(stage<<20+block) + 1
	case strings.HasPrefix(name, "conv_stem."), strings.HasPrefix(name, "bn1."):
		return 0
	}
	return math.MaxInt32
}
