package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

const evoReference = "Liu et al., Evolving normalization-activation layers, 2020"

// evoNorm divides images by the standard deviation of groups of channels, multiplies them by a gate if gated, and
// scales each channel by a factor that starts as initial (Liu et al., Evolving normalization-activation layers, 2020).
func (b layer) evoNorm(name string, x *G.Node, groups int, eps, initial float64, gated bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, c := x.Shape()[0], x.Shape()[1]
	if c%groups != 0 {
		b.Fail(fmt.Errorf("layer %s: %d channels are not divisible by %d groups", name, c, groups))
		return nil
	}
	weight, bias := b.vector(name+".weight", c, initial), b.vector(name+".bias", c, 0)
	mean := func(part string, x *G.Node) *G.Node { // of groups, for each channel
		part = name + part
		x = b.Reshape(part+".groups", b.GlobalAvgPool(part, x), n, groups, c/groups)
		x = b.Expand(part+".all", b.Reduce(part+".mean", x, op.Mean, 2), n, groups, c/groups)
		return b.Reshape(part+".channels", x, n, c)
	}
	x0, x1 := expr.Arg(0), expr.Arg(1)
	const part = 1. / 8 // in float16 squares are infinite from 256 on
	squares := b.Map(name+".squares", x0.Sub(x1).Scale(part).Square(), x, mean(".mean", x))
	variance := mean(".variance", squares)
	y := x0.Div(ofSmallSquares(x1).Shift(eps).Sqrt())
	if gated {
		v := b.vector(name+".v", c, 1)
		y = y.Mul(x0.Mul(expr.Arg(4)).Sigmoid())
		return b.Map(name, y.Mul(expr.Arg(2)).Add(expr.Arg(3)), x, variance, weight, bias, v)
	}
	return b.Map(name, y.Mul(expr.Arg(2)).Add(expr.Arg(3)), x, variance, weight, bias)
}
