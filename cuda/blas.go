//go:build gpu && cgo

package cuda

// #include <cublas_v2.h>
// #include <stdint.h>
//
// // Addresses are numbers: they are the GPU's.
// static cublasStatus_t set_workspace(cublasHandle_t h, uintptr_t at, size_t bytes) {
//	return cublasSetWorkspace_v2(h, (void *)at, bytes);
// }
// static cublasStatus_t sgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha,
//	uintptr_t a, int lda, uintptr_t b, int ldb, const float *beta, uintptr_t c, int ldc) {
//	return cublasSgemm_v2(h, ta, tb, m, n, k, alpha, (const float *)a, lda, (const float *)b, ldb, beta, (float *)c, ldc);
// }
// static cublasStatus_t gemm_ex(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha,
//	uintptr_t a, int lda, uintptr_t b, int ldb, cudaDataType in, const float *beta, uintptr_t c, int ldc, cudaDataType out, cublasComputeType_t compute) {
//	return cublasGemmEx(h, ta, tb, m, n, k, alpha, (const void *)a, in, lda, (const void *)b, in, ldb, beta, (void *)c, out, ldc, compute, CUBLAS_GEMM_DEFAULT);
// }
import "C"

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	cublas "gorgonia.org/cu/blas"

	"onlinerna/cuda/lazy"
)

// BLAS is a cuBLAS handle whose work goes to one stream. Matrices are column-major: element (i, j) of a matrix with
// leading dimension ld is i + j·ld elements from its span's start.
type BLAS struct {
	c *Context
	s *Stream
	b *cublas.Standard
	w Span // its workspace, empty for cuBLAS's own
}

