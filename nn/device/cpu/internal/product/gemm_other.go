//go:build !amd64 || purego

package product

func gemmTile(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	gemmGeneric(m, n, k, a, lda, b, ldb, c, ldc, add)
}
