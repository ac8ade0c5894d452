package product

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestGemm(t *testing.T) {
	kernels := map[string]func(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool){
		"gemm": gemm, "generic": gemmGeneric,
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range [][3]int{{1, 1, 1}, {4, 4, 4}, {5, 7, 3}, {3, 9, 17}, {64, 64, 25}, {65, 130, 33}, {130, 3, 100},
		{8, 5, 2}} {
		m, n, k := s[0], s[1], s[2]
		lda, ldb, ldc := k+3, k+1, n+2
		a, b := make([]float32, (m-1)*lda+k), make([]float32, (n-1)*ldb+k)
		for _, x := range [][]float32{a, b} {
			for i := range x {
				x[i] = 2*r.Float32() - 1
			}
		}
		for name, kernel := range kernels {
			for _, add := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%dx%dx%d/%v", name, m, n, k, add), func(t *testing.T) {
					c := make([]float32, (m-1)*ldc+n)
					for i := range c {
						c[i] = float32(math.NaN())
					}
					if add {
						for i := range m {
							for j := range n {
								c[i*ldc+j] = 1
							}
						}
					}
					kernel(m, n, k, a, lda, b, ldb, c, ldc, add)
					for i := range m {
						for j := range ldc {
							at := i*ldc + j
							if at >= len(c) {
								continue
							}
							if j >= n {
								if c[at] == c[at] {
									t.Fatalf("wrote behind row %d", i)
								}
								continue
							}
							want := 0.
							if add {
								want = 1
							}
							for l := range k {
								want += float64(a[i*lda+l]) * float64(b[j*ldb+l])
							}
							if got := float64(c[at]); !(math.Abs(got-want) <= 1e-5) {
								t.Fatalf("element %d, %d is %v, want %v", i, j, got, want)
							}
						}
					}
				})
			}
		}
	}
}

// A zero factor does not hide NaN or an infinity.
func TestGemmKeepsNaN(t *testing.T) {
	a := []float32{0, 0, 0, 0}
	b := []float32{float32(math.NaN()), 1, 1, 1}
	for name, kernel := range map[string]func(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32,
		ldc int, add bool){
		"gemm": gemm, "generic": gemmGeneric,
	} {
		c := []float32{7}
		kernel(1, 1, 4, a, 4, b, 4, c, 1, false)
		if c[0] == c[0] {
			t.Errorf("%s: 0·NaN is %v", name, c[0])
		}
	}
}
