package rna

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// λ = 0 on dependent residuals, by hand: the fixed point if one exists, the shortest of several c.
func TestAndersonByHand(t *testing.T) {
	third := []float64{1. / 3, 1. / 3, 1. / 3}
	for _, tt := range []struct {
		name string
		vs   [][]float64
		c    []float64
		rank int
	}{
		{"one residual", [][]float64{{0, 0}, {1, 0}}, []float64{1}, 1},
		// x = 2y + 1 has the fixed point -1.
		{"fixed point", [][]float64{{0, 0}, {1, 0}, {3, 0}}, []float64{2, -1}, 2},
		// Residuals (1,0), (2,1), (1,6): R c = 0 by Cramer's rule.
		{"more residuals than dimensions", [][]float64{{0, 0}, {1, 0}, {3, 1}, {4, 7}},
			[]float64{11. / 6, -1, 1. / 6}, 3},
		{"equal residuals", [][]float64{{0, 0}, {1, 2}, {2, 4}, {3, 6}}, third, 1},
		{"two of three equal", [][]float64{{0, 0}, {1, 0}, {2, 0}, {2, 1}}, []float64{.25, .25, .5}, 2},
		{"a zero residual", [][]float64{{0, 0}, {1, 0}, {1, 0}}, []float64{0, 1}, 2},
		{"two zero residuals", [][]float64{{0, 0}, {1, 0}, {1, 0}, {1, 0}}, []float64{0, .5, .5}, 2},
		{"a far smaller residual", nil, []float64{1e-40, 1}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := NewHost64(2, 1)
			w := window(t, s, 3)
			if tt.vs == nil { // pairs, since 1 + 1e-20 is 1
				for _, r := range [][]float64{{1, 0}, {0, 1e-20}} {
					if err := w.PushPair(make(Slice64, 2), Slice64(r)); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				push(t, w, tt.vs...)
			}
			for _, opt := range []Options{{Lambda: Set(0)}, {Tau: Set(math.Inf(1))}, {Tau: Set(100)}} {
				res := solve(t, w, opt)
				if res.Status != OK || res.Lambda != 0 || res.Rank != tt.rank {
					t.Fatalf("%v: λ = %v, rank %d, want %d", res.Err(), res.Lambda, res.Rank, tt.rank)
				}
				for i, want := range tt.c {
					if !near(res.C[i], want, 1e-14) {
						t.Fatalf("c = %v, want %v", res.C, tt.c)
					}
				}
			}
		})
	}
}

// Residuals equal up to the rounding of their iterates: using this noise as directions would give coefficients of 1e7
// in float32 and 1e15 in float64.
func TestAndersonInNoise(t *testing.T) {
	const d, n = 1000, 6
	rng := rand.New(rand.NewPCG(7, 1))
	from, step := make([]float64, d), make([]float64, d)
	for i := range d {
		from[i], step[i] = rng.NormFloat64(), .1*rng.NormFloat64()
	}
	for name, at := range map[string]func(k, i int) float64{
		"constant steps": func(k, i int) float64 { return from[i] + float64(k)*step[i] },
		"at rest":        func(k, i int) float64 { return from[i] * (1 + 1e-7*rng.Float64()) },
		"alternating":    func(k, i int) float64 { return from[i] + float64(k%2)*step[i] },
	} {
		spaces(t, d, func(t *testing.T, s Space) {
			w := window(t, s, n)
			for k := range n + 1 {
				v := make(Slice64, d)
				for i := range v {
					if v[i] = at(k, i); name == "at rest" && s.Bits() == 64 {
						v[i] = from[i] * (1 + 4*epsilon*float64(rng.IntN(3)))
					}
				}
				push(t, w, v)
			}
			res := solve(t, w, Options{Lambda: Set(0)})
			if res.Status != OK || !(res.NormC <= 1.001) || res.Rank == n {
				t.Errorf("%s: %v, rank %d, ‖c‖ = %v, c = %v", name, res.Status, res.Rank, res.NormC, res.C)
			}
		})
	}
}

