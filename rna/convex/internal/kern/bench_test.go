package kern

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"onlinerna/internal/simd"
)

// A pass over rows of madelon's size by chunks: products with p vectors, n losses and sums.
func BenchmarkPass(b *testing.B) {
	const d, total = 501, 2000
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := random(rng, d*total), random(rng, total)
	width := Padded(d)
	w, g := make([]float64, Most*width), make([]float64, Most*width)
	for _, l := range simd.All() {
		s := For(l)
		for _, rows := range []int{8, 16, 32} {
			for _, c := range [][2]int{{1, 1}, {1, 2}, {2, 3}} {
				b.Run(fmt.Sprintf("%v/rows=%d/%d+%d", l, rows, c[0], c[1]), func(b *testing.B) {
					z, slopes := make([]float64, Most*rows), make([]float64, Most*rows)
					b.SetBytes(8 * d * total)
					for range b.N {
						for lo := 0; lo < total; lo += rows {
							r := min(rows, total-lo)
							s.Dots[c[0]-1](&z[0], &x[lo*d], &w[0], d, d, r, width, rows)
							for k := range c[1] {
								s.LogisticSlopes(&slopes[k*rows], &z[0], &z[0], &y[lo], 1, 0, r)
							}
							s.AddRows[c[1]-1](&g[0], &x[lo*d], &slopes[0], d, d, r, width, rows, r*d)
						}
					}
				})
			}
		}
	}
}
