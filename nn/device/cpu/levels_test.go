package cpu

import (
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// light is a program of the ops that run on vector kernels: all but matrix products.
func light(tb testing.TB, n, c, h int) *builder {
	b := &builder{tb: tb}
	const eps = 1e-5
	x, other := b.data(n, c, h, h), b.data(n, c, h, h)
	scale, bias := b.weight(c), b.weight(c)
	stats := b.apply(op.BatchNormStats{}, x)
	y := b.apply(op.BatchNorm{Eps: eps}, x, stats, scale, bias)
	z := b.apply(op.ReLU{}, b.apply(op.Add{}, y, other))
	b.apply(op.ReLU{}, b.apply(op.BatchNorm{Eps: eps}, other, stats, scale, bias))
	pool := op.MaxPool{Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}
	mean := op.AvgPool{Kernel: [2]int{2, 2}}
	p := b.apply(pool, z)
	b.apply(op.GlobalAvgPool{}, p)
	dz := b.apply(op.Add{}, b.apply(op.MaxPoolGrad{MaxPool: pool}, z, b.data(b.Values[p].Type.Shape...)),
		b.apply(op.AvgPoolGrad{AvgPool: mean, Input: b.Values[z].Type.Shape}, b.apply(mean, other)))
	dy := b.apply(op.ReLUGrad{}, z, dz)
	sums := b.apply(op.BatchNormGradSums{Eps: eps}, x, stats, dy)
	b.apply(op.ChannelSum{}, b.apply(op.BatchNormGradInput{Eps: eps}, x, stats, scale, sums, dy))
	relu6 := x0.Clamp(0, 6)
	for _, e := range []expr.Expr{silu, gelu, hardswish, relu6, silu.Gradient(x1)[0], relu6.Gradient(x1)[0],
		x0.Exp().Log().Sub(x0.Mul(x0).Sqrt().Tanh())} {
		in := []int{b.apply(op.BatchNorm{Eps: eps}, x, stats, scale, bias), other}
		m := b.apply(op.Map{Expr: e}, in[:e.Args()]...)
		b.apply(op.SumTo{Shape: b.Values[b.apply(op.GlobalAvgPool{}, x)].Type.Shape}, m)
		b.Keep = append(b.Keep, m)
	}
	b.Keep = append(b.Keep, z, dy)
	return b
}

// Levels agree in all bits, except for matrix products, whose results only have to be close.
func TestLevelsGiveEqualBits(t *testing.T) {
	for _, c := range []struct{ n, c, h int }{{3, 7, 30}, {2, 80, 21}, {2, 600, 6}, {1, 270, 5}, {1, 3, 2}, {5, 16, 250}} {
		var want *bound
		for _, l := range simd.All() {
			restore := use(l)
			d := open(t, 1+int(l))
			b := light(t, c.n, c.c, c.h)
			got := bind(t, d, &b.Program, b.weights, b.grouped(d))
			restore()
			got.run(t)
			if want == nil {
				want = got
			}
			same(t, b, want, got, "plain Go and "+l.String())
		}
	}
}
