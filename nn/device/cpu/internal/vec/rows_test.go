package vec

import (
	"math"
	"testing"

	"onlinerna/internal/simd"
)

// Attention's weights up to 2^-100 of the largest are 0, so that none is denormal; others, infinities and NaN stay.
func TestSoftmaxPaddedIsVisible(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	limit := float32(-100 * math.Ln2)
	for _, l := range simd.All() {
		for _, width := range []int{7, 16, 49} {
			for _, c := range []struct{ small, want float32 }{
				{-3, float32(math.Exp(-3))}, {limit + .01, float32(math.Exp(float64(limit) + .01))}, {limit - .01, 0}, {-88, 0}, {-100, 0},
				{-inf, 0}, {nan, nan},
			} {
				const rows = 3
				x := make([]float32, rows*Padded(width))
				for r := range rows {
					for i := range width {
						x[r*Padded(width)+i] = 5
					}
					x[r*Padded(width)+width-1-r] += c.small
				}
				For(l).SoftmaxPadded(x, nil, 1, width, rows)
				for r := range rows {
					row := x[r*Padded(width):][:width]
					got, others := row[width-1-r], row[0]
					if c.want != c.want {
						if got == got {
							t.Errorf("%v: NaN is %v", l, got)
						}
						continue
					}
					if ratio := float64(got / others); math.Abs(ratio-float64(c.want)) > 1e-5*float64(c.want) ||
						math.Abs(float64(others)*(float64(width-1)+float64(c.want))-1) > 1e-5 {
						t.Errorf("%v, %d columns: %v below the others has weight %v of theirs, %v; want %v", l, width, c.small, ratio,
							others, c.want)
					}
				}
			}
		}
	}
}
