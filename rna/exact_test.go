package rna

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/rna/internal/dd"
)

// bits is the precision of 120 decimal digits.
const bits = 400

func number(v float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(v) }

func zero() *big.Float { return new(big.Float).SetPrec(bits) }

// bigGram is RᵀR, in 120 digits for d ≤ 2000, and in 30 beyond, of n residuals x − y of d elements.
func bigGram(at func(k, i int) (x, y float64), n, d int) [][]*big.Float {
	g := make([][]*big.Float, n)
	for i := range g {
		g[i] = make([]*big.Float, n)
	}
	set := func(i, j int, v *big.Float) { g[i][j], g[j][i] = v, v }
	if d > 2000 {
		high, low := make([][]float64, n), make([][]float64, n)
		for k := range n {
			for i := range d {
				x, y := at(k, i)
				r := dd.Sum(x, -y)
				high[k], low[k] = append(high[k], r.Hi), append(low[k], r.Lo)
			}
			for j := range k + 1 {
				p := dd.Dot(high[k], low[k], high[j], low[j])
				set(k, j, zero().Add(number(p.Hi), number(p.Lo)))
			}
		}
		return g
	}
	r := make([][]*big.Float, n)
	for k := range n {
		for i := range d {
			x, y := at(k, i)
			r[k] = append(r[k], zero().Sub(number(x), number(y)))
		}
		for j := range k + 1 {
			sum := zero()
			for i := range d {
				sum.Add(sum, zero().Mul(r[k][i], r[j][i]))
			}
			set(k, j, sum)
		}
	}
	return g
}

// bigSystem solves (g + shift I) z = b by elimination, which a definite matrix needs no pivots for.
func bigSystem(g [][]*big.Float, shift *big.Float, b []*big.Float) []*big.Float {
	n := len(g)
	a := make([][]*big.Float, n)
	for i := range n {
		for j := range n {
			v := zero().Set(g[i][j])
			if i == j {
				v.Add(v, shift)
			}
			a[i] = append(a[i], v)
		}
		a[i] = append(a[i], zero().Set(b[i]))
	}
	for k := range n {
		for i := range n {
			if i == k {
				continue
			}
			f := zero().Quo(a[i][k], a[k][k])
			for j := k; j <= n; j++ {
				a[i][j].Sub(a[i][j], zero().Mul(f, a[k][j]))
			}
		}
	}
	z := make([]*big.Float, n)
	for i := range n {
		z[i] = zero().Quo(a[i][n], a[i][i])
	}
	return z
}

// bigTop is the largest eigenvalue of g: powers of g, then iterations with Rayleigh's quotient as shift.
func bigTop(g [][]*big.Float) *big.Float {
	n := len(g)
	v := make([]*big.Float, n)
	for i := range v {
		v[i] = number(1 + float64(i)/7)
	}
	times := func(v []*big.Float) []*big.Float {
		out := make([]*big.Float, n)
		for i := range out {
			out[i] = zero()
			for j := range n {
				out[i].Add(out[i], zero().Mul(g[i][j], v[j]))
			}
		}
		return out
	}
	dot := func(a, b []*big.Float) *big.Float {
		s := zero()
		for i := range a {
			s.Add(s, zero().Mul(a[i], b[i]))
		}
		return s
	}
	normalise := func(v []*big.Float) {
		norm := zero().Sqrt(dot(v, v))
		for i := range v {
			v[i] = zero().Quo(v[i], norm)
		}
	}
	quotient := func() *big.Float { return dot(v, times(v)) }
	normalise(v)
	for range 30 {
		v = times(v)
		normalise(v)
	}
	top := quotient()
	for range 4 {
		w := bigSystem(g, zero().Neg(zero().Mul(top, zero().Add(number(1), number(1e-60)))), v)
		v = w
		normalise(v)
		top = quotient()
	}
	return top
}

// bigSolve is c for λ, in the digits of g.
func bigSolve(g [][]*big.Float, lambda float64) []float64 {
	if lambda == 0 {
		return bigShifted(g, zero())
	}
	return bigShifted(g, zero().Mul(number(lambda), bigTop(g)))
}

// bigShifted is z/Σz for (g + shift I) z = 1.
func bigShifted(g [][]*big.Float, shift *big.Float) []float64 {
	ones := make([]*big.Float, len(g))
	for i := range ones {
		ones[i] = number(1)
	}
	z := bigSystem(g, shift, ones)
	total := zero()
	for _, v := range z {
		total.Add(total, v)
	}
	c := make([]float64, len(g))
	for i, v := range z {
		c[i], _ = v.Quo(v, total).Float64()
	}
	return c
}

