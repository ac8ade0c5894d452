package cpu

import (
	"slices"
	"testing"

	"onlinerna/nn/op"
)

// TestMaxPoolGradBehindReLU compares with the steps one by one, for separate windows, with and without pixels between
// them, and for overlapping windows.
func TestMaxPoolGradBehindReLU(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		d := open(t, 2)
		for _, pool := range []op.MaxPool{
			{Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}},
			{Kernel: [2]int{2, 1}, Stride: [2]int{3, 2}},
			{Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}},
		} {
			for _, channels := range []int{1, 3, 6, 16, 70} {
				b := &builder{tb: t}
				y := b.apply(op.ReLU{}, b.data(3, channels, 11, 12))
				dp := b.data(b.Values[b.apply(pool, y)].Type.Shape...)
				b.apply(op.ReLUGrad{}, y, b.apply(op.MaxPoolGrad{MaxPool: pool}, y, dp))
				groups := b.grouped(d)
				if kinds := groupedKinds(b, groups); !slices.Equal(kinds, []string{"max_pool_grad relu_grad"}) {
					t.Fatalf("groups %q", kinds)
				}
				alone := bind(t, d, &b.Program, b.weights, b.alone())
				alone.run(t)
				grouped := bind(t, d, &b.Program, b.weights, groups)
				grouped.run(t)
				same(t, b, alone, grouped, "one by one and grouped")
			}
		}
	})
}
