//go:build gpu && cgo

// Package blas multiplies matrices in GPU memory with cuBLAS. Of this module it imports package driver and its leaves.
package blas

// #cgo CFLAGS: -I${SRCDIR}/../include
// #include <cublas_v2.h>
// #include <stdint.h>
//
// // Addresses are numbers: they are the GPU's.
// static cublasStatus_t set_workspace(cublasHandle_t h, uintptr_t at, size_t bytes) {
//	return cublasSetWorkspace_v2(h, (void *)at, bytes);
// }
// static cublasStatus_t dgemv(cublasHandle_t h, cublasOperation_t trans, int m, int n, double alpha, uintptr_t a,
//	int lda,
//	uintptr_t x, int incx, double beta, uintptr_t y, int incy) {
//	return cublasDgemv_v2(h, trans, m, n, &alpha, (const double *)a, lda, (const double *)x, incx, &beta, (double *)y,
//		incy);
// }
// static cublasStatus_t sgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
//	float alpha,
//	uintptr_t a, int lda, uintptr_t b, int ldb, float beta, uintptr_t c, int ldc) {
//	return cublasSgemm_v2(h, ta, tb, m, n, k, &alpha, (const float *)a, lda, (const float *)b, ldb, &beta, (float *)c,
//		ldc);
// }
// static cublasStatus_t gemm_ex(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
//	float alpha,
//	uintptr_t a, int lda, uintptr_t b, int ldb, cudaDataType in, float beta, uintptr_t c, int ldc, cudaDataType out,
//		cublasComputeType_t compute) {
//	return cublasGemmEx(h, ta, tb, m, n, k, &alpha, (const void *)a, in, lda, (const void *)b, in, ldb, &beta,
//		(void *)c, out, ldc, compute, CUBLAS_GEMM_DEFAULT);
// }
import "C"

import (
	"errors"
	"fmt"
	"math"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/number"
)

// Handle is a cuBLAS handle whose work goes to one stream. Matrices are column-major: element (i, j) of a matrix with
// leading dimension ld is i + j·ld elements from its span's start.
type Handle struct {
	*driver.Resource
	c *driver.Context
	s *driver.Stream
	h C.cublasHandle_t
}

