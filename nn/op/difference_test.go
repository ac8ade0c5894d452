package op_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/expr/exprtest"
)

// slope is an application whose gradients are compared with differences.
type slope struct {
	op     op.Differentiable
	in     []op.Type
	labels []float64                  // of the int32 operand
	moving func(in []op.Tensor) error // recomputes operands that depend on others
	none   []int                      // operands without a gradient
}

func slopes(r *rand.Rand) []slope {
	f := func(shape ...int) op.Type { return op.T(op.Float64, shape...) }
	bn := []op.Type{f(3, 4, 2, 3), f(2, 4), f(4), f(4)}
	all := []slope{
		{op: op.BatchNorm{Eps: 1e-3}, in: bn, none: []int{1}, moving: func(in []op.Tensor) error {
			return op.BatchNormStats{}.Run(in[1], in[0])
		}},
		{op: op.BatchNorm{Eps: 1e-3, Fixed: true}, in: bn, none: []int{1}},
		{op: op.ReLU{}, in: []op.Type{f(2, 3, 4, 3)}},
		{op: op.ReLU{}, in: []op.Type{f(7)}},
		{op: op.Add{}, in: []op.Type{f(2, 3, 4), f(2, 3, 4)}},
		{op: op.Add{}, in: []op.Type{f(), f()}},
		{op: op.GlobalAvgPool{}, in: []op.Type{f(2, 3, 5, 4)}},
		{op: op.Flatten{}, in: []op.Type{f(2, 3, 5, 4)}},
		{op: op.Reshape{Shape: op.Shape{5, 2, 3}}, in: []op.Type{f(6, 5)}},
		{op: op.Linear{}, in: []op.Type{f(3, 7), f(5, 7), f(5)}},
		{op: op.Linear{}, in: []op.Type{f(1, 2), f(3, 2)}},
	}
	for _, e := range general(op.Float64) {
		if o, ok := e.op.(op.Differentiable); ok {
			s := slope{op: o, in: e.in}
			if _, ok := o.(op.Gather); ok {
				s.labels, s.none = []float64{0, 2, 2, -1, 1, 0}, []int{1}
			}
			all = append(all, s)
		}
	}
	counter := op.T(op.Int32, 2)
	gate := op.Map{Expr: x0.Mul(x1.Sigmoid()).Add(x2)}
	for _, in := range [][]op.Type{
		{f(2, 3, 4, 5), f(2, 3), f(3)}, {f(2, 3, 4, 5), f(2, 3, 1, 1), f(1, 3, 1, 1)},
		{f(2, 3, 4, 5), f(1, 1, 4, 5), f(2, 1, 4, 5)},
		{f(2, 3, 4, 5), f(2, 1, 1, 1), f()}, {f(2, 3, 4), f(1, 3, 4), f(1)}, {f(4, 3), f(3), f(4, 1)},
		{f(3), f(1), f(3)}, {f(), f(), f()},
	} {
		all = append(all, slope{op: gate, in: in})
	}
	all = append(all,
		slope{op: op.Map{Expr: x0.Tanh()}, in: []op.Type{f(2, 3)}}, // by its result
		slope{op: op.Map{Expr: expr.If(expr.Chance(expr.Random(5, 1, false), .5), x0.Exp(), x2)},
			in:     []op.Type{f(2, 3, 4), counter, f(2, 1, 4)},
			labels: []float64{3, 8}, none: []int{1}},
	)
	for n := len(all); len(all) < n+25; {
		e := exprtest.Random(r, 4, 3).Expr
		if s := (slope{op: op.Map{Expr: e}, in: []op.Type{f(2, 3, 4, 2), f(3), f(2, 3)}}); smooth(e, 3) {
			all = append(all, s)
		}
	}
	for _, gamma := range []float64{0, .5, 1, 2, 3.5} {
		all = append(all, slope{op: op.FocalLoss{Gamma: gamma}, in: []op.Type{f(6, 5), f(6, 5)}, none: []int{1}})
	}
	for _, o := range []op.AsymmetricLoss{{}, {Positive: 1, Negative: 4}, {Positive: .5, Negative: 2, Margin: .1}} {
		all = append(all, slope{op: o, in: []op.Type{f(6, 5), f(6, 5)}, none: []int{1}})
	}
	for _, x := range []float64{.5, 1, 4} {
		all = append(all, slope{op: op.DistillLoss{Temperature: x}, in: []op.Type{f(6, 5), f(6, 5)}, none: []int{1}})
	}
	for _, x := range []float64{0, .5, 2} {
		all = append(all, slope{op: op.RegressionLoss{Delta: x}, in: []op.Type{f(6, 5), f(6, 5)}, none: []int{1}})
	}
	for _, smoothing := range []float64{0, .1, .5} {
		all = append(all, slope{op: op.TargetLoss{Binary: smoothing > 0}, in: []op.Type{f(6, 5), f(6, 5)},
			none: []int{1}})
		all = append(all, slope{op: op.SoftmaxCrossEntropy{Smoothing: smoothing},
			in:     []op.Type{f(6, 5), op.T(op.Int32, 6)},
			labels: []float64{0, 4, 2, -100, 5, 2}, none: []int{1}})
	}
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	pair := func(of ...int) [2]int { return [2]int{pick(of...), pick(of...)} }
	for n := len(all); len(all) < n+60; {
		kernel := pair(1, 2, 3)
		half := [2]int{r.IntN(kernel[0]/2 + 1), r.IntN(kernel[1]/2 + 1)}
		groups, inner := pick(1, 1, 2, 3), pick(1, 2)
		x := []int{pick(1, 2), groups * inner, 1 + r.IntN(7), 1 + r.IntN(7)}
		w := []int{groups * pick(1, 2), inner, kernel[0], kernel[1]}
		var s slope
		switch r.IntN(6) {
		case 0:
			s = slope{op: op.MaxPool{Kernel: kernel, Stride: pair(1, 2, 3), Pad: half}, in: []op.Type{f(x...)}}
		case 1:
			s = slope{op: op.AvgPool{Kernel: kernel, Stride: pair(1, 2, 3), Pad: half}, in: []op.Type{f(x...)}}
		case 2:
			s = slope{op: op.Shortcut{Stride: pick(1, 2, 3), Channels: x[1] + r.IntN(4)}, in: []op.Type{f(x...)}}
		default:
			o := op.Conv2D{Stride: pair(1, 2, 3), Pad: pair(0, 1, 2, 3), Dilation: pair(1, 2, 3), Groups: groups}
			s = slope{op: o, in: []op.Type{f(x...), f(w...)}}
			if r.IntN(2) == 0 {
				s.in = append(s.in, f(w[0]))
			}
		}
		if _, err := s.op.Infer(s.in...); err == nil { // else the kernel does not fit
			all = append(all, s)
		}
	}
	return all
}

