package nn

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Dropout adds, in Train, the elements of x with probability 1−p, divided by 1−p, and else 0. In Eval it is x.
//
// Which elements stay is a function of Config.Seed, name, the content of Model.RandomCounter, and of the element's
// position in its sample: see expr.Random. The backward pass finds them again.
func (b *Builder) Dropout(name string, x *G.Node, p float64) *G.Node {
	return b.drop(name, x, p, false)
}

// StochasticDepth is Dropout of whole samples (Huang et al. 2016): at the end of a residual branch, torchvision's mode
// "row".
func (b *Builder) StochasticDepth(name string, x *G.Node, p float64) *G.Node {
	return b.drop(name, x, p, true)
}

func (b *Builder) drop(name string, x *G.Node, p float64, perSample bool) *G.Node {
	if b.err == nil && !(p >= 0 && p < 1) {
		b.err = fmt.Errorf("layer %s: probability %g: must be in [0,1)", name, p)
	}
	if !b.claim(name) {
		return nil
	}
	m := b.model
	if m.Config.Mode == Eval || p == 0 {
		return x
	}
	m.Dropout, m.StochasticDepth = m.Dropout || !perSample, m.StochasticDepth || perSample
	if m.RandomCounter == nil {
		m.RandomCounter = b.batchInput("random_counter", op.T(op.Int32, 2))
	}
	u := expr.Random(stream(m.Config.Seed, name), 1, perSample)
	return b.apply(name, op.Map{Expr: expr.If(expr.Chance(u, p), expr.Const(0), x0.Scale(1/(1-p)))}, x, m.RandomCounter)
}
