//go:build gpu && cgo

package blas_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"onlinerna/cuda/blas"
	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

func newBLAS(t testing.TB, c *driver.Context) *blas.Handle {
	t.Helper()
	b, err := blas.New(c.Stream())
	check(t, err)
	t.Cleanup(func() { check(t, b.Close()) })
	return b
}

func random(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func random32(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestGemm(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	r := rand.New(rand.NewPCG(1, 2))
	const m, n, k, pad = 3, 4, 50, 2
	for _, transA := range []bool{false, true} {
		for _, transB := range []bool{false, true} {
			t.Run(fmt.Sprint(transA, transB), func(t *testing.T) {
				lda, ldb, ldc := m+pad, k+pad, m+pad
				if transA {
					lda = k + pad
				}
				if transB {
					ldb = n + pad
				}
				A, B, C := random32(r, lda*max(m, k)), random32(r, ldb*max(n, k)), random32(r, ldc*n)
				at := func(x []float32, ld, i, j int, trans bool) float32 {
					if trans {
						i, j = j, i
					}
					return x[i+j*ld]
				}
				da, db, dc := gputest.Upload(t, c, A), gputest.Upload(t, c, B), gputest.Upload(t, c, C)
				check(t, b.Gemm(number.Float32, transA, transB, m, n, k, 2, da.All(), lda, db.All(), ldb, -0.5,
					dc.All(), ldc, false))
				got := gputest.Download[float32](t, dc.All())
				for j := range n {
					for i := range ldc {
						want := C[i+j*ldc]
						if i < m {
							want *= -0.5
							for l := range k {
								want += 2 * at(A, lda, i, l, transA) * at(B, ldb, l, j, transB)
							}
						}
						if math.Abs(float64(got[i+j*ldc]-want)) > 1e-4 {
							t.Errorf("element %d, %d is %v, want %v", i, j, got[i+j*ldc], want)
						}
					}
				}
			})
		}
	}
}

// A batch gives the products of its pairs.
func TestGemmBatch(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	r := rand.New(rand.NewPCG(3, 4))
	const m, n, k, batch = 3, 4, 50, 5
	for _, p := range []number.Precision{number.Float32, number.TF32, number.BFloat16, number.Float16} {
		for _, trans := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
			A, B := make([]float32, m*k*batch), make([]float32, k*n*batch)
			for _, x := range [][]float32{A, B} {
				for i := range x {
					x[i] = float32(r.IntN(33)-16) / 8 // exact in each precision
				}
			}
			da, db := gputest.Upload(t, c, A), gputest.Upload(t, c, B)
			if p.Bytes() == 2 {
				da, db = gputest.Upload(t, c, number.Narrow(p, A)), gputest.Upload(t, c, number.Narrow(p, B))
			}
			dc := gputest.Upload(t, c, make([]float32, m*n*batch))
			check(t, b.GemmBatch(p, trans[0], trans[1], m, n, k, batch, da.All(), db.All(), dc.All(), false))
			got := gputest.Download[float32](t, dc.All())
			for l := range batch {
				for i := range m {
					for j := range n {
						var want float64
						for q := range k {
							x, y := A[l*m*k+i+q*m], B[l*k*n+q+j*k]
							if trans[0] {
								x = A[l*m*k+q+i*k]
							}
							if trans[1] {
								y = B[l*k*n+j+q*n]
							}
							want += float64(x) * float64(y)
						}
						if g := float64(got[l*m*n+i+j*m]); g != want {
							t.Fatalf("%v, transposed %v: product %d, element %d, %d is %v, want %v", p, trans, l, i, j, g, want)
						}
					}
				}
			}
		}
	}
	d := gputest.Upload(t, c, make([]float32, 8))
	if err := b.GemmBatch(number.Float32, false, false, 2, 2, 2, 3, d.All(), d.All(), d.All(), false); err == nil {
		t.Error("matrices beyond the span are multiplied")
	}
}

// Products of 16-bit factors are exact and sums are float32; only a 16-bit result is rounded.
func TestGemmPrecision(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	const m, n, k = 3, 2, 5
	A, B := make([]float32, m*k), make([]float32, k*n)
	for i := range A {
		A[i] = float32(i-7) / 4
	}
	for i := range B {
		B[i] = 16 + float32(i)/8
	}
	for _, p := range []number.Precision{number.Float32, number.TF32, number.BFloat16, number.Float16} {
		for _, narrow := range []bool{false, true} {
			for _, trans := range []bool{false, true} {
				var da, db *driver.Memory
				if p.Bytes() == 2 {
					da, db = gputest.Upload(t, c, number.Narrow(p, A)), gputest.Upload(t, c, number.Narrow(p, B))
				} else {
					da, db = gputest.Upload(t, c, A), gputest.Upload(t, c, B)
				}
				lda := m
				if trans {
					lda = k
				}
				y := alloc(t, c, 4*m*n)
				check(t, b.Gemm(p, trans, false, m, n, k, 1, da.All(), lda, db.All(), k, 0, y.All(), m, narrow))
				got := gputest.Download[float32](t, y.All())
				if narrow && p.Bytes() == 2 {
					got = number.Widen(p, gputest.Download[uint16](t, y.Span(0, 2*m*n)))
				}
				for j := range n {
					for i := range m {
						sum := float32(0)
						for l := range k {
							a := A[i+l*m]
							if trans {
								a = A[l+i*k]
							}
							sum += a * B[l+j*k] // exact in float32
						}
						if narrow && p.Bytes() == 2 {
							sum = number.Widen(p, number.Narrow(p, []float32{sum}))[0]
						}
						if got[i+j*m] != sum {
							t.Errorf("%v, narrow %v, transposed %v: element %d, %d is %v, want %v", p, narrow, trans, i,
								j, got[i+j*m], sum)
						}
					}
				}
			}
		}
	}
	if err := b.Gemm(number.BFloat16, false, false, m, n, k, 1, alloc(t, c, 28).All(), m, alloc(t, c, 40).All(), k, 0,
		alloc(t, c, 24).All(), m, false); err == nil || !strings.Contains(err.Error(), "needs 30 bytes") {
		t.Errorf("A too small: %v", err)
	}
}

func TestDgemv(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	r := rand.New(rand.NewPCG(3, 4))
	const m, n, lda = 30, 7, 33
	A := random(r, lda*n)
	da := gputest.Upload(t, c, A)
	for _, trans := range []bool{false, true} {
		nx, ny := n, m
		if trans {
			nx, ny = m, n
		}
		x := random(r, 2*nx)
		dx := gputest.Upload(t, c, x)
		dy := alloc(t, c, int64(8*3*ny))
		check(t, c.Stream().Fill(dy.All(), 0xff)) // NaN, which β = 0 must not read
		check(t, b.Dgemv(trans, m, n, 1, da.All(), lda, dx.All(), 2, 0, dy.All(), 3))
		y := gputest.Download[float64](t, dy.All())
		for i := range ny {
			want := 0.0
			for j := range nx {
				if trans {
					want += A[j+i*lda] * x[2*j]
				} else {
					want += A[i+j*lda] * x[2*j]
				}
			}
			if !(math.Abs(y[3*i]-want) < 1e-12) || !math.IsNaN(y[3*i+1]) {
				t.Errorf("transposed %v: element %d is %v, want %v", trans, i, y[3*i:3*i+2], want)
			}
		}
	}
}

// cuBLAS keeps the stream's order: after the fill, before the copy.
func TestBLASRunsOnItsStream(t *testing.T) {
	c := open(t)
	s, err := c.NewStream()
	check(t, err)
	defer s.Close()
	b, err := blas.New(s)
	check(t, err)
	defer b.Close()
	m := alloc(t, c, 24)
	h, err := c.AllocHost(24)
	check(t, err)
	defer h.Close()
	one := []float64{3, 4, 0}
	check(t, errors.Join(
		s.CopyIn(m.All(), driver.Bytes(one)),
		b.Dgemv(true, 2, 1, 1, m.Span(0, 16), 2, m.Span(0, 16), 1, 0, m.Span(16, 8), 1),
		s.CopyOut(h.Bytes(), m.All()),
		s.Synchronize(),
	))
	if got := driver.HostSlice[float64](h)[2]; got != 25 {
		t.Errorf("got %v, want 25", got)
	}
}

func TestBLASMistakes(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	m := alloc(t, c, 8*12)
	f := m.Span(0, 48)
	a := m.All()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"A too small": {b.Gemm(number.Float32, false, false, 3, 2, 5, 1, f, 3, f, 5, 0, f, 3, false),
			"A has 3×5 elements and leading dimension 3: it needs 60 bytes, the span has 48"},
		"B too small": {b.Gemm(number.Float32, false, true, 2, 5, 3, 1, f, 2, f, 5, 0, f, 2, false),
			"B has 5×3 elements"},
		"C too small": {b.Gemm(number.Float32, false, false, 4, 4, 1, 1, f, 4, f, 1, 0, f, 4, false),
			"C has 4×4 elements"},
		"ld": {b.Gemm(number.Float32, false, false, 3, 2, 2, 1, f, 2, f, 2, 0, f, 3, false), "no such matrix"},
		"k": {b.Gemm(number.Float32, false, false, 3, 2, 0, 1, f, 3, f, 2, 0, f, 3, false),
			"inner dimension 0"},
		"x":         {b.Dgemv(false, 3, 4, 1, a, 3, m.Span(0, 24), 1, 0, a, 1), "x has 1×4 elements"},
		"y":         {b.Dgemv(true, 3, 4, 1, a, 3, a, 1, 0, a, 5), "y has 1×4 elements"},
		"increment": {b.Dgemv(true, 3, 4, 1, a, 3, a, 0, 0, a, 1), "must be positive"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, test.err, test.want)
		}
	}
	check(t, b.Gemm(number.Float32, false, false, 0, 2, 2, 1, f, 1, f, 2, 0, f, 1, false))
	check(t, b.Dgemv(false, 0, 2, 1, a, 1, a, 1, 0, a, 1))
}

