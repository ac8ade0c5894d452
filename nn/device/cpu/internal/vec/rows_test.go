package vec

import (
	"math"
	"testing"

	"onlinerna/internal/simd"
)

// Attention's weights up to 2^-100 of the largest are 0, others stay.
func TestSoftmaxPaddedDropsSmallWeights(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	limit := float32(-100 * math.Ln2)
	e := func(x float32) float32 { return float32(math.Exp(float64(x))) }
	for _, l := range simd.All() {
		for _, width := range []int{7, 16, 49} {
			// A row of equal scores but for one: the one's weight, to that of the others.
			for _, c := range []struct{ scores, one, want float32 }{
				{5, 2, e(-3)}, {0, limit + .01, e(limit + .01)}, {0, limit - .01, 0}, {5, -83, 0}, {5, -95, 0}, {5, -inf, 0},
				{-1e9, -1e9, 1}, {5, nan, nan}, {-inf, -inf, nan},
			} {
				const rows = 3
				x := make([]float32, rows*Padded(width))
				for r := range rows {
					for i := range width {
						x[r*Padded(width)+i] = c.scores
					}
					x[r*Padded(width)+width-1-r] = c.one
				}
				For(l).SoftmaxPadded(x, nil, 1, width, rows)
				for r := range rows {
					row := x[r*Padded(width):][:width]
					one, other := float64(row[width-1-r]), float64(row[0])
					if c.want != c.want {
						if one == one {
							t.Errorf("%v: NaN is %v", l, one)
						}
						continue
					}
					sum := other * float64(float32(width-1)+c.want)
					if math.Abs(one/other-float64(c.want)) > 1e-5*float64(c.want) || math.Abs(sum-1) > 1e-5 {
						t.Errorf("%v, %d columns: %v beside %v has the weight %v beside %v, want %v times as much", l, width, c.one,
							c.scores, one, other, c.want)
					}
				}
			}
		}
		x := []float32{0, -80}
		if For(l).Softmax(x, x, nil, 1, 2, 1); !(x[1] > 0) {
			t.Errorf("%v: the weight of a softmax on its own is %v", l, x[1])
		}
	}
}
