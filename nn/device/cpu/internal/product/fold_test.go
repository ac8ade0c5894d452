package product

import (
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/op"
)

func TestFold(t *testing.T) {
	set := kern.For(simd.AVX512)
	if set == nil {
		t.Skip("there are no kernels for AVX-512 in this build")
	}
	conv := func(x op.Shape, others, kernel, stride, pad, dilation int) *product {
		w := convWindow(op.Conv2D{
			Stride: [2]int{stride, stride}, Pad: [2]int{pad, pad}, Dilation: [2]int{dilation, dilation}},
			op.Shape{others, x[1], kernel, kernel})
		out := (x[2]+2*pad-dilation*(kernel-1)-1)/stride + 1
		y := op.Shape{x[0], others, out, out}
		return &product{
			grids:  []target{{grid: w.forwardGrid(x, y), stepH: 1, stepW: 1}},
			groups: 1, rows: others, dstH: out, dstW: out, dstC: others,
		}
	}
	for _, c := range []struct {
		name   string
		p      *product
		pixels int
		taps   int
	}{
		{"LeNet", conv(op.Shape{2, 1, 28, 28}, 6, 5, 1, 2, 1), 2, 5 * 6},
		{"stride 2", conv(op.Shape{2, 1, 32, 32}, 6, 5, 2, 2, 1), 2, 5 * 7},
		{"full vectors", conv(op.Shape{2, 16, 32, 32}, 16, 3, 1, 1, 1), 1, 9},
		{"a single tap", conv(op.Shape{2, 16, 32, 32}, 6, 1, 1, 0, 1), 1, 1},
		{"odd width", conv(op.Shape{2, 1, 11, 11}, 6, 5, 1, 2, 1), 1, 25},
		{"dilation", conv(op.Shape{2, 1, 28, 28}, 6, 3, 1, 2, 2), 1, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, weights := c.p.fold(set)
			if q.rows != c.pixels*c.p.rows || len(q.grids[0].taps) != c.taps || (weights == nil) != (c.pixels == 1) {
				t.Fatalf("%d rows, %d taps; want %d and %d", q.rows, len(q.grids[0].taps), c.pixels*c.p.rows, c.taps)
			}
			// Each pixel has each weight once, and the tap reads the same source pixel as before.
			g, f := &c.p.grids[0], &q.grids[0]
			for n := range c.pixels {
				seen := 0
				for i := range weights {
					if w := weights[i][n]; w >= 0 {
						seen++
						if tap, was := f.taps[i], g.taps[w]; tap.row != was.row || tap.col-n*g.colStep != was.col {
							t.Errorf("pixel %d reads weight %d at %d, %d", n, w, tap.row, tap.col)
						}
					}
				}
				if weights != nil && seen != len(g.taps) {
					t.Errorf("pixel %d has %d weights of %d", n, seen, len(g.taps))
				}
			}
		})
	}
}