// New makes a cuBLAS handle for s. A missing cuBLAS is a [*lazy.NotFoundError].
func New(s *driver.Stream) (*Handle, error) {
	if err := lazy.CuBLAS.Load(); err != nil {
		return nil, err
	}
	b := &Handle{c: s.Context(), s: s}
	err := s.Do(func() error {
		err := b.c.Retry(func() error {
			return failure("cublasCreate", C.cublasCreate_v2(&b.h),
				fmt.Sprintf("%v, %s", b.c.Info(), lazy.CuBLAS.File()))
		})
		if err != nil {
			if e := (*driver.Error)(nil); errors.As(err, &e) && e.Code == C.CUBLAS_STATUS_NOT_INITIALIZED {
				e.Text = fmt.Sprintf("the driver supports CUDA %s; a cuBLAS for a later CUDA does not start",
					lazy.VersionString(lazy.DriverVersion()))
			}
			return err
		}
		if err := b.check("cublasSetStream", C.cublasSetStream_v2(b.h, C.cudaStream_t(s.Pointer())), ""); err != nil {
			return errors.Join(err, b.destroy())
		}
		b.Resource = b.c.Adopt("cuBLAS handle", b.destroy)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Handle) destroy() error {
	return failure("cublasDestroy", C.cublasDestroy_v2(b.h), "")
}

// SetWorkspace makes products use s as scratch memory and lose its content. Without it cuBLAS allocates scratch, and a
// graph needs its own. s must start at a multiple of 256 bytes and stay open until the handle is closed.
func (b *Handle) SetWorkspace(s driver.Span) error {
	return b.do(func() error {
		p, err := s.Address(b.c)
		if err != nil {
			return err
		}
		if p%256 != 0 { // cuBLAS takes it without a word
			return fmt.Errorf("cuda: cublasSetWorkspace: the address %#x is not a multiple of 256", p)
		}
		return b.check("cublasSetWorkspace", C.set_workspace(b.h, C.uintptr_t(p), C.size_t(s.Bytes())),
			driver.Size(s.Bytes()))
	})
}

// do runs f on the owner thread with an open handle.
func (b *Handle) do(f func() error) error {
	return b.s.Do(func() error {
		if err := b.Check(); err != nil {
			return err
		}
		return f()
	})
}

// check turns a status into an error, or into the error of the GPU behind it.
func (b *Handle) check(call string, code C.cublasStatus_t, detail string) error {
	err := failure(call, code, detail)
	if err == nil {
		return nil
	}
	if lost := b.c.Verdict(); lost != nil {
		return lost
	}
	if e := (*driver.Error)(nil); code == C.CUBLAS_STATUS_ALLOC_FAILED && errors.As(err, &e) {
		return b.c.OutOfMemory(e, false)
	}
	return err
}

// run makes a call that puts work on the stream. It retries once, since cuBLAS may lack memory for its kernels.
func (b *Handle) run(call string, f func() C.cublasStatus_t, detail func() string) error {
	var code C.cublasStatus_t
	err := b.c.Retry(func() error {
		if code = f(); code == C.CUBLAS_STATUS_SUCCESS {
			return nil
		}
		return failure(call, code, "")
	})
	if err == nil {
		return nil
	}
	return b.check(call, code, detail())
}

// types are the sizes in bytes and cuBLAS's types of factors and results, and how products are summed.
func types(p number.Precision, narrow bool) (element, out int64, in, outType C.cudaDataType,
	how C.cublasComputeType_t) {
	element, out, outType, how = int64(p.Bytes()), 4, C.CUDA_R_32F, C.CUBLAS_COMPUTE_32F
	in = [...]C.cudaDataType{
		number.Float32: C.CUDA_R_32F, number.TF32: C.CUDA_R_32F, number.BFloat16: C.CUDA_R_16BF,
		number.Float16: C.CUDA_R_16F,
	}[p]
	if narrow {
		out, outType = element, in
	}
	if p == number.TF32 {
		how = C.CUBLAS_COMPUTE_32F_FAST_TF32
	}
	return element, out, in, outType, how
}

// Gemm computes C = α op(A) op(B) + β C, where op transposes if its flag is set. C is m×n and the inner dimension k.
// Factors have the given precision, and C as well if narrow is set, else float32; sums are float32. With β = 0 C is not
// read.
func (b *Handle) Gemm(p number.Precision, transA, transB bool, m, n, k int, alpha float32, A driver.Span, lda int,
	B driver.Span, ldb int,
	beta float32, y driver.Span, ldc int, narrow bool) error {
	if m == 0 || n == 0 {
		return nil
	}
	if k == 0 {
		return errors.New("cuda: Gemm with inner dimension 0")
	}
	element, out, in, outType, compute := types(p, narrow)
	return b.do(func() error {
		a, err := b.address(element, "A", A, m, k, lda, transA)
		if err != nil {
			return err
		}
		x, err := b.address(element, "B", B, k, n, ldb, transB)
		if err != nil {
			return err
		}
		c, err := b.address(out, "C", y, m, n, ldc, false)
		if err != nil {
			return err
		}
		call, run := "cublasSgemm", func() C.cublasStatus_t {
			return C.sgemm(b.h, operation(transA), operation(transB), C.int(m), C.int(n), C.int(k), C.float(alpha), a,
				C.int(lda),
				x, C.int(ldb), C.float(beta), c, C.int(ldc))
		}
		if p != number.Float32 {
			call, run = "cublasGemmEx", func() C.cublasStatus_t {
				return C.gemm_ex(b.h, operation(transA), operation(transB), C.int(m), C.int(n), C.int(k),
					C.float(alpha), a, C.int(lda),
					x, C.int(ldb), in, C.float(beta), c, C.int(ldc), outType, compute)
			}
		}
		work := driver.Work{Name: call, Read: element * int64(k) * int64(m+n), Write: out * int64(m) * int64(n),
			FLOP: 2 * int64(m) * int64(n) * int64(k)}
		if beta != 0 {
			work.Read += work.Write
		}
		work.Product = work.Read + work.Write
		return b.s.Give(work, func() error {
			return b.run(call, run, func() string {
				return fmt.Sprintf("%v, %d×%d = %d×%d · %d×%d, leading dimensions %d, %d, %d", p, m, n, m, k, k, n, lda,
					ldb, ldc)
			})
		})
	})
}

// Dgemv computes y = α op(A) x + β y in float64. A is m×n, and op transposes if trans is set. With β = 0 y is not read.
func (b *Handle) Dgemv(trans bool, m, n int, alpha float64, A driver.Span, lda int, x driver.Span, incX int,
	beta float64, y driver.Span, incY int) error {
	if m == 0 || n == 0 {
		return nil
	}
	if incX < 1 || incY < 1 {
		return fmt.Errorf("cuda: Dgemv with increments %d, %d: they must be positive", incX, incY)
	}
	nx, ny := n, m
	if trans {
		nx, ny = m, n
	}
	return b.do(func() error {
		a, err := b.address(8, "A", A, m, n, lda, false)
		if err != nil {
			return err
		}
		// A vector with an increment is a row of a matrix.
		xs, err := b.address(8, "x", x, 1, nx, incX, false)
		if err != nil {
			return err
		}
		ys, err := b.address(8, "y", y, 1, ny, incY, false)
		if err != nil {
			return err
		}
		work := driver.Work{Name: "cublasDgemv", Read: 8 * (int64(m)*int64(n) + int64(nx)), Write: 8 * int64(ny),
			FLOP: 2 * int64(m) * int64(n)}
		if beta != 0 {
			work.Read += work.Write
		}
		work.Product = work.Read + work.Write
		return b.s.Give(work, func() error {
			return b.run("cublasDgemv", func() C.cublasStatus_t {
				return C.dgemv(b.h, operation(trans), C.int(m), C.int(n), C.double(alpha), a, C.int(lda), xs,
					C.int(incX), C.double(beta), ys, C.int(incY))
			}, func() string {
				return fmt.Sprintf("%d×%d, leading dimension %d, increments %d, %d", m, n, lda, incX, incY)
			})
		})
	})
}

func operation(trans bool) C.cublasOperation_t {
	if trans {
		return C.CUBLAS_OP_T
	}
	return C.CUBLAS_OP_N
}

// address returns the address of a rows×cols matrix, stored transposed with trans, if all of it lies in s.
func (b *Handle) address(element int64, what string, s driver.Span, rows, cols, ld int, trans bool) (C.uintptr_t,
	error) {
	if trans {
		rows, cols = cols, rows
	}
	if rows < 0 || cols < 0 || ld < max(rows, 1) || max(ld, cols) > math.MaxInt32 {
		return 0, fmt.Errorf("cuda: BLAS: %s has %d×%d elements and leading dimension %d: no such matrix", what, rows,
			cols, ld)
	}
	n := int64(ld)*int64(cols-1) + int64(rows)
	if element*n > s.Bytes() {
		return 0, fmt.Errorf("cuda: BLAS: %s has %d×%d elements and leading dimension %d: it needs %d bytes, the "+
			"span has %d",
			what, rows, cols, ld, element*n, s.Bytes())
	}
	p, err := s.Address(b.c)
	return C.uintptr_t(p), err
}

// Version returns the version of the loaded cuBLAS.
func Version() (string, error) {
	var v [3]C.int
	for i := range v {
		if code := C.cublasGetProperty(C.libraryPropertyType(i), &v[i]); code != C.CUBLAS_STATUS_SUCCESS {
			return "", failure("cublasGetProperty", code, lazy.CuBLAS.File())
		}
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]), nil
}

var names = map[C.cublasStatus_t]string{
	C.CUBLAS_STATUS_NOT_INITIALIZED:  "CUBLAS_STATUS_NOT_INITIALIZED",
	C.CUBLAS_STATUS_ALLOC_FAILED:     "CUBLAS_STATUS_ALLOC_FAILED",
	C.CUBLAS_STATUS_INVALID_VALUE:    "CUBLAS_STATUS_INVALID_VALUE",
	C.CUBLAS_STATUS_ARCH_MISMATCH:    "CUBLAS_STATUS_ARCH_MISMATCH",
	C.CUBLAS_STATUS_MAPPING_ERROR:    "CUBLAS_STATUS_MAPPING_ERROR",
	C.CUBLAS_STATUS_EXECUTION_FAILED: "CUBLAS_STATUS_EXECUTION_FAILED",
	C.CUBLAS_STATUS_INTERNAL_ERROR:   "CUBLAS_STATUS_INTERNAL_ERROR",
	C.CUBLAS_STATUS_NOT_SUPPORTED:    "CUBLAS_STATUS_NOT_SUPPORTED",
	C.CUBLAS_STATUS_LICENSE_ERROR:    "CUBLAS_STATUS_LICENSE_ERROR",
}

// failure turns a status into a named error; nil for success.
func failure(call string, code C.cublasStatus_t, detail string) error {
	if code == C.CUBLAS_STATUS_SUCCESS {
		return nil
	}
	name := names[code]
	if name == "" {
		name = "CUBLAS_STATUS"
	}
	return &driver.Error{Call: call, Detail: detail, Code: int(code), Name: name}
}