// A QR has half as many digits again as a Gram matrix: both against 200 bits, on ten
// Krylov-like residuals.
func TestQRAccuracy(t *testing.T) {
	const d, n = 20_000, 10
	rng := rand.New(rand.NewPCG(3, 4))
	s, _ := NewHost64(d, 2)
	w := window(t, s, n)
	rate, v := make([]float64, d), make([]float64, d)
	for i := range v {
		rate[i] = .95 * rng.Float64()
		v[i] = rng.NormFloat64()
	}
	snapshots := make([][]float64, n+1)
	for k := range snapshots {
		snapshots[k] = append([]float64(nil), v...)
		push(t, w, v)
		for i := range v {
			v[i] *= rate[i]
		}
	}
	gram := bigGram(func(k, i int) (x, y float64) { return snapshots[k+1][i], snapshots[k][i] }, n, d)
	qr, err := w.QR(0)
	if err != nil {
		t.Fatal(err)
	}
	// Bounds are ten times the measured errors.
	for _, tt := range []struct{ lambda, bound float64 }{{0, 4e-7}, {1e-10, 1e-9}, {1e-6, 1e-12}, {1e-2, 1e-14}} {
		res := qr.Solve(tt.lambda)
		if res.Status != OK {
			t.Fatal(res.Err())
		}
		off := relativeError(res.C, bigSolve(gram, tt.lambda))
		t.Logf("λ = %g: ‖c‖ = %.3g, relative error %.1e, said to be %.1e at most", tt.lambda, res.NormC, off,
			res.Accuracy)
		if !(off <= tt.bound && off <= res.Accuracy) {
			t.Errorf("λ = %g: relative error %.1e, at most %.1e wanted and %.1e said", tt.lambda, off, tt.bound,
				res.Accuracy)
		}
	}
	// A Solve with λ = 0 equals the QR's, with more digits.
	if off := relativeError(solve(t, w, Options{Lambda: Set(0)}).C, qr.Solve(0).C); !(off <= 4e-7) {
		t.Errorf("λ = 0: %.1e from the QR", off)
	}
	// CNA uses the QR for a τ between τ(1e-10) and τ(0).
	tau := math.Sqrt(qr.Solve(1e-14).Tau * qr.Solve(0).Tau)
	res := solve(t, w, Options{Tau: Set(tau)})
	if res.Status != OK || !near(res.Tau/tau, 1, 1e-9) || !(res.Lambda > 0 && res.Lambda < 1e-14) {
		t.Errorf("τ = %g: %v, τ(λ) = %g, λ = %g", tau, res.Status, res.Tau, res.Lambda)
	}
}