// relativeError is ‖c − want‖/‖want‖.
func relativeError(c, want []float64) float64 {
	diff, norm := 0.0, 0.0
	for i := range want {
		diff = math.Hypot(diff, c[i]-want[i])
		norm = math.Hypot(norm, want[i])
	}
	return diff / norm
}

// conditioned returns a d×n matrix whose singular values fall from 1 to 1/condition.
func conditioned(rng *rand.Rand, d, n int, condition float64) *mat.Dense {
	orthogonal := func(rows, cols int) *mat.Dense {
		m := mat.NewDense(rows, cols, nil)
		for i := range rows {
			for j := range cols {
				m.Set(i, j, rng.NormFloat64())
			}
		}
		var svd mat.SVD
		svd.Factorize(m, mat.SVDThin)
		var u mat.Dense
		svd.UTo(&u)
		return &u
	}
	u, v := orthogonal(d, n), orthogonal(n, n)
	for j := range n {
		s := math.Pow(condition, -float64(j)/float64(max(n-1, 1)))
		for i := range d {
			u.Set(i, j, s*u.At(i, j))
		}
	}
	var r mat.Dense
	r.Mul(u, v.T())
	return &r
}

// The relative error of c against 120 digits: 1e-9 at most for any λ ≥ 0 while the condition number of R is at most
// 1e8, 1e-12 for λ ≥ 1e-9, and never more than Result.Accuracy. It prints the table of the package's documentation.
func TestAccuracy(t *testing.T) {
	lambdas := []float64{0, 1e-18, 1e-15, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2, 1, 100}
	conditions := []float64{1e2, 1e4, 1e6, 1e8}
	worst := map[[2]float64]float64{}
	said := map[[2]float64]float64{}
	rng := rand.New(rand.NewPCG(5, 19))
	for _, condition := range conditions {
		for _, n := range []int{2, 5, 10, 20} {
			const d = 40
			r := conditioned(rng, d, n, condition)
			// Residuals as such, and differences that rounding changes.
			for _, pairs := range []bool{false, true} {
				s, _ := NewHost64(d, 2)
				w := window(t, s, n)
				xs, ys := make([][]float64, n), make([][]float64, n)
				for k := range n {
					xs[k], ys[k] = make([]float64, d), make([]float64, d)
					for i := range d {
						xs[k][i] = r.At(i, k)
						if pairs {
							ys[k][i] = 0.1 * rng.NormFloat64()
							xs[k][i] += ys[k][i]
						}
					}
					var err error
					if pairs {
						err = w.PushPair(Slice64(ys[k]), Slice64(xs[k]))
					} else {
						err = w.PushResidual(Slice64(ys[k]), Slice64(xs[k]))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				gram := bigGram(func(k, i int) (x, y float64) { return xs[k][i], ys[k][i] }, n, d)
				top := bigTop(gram)
				for _, lambda := range lambdas {
					res := solve(t, w, Options{Lambda: Set(lambda)})
					if res.Status != OK {
						t.Fatal(res.Err())
					}
					off := relativeError(res.C, bigShifted(gram, zero().Mul(number(lambda), top)))
					at := [2]float64{condition, lambda}
					worst[at], said[at] = max(worst[at], off), max(said[at], res.Accuracy)
					goal := 1e-9
					if lambda >= 1e-9 {
						goal = 1e-12
					}
					if !(off <= goal && off <= res.Accuracy) {
						t.Errorf("cond(R) = %g, N = %d, λ = %g: relative error %.1e, said to be %.1e at most",
							condition, n, lambda, off, res.Accuracy)
					}
				}
			}
		}
	}
	table := "λ       "
	for _, condition := range conditions {
		table += fmt.Sprintf("  cond(R) = %-8.0e", condition)
	}
	for _, lambda := range lambdas {
		table += fmt.Sprintf("\n%-8.0e", lambda)
		for _, condition := range conditions {
			at := [2]float64{condition, lambda}
			table += fmt.Sprintf("  %7.1e (%7.1e)", worst[at], said[at])
		}
	}
	t.Log("relative error of c, and its bound Result.Accuracy:\n" + table)
}

// c of CNA keeps to Accuracy too, against a bisection for λ(τ) in 120 digits.
func TestConstrainedAccuracy(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 19))
	for _, condition := range []float64{1e2, 1e4, 1e8} {
		const d, n = 30, 6
		r := conditioned(rng, d, n, condition)
		s, _ := NewHost64(d, 1)
		w := window(t, s, n)
		for k := range n {
			if err := w.PushResidual(make(Slice64, d), Slice64(mat.Col(nil, k, r))); err != nil {
				t.Fatal(err)
			}
		}
		gram := bigGram(func(k, i int) (x, y float64) { return r.At(i, k), 0 }, n, d)
		free := solve(t, w, Options{Lambda: Set(0)})
		for _, share := range []float64{1e-3, .1, .5, .9, .99} {
			tau := share * free.Tau
			res := solve(t, w, Options{Tau: Set(tau)})
			if res.Status != OK {
				t.Fatal(res.Err())
			}
			top := bigTop(gram)
			lo, hi := -60.0, 10.0 // powers of ten of λ(τ)
			var c []float64
			for range 80 {
				mid := (lo + hi) / 2
				c = bigShifted(gram, zero().Mul(number(math.Pow(10, mid)), top))
				norm := 0.0
				for _, v := range c {
					norm = math.Hypot(norm, v)
				}
				if norm > (1+tau)/math.Sqrt(n) {
					lo = mid
				} else {
					hi = mid
				}
			}
			off := relativeError(res.C, c)
			if !(off <= res.Accuracy+1e-14/share && res.Accuracy <= 1e-6) {
				t.Errorf("cond(R) = %g, τ = %g: relative error %.1e, said to be %.1e at most", condition, tau, off,
					res.Accuracy)
			}
		}
	}
}

