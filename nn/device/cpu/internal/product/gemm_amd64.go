//go:build !purego

package product

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// shortDepth is the inner dimension up to which plain Go is faster than a call for each element.
const shortDepth = 36

// gemmTile is gonum's: with B transposed its inner loop is a scalar product in SSE.
func gemmTile(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	if k <= shortDepth {
		gemmShort(m, n, k, a, lda, b, ldb, c, ldc, add)
		return
	}
	var beta float32
	if add {
		beta = 1
	}
	gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, m, n, k, 1, a, lda, b, ldb, beta, c, ldc)
}

// gemmShort keeps 2×3 elements of C at a time in registers: more do not fit.
func gemmShort(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	i := 0
	for ; i+2 <= m; i += 2 {
		a0, a1 := a[i*lda:][:k], a[(i+1)*lda:][:k]
		j := 0
		for ; j+3 <= n; j += 3 {
			b0, b1, b2 := b[j*ldb:][:k], b[(j+1)*ldb:][:k], b[(j+2)*ldb:][:k]
			var c00, c01, c02, c10, c11, c12 float32
			for l, x0 := range a0 {
				x1 := a1[l]
				y0, y1, y2 := b0[l], b1[l], b2[l]
				c00 += x0 * y0
				c01 += x0 * y1
				c02 += x0 * y2
				c10 += x1 * y0
				c11 += x1 * y1
				c12 += x1 * y2
			}
			r0, r1 := c[i*ldc+j:][:3], c[(i+1)*ldc+j:][:3]
			if add {
				c00, c01, c02 = r0[0]+c00, r0[1]+c01, r0[2]+c02
				c10, c11, c12 = r1[0]+c10, r1[1]+c11, r1[2]+c12
			}
			r0[0], r0[1], r0[2] = c00, c01, c02
			r1[0], r1[1], r1[2] = c10, c11, c12
		}
		if j < n {
			gemmEdge(2, n-j, k, a[i*lda:], lda, b[j*ldb:], ldb, c[i*ldc+j:], ldc, add)
		}
	}
	if i < m {
		gemmEdge(m-i, n, k, a[i*lda:], lda, b, ldb, c[i*ldc:], ldc, add)
	}
}
