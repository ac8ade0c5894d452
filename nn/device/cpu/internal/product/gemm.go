package product

// gemmRows and gemmCols bound the tiles of one call of the matrix product. gonum starts goroutines for more than three
// tiles of 64×64.
const (
	gemmRows = 64
	gemmCols = 64
)

// gemm computes the m×n matrix C = A Bᵀ, or C += A Bᵀ with add, with A m×k and B n×k. All are row-major with the given
// row strides; both operands are read along their rows. The order of summation depends only on k and on the address of
// B modulo 16.
func gemm(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	for i := 0; i < m; i += gemmRows {
		mi := min(gemmRows, m-i)
		for j := 0; j < n; j += gemmCols {
			nj := min(gemmCols, n-j)
			gemmTile(mi, nj, k, a[i*lda:], lda, b[j*ldb:], ldb, c[i*ldc+j:], ldc, add)
		}
	}
}