// Scaling by powers of two does not change a bit of c, from 1e-300 to 1e300.
func TestScales(t *testing.T) {
	const d, n = 50, 6
	rng := rand.New(rand.NewPCG(2, 7))
	vs := make([][]float64, n+1)
	for k := range vs {
		vs[k] = make([]float64, d)
		for i := range d {
			vs[k][i] = rng.NormFloat64() * math.Pow(.1+.8*float64(i)/d, float64(k))
		}
	}
	want := map[float64][]float64{}
	for _, exp := range []int{0, -996, -700, -540, -520, -300, -100, 1, 300, 500, 996} {
		s, _ := NewHost64(d, 1)
		w := window(t, s, n)
		for _, v := range vs {
			u := make([]float64, d)
			for i := range d {
				u[i] = math.Ldexp(v[i], exp)
			}
			push(t, w, u)
		}
		for _, lambda := range []float64{0, 1e-14, 1e-9, 1e-3} {
			res := solve(t, w, Options{Lambda: Set(lambda)})
			if res.Status != OK {
				t.Fatal(exp, res.Err())
			}
			if exp == 0 {
				want[lambda] = res.C
				continue
			}
			tolerance := 1e-12
			if lambda == 1e-3 || lambda == 1e-9 {
				tolerance = 1e-14
			}
			if off := relativeError(res.C, want[lambda]); !(off <= tolerance) {
				t.Errorf("2^%d, λ = %g: c is off by %.1e", exp, lambda, off)
			}
		}
	}
}

// For λ = 0 the residual of a chain with huge coefficients comes within 1 % of the least-squares residual.
func TestAndersonOfChains(t *testing.T) {
	for _, n := range []int{5, 10, 15, 20} {
		const d = 500
		rng := rand.New(rand.NewPCG(uint64(n), 4))
		s, _ := NewHost64(d, 2)
		w := window(t, s, n)
		vs := make([][]float64, n+1)
		v := make([]float64, d)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		rate := make([]float64, d)
		for i := range rate {
			rate[i] = .95 * rng.Float64()
		}
		for k := range vs {
			vs[k] = append([]float64(nil), v...)
			push(t, w, v)
			for i := range v {
				v[i] *= rate[i]
			}
		}
		gram := bigGram(func(k, i int) (x, y float64) { return vs[k+1][i], vs[k][i] }, n, d)
		value := func(c []float64) float64 {
			sum := zero()
			for i := range n {
				for j := range n {
					sum.Add(sum, zero().Mul(zero().Mul(number(c[i]), number(c[j])), gram[i][j]))
				}
			}
			v, _ := sum.Float64()
			return math.Sqrt(max(v, 0))
		}
		res := solve(t, w, Options{Lambda: Set(0)})
		if res.Status != OK {
			t.Fatal(res.Err())
		}
		best := value(bigSolve(gram, 0))
		t.Logf("N = %d: ‖c‖ = %.1e, rank %d, ‖Rc‖ is %.3g, at best %.3g", n, res.NormC, res.Rank, value(res.C), best)
		if !(value(res.C) <= 1.01*best) {
			t.Errorf("N = %d: ‖Rc‖ = %g where %g can be had", n, value(res.C), best)
		}
	}
}
