package op_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func TestAlong(t *testing.T) {
	type s = op.Shape
	for _, c := range []struct {
		x, y op.Shape
		want op.Axes
		fits bool
	}{
		{s{2, 3, 4, 5}, s{2, 3, 4, 5}, op.All, true},
		{s{2, 3, 1, 1}, s{2, 3, 4, 5}, op.Samples | op.Channels, true},
		{s{2, 3}, s{2, 3, 4, 5}, op.Samples | op.Channels, true},
		{s{1, 3, 1, 1}, s{2, 3, 4, 5}, op.Channels, true},
		{s{3}, s{2, 3, 4, 5}, op.Channels, true},
		{s{3}, s{2, 3}, op.Channels, true},
		{s{2, 1, 1, 1}, s{2, 3, 4, 5}, op.Samples, true},
		{s{2, 1, 4, 5}, s{2, 3, 4, 5}, op.Samples | op.Pixels, true},
		{s{1, 3, 4, 5}, s{2, 3, 4, 5}, op.Channels | op.Pixels, true},
		{s{1, 1, 4, 5}, s{2, 3, 4, 5}, op.Pixels, true},
		{s{1, 1, 1, 1}, s{2, 3, 4, 5}, 0, true},
		{s{}, s{2, 3}, 0, true},
		{s{1}, s{2, 3}, 0, true},
		{s{2, 1, 1, 5}, s{2, 1, 1, 5}, op.All, true},
		{s{3}, s{1, 3, 1, 1}, op.All, true}, // as large as the result
		{s{1, 3, 4}, s{1, 3, 4}, op.All, true},
		{s{2, 3, 4, 1}, s{2, 3, 4, 5}, 0, false}, // only a part of the pixels
		{s{2, 3, 1, 5}, s{2, 3, 4, 5}, 0, false},
		{s{2}, s{2, 3}, 0, false},
		{s{4, 5}, s{2, 3, 4, 5}, 0, false},
		{s{3, 4, 5}, s{2, 3, 4, 5}, 0, false},
		{s{2, 3, 4, 5}, s{3}, 0, false},
	} {
		if got, ok := op.Along(c.x, c.y); got != c.want || ok != c.fits {
			t.Errorf("%v along %v: %03b, %t, want %03b, %t", c.x, c.y, got, ok, c.want, c.fits)
		}
	}
}

// Results by hand, and the rectifier as an expression.
func TestMapValues(t *testing.T) {
	for _, d := range []op.DType{op.Float32, op.Float64} {
		f := func(s op.Shape, x ...float64) op.Tensor { return filled(d, s, x...) }
		sum := op.Map{Expr: x0.Add(x1.Scale(10))}
		x := f(op.Shape{2, 2, 1, 2}, 0, 1, 2, 3, 4, 5, 6, 7)
		for _, c := range []struct {
			op   op.Op
			in   []op.Tensor
			want []float64
		}{
			{sum, []op.Tensor{x, f(op.Shape{2}, 1, 2)}, []float64{10, 11, 22, 23, 14, 15, 26, 27}},
			{sum, []op.Tensor{x, f(op.Shape{2, 2}, 1, 2, 3, 4)}, []float64{10, 11, 22, 23, 34, 35, 46, 47}},
			{sum, []op.Tensor{x, f(op.Shape{2, 1, 1, 2}, 1, 2, 3, 4)}, []float64{10, 21, 12, 23, 34, 45, 36, 47}},
			{sum, []op.Tensor{f(op.Shape{}, 1), x}, []float64{1, 11, 21, 31, 41, 51, 61, 71}},
			{op.SumTo{Shape: op.Shape{2}}, []op.Tensor{x}, []float64{10, 18}},
			{op.SumTo{Shape: op.Shape{2, 2}}, []op.Tensor{x}, []float64{1, 5, 9, 13}},
			{op.SumTo{Shape: op.Shape{2, 1, 1, 2}}, []op.Tensor{x}, []float64{2, 4, 10, 12}},
			{op.SumTo{Shape: op.Shape{1}}, []op.Tensor{x}, []float64{28}},
			{op.SumTo{Shape: x.Shape}, []op.Tensor{x}, []float64{0, 1, 2, 3, 4, 5, 6, 7}},
		} {
			if got := golden.Floats(compute(t, c.op, c.in...)); !slices.Equal(got, c.want) {
				t.Errorf("%v: %v, want %v", c.op, got, c.want)
			}
		}

		relu := op.Map{Expr: x0.Max(expr.Const(0))}
		in := f(op.Shape{7}, -1, minusZero, 0, 2, nan, inf, 1e-30)
		dy := f(op.Shape{7}, 1, 2, inf, 4, 5, 6, 7)
		y := compute(t, op.ReLU{}, in)
		for _, c := range []struct {
			what      string
			got, want op.Tensor
		}{
			{"max(x, 0)", compute(t, relu, in), y},
			{"its gradient", gradients(t, relu, []op.Tensor{in}, y, dy)[0],
				gradients(t, op.ReLU{}, []op.Tensor{in}, y, dy)[0]},
		} {
			for i, w := range golden.Floats(c.want) {
				if g := golden.Floats(c.got)[i]; math.Float64bits(g) != math.Float64bits(w) &&
					!(math.IsNaN(g) && math.IsNaN(w)) {
					t.Errorf("%s: element %d is %v, the rectifier's %v", c.what, i, g, w)
				}
			}
		}
	}
}