// A handle uses a given workspace, which must start at a multiple of 256 bytes.
func TestBLASWorkspace(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	work := alloc(t, c, 8192)
	check(t, b.SetWorkspace(work.Span(0, 4096)))
	m := gputest.Upload(t, c, []float64{3, 0})
	check(t, b.Dgemv(false, 1, 1, 1, m.Span(0, 8), 1, m.Span(0, 8), 1, 0, m.Span(8, 8), 1))
	if got := gputest.Download[float64](t, m.All()); got[1] != 9 {
		t.Errorf("got %v, want 9", got[1])
	}
	if err := b.SetWorkspace(work.Span(8, 4096)); err == nil || !strings.Contains(err.Error(), "cublasSetWorkspace") {
		t.Errorf("a workspace at 8 bytes: %v", err)
	}
}

// A failed product is an error, and the handle stays usable.
func TestFaultOfBLAS(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	m := gputest.Upload(t, c, []float64{3, 0})
	product := func() error { return b.Dgemv(false, 1, 1, 1, m.Span(0, 8), 1, m.Span(0, 8), 1, 0, m.Span(8, 8), 1) }
	fault(t, "cublasDgemv_v2@1=13")
	var e *driver.Error
	if err := product(); !errors.As(err, &e) || e.Name != "CUBLAS_STATUS_EXECUTION_FAILED" ||
		!strings.Contains(err.Error(), "1×1, leading dimension 1") {
		t.Errorf("%v", err)
	}
	fault(t, "cublasDgemv_v2@1=3")
	if err := product(); !errors.Is(err, driver.ErrOutOfMemory) || !errors.As(err, &e) ||
		e.Name != "CUBLAS_STATUS_ALLOC_FAILED" {
		t.Errorf("%v, want driver.ErrOutOfMemory", err)
	}
	check(t, product())
	if got := gputest.Download[float64](t, m.All()); got[1] != 9 {
		t.Errorf("got %v, want 9", got[1])
	}
}