// The QR and the Gram matrix agree where both have the digits, for any storage, mode,
// magnitude and number of workers.
func TestQRAgrees(t *testing.T) {
	for _, d := range []int{2, 5, foldRows - 1, foldRows + 1, 3*foldRows*32 + 7} {
		vs := contraction(d, 6, uint64(d))
		spaces(t, d, func(t *testing.T, s Space) {
			w := window(t, s, 4)
			push(t, w, vs[:3]...)
			for k := 3; k < 6; k++ { // a chain, a pair and stored residuals
				var err error
				switch k {
				case 3:
					err = w.PushPair(Slice64(vs[3]), Slice64(vs[4]))
				case 4:
					err = w.PushResidual(Slice64(vs[4]), Slice64(vs[5]))
				case 5:
					err = w.Push(Slice64(vs[0]))
					err = errors.Join(err, w.Push(Slice64(vs[5])))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			qr, err := w.QR(0)
			if err != nil {
				t.Fatal(err)
			}
			gram := w.Spectrum(0)
			if !near(qr.Norm(), gram.Norm(), 1e-12) {
				t.Errorf("d = %d: ‖R‖ = %v by QR, %v by the Gram matrix", d, qr.Norm(), gram.Norm())
			}
			for _, lambda := range []float64{1e-3, 1, math.Inf(1)} {
				a, b := qr.Solve(lambda), gram.Solve(lambda)
				for i := range b.C {
					if !near(a.C[i], b.C[i], 1e-11) {
						t.Fatalf("d = %d, λ = %g: c = %v by QR, %v by the Gram matrix", d, lambda, a.C, b.C)
					}
				}
				for j := range b.ResidualNorms {
					if !near(a.ResidualNorms[j], b.ResidualNorms[j], 1e-12) {
						t.Errorf("d = %d: norms %v and %v", d, a.ResidualNorms, b.ResidualNorms)
					}
				}
			}
		})
	}
	vs := contraction(40*foldRows+11, 6, 3)
	var want []float64
	for _, workers := range []int{1, 2, 5} {
		s, _ := NewHost64(len(vs[0]), workers)
		w := window(t, s, 5)
		push(t, w, vs...)
		c := solve(t, w, Options{Lambda: Set(0)}).C
		if want == nil {
			want = c
		}
		sameBits(t, fmt.Sprint(workers, " workers: c"), c, want)
	}
	for _, exp := range []int{-1000, 660, 1000} {
		s, _ := NewHost64(len(vs[0]), 2)
		w := window(t, s, 5)
		for _, v := range vs {
			u := make([]float64, len(v))
			for i := range u {
				u[i] = math.Ldexp(v[i], exp)
			}
			push(t, w, u)
		}
		for i, c := range solve(t, w, Options{Lambda: Set(0)}).C {
			if !near(c, want[i], 1e-9) {
				t.Errorf("2^%d: c[%d] = %v, want %v", exp, i, c, want[i])
			}
		}
	}
}

func TestQRStatus(t *testing.T) {
	s, _ := NewHost64(3, 1)
	w := window(t, s, 2)
	for _, want := range []Status{TooFew, ZeroResidual, ZeroResidual} {
		qr, err := w.QR(0)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := qr.Solve(0), qr.Constrain(1); a.Status != want || b.Status != want || a.Err() == nil {
			t.Errorf("%d residuals: %v and %v, want %v", w.Len(), a.Status, b.Status, want)
		}
		if w.Len() == 0 {
			push(t, w, []float64{1, 2, 3})
		}
		push(t, w, []float64{1, 2, 3})
	}
	// Vectors that can't be read.
	f, err := NewFile64(t.TempDir(), 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	w = window(t, f, 2)
	push(t, w, contraction(100, 3, 1)...)
	if err := w.columns[0].y.vector.(*fileVector[float64]).file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	dst := Slice64{0: -1, 99: 0}
	if res, err := w.Extrapolate(dst, Options{Lambda: Set(0)}); err == nil || res.Status != Failed ||
		res.C != nil || dst[0] != -1 {
		t.Errorf("a vector that can't be read: %v, %v", res.Status, err)
	}
}

// Residuals of any magnitude, dependent or not, give a sum of 1 that no other c beats.
func FuzzAnderson(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(2), 0.0)
	f.Add(uint64(2), uint8(9), uint8(5), -30.0)
	f.Add(uint64(3), uint8(4), uint8(8), 12.0)
	f.Fuzz(func(t *testing.T, seed uint64, n, d uint8, spread float64) {
		cols, dim := 1+int(n)%12, 1+int(d)%9
		if !(math.Abs(spread) < 300) {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		s, _ := NewHost64(dim, 1)
		w := window(t, s, cols)
		defer w.Close()
		rs := make([][]float64, cols)
		for j := range rs {
			size := math.Pow(10, spread*rng.Float64())
			rs[j] = make([]float64, dim)
			for i := range rs[j] {
				rs[j][i] = size * float64(rng.IntN(5)-2) // often dependent, at times zero
			}
			if err := w.PushResidual(make(Slice64, dim), Slice64(rs[j])); err != nil {
				t.Fatal(err)
			}
		}
		value := func(c []float64) (norm float64) {
			for i := range dim {
				v := 0.
				for j := range c {
					v += c[j] * rs[j][i]
				}
				norm = math.Hypot(norm, v)
			}
			return norm
		}
		for _, opt := range []Options{{Lambda: Set(0)}, {Tau: Set(.5)}, {Tau: Set(1e6)}} {
			res := solve(t, w, opt)
			if res.Status != OK {
				if res.Status != ZeroResidual && res.Status != NonFinite || res.C != nil || res.Detail == "" {
					t.Fatalf("refused with %+v", res)
				}
				continue
			}
			if !near(sum(res.C), 1, 1e-13*max(1, res.NormC)) {
				t.Fatalf("Σc = %v, ‖c‖ = %v", sum(res.C), res.NormC)
			}
			if opt.Tau.set {
				if limit := (1 + opt.Tau.v) / math.Sqrt(float64(cols)); res.NormC > limit*(1+1e-9) {
					t.Fatalf("‖c‖ = %v exceeds %v", res.NormC, limit)
				}
				continue
			}
			for j := range cols { // each residual alone is a candidate
				one := make([]float64, cols)
				one[j] = 1
				slack := 0.
				for k, c := range res.C {
					slack += 1e-12 * math.Abs(c) * value(append(make([]float64, k), 1))
				}
				if value(res.C) > value(one)*(1+1e-9)+slack {
					t.Fatalf("‖Rc‖ = %v where residual %d has %v", value(res.C), j, value(one))
				}
			}
		}
	})
}

// If two residuals are zero or equal, the shortest coefficients are half of each. The rank is that of the differences,
// and 1.
func TestShortestOfEquals(t *testing.T) {
	for name, x := range map[string]struct {
		r    *mat.Dense
		want []float64
		rank int
	}{
		"zeros":  {mat.NewDense(3, 3, []float64{0, 1, 0, 0, 2, 0, 0, 2, 0}), []float64{.5, 0, .5}, 2},
		"equals": {mat.NewDense(2, 2, []float64{1, 1, 0, 0}), []float64{.5, .5}, 1},
	} {
		c, rank, condition := shortest(x.r, make([]float64, len(x.want)))
		if rank != x.rank || condition != 1 {
			t.Errorf("%s: rank %d, condition %v", name, rank, condition)
		}
		for i, v := range c {
			if math.Abs(v-x.want[i]) > 1e-15 {
				t.Errorf("%s: %v", name, c)
			}
		}
	}
}