// Random numbers belong to elements as channels-last layouts count them, whatever the batch they are in.
func TestMapRandom(t *testing.T) {
	const key = 99
	counter := op.New(op.T(op.Int32, 2))
	set(counter, 7, 20)
	x := op.New(op.T(op.Float64, 3, 5, 2, 3))
	u := compute(t, op.Map{Expr: expr.Random(key, 1, false).Add(x0)}, x, counter).Data.([]float64)
	whole := compute(t, op.Map{Expr: expr.Random(key, 1, true).Add(x0)}, x, counter).Data.([]float64)
	for n := range 3 {
		for c := range 5 {
			for p := range 6 {
				i := (n*5+c)*6 + p
				if want := expr.Uniform(key, 7, uint32(20+n), uint32(p*5+c)); u[i] != float64(want) {
					t.Fatalf("element %d %d %d is %v, want %v", n, c, p, u[i], want)
				}
				if want := expr.Uniform(key, 7, uint32(20+n), 0); whole[i] != float64(want) {
					t.Fatalf("sample %d is %v, want %v", n, whole[i], want)
				}
			}
		}
	}
	set(counter, 7, 21)
	rest := op.New(op.T(op.Float64, 2, 5, 2, 3))
	if got := compute(t, op.Map{Expr: expr.Random(key, 1, false).Add(x0)}, rest,
		counter).Data.([]float64); !slices.Equal(got, u[30:]) {
		t.Error("samples have other numbers in another batch")
	}
}

// Gradients are made of few parts.
func TestMapTerms(t *testing.T) {
	f := func(shape ...int) op.Type { return op.T(op.Float32, shape...) }
	for _, c := range []struct {
		expr expr.Expr
		in   []op.Type
		want []string
	}{
		{x0.Add(x1), []op.Type{f(2, 3), f(2, 3)}, []string{"dy", "dy"}},
		{x0.Sub(x1), []op.Type{f(2, 3), f(3)}, []string{"dy", "channel_sum(map{-x0}(dy))"}},
		{x0.Sub(x1), []op.Type{f(2, 3, 4, 4), f(3, 1, 1)}, []string{"dy", "reshape{[3 1 1]}(channel_sum(map{-x0}(dy)))"}},
		{x0.Add(x1), []op.Type{f(1, 3, 1, 1), f(3, 1, 1)}, []string{"dy", "reshape{[3 1 1]}(dy)"}},
		{x0.Sub(x1), []op.Type{f(2, 3), f(1, 3)}, []string{"dy", "reshape{[1 3]}(channel_sum(map{-x0}(dy)))"}},
		{x0.Sigmoid(), []op.Type{f(2, 3)}, []string{"map{(x0 * (x1 * (1 - x1)))}(dy y)"}},
		{x0.Exp(), []op.Type{f(2, 3)}, []string{"map{(x0 * x1)}(dy y)"}},
		// the result would have to be kept beside x
		{x0.Mul(x0.Sigmoid()), []op.Type{f(2, 3)},
			[]string{"map{t0 = sigmoid(x0); ((x1 * t0) + ((x0 * x1) * ((1 - t0) * t0)))}(0 dy)"}},
		{x0.Mul(x1), []op.Type{f(2, 3, 4, 4), f(2, 3)},
			[]string{"map{(x0 * x1)}(1 dy)", "sum_to{[2 3]}(map{(x0 * x1)}(0 dy))"}},
		{expr.If(x0.Less(x1), expr.Const(1), expr.Const(0)), []op.Type{f(2), f(2)}, []string{"none", "none"}},
	} {
		terms, err := op.Map{Expr: c.expr}.Gradients(c.in...)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got := written(terms[i]); got != want {
				t.Errorf("%v by operand %d is %s, want %s", c.expr, i, got, want)
			}
		}
	}
}

