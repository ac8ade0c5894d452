package product

// gemmGeneric is gemmTile in plain Go: 4×4 elements of C at a time stay in registers.
func gemmGeneric(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	i := 0
	for ; i+4 <= m; i += 4 {
		j := 0
		for ; j+4 <= n; j += 4 {
			gemm4x4(k, a[i*lda:], lda, b[j*ldb:], ldb, c[i*ldc+j:], ldc, add)
		}
		if j < n {
			gemmEdge(4, n-j, k, a[i*lda:], lda, b[j*ldb:], ldb, c[i*ldc+j:], ldc, add)
		}
	}
	if i < m {
		gemmEdge(m-i, n, k, a[i*lda:], lda, b, ldb, c[i*ldc:], ldc, add)
	}
}

func gemm4x4(k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	a0, a1, a2, a3 := a[:k], a[lda:][:k], a[2*lda:][:k], a[3*lda:][:k]
	b0, b1, b2, b3 := b[:k], b[ldb:][:k], b[2*ldb:][:k], b[3*ldb:][:k]
	var c00, c01, c02, c03, c10, c11, c12, c13 float32
	var c20, c21, c22, c23, c30, c31, c32, c33 float32
	for l := range k {
		x0, x1, x2, x3 := a0[l], a1[l], a2[l], a3[l]
		y := b0[l]
		c00 += x0 * y
		c10 += x1 * y
		c20 += x2 * y
		c30 += x3 * y
		y = b1[l]
		c01 += x0 * y
		c11 += x1 * y
		c21 += x2 * y
		c31 += x3 * y
		y = b2[l]
		c02 += x0 * y
		c12 += x1 * y
		c22 += x2 * y
		c32 += x3 * y
		y = b3[l]
		c03 += x0 * y
		c13 += x1 * y
		c23 += x2 * y
		c33 += x3 * y
	}
	putRow(c, c00, c01, c02, c03, add)
	putRow(c[ldc:], c10, c11, c12, c13, add)
	putRow(c[2*ldc:], c20, c21, c22, c23, add)
	putRow(c[3*ldc:], c30, c31, c32, c33, add)
}

func putRow(c []float32, x0, x1, x2, x3 float32, add bool) {
	c = c[:4]
	if add {
		x0, x1, x2, x3 = c[0]+x0, c[1]+x1, c[2]+x2, c[3]+x3
	}
	c[0], c[1], c[2], c[3] = x0, x1, x2, x3
}

func gemmEdge(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, add bool) {
	for i := range m {
		for j := range n {
			x := a[i*lda:][:k]
			y := b[j*ldb:][:k]
			var s0, s1 float32
			l := 0
			for ; l+2 <= k; l += 2 {
				s0 += x[l] * y[l]
				s1 += x[l+1] * y[l+1]
			}
			if l < k {
				s0 += x[l] * y[l]
			}
			s0 += s1
			if add {
				s0 += c[i*ldc+j]
			}
			c[i*ldc+j] = s0
		}
	}
}
