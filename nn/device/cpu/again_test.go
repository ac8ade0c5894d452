package cpu

import (
	"fmt"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// active is a batch normalisation with an activation and the gradients of both. If gated, a factor and an addend of
// each image and channel come between the activation's gradient and the next op's.
func active(tb testing.TB, act expr.Expr, n, c, h int, gated bool) *builder {
	const eps = 1e-3
	b := &builder{tb: tb}
	x, scale, bias := b.data(n, c, h, h), b.weight(c), b.weight(c)
	stats := b.apply(op.BatchNormStats{}, x)
	z := b.apply(op.BatchNorm{Eps: eps}, x, stats, scale, bias)
	y := b.apply(op.Map{Expr: act}, z)
	dy := b.data(n, c, h, h)
	if gated {
		dy = b.apply(op.Map{Expr: x0.Mul(x1)}, dy, b.data(n, c))
		dy = b.apply(op.Map{Expr: x0.Add(x1)}, b.data(n, c), dy)
	}
	dz := b.apply(op.Map{Expr: act.Gradient(x1)[0]}, z, dy)
	sums := b.apply(op.BatchNormGradSums{Eps: eps}, x, stats, dz)
	dx := b.apply(op.BatchNormGradInput{Eps: eps}, x, stats, scale, sums, dz)
	b.Keep = []int{y, sums, dx}
	return b
}

// rewritten is b as d changes it.
func rewritten(b *builder, d *Device) *builder {
	c := *b
	c.Values, c.Steps = slices.Clone(b.Values), slices.Clone(b.Steps)
	d.Rewrite(&c.Program)
	return &c
}

// The gradient of an activation behind a batch normalisation runs with its sums, on a result that is computed again,
// and has the bits of the single steps for any number of threads.
func TestNormsAgain(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for name, act := range map[string]expr.Expr{"silu": silu, "hardswish": hardswish, "relu6": x0.Clamp(0, 6), "tanh": x0.Tanh()} {
			for _, shape := range [][3]int{{3, 5, 7}, {2, 33, 9}, {2, 96, 21}, {2, 300, 4}, {1, 16, 40}, {2, 1100, 5}, {1, 2051, 2}} {
				for _, gated := range []bool{false, true} {
					what := fmt.Sprintf("%s, %v, gated %t", name, shape, gated)
					b := active(t, act, shape[0], shape[1], shape[2], gated)
					alone := bind(t, open(t, 1), &b.Program, b.weights, b.alone())
					alone.run(t)
					for _, threads := range []int{1, 3} {
						d := open(t, threads)
						r := rewritten(b, d)
						last := "batch_norm map batch_norm_grad_sums"
						if gated {
							last = "batch_norm map map map batch_norm_grad_sums"
						}
						groups := r.grouped(d)
						if kinds := groupedKinds(r, groups); !slices.Equal(kinds, []string{"batch_norm map", last}) {
							t.Fatalf("%s: groups %q", what, kinds)
						}
						again := bind(t, d, &r.Program, r.weights, groups)
						again.run(t)
						again.run(t) // finds what the first run has left
						same(t, b, alone, again, what)
					}
				}
			}
		}
	})
}

// Batch normalisations stay as they are if their results are kept or read otherwise, or if nothing sums their gradient.
func TestNormsNotAgain(t *testing.T) {
	d := open(t, 1)
	for name, change := range map[string]func(b *builder, z int){
		"kept":  func(b *builder, z int) { b.Keep = append(b.Keep, z) },
		"a sum": func(b *builder, z int) { b.apply(op.Add{}, z, z) },
		"frozen": func(b *builder, _ int) {
			b.Steps = slices.DeleteFunc(b.Steps, func(s device.Step) bool {
				return s.Op.Kind() == "batch_norm_grad_sums" || s.Op.Kind() == "batch_norm_grad_input"
			})
		},
		"gradient first": func(b *builder, _ int) { b.Steps[2], b.Steps[3] = b.Steps[3], b.Steps[2] },
	} {
		b := active(t, silu, 2, 16, 5, false)
		z := b.Steps[1].Out
		change(b, z)
		if r := rewritten(b, d); len(r.Steps) != len(b.Steps) {
			t.Errorf("%s: %d steps of %d", name, len(r.Steps), len(b.Steps))
		}
	}
}
