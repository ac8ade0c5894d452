//go:build gpu && cgo

package blas

// #include <cublas_v2.h>
// #include <stdint.h>
//
// static cublasStatus_t gemm_batch(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
//	uintptr_t a, int lda, long long sa, uintptr_t b, int ldb, long long sb, cudaDataType in, uintptr_t c, int ldc,
//	long long sc, cudaDataType out, int batch, cublasComputeType_t compute) {
//	float one = 1, zero = 0;
//	return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, &one, (const void *)a, in, lda, sa, (const void *)b, in, ldb,
//		sb, &zero, (void *)c, out, ldc, sc, batch, compute, CUBLAS_GEMM_DEFAULT);
// }
import "C"

import (
	"errors"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// GemmBatch computes C = op(A) op(B) for each of batch triples of matrices, which follow one another without gaps.
// Sizes, types and flags are those of Gemm.
func (b *Handle) GemmBatch(p number.Precision, transA, transB bool, m, n, k, batch int, A, B, y driver.Span,
	narrow bool) error {
	if m == 0 || n == 0 || batch == 0 {
		return nil
	}
	if k == 0 {
		return errors.New("cuda: GemmBatch with inner dimension 0")
	}
	element, out, in, outType, compute := types(p, narrow)
	lda, ldb := m, k
	if transA {
		lda = k
	}
	if transB {
		ldb = n
	}
	return b.do(func() error {
		// Each stack of matrices is one matrix with more columns.
		a, err := b.address(element, "A", A, lda, m*k/lda*batch, lda, false)
		if err != nil {
			return err
		}
		x, err := b.address(element, "B", B, ldb, k*n/ldb*batch, ldb, false)
		if err != nil {
			return err
		}
		c, err := b.address(out, "C", y, m, n*batch, m, false)
		if err != nil {
			return err
		}
		const call = "cublasGemmStridedBatchedEx"
		each := int64(batch)
		work := driver.Work{Name: call, Read: each * element * int64(k) * int64(m+n),
			Write: each * out * int64(m) * int64(n), FLOP: each * 2 * int64(m) * int64(n) * int64(k)}
		work.Product = work.Read + work.Write
		return b.s.Give(work, func() error {
			return b.run(call, func() C.cublasStatus_t {
				return C.gemm_batch(b.h, operation(transA), operation(transB), C.int(m), C.int(n), C.int(k), a, C.int(lda),
					C.longlong(m*k), x, C.int(ldb), C.longlong(k*n), in, c, C.int(m), C.longlong(m*n), outType,
					C.int(batch), compute)
			}, func() string {
				return fmt.Sprintf("%v, %d times %d×%d = %d×%d · %d×%d", p, batch, m, n, m, k, k, n)
			})
		})
	})
}
