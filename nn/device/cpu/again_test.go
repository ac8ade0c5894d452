package cpu

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// active is a batch normalisation with an activation and the gradients of both. If gated, an addend of each image and
// channel comes behind the activation, and a factor and an addend before its gradient. If stored, other ops make x and
// dy, and a device may store them as bfloat16.
func active(tb testing.TB, act expr.Expr, n, c, h int, gated, stored bool) *builder {
	const eps = 1e-3
	b := &builder{tb: tb}
	data := func() int {
		if stored {
			return b.apply(op.SliceAxis(op.Shape{n, c + 1, h, h}, 1, 1, c+1), b.data(n, c+1, h, h))
		}
		return b.data(n, c, h, h)
	}
	x, scale, bias := data(), b.weight(c), b.weight(c)
	stats := b.apply(op.BatchNormStats{}, x)
	z := b.apply(op.BatchNorm{Eps: eps}, x, stats, scale, bias)
	y := b.apply(op.Map{Expr: act}, z)
	dy := data()
	if gated {
		y = b.apply(op.Map{Expr: x0.Add(x1)}, y, b.data(n, c))
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
					b := active(t, act, shape[0], shape[1], shape[2], gated, false)
					for _, threads := range []int{1, 3} {
						d := open(t, threads)
						r := rewritten(b, d)
						want := []string{"batch_norm map", "batch_norm map batch_norm_grad_sums"}
						if gated {
							want = []string{"batch_norm map map", "batch_norm map map map batch_norm_grad_sums"}
						}
						groups := r.grouped(d)
						if kinds := groupedKinds(r, groups); !slices.Equal(kinds, want) {
							t.Fatalf("%s: groups %q", what, kinds)
						}
						alone := bind(t, open(t, 1), &b.Program, b.weights, b.alone())
						again := bind(t, d, &r.Program, r.weights, groups)
						alone.run(t)
						again.run(t)
						same(t, b, alone, again, what)
						for v := range b.Values { // the next run has other operands
							if !slices.ContainsFunc(b.Steps, func(s device.Step) bool { return s.Out == v }) {
								for _, k := range []*bound{alone, again} {
									slices.Reverse(k.floats(t, v))
								}
							}
						}
						alone.run(t)
						again.run(t)
						same(t, b, alone, again, what+", second run")
						i := slices.IndexFunc(groups, func(g []int) bool { return r.Steps[g[len(g)-1]].Op.Kind() == "batch_norm_grad_sums" })
						g, values := r.Group(groups[i]...)
						plan, err := d.Describe(g)
						if err != nil {
							t.Fatal(err)
						}
						for _, y := range plan.Outputs {
							if slices.ContainsFunc(y.Over, func(i int) bool { return values[g.Inputs[i]] == 0 }) {
								t.Errorf("%s: a result takes the storage of x, which is read after it is written", what)
							}
						}
					}
				}
			}
		}
	})
}

// In bfloat16 the results are those of float32 up to rounding.
func TestNormsAgainInBFloat16(t *testing.T) {
	exact := open(t, 1)
	for name, act := range map[string]expr.Expr{"silu": silu, "hardswish": hardswish, "relu6": x0.Clamp(0, 6), "tanh": x0.Tanh()} {
		for _, shape := range [][3]int{{2, 33, 9}, {2, 96, 21}, {2, 1100, 5}} {
			for _, gated := range []bool{false, true} {
				b := active(t, act, shape[0], shape[1], shape[2], gated, true)
				want := bind(t, exact, &b.Program, b.weights, b.alone())
				want.run(t)
				narrowWays(t, func(way string, d *Device) {
					r := rewritten(b, d)
					got := bind(t, d, &r.Program, r.weights, r.grouped(d))
					got.run(t)
					for _, v := range b.Keep {
						size, off := 0., 0.
						numbers := got.numbers(t, d, r.Values[v], v)
						for i, w := range want.numbers(t, exact, b.Values[v], v) {
							size += float64(w) * float64(w)
							off += math.Pow(float64(numbers[i]-w), 2)
						}
						if !(off <= .05*.05*size) { // of ReLU6, which has steps
							t.Errorf("%s, %v, gated %t, %s: value %d differs by %.3g of its norm", name, shape, gated, way, v, math.Sqrt(off/size))
						}
					}
				})
			}
		}
	}
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
		"no activation": func(b *builder, z int) {
			b.Steps[3].In = []int{z, b.Steps[2].Out}
			b.Keep = b.Keep[1:]
		},
		"sums of another operand":    func(b *builder, _ int) { b.Steps[4].In[0] = b.data(2, 16, 5, 5) },
		"sums with other statistics": func(b *builder, _ int) { b.Steps[4].In[1] = b.weight(32) },
	} {
		b := active(t, silu, 2, 16, 5, false, false)
		z := b.Steps[1].Out
		change(b, z)
		if r := rewritten(b, d); len(r.Steps) != len(b.Steps) {
			t.Errorf("%s: %d steps of %d", name, len(r.Steps), len(b.Steps))
		}
	}
}

// Other expressions behind a batch normalisation have the bits of single steps, too.
func TestNormsReadOtherwise(t *testing.T) {
	d := open(t, 2)
	for name, build := range map[string]func(b *builder, z, x, stats int){
		"gradient of a result that is kept": func(b *builder, z, x, stats int) {
			dz := b.apply(op.Map{Expr: silu.Gradient(x1)[0]}, z, b.data(2, 16, 5, 5))
			b.Keep = []int{z, dz, b.apply(op.BatchNormGradSums{Eps: 1e-3}, x, stats, dz)}
		},
		"activation of a result that is kept": func(b *builder, z, _, _ int) {
			b.Keep = []int{z, b.apply(op.Map{Expr: silu}, z)}
		},
		"result as a gradient": func(b *builder, z, x, stats int) {
			dz := b.apply(op.Map{Expr: silu.Gradient(x1)[0]}, b.data(2, 16, 5, 5), z)
			b.Keep = []int{dz, b.apply(op.BatchNormGradSums{Eps: 1e-3}, x, stats, dz)}
		},
		"repeated gradient": func(b *builder, z, x, stats int) {
			dz := b.apply(op.Map{Expr: silu.Gradient(x1)[0]}, z, b.data(2, 16))
			b.Keep = []int{dz, b.apply(op.BatchNormGradSums{Eps: 1e-3}, x, stats, dz)}
		},
	} {
		b := &builder{tb: t}
		x, scale := b.data(2, 16, 5, 5), b.weight(16)
		stats := b.apply(op.BatchNormStats{}, x)
		build(b, b.apply(op.BatchNorm{Eps: 1e-3}, x, stats, scale, scale), x, stats)
		groups := b.grouped(d)
		if kinds := groupedKinds(b, groups); len(kinds) != 1 || !strings.HasPrefix(kinds[0], "batch_norm map") {
			t.Errorf("%s: groups %q", name, kinds)
		}
		alone, grouped := bind(t, d, &b.Program, b.weights, b.alone()), bind(t, d, &b.Program, b.weights, groups)
		alone.run(t)
		grouped.run(t)
		same(t, b, alone, grouped, name)
	}
}
