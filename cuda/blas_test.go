//go:build gpu && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func newBLAS(t testing.TB, c *Context) *BLAS {
	t.Helper()
	b, err := c.NewBLAS(c.Stream())
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

func TestDgemm(t *testing.T) {
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
				A, B, C := random(r, lda*max(m, k)), random(r, ldb*max(n, k)), random(r, ldc*n)
				at := func(x []float64, ld, i, j int, trans bool) float64 {
					if trans {
						i, j = j, i
					}
					return x[i+j*ld]
				}
				da, db, dc := upload(t, c, A), upload(t, c, B), upload(t, c, C)
				check(t, b.Dgemm(transA, transB, m, n, k, 2, da.All(), lda, db.All(), ldb, -0.5, dc.All(), ldc))
				got := download[float64](t, dc.All())
				for j := range n {
					for i := range ldc {
						want := C[i+j*ldc]
						if i < m {
							want *= -0.5
							for l := range k {
								want += 2 * at(A, lda, i, l, transA) * at(B, ldb, l, j, transB)
							}
						}
						if math.Abs(got[i+j*ldc]-want) > 1e-12 {
							t.Errorf("element %d, %d is %v, want %v", i, j, got[i+j*ldc], want)
						}
					}
				}
			})
		}
	}
}

// Products of 16 bits are exact, sums float32, and the result is rounded only where it has 16 bits, too.
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
	for _, p := range []Precision{Float32, TF32, BFloat16, Float16} {
		for _, narrow := range []bool{false, true} {
			for _, trans := range []bool{false, true} {
				var da, db *Memory
				if p.bytes() == 2 {
					da, db = floats16(t, c, p, A), floats16(t, c, p, B)
				} else {
					da, db = upload(t, c, A), upload(t, c, B)
				}
				lda := m
				if trans {
					lda = k
				}
				y := alloc(t, c, 4*m*n)
				check(t, b.Gemm(p, trans, false, m, n, k, 1, da.All(), lda, db.All(), k, 0, y.All(), m, narrow))
				got := download[float32](t, y.All())
				if narrow && p.bytes() == 2 {
					got = widened(p, download[uint16](t, y.Span(0, 2*m*n)))
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
						if narrow && p.bytes() == 2 {
							sum = widened(p, narrowed(p, []float32{sum}))[0]
						}
						if got[i+j*m] != sum {
							t.Errorf("%v, narrow %v, transposed %v: element %d, %d is %v, want %v", p, narrow, trans, i, j, got[i+j*m], sum)
						}
					}
				}
			}
		}
	}
	if err := b.Gemm(BFloat16, false, false, m, n, k, 1, alloc(t, c, 28).All(), m, alloc(t, c, 40).All(), k, 0, alloc(t, c, 24).All(), m, false); err == nil || !strings.Contains(err.Error(), "needs 30 bytes") {
		t.Errorf("A too small: %v", err)
	}
}

func TestDgemv(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	r := rand.New(rand.NewPCG(3, 4))
	const m, n, lda = 30, 7, 33
	A := random(r, lda*n)
	da := upload(t, c, A)
	for _, trans := range []bool{false, true} {
		nx, ny := n, m
		if trans {
			nx, ny = m, n
		}
		x := random(r, 2*nx)
		dx := upload(t, c, x)
		dy := alloc(t, c, int64(8*3*ny))
		check(t, c.Stream().Fill(dy.All(), 0xff)) // NaN, which β = 0 must not read
		check(t, b.Dgemv(trans, m, n, 1, da.All(), lda, dx.All(), 2, 0, dy.All(), 3))
		y := download[float64](t, dy.All())
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

// The stream's order holds for cuBLAS too: the fill before it and the copy after it.
func TestBLASRunsOnItsStream(t *testing.T) {
	c := open(t)
	s, err := c.NewStream()
	check(t, err)
	defer s.Close()
	b, err := c.NewBLAS(s)
	check(t, err)
	defer b.Close()
	m := alloc(t, c, 24)
	h, err := c.AllocHost(24)
	check(t, err)
	defer h.Close()
	one := []float64{3, 4, 0}
	check(t, errors.Join(
		s.CopyIn(m.All(), Bytes(one)),
		b.Dgemm(true, false, 1, 1, 2, 1, m.Span(0, 16), 2, m.Span(0, 16), 2, 0, m.Span(16, 8), 1),
		s.CopyOut(h.Bytes(), m.All()),
		s.Synchronize(),
	))
	if got := HostSlice[float64](h)[2]; got != 25 {
		t.Errorf("got %v, want 25", got)
	}
}

func TestBLASMistakes(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	m := alloc(t, c, 8*12)
	a := m.All()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"A too small": {b.Dgemm(false, false, 3, 2, 5, 1, a, 3, a, 5, 0, a, 3), "A has 3×5 elements and leading dimension 3: it needs 120 bytes, the span has 96"},
		"B too small": {b.Dgemm(false, true, 2, 5, 3, 1, a, 2, a, 5, 0, a, 2), "B has 5×3 elements"},
		"C too small": {b.Dgemm(false, false, 4, 4, 1, 1, a, 4, a, 1, 0, a, 4), "C has 4×4 elements"},
		"ld":          {b.Dgemm(false, false, 3, 2, 2, 1, a, 2, a, 2, 0, a, 3), "no such matrix"},
		"k":           {b.Dgemm(false, false, 3, 2, 0, 1, a, 3, a, 2, 0, a, 3), "inner dimension 0"},
		"x":           {b.Dgemv(false, 3, 4, 1, a, 3, m.Span(0, 24), 1, 0, a, 1), "x has 1×4 elements"},
		"y":           {b.Dgemv(true, 3, 4, 1, a, 3, a, 1, 0, a, 5), "y has 1×4 elements"},
		"increment":   {b.Dgemv(true, 3, 4, 1, a, 3, a, 0, 0, a, 1), "must be positive"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, test.err, test.want)
		}
	}
	check(t, b.Dgemm(false, false, 0, 2, 2, 1, a, 1, a, 2, 0, a, 1))
	check(t, b.Dgemv(false, 0, 2, 1, a, 1, a, 1, 0, a, 1))
}

// A handle takes its scratch from memory that it was given, which starts at a multiple of 256 bytes.
func TestBLASWorkspace(t *testing.T) {
	c := open(t)
	b := newBLAS(t, c)
	work := alloc(t, c, 8192)
	check(t, b.SetWorkspace(work.Span(0, 4096)))
	m := upload(t, c, []float64{3, 0})
	check(t, b.Dgemm(false, false, 1, 1, 1, 1, m.Span(0, 8), 1, m.Span(0, 8), 1, 0, m.Span(8, 8), 1))
	if got := download[float64](t, m.All()); got[1] != 9 {
		t.Errorf("got %v, want 9", got[1])
	}
	if err := b.SetWorkspace(work.Span(8, 4096)); err == nil || !strings.Contains(err.Error(), "cublasSetWorkspace") {
		t.Errorf("a workspace at 8 bytes: %v", err)
	}
}
