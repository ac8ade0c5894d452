package op_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/nn/internal/golden"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/expr/exprtest"
)

// An op equals its expression.
func TestExpressions(t *testing.T) {
	for _, d := range []op.DType{op.Float32, op.Float64} {
		for _, e := range examples(d) {
			o, ok := e.op.(op.Elementwise)
			if !ok {
				continue
			}
			in := e.operands(rand.New(rand.NewPCG(5, 6)))
			want, got := compute(t, o, in...), compute(t, op.Map{Expr: o.Expression()}, in...)
			if !slices.Equal(golden.Floats(got), golden.Floats(want)) {
				t.Errorf("%v is %v, its expression %v", o, want, got)
			}
		}
	}
}

// Two expressions after each other are one of all values.
func TestCompose(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	// Values 0 to 4 come from outside, inner makes 5.
	shapes := []op.Shape{{2, 3, 4, 2}, {3}, {2, 3}, {2, 3, 4, 2}, {2, 1, 1, 1}}
	values := make([]op.Tensor, 6)
	for v, s := range shapes {
		values[v] = op.New(op.Type{DType: op.Float64, Shape: s})
		set(values[v], distinct(r, s.Size())...)
	}
	apply := func(o op.Op, in []int) op.Tensor {
		var x []op.Tensor
		for _, v := range in {
			x = append(x, values[v])
		}
		return compute(t, o, x...)
	}
	lost := 0
	for tried := 0; tried < 200; {
		inner, outer := op.Map{Expr: exprtest.Random(r, 3, 3).Expr}, op.Map{Expr: exprtest.Random(r, 3, 3).Expr}
		if !inner.Expr.ReadsAll(3) || !outer.Expr.ReadsAll(3) {
			continue
		}
		tried++
		of := []int{0, 1 + r.IntN(4), r.IntN(5)}
		in := []int{r.IntN(6), 5, r.IntN(6)}
		values[5] = apply(inner, of)
		want := apply(outer, in)
		m, list, ok := op.Compose(outer, in, inner, of, 5)
		if !ok { // an operand was lost
			lost++
			continue
		}
		for i, v := range list {
			if v == 5 || slices.Contains(list[:i], v) {
				t.Fatalf("%v of %v and %v of %v read %v together", outer, in, inner, of, list)
			}
		}
		near(t, m.String(), apply(m, list), want, 1e-12)
	}
	if lost > 10 {
		t.Errorf("%d of 200 do not compose", lost)
	}
}

func TestComposeMisfits(t *testing.T) {
	u := op.Map{Expr: expr.Random(1, 1, false).Add(x0)}
	if _, _, ok := op.Compose(u, []int{0, 7}, op.Map{Expr: x0}, []int{3}, 7); ok {
		t.Error("what an expression makes counts random numbers")
	}
	if _, _, ok := op.Compose(op.ReLU{}, []int{0}, op.ReLU{}, []int{3}, 7); ok {
		t.Error("composed with what is not read")
	}
	m, values, ok := op.Compose(op.Add{}, []int{7, 7}, u, []int{3, 4}, 7)
	if want := "map{t0 = (x0 + random(0x1, x1, element)); (t0 + t0)}"; !ok || !slices.Equal(values, []int{3, 4}) ||
		m.String() != want {
		t.Errorf("%v of %v, want %s", m, values, want)
	}
}
