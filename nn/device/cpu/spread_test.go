package cpu

import (
	"slices"
	"testing"

	"onlinerna/nn/op"
)

// The gradient of a global pool that is added to an expression's result is not stored for each pixel, and gives the same
// bits.
func TestPoolGradientsSpread(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, shape := range []op.Shape{{2, 5, 7, 3}, {3, 48, 14, 14}, {2, 1100, 3, 2}} {
			d := open(t, 2)
			b := &builder{tb: t}
			scaled := b.apply(op.Map{Expr: x0.Mul(x1)}, b.data(shape...), b.data(shape[:2]...))
			spread := b.apply(op.GlobalAvgPoolGrad{Input: shape}, b.data(shape[:2]...))
			b.Keep = []int{b.apply(op.Add{}, spread, scaled)}
			r := rewritten(b, d)
			if got := r.Values[spread].Type.Shape; !got.Equal(shape[:2]) {
				t.Fatalf("%v: the pool's gradient has shape %v", shape, got)
			}
			groups := r.grouped(d)
			if kinds := groupedKinds(r, groups); !slices.Equal(kinds, []string{"map map"}) {
				t.Errorf("%v: groups %q", shape, kinds)
			}
			alone, grouped := bind(t, d, &b.Program, b.weights, b.alone()), bind(t, d, &r.Program, r.weights, groups)
			alone.run(t)
			grouped.run(t)
			if v := b.Keep[0]; !slices.Equal(alone.floats(t, v), grouped.floats(t, v)) {
				t.Errorf("%v: other bits", shape)
			}
		}
	})
}

// Other gradients of global pools stay as they are.
func TestPoolGradientsThatStay(t *testing.T) {
	d := open(t, 1)
	shape := op.Shape{2, 8, 3, 3}
	for name, build := range map[string]func(b *builder, g int){
		"kept": func(b *builder, g int) {
			b.apply(op.Add{}, g, b.apply(op.Map{Expr: silu}, b.data(shape...)))
			b.Keep = []int{g}
		},
		"read twice": func(b *builder, g int) {
			b.apply(op.Add{}, g, b.apply(op.Map{Expr: silu}, b.data(shape...)))
			b.apply(op.ReLU{}, g)
		},
		"added to itself":        func(b *builder, g int) { b.apply(op.Add{}, g, g) },
		"added to no expression": func(b *builder, g int) { b.apply(op.Add{}, g, b.apply(op.ReLU{}, b.data(shape...))) },
		"added to an input":      func(b *builder, g int) { b.apply(op.Add{}, g, b.data(shape...)) },
		"added to a kept expression": func(b *builder, g int) {
			y := b.apply(op.Map{Expr: silu}, b.data(shape...))
			b.apply(op.Add{}, g, y)
			b.Keep = []int{y}
		},
	} {
		b := &builder{tb: t}
		g := b.apply(op.GlobalAvgPoolGrad{Input: shape}, b.data(2, 8))
		build(b, g)
		if r := rewritten(b, d); !r.Values[g].Type.Shape.Equal(shape) {
			t.Errorf("%s: its shape is %v", name, r.Values[g].Type.Shape)
		}
	}
}
