package cpu

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gemmTile is gonum's: with B transposed its inner loop is a scalar product in SSE.
func gemmTile(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	var beta float32
	if add {
		beta = 1
	}
	gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, m, n, k, 1, a, lda, b, ldb, beta, c, ldc)
}