// smooth reports whether e has a derivative for each of n operands, and no kinks and steps.
func smooth(e expr.Expr, n int) bool {
	return e.ReadsAll(n) && !slices.ContainsFunc(e.Nodes(), func(n expr.Node) bool {
		return n.Kind == expr.KindMin || n.Kind == expr.KindMax || n.Kind == expr.KindIf
	})
}

func TestGradientsAgainstDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	differed := map[string]int{}
	for _, s := range slopes(r) {
		differed[s.op.Kind()]++
		in := make([]op.Tensor, len(s.in))
		for i, typ := range s.in {
			in[i] = op.New(typ)
			switch {
			case typ.DType == op.Int32:
				set(in[i], s.labels...)
			case s.op.Kind() == "batch_norm" && i == 1:
				set(in[i], .2, -.1, .3, 0, .5, 1, 1.5, 2)
			default:
				set(in[i], distinct(r, typ.Shape.Size())...)
			}
		}
		loss := func(dy op.Tensor) (y op.Tensor, sum float64) {
			if s.moving != nil {
				if err := s.moving(in); err != nil {
					t.Fatal(err)
				}
			}
			y = compute(t, s.op, in...)
			if dy.Data != nil {
				for i, g := range golden.Floats(dy) {
					sum += g * golden.Floats(y)[i]
				}
			}
			return y, sum
		}
		y, _ := loss(op.Tensor{})
		dy := op.New(y.Type())
		set(dy, distinct(r, y.Shape.Size())...)
		for i, g := range gradients(t, s.op, in, y, dy) {
			if slices.Contains(s.none, i) {
				if g.Data != nil {
					t.Errorf("%v of %v: operand %d has a gradient", s.op, s.in, i)
				}
				continue
			}
			if !g.Type().Equal(s.in[i]) {
				t.Fatalf("%v of %v: the gradient of operand %d is %v", s.op, s.in, i, g.Type())
			}
			x := in[i].Data.([]float64)
			for j, analytic := range golden.Floats(g) {
				const h = 1e-5
				old := x[j]
				x[j] = old + h
				_, up := loss(dy)
				x[j] = old - h
				_, down := loss(dy)
				x[j] = old
				if numeric := (up - down) / (2 * h); !(math.Abs(numeric-analytic) <= 2e-8*max(1, math.Abs(numeric))) {
					t.Errorf("%v of %v: gradient %d of operand %d is %v, by differences %v", s.op, s.in, j, i, analytic,
						numeric)
					break
				}
			}
			loss(dy) // restores the updated statistics
		}
	}
	for _, e := range examples(op.Float64) {
		if _, ok := e.op.(op.Differentiable); ok && differed[e.op.Kind()] == 0 {
			t.Errorf("%v is not tested", e.op)
		}
	}
	if differed["conv2d"] < 15 || differed["max_pool"] < 3 || differed["avg_pool"] < 3 || differed["shortcut"] < 3 {
		t.Errorf("too few of a kind: %v", differed)
	}
}
