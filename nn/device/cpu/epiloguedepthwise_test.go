package cpu

import (
	"math"
	"testing"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// A depthwise convolution, and one in groups that have kernels, computes the ops behind it, or the statistics of
// its result, while lines are in a cache.
func TestDepthwiseGroups(t *testing.T) {
	x0 := expr.Arg(0)
	eachLevel(t, func(t *testing.T) {
		for _, c := range []struct{ n, channels, h, kernel, stride, each int }{
			{3, 40, 12, 3, 1, 1}, {2, 33, 13, 5, 2, 1}, {1, 600, 9, 3, 1, 1}, {5, 8, 40, 7, 1, 1},
			{3, 104, 24, 3, 1, 8}, {37, 72, 7, 3, 1, 24}, {2, 40, 13, 3, 2, 4}, {1, 1032, 9, 3, 1, 8},
		} {
			groups := c.channels / c.each
			if c.each > 1 && kern.GroupsFor(at, groups, c.each, c.each) == nil {
				continue
			}
			o := op.Conv2D{Stride: [2]int{c.stride, c.stride}, Pad: [2]int{c.kernel / 2, c.kernel / 2}, Groups: groups}
			for name, end := range map[string]func(b *builder, y int) int{
				"relu":       func(b *builder, y int) int { return b.apply(op.ReLU{}, y) },
				"expression": func(b *builder, y int) int { return b.apply(op.Map{Expr: x0.Mul(x0.Sigmoid())}, y) },
				"statistics": nil,
			} {
				b := &builder{tb: t}
				y := b.apply(o, b.data(c.n, c.channels, c.h, c.h), b.weight(c.channels, c.each, c.kernel, c.kernel),
					b.weight(c.channels))
				result, want := y, "conv2d batch_norm_stats"
				if end != nil {
					y = b.apply(op.BatchNorm{Eps: 1e-5, Fixed: true}, y, b.weight(2, c.channels), b.weight(c.channels),
						b.weight(c.channels))
					result = end(b, y)
					want = map[string]string{"relu": "conv2d batch_norm relu", "expression": "conv2d batch_norm map"}[name]
				} else {
					result = b.apply(op.BatchNormStats{}, y)
					b.Keep = append(b.Keep, y)
				}
				d := open(t, 2)
				groups := b.grouped(d)
				if kinds := groupedKinds(b, groups); len(kinds) != 1 || kinds[0] != want {
					t.Fatalf("%+v, %s: groups %q, want %q", c, name, kinds, want)
				}
				alone := bind(t, d, &b.Program, b.weights, b.alone())
				grouped := bind(t, d, &b.Program, b.weights, groups)
				if end != nil {
					for _, k := range []*bound{alone, grouped} {
						variance := k.floats(t, b.Steps[1].In[1])[c.channels:]
						for i, v := range variance {
							variance[i] = .5 + v*v
						}
					}
				}
				alone.run(t)
				grouped.run(t)
				for _, value := range []int{y, result} {
					if value == y && end != nil {
						continue // it has no storage of its own
					}
					want, got := alone.floats(t, value), grouped.floats(t, value)
					largest := 0.
					for _, v := range want {
						largest = max(largest, math.Abs(float64(v)))
					}
					for i, v := range want {
						if e := math.Abs(float64(got[i] - v)); !(e <= 2e-6*largest) {
							t.Fatalf("%+v, %s: element %d is %v grouped and %v one by one", c, name, i, got[i], v)
						}
					}
				}
			}
		}
	})
}
