package qr

import (
	"math"
	"math/rand/v2"
	"testing"
)

// RᵀR = AᵀA, however the rows are cut, for tall, wide and dependent matrices.
func TestFactor(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range [][2]int{{1, 1}, {5, 1}, {40, 6}, {3, 7}, {7, 7}} {
		d, n := size[0], size[1]
		a := make([][]float64, n)
		for j := range a {
			a[j] = make([]float64, d)
			for i := range a[j] {
				a[j][i] = rng.NormFloat64()
				if j == 4 {
					a[j][i] = a[1][i] - a[2][i]
				}
			}
		}
		for _, step := range []int{1, 3, d} {
			whole, halves := New(n), [2]*Factor{New(n), New(n)}
			for at := 0; at < d; at += step {
				for _, f := range []*Factor{whole, halves[at%2]} {
					rows := make([][]float64, n)
					for j := range rows {
						rows[j] = append(rows[j], a[j][at:min(at+step, d)]...)
					}
					f.Fold(rows)
				}
			}
			halves[0].Merge(halves[1])
			for _, f := range []*Factor{whole, halves[0]} {
				for i := range n {
					for j := range n {
						got, want := 0., 0.
						for k := range n {
							got += f.At(k, i) * f.At(k, j)
						}
						for k := range d {
							want += a[i][k] * a[j][k]
						}
						if math.Abs(got-want) > 1e-13*float64(d) {
							t.Errorf("%d×%d by %d: (RᵀR)[%d,%d] = %v, want %v", d, n, step, i, j, got, want)
						}
						if i > j && f.At(i, j) != 0 {
							t.Errorf("R[%d,%d] = %v below the diagonal", i, j, f.At(i, j))
						}
					}
				}
			}
		}
	}
}

// Columns of zeros and rows of zeros leave zeros, not NaN.
func TestZeros(t *testing.T) {
	f := New(3)
	f.Fold([][]float64{{0, 0}, {0, 0}, {3, 4}})
	f.Fold([][]float64{{0}, {0}, {0}})
	for i := range 3 {
		for j := range 3 {
			want := 0.
			if j == 2 && i == 2 {
				want = 5
			}
			if got := math.Abs(f.At(i, j)); got != want {
				t.Errorf("R[%d,%d] = %v, want %v", i, j, got, want)
			}
		}
	}
}