// NewBLAS makes a cuBLAS handle for s. cuBLAS that is missing is a [*lazy.NotFoundError].
func (c *Context) NewBLAS(s *Stream) (*BLAS, error) {
	if s.c != c {
		return nil, fmt.Errorf("cuda: stream of %v used on another context of %v", s.c.info, c.info)
	}
	if err := lazy.CuBLAS.Load(); err != nil {
		return nil, err
	}
	b := &BLAS{c: c, s: s}
	err := s.do(func() error {
		if err := b.create(); err != nil {
			return err
		}
		c.handles[b] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (b *BLAS) create() error {
	b.b = new(cublas.Standard)
	if err := b.b.Init(); err != nil {
		err = blasError("cublasCreate", err, fmt.Sprintf("%v, %s", b.c.info, lazy.CuBLAS.File()))
		if e, ok := err.(*Error); ok && e.Code == int(cublas.NotInitialized) {
			e.Text = fmt.Sprintf("the driver supports CUDA %s; a cuBLAS for a later CUDA does not start", lazy.VersionString(lazy.DriverVersion()))
		}
		return err
	}
	code := C.cublasSetStream_v2(b.handle(), C.cudaStream_t(unsafe.Pointer(b.s.s.C())))
	if code != C.CUBLAS_STATUS_SUCCESS {
		return errors.Join(blasError("cublasSetStream", cublas.Status(code), ""), b.b.Close())
	}
	if err := b.setWorkspace(); err != nil { // which the stream has reset
		return errors.Join(err, b.b.Close())
	}
	return nil
}

// SetWorkspace has products take their scratch from s, whose content is lost, and not from memory that cuBLAS allocates: a graph
// then needs no memory of its own. s starts at a multiple of 256 bytes and stays until the handle is closed.
func (b *BLAS) SetWorkspace(s Span) error {
	return b.s.do(func() error {
		b.w = s
		return b.setWorkspace()
	})
}

func (b *BLAS) setWorkspace() error {
	if b.w.n == 0 {
		return nil
	}
	p, err := b.w.pointer(b.c)
	if err != nil {
		return err
	}
	code := C.set_workspace(b.handle(), C.uintptr_t(p), C.size_t(b.w.n))
	if code == C.CUBLAS_STATUS_SUCCESS {
		return nil
	}
	return blasError("cublasSetWorkspace", cublas.Status(code), size(b.w.n))
}

// handle is the cuBLAS handle inside package cu/blas, which cannot set a stream.
func (b *BLAS) handle() C.cublasHandle_t {
	return C.cublasHandle_t(reflect.ValueOf(b.b).Elem().FieldByName("h").UnsafePointer())
}

// Close gives the handle back, after its work. A second Close does nothing.
func (b *BLAS) Close() error { return b.c.drop(b) }

func (b *BLAS) kind() string { return "cuBLAS handle" }

func (b *BLAS) release() error {
	err := blasError("cublasDestroy", b.b.Close(), "")
	if b.c.lost != nil {
		return nil // its memory on the host is free all the same
	}
	return err
}

// do makes a call of cuBLAS. Package cu/blas answers nothing any more after one error: then the handle is made anew.
func (b *BLAS) do(call, detail string, f func() error) error {
	return b.s.do(func() error {
		if _, open := b.c.handles[b]; !open {
			return fmt.Errorf("cuBLAS handle: %w", ErrClosed)
		}
		if err := f(); err != nil {
			return err
		}
		err := b.b.Err()
		if err == nil {
			return nil
		}
		err = blasError(call, err, detail)
		// A kernel's failure shows as one of cuBLAS: the driver knows better.
		if lost := b.c.verdict(); lost != nil {
			return lost
		}
		old := b.b
		if again := b.create(); again != nil {
			b.b = old
			return errors.Join(err, again)
		}
		return errors.Join(err, blasError("cublasDestroy", old.Close(), ""))
	})
}

// Dgemm computes C = α op(A) op(B) + β C in float64, where op transposes when asked to; C is m×n and the inner
// dimension k. With β = 0 C is not read.
func (b *BLAS) Dgemm(transA, transB bool, m, n, k int, alpha float64, A Span, lda int, B Span, ldb int, beta float64, C Span, ldc int) error {
	if m == 0 || n == 0 {
		return nil
	}
	if k == 0 {
		return errors.New("cuda: Dgemm of an inner dimension 0")
	}
	detail := fmt.Sprintf("%d×%d = %d×%d · %d×%d, leading dimensions %d, %d, %d", m, n, m, k, k, n, lda, ldb, ldc)
	return b.do("cublasDgemm", detail, func() error {
		a, err := b.matrix("A", A, m, k, lda, transA)
		if err != nil {
			return err
		}
		x, err := b.matrix("B", B, k, n, ldb, transB)
		if err != nil {
			return err
		}
		y, err := b.matrix("C", C, m, n, ldc, false)
		if err != nil {
			return err
		}
		b.b.Dgemm(transpose(transA), transpose(transB), m, n, k, alpha, a, lda, x, ldb, beta, y, ldc)
		return nil
	})
}

// Sgemm is Dgemm in float32, with float32 products and sums.
func (b *BLAS) Sgemm(transA, transB bool, m, n, k int, alpha float32, A Span, lda int, B Span, ldb int, beta float32, y Span, ldc int) error {
	return b.Gemm(Float32, transA, transB, m, n, k, alpha, A, lda, B, ldb, beta, y, ldc, false)
}

// Gemm is Sgemm with factors in the given precision, and the result as well if narrow is set; sums are float32.
func (b *BLAS) Gemm(p Precision, transA, transB bool, m, n, k int, alpha float32, A Span, lda int, B Span, ldb int, beta float32, y Span, ldc int, narrow bool) error {
	if m == 0 || n == 0 {
		return nil
	}
	if k == 0 {
		return errors.New("cuda: Gemm of an inner dimension 0")
	}
	element, out := int64(p.bytes()), int64(4)
	types := [...]C.cudaDataType{Float32: C.CUDA_R_32F, TF32: C.CUDA_R_32F, BFloat16: C.CUDA_R_16BF, Float16: C.CUDA_R_16F}
	outType := C.cudaDataType(C.CUDA_R_32F)
	if narrow {
		out, outType = element, types[p]
	}
	compute := C.cublasComputeType_t(C.CUBLAS_COMPUTE_32F)
	if p == TF32 {
		compute = C.CUBLAS_COMPUTE_32F_FAST_TF32
	}
	return b.s.do(func() error {
		if _, open := b.c.handles[b]; !open {
			return fmt.Errorf("cuBLAS handle: %w", ErrClosed)
		}
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
		op := map[bool]C.cublasOperation_t{false: C.CUBLAS_OP_N, true: C.CUBLAS_OP_T}
		al, be := C.float(alpha), C.float(beta)
		var code C.cublasStatus_t
		call := "cublasSgemm"
		if p == Float32 {
			code = C.sgemm(b.handle(), op[transA], op[transB], C.int(m), C.int(n), C.int(k), &al, C.uintptr_t(a), C.int(lda),
				C.uintptr_t(x), C.int(ldb), &be, C.uintptr_t(c), C.int(ldc))
		} else {
			call = "cublasGemmEx"
			code = C.gemm_ex(b.handle(), op[transA], op[transB], C.int(m), C.int(n), C.int(k), &al, C.uintptr_t(a), C.int(lda),
				C.uintptr_t(x), C.int(ldb), types[p], &be, C.uintptr_t(c), C.int(ldc), outType, compute)
		}
		if code == C.CUBLAS_STATUS_SUCCESS {
			return nil
		}
		// A kernel's failure shows as one of cuBLAS: the driver knows better.
		if lost := b.c.verdict(); lost != nil {
			return lost
		}
		return blasError(call, cublas.Status(code),
			fmt.Sprintf("%v, %d×%d = %d×%d · %d×%d, leading dimensions %d, %d, %d", p, m, n, m, k, k, n, lda, ldb, ldc))
	})
}

// Dgemv computes y = α op(A) x + β y in float64, where A is m×n and op transposes when asked to. With β = 0 y is not
// read.
func (b *BLAS) Dgemv(trans bool, m, n int, alpha float64, A Span, lda int, x Span, incX int, beta float64, y Span, incY int) error {
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
	detail := fmt.Sprintf("%d×%d, leading dimension %d, increments %d, %d", m, n, lda, incX, incY)
	return b.do("cublasDgemv", detail, func() error {
		a, err := b.matrix("A", A, m, n, lda, false)
		if err != nil {
			return err
		}
		// A vector with an increment is a row of a matrix.
		xs, err := b.matrix("x", x, 1, nx, incX, false)
		if err != nil {
			return err
		}
		ys, err := b.matrix("y", y, 1, ny, incY, false)
		if err != nil {
			return err
		}
		b.b.Dgemv(transpose(trans), m, n, alpha, a, lda, xs, incX, beta, ys, incY)
		return nil
	})
}

func transpose(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

// matrix views the GPU memory of a rows×cols matrix, stored transposed when trans, as the slice that cu/blas takes: it passes on
// its address, and the elements cannot be touched here.
func (b *BLAS) matrix(what string, s Span, rows, cols, ld int, trans bool) ([]float64, error) {
	p, err := b.address(8, what, s, rows, cols, ld, trans)
	if err != nil {
		return nil, err
	}
	return deviceSlice(p, int(s.n/8)), nil
}

// address is that of a matrix of elements of the given size, when all of it lies in s.
func (b *BLAS) address(element int64, what string, s Span, rows, cols, ld int, trans bool) (uintptr, error) {
	if trans {
		rows, cols = cols, rows
	}
	if rows < 0 || cols < 0 || ld < max(rows, 1) || ld > math.MaxInt32 || cols > math.MaxInt32 {
		return 0, fmt.Errorf("cuda: BLAS: %s has %d×%d elements and leading dimension %d: no such matrix", what, rows, cols, ld)
	}
	n := int64(ld)*int64(cols-1) + int64(rows)
	if element*n > s.n {
		return 0, fmt.Errorf("cuda: BLAS: %s has %d×%d elements and leading dimension %d: it needs %d bytes, the span has %d",
			what, rows, cols, ld, element*n, s.n)
	}
	p, err := s.pointer(b.c)
	return uintptr(p), err
}

// deviceSlice makes a slice of device memory.
func deviceSlice(p uintptr, n int) []float64 {
	// By way of a pointer to p: vet cannot know that the address is none of Go's.
	return unsafe.Slice(*(**float64)(unsafe.Pointer(&p)), n)
}

var blasNames = map[cublas.Status]string{
	cublas.NotInitialized: "CUBLAS_STATUS_NOT_INITIALIZED",
	cublas.AllocFailed:    "CUBLAS_STATUS_ALLOC_FAILED",
	cublas.InvalidValue:   "CUBLAS_STATUS_INVALID_VALUE",
	cublas.ArchMismatch:   "CUBLAS_STATUS_ARCH_MISMATCH",
	cublas.MappingError:   "CUBLAS_STATUS_MAPPING_ERROR",
	cublas.ExecFailed:     "CUBLAS_STATUS_EXECUTION_FAILED",
	cublas.InternalError:  "CUBLAS_STATUS_INTERNAL_ERROR",
	cublas.Unsupported:    "CUBLAS_STATUS_NOT_SUPPORTED",
	cublas.LicenceError:   "CUBLAS_STATUS_LICENSE_ERROR",
}

func blasError(call string, err error, detail string) error {
	if err == nil {
		return nil
	}
	var status cublas.Status
	if !errors.As(err, &status) {
		return fmt.Errorf("cuda: %s (%s): %w", call, detail, err)
	}
	name := blasNames[status]
	if name == "" {
		name = "CUBLAS_STATUS"
	}
	return &Error{Call: call, Detail: detail, Code: int(status), Name: name}
}
