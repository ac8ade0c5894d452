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

var activations = map[string]expr.Expr{
	"silu": silu, "hardswish": hardswish, "relu6": x0.Clamp(0, 6), "tanh": x0.Tanh(),
}

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

// inputs are the values that no step makes.
func (b *builder) inputs() (list []int) {
	for v := range b.Values {
		if !slices.ContainsFunc(b.Steps, func(s device.Step) bool { return s.Out == v }) {
			list = append(list, v)
		}
	}
	return list
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
		for name, act := range activations {
			for _, shape := range [][3]int{
				{3, 5, 7}, {2, 33, 9}, {2, 96, 21}, {2, 300, 4}, {1, 16, 40}, {2, 1100, 5}, {1, 2051, 2},
			} {
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
						for _, v := range b.inputs() { // the next run has other operands
							slices.Reverse(alone.floats(t, v))
							slices.Reverse(again.floats(t, v))
						}
						alone.run(t)
						again.run(t)
						same(t, b, alone, again, what+", second run")
					}
				}
			}
		}
	})
}

// In bfloat16 the results are those of float32 up to the rounding of stored results.
func TestNormsAgainInBFloat16(t *testing.T) {
	exact := open(t, 1)
	for name, act := range activations {
		for _, shape := range [][3]int{{2, 33, 9}, {2, 96, 21}, {2, 1100, 5}} {
			for _, gated := range []bool{false, true} {
				b := active(t, act, shape[0], shape[1], shape[2], gated, true)
				run := func(p *builder, d *Device, groups [][]int) *bound {
					k := bind(t, d, &p.Program, p.weights, groups)
					for _, v := range p.inputs() {
						x := k.floats(t, v)
						for i := range x { // so that rounding does not open or close a ReLU6
							x[i] = math.Float32frombits(math.Float32bits(x[i]) &^ (1<<16 - 1))
						}
					}
					k.run(t)
					return k
				}
				want := run(b, exact, b.alone())
				narrowWays(t, func(way string, d *Device) {
					r := rewritten(b, d)
					got := run(r, d, r.grouped(d))
					for _, v := range b.Keep {
						largest, off := 0., 0.
						numbers := got.numbers(t, d, r.Values[v], v)
						for i, w := range want.numbers(t, exact, b.Values[v], v) {
							largest = max(largest, math.Abs(float64(w)))
							off = max(off, math.Abs(float64(numbers[i]-w)))
						}
						if !(off <= .01*largest) {
							t.Errorf("%s, %v, gated %t, %s: value %d differs by %.3g of the largest", name, shape, gated, way,
								v, off/largest)
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
		"gradient read before the sums": func(b *builder, _ int) {
			b.apply(op.ReLU{}, b.Steps[3].Out)
			last := len(b.Steps) - 1
			b.Steps = slices.Insert(b.Steps[:last:last], 4, b.Steps[last])
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
		"expression of the operand too": func(b *builder, z, x, stats int) {
			dz := b.apply(op.Map{Expr: x0.Tanh().Mul(x1)}, z, x)
			b.Keep = []int{dz, b.apply(op.BatchNormGradSums{Eps: 1e-3}, x, stats, dz)}
		},
		"operand as a gradient": func(b *builder, z, x, stats int) {
			dz := b.apply(op.Map{Expr: silu.Gradient(x1)[0]}, z, x)
			b.Keep = []int{dz, b.apply(op.BatchNormGradSums{Eps: 1e-3}, x, stats, dz)}
		},
		"gradient of itself": func(b *builder, z, x, stats int) {
			dz := b.apply(op.Map{Expr: silu.Gradient(x0)[0]}, z)
			b.Keep = []int{dz, b.apply(op.BatchNormGradSums{Eps: 1e-3}, x, stats, dz)}
		},
		"gradient of a product with it": func(b *builder, z, x, stats int) {
			dy := b.apply(op.Map{Expr: x0.Mul(x1)}, b.data(2, 16, 5, 5), z)
			dz := b.apply(op.Map{Expr: silu.Gradient(x1)[0]}, z, dy)
			b.Keep = []int{dz, b.apply(op.BatchNormGradSums{Eps: 1e-3}, x, stats, dz)}
		},
		"two readers in a chain": func(b *builder, z, _, _ int) {
			b.Keep = []int{b.apply(op.Map{Expr: x0.Mul(x1)}, b.apply(op.Map{Expr: x0.Tanh()}, z), z)}
		},
		"sums with another eps": func(b *builder, z, x, stats int) {
			dz := b.apply(op.Map{Expr: silu.Gradient(x1)[0]}, z, b.data(2, 16, 5, 5))
			b.Keep = []int{dz, b.apply(op.BatchNormGradSums{Eps: .1}, x, stats, dz)}
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
