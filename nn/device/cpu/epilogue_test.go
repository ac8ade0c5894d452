package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// The gradient with respect to a ReLU's result has the same bits in a group as step by step.
func TestGradInputGroups(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if at.Vectors() == simd.Go {
			return // plain Go has no groups
		}
		for _, channels := range [][2]int{{16, 16}, {5, 33}, {130, 70}} { // channels of the input, of the result
			for _, kernel := range []int{1, 3} {
				for _, added := range []bool{false, true} {
					const n, h, eps = 5, 9, 1e-5
					b := &builder{tb: t}
					conv := op.Conv2D{Pad: [2]int{kernel / 2, kernel / 2}}
					x, y, stats := b.data(n, channels[0], h, h), b.data(n, channels[0], h, h), b.weight(2, channels[0])
					g := b.apply(op.Conv2DGradInput{Conv2D: conv, Input: b.Values[x].Type.Shape},
						b.weight(channels[1], channels[0], kernel, kernel), b.data(n, channels[1], h, h))
					want := []string{"conv2d_grad_input relu_grad batch_norm_grad_sums"}
					if added {
						g = b.apply(op.Add{}, b.data(n, channels[0], h, h), g)
						want = []string{"conv2d_grad_input add relu_grad batch_norm_grad_sums"}
					}
					g = b.apply(op.ReLUGrad{}, y, g)
					b.apply(op.BatchNormGradSums{Eps: eps}, x, stats, g)
					b.Keep = append(b.Keep, g)

					d := open(t, 2)
					groups := b.grouped(d)
					if kinds := groupedKinds(b, groups); !slices.Equal(kinds, want) {
						t.Fatalf("groups %q, want %q", kinds, want)
					}
					alone := bind(t, d, &b.Program, b.weights, b.alone())
					grouped := bind(t, d, &b.Program, b.weights, groups)
					alone.run(t)
					grouped.run(t)
					same(t, b, alone, grouped, want[0])
				}
			}
		}
	})
}

// The gradient of a linear layer and an expression of it have the same bits in a group as step by step.
func TestLinearGradGroups(t *testing.T) {
	x2 := expr.Arg(2)
	eachLevel(t, func(t *testing.T) {
		if at.Vectors() == simd.Go {
			return
		}
		for _, size := range [][3]int{{30, 100, 300}, {400, 40, 24}, {225, 17, 513}, {24, 24, 24}, {230, 64, 230}} {
			n, in, out := size[0], size[1], size[2]
			for name, c := range map[string]struct {
				e  expr.Expr
				in func(b *builder, dy, w, made int) []int
			}{
				"gelu": {gelu.Gradient(x1)[0], func(b *builder, _, _, made int) []int { return []int{b.data(n, in), made} }},
				"twice": {x0.Mul(x1).Add(x2), func(b *builder, _, _, made int) []int {
					x := b.data(n, in)
					return []int{x, made, x}
				}},
				"three": {x0.Exp().Mul(x1).Add(x2.Tanh()).Add(expr.Arg(3)), func(b *builder, _, _, made int) []int {
					x := b.data(n, in)
					return []int{b.data(n, in), made, x, b.data(n, in)}
				}},
				"source": {gelu.Gradient(x1)[0], func(b *builder, dy, _, made int) []int {
					if in != out {
						dy = b.data(n, in)
					}
					return []int{dy, made}
				}},
				"weights": {gelu.Gradient(x1)[0], func(b *builder, _, w, made int) []int {
					if n != out {
						w = b.data(n, in)
					}
					return []int{w, made}
				}},
			} {
				b := &builder{tb: t}
				dy, w := b.data(n, out), b.weight(out, in)
				b.Keep = append(b.Keep, b.apply(op.Map{Expr: c.e}, c.in(b, dy, w, b.apply(op.LinearGradInput{}, w, dy))...))
				alone := bind(t, open(t, 1), &b.Program, b.weights, b.alone())
				alone.run(t)
				for _, workers := range []int{1, 3, 16} {
					d := open(t, workers)
					groups := b.grouped(d)
					if kinds := groupedKinds(b, groups); !slices.Equal(kinds, []string{"linear_grad_input map"}) {
						t.Fatalf("%s: groups %q", name, kinds)
					}
					grouped := bind(t, d, &b.Program, b.weights, groups)
					grouped.run(t)
					same(t, b, alone, grouped, fmt.Sprintf("%v, %s, %d workers", size, name, workers))
				}
			}
		}
	})
}

// A batch normalisation by constants is folded into the weights of the convolution before it.
func TestEvaluationGroups(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if at.Vectors() == simd.Go {
			return // plain Go has no groups
		}
		for _, c := range []struct{ in, out, kernel, stride, groups int }{
			{3, 16, 7, 2, 1}, {3, 5, 3, 1, 1}, {16, 33, 1, 1, 1}, {70, 40, 3, 2, 1}, {32, 48, 3, 1, 2}, {600, 64, 1, 1, 1},
			{24, 24, 3, 1, 6}, {64, 64, 3, 2, 8}, {72, 72, 3, 1, 3},
		} {
			for _, bias := range []bool{false, true} {
				const n, h = 3, 12
				b := &builder{tb: t}
				o := op.Conv2D{Stride: [2]int{c.stride, c.stride}, Pad: [2]int{c.kernel / 2, c.kernel / 2}, Groups: c.groups}
				in := []int{b.data(n, c.in, h, h), b.weight(c.out, c.in/c.groups, c.kernel, c.kernel)}
				if bias {
					in = append(in, b.weight(c.out))
				}
				y := b.apply(o, in...)
				y = b.apply(op.BatchNorm{Eps: 1e-5, Fixed: true}, y, b.weight(2, c.out), b.weight(c.out), b.weight(c.out))
				y = b.apply(op.Add{}, b.data(b.Values[y].Type.Shape...), y)
				y = b.apply(op.ReLU{}, y)

				d := open(t, 2)
				groups := b.grouped(d)
				if len(groups) != 1 {
					t.Fatalf("%+v: groups %q", c, groupedKinds(b, groups))
				}
				alone := bind(t, d, &b.Program, b.weights, b.alone())
				grouped := bind(t, d, &b.Program, b.weights, groups)
				for _, k := range []*bound{alone, grouped} {
					variance := k.floats(t, b.Steps[1].In[1])[c.out:]
					for i, v := range variance {
						variance[i] = .5 + v*v
					}
				}
				alone.run(t)
				grouped.run(t)
				want, got := alone.floats(t, y), grouped.floats(t, y)
				largest := 0.
				for _, v := range want {
					largest = max(largest, float64(v))
				}
				for i, v := range want {
					if e := math.Abs(float64(got[i] - v)); !(e <= 2e-6*largest) {
						t.Fatalf("%+v: element %d is %v grouped and %v one by one", c, i, got[i], v)
					}
				}
			}
		}
	})
}