// written is a term as text.
func written(t *op.Term) string {
	switch {
	case t == nil:
		return "none"
	case t.Op == nil:
		switch t.Leaf {
		case op.Result:
			return "y"
		case op.ResultGrad:
			return "dy"
		}
		return string(rune('0' + t.Leaf))
	}
	var args []string
	for _, a := range t.Args {
		args = append(args, written(a))
	}
	return t.Op.String() + "(" + strings.Join(args, " ") + ")"
}

// Blocks of the evaluation meet.
func TestMapLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	x, s := op.New(op.T(op.Float64, 3, 7, 11, 13)), op.New(op.T(op.Float64, 3, 7))
	set(x, distinct(r, 3*7*11*13)...)
	set(s, distinct(r, 21)...)
	y := compute(t, op.Map{Expr: x0.Mul(x1)}, x, s).Data.([]float64)
	for i, v := range x.Data.([]float64) {
		if want := v * s.Data.([]float64)[i/143]; y[i] != want {
			t.Fatalf("element %d is %v, want %v", i, y[i], want)
		}
	}
}

func TestMapMisfits(t *testing.T) {
	f := func(shape ...int) op.Type { return op.T(op.Float32, shape...) }
	counter := op.T(op.Int32, 2)
	u := expr.Random(1, 1, false)
	for _, c := range []struct {
		op   op.Op
		in   []op.Type
		want string
	}{
		{op.Map{}, []op.Type{f(2)}, "missing"},
		{op.Map{Expr: expr.Const(1)}, []op.Type{f(2)}, "reads 0"},
		{op.Map{Expr: expr.Const(1)}, nil, "reads 0"},
		{op.Map{Expr: x1}, []op.Type{f(2)}, "reads 2"},
		{op.Map{Expr: x0}, []op.Type{f(2), f(2)}, "reads 1"},
		{op.Map{Expr: x1}, []op.Type{f(2), f(2)}, "does not read operand 0"},
		{op.Map{Expr: x0.Add(x1)}, []op.Type{f(2, 3), f(2)}, "operand 1 cannot be repeated to [2 3]"},
		{op.Map{Expr: x0.Add(x1)}, []op.Type{f(2, 1), f(1, 3)}, "cannot be repeated"},
		{op.Map{Expr: x0.Add(u)}, []op.Type{f(2), op.T(op.Int32, 3)}, "must be [2]"},
		{op.Map{Expr: x0.Add(u)}, []op.Type{f(2), f(2)}, "must be int32"},
		{op.Map{Expr: x0.Add(u).Add(x1)}, []op.Type{f(2), counter}, "cannot be one"},
		{op.Map{Expr: expr.Random(1, 0, false)}, []op.Type{counter}, "no operand has the shape"},
		{op.SumTo{Shape: op.Shape{2}}, []op.Type{f(2, 3)}, "[2] cannot be repeated"},
		{op.SumTo{Shape: op.Shape{0}}, []op.Type{f(2, 3)}, "below 1"},
	} {
		if _, err := c.op.Infer(c.in...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v of %v: error %v, want %q", c.op, c.in, err, c.want)
		}
	}
}
