package rna

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

const epsilon = 1.0 / (1 << 52)

// A Spectrum is the symmetric eigendecomposition of RᵀR, from the Gram matrix ([Factor],
// [Window.Spectrum]) or from the residuals themselves ([Window.QR]). One serves any number of λ
// and τ: each further solve costs O(N²).
type Spectrum struct {
	n     int
	exp   int        // the matrix that was decomposed is 2^(-2 exp) RᵀR
	sigma []float64  // eigenvalues over the largest, clipped to [0, 1], ascending
	top   float64    // the largest eigenvalue of the scaled matrix
	basis *mat.Dense // eigenvectors, in columns
	ones  []float64  // Vᵀ1
	fault Result     // why the matrix cannot be used; Status OK if it can
	norms []float64

	triangle *mat.Dense // R of a QR of the scaled residuals, when there was one
	noise    []float64  // bounds on the columns' errors from the rounding of the vectors
}

// Factor decomposes a Gram matrix RᵀR; only its upper triangle is read. A matrix that can't be one gives a Spectrum
// whose results say so.
func Factor(gram mat.Symmetric) *Spectrum {
	if gram == nil {
		return factor(nil, nil)
	}
	n := gram.SymmetricDim()
	g := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			g[i*n+j] = gram.At(i, j)
			g[j*n+i] = g[i*n+j]
		}
	}
	return factor(g, make([]int, n))
}

// factor decomposes the n×n matrix with the entries 2^(exps[i]+exps[j]) g[i*n+j]. It
// overwrites g.
func factor(g []float64, exps []int) *Spectrum {
	n := len(exps)
	s := &Spectrum{n: n}
	if n == 0 {
		s.fail(TooFew, "push iterates before asking for an extrapolation")
		return s
	}
	if bad := nonFiniteColumns(g, n); bad != nil {
		s.fail(NonFinite, "the Gram matrix has NaN or infinite entries", bad...)
		return s
	}
	var negative []int
	for j := range n {
		if g[j*n+j] < 0 {
			negative = append(negative, j)
		}
	}
	if negative != nil {
		s.fail(Indefinite, "the Gram matrix has negative diagonal entries", negative...)
		return s
	}
	s.norms = make([]float64, n)
	s.exp = math.MinInt
	for j := range n {
		norm := math.Sqrt(g[j*n+j])
		s.norms[j] = math.Ldexp(norm, exps[j])
		if _, e := math.Frexp(norm); norm > 0 {
			s.exp = max(s.exp, e+exps[j])
		}
	}
	if s.exp == math.MinInt {
		for _, v := range g {
			if v != 0 {
				s.fail(Indefinite, "the Gram matrix has a zero diagonal and other entries")
				return s
			}
		}
		s.exp = 0
		s.fail(ZeroResidual, "all residuals are zero, so the iteration has converged: keep its last iterate")
		return s
	}
	// A power of two brings the largest norm into [1/2, 1), exactly.
	for i := range n {
		for j := range n {
			v := math.Ldexp(g[i*n+j], exps[i]+exps[j]-2*s.exp)
			if math.Abs(v) > 2 {
				s.fail(Indefinite, "the Gram matrix breaks the Cauchy–Schwarz inequality", i, j)
				return s
			}
			g[i*n+j] = v
		}
	}
	s.decompose(g)
	return s
}

// decompose sets the eigenvalues and vectors of the scaled matrix g.
func (s *Spectrum) decompose(g []float64) {
	var eig mat.EigenSym
	if !eig.Factorize(mat.NewSymDense(s.n, g), true) {
		s.fail(NonFinite, "the eigendecomposition did not converge")
		return
	}
	s.sigma = eig.Values(nil)
	s.top = s.sigma[s.n-1]
	if low := s.sigma[0] / s.top; !(low >= -4*s.rounding()) {
		s.fail(Indefinite, fmt.Sprintf(
			"the smallest eigenvalue of the Gram matrix is %.1e of the largest: sum it in float64", low))
		return
	}
	s.basis = new(mat.Dense)
	eig.VectorsTo(s.basis)
	s.ones = make([]float64, s.n)
	for k := range s.n {
		s.sigma[k] = min(max(s.sigma[k]/s.top, 0), 1)
		for i := range s.n {
			s.ones[k] += s.basis.At(i, k)
		}
	}
}

// rounding is the size, relative to the largest, of eigenvalues lost in the rounding of the matrix. After a QR it is
// the square of the same quantity for singular values.
func (s *Spectrum) rounding() float64 {
	r := 16 * epsilon * float64(s.n)
	if s.triangle != nil {
		return r * r
	}
	return r
}

// accuracy is the relative error of coefficients for a condition number of RᵀR + λ‖R‖₂²I.
func (s *Spectrum) accuracy(condition float64) float64 {
	if s.triangle != nil {
		return epsilon * float64(s.n) * (4 + math.Sqrt(condition))
	}
	return 2 * epsilon * (4 + math.Sqrt(float64(s.n)) + condition)
}

// Norm returns ‖R‖₂.
func (s *Spectrum) Norm() float64 {
	return math.Ldexp(math.Sqrt(max(s.top, 0)), s.exp)
}

// Solve returns the coefficients for one λ ≥ 0 relative to ‖R‖₂², 0 and +Inf included.
//
// λ = 0, Anderson acceleration, minimises ‖R c‖ alone. After a QR there is a solution unless all residuals are zero.
// If differences of residuals are numerically dependent, several c minimise; the shortest is returned, with a Rank
// below N. From a Gram matrix the solve is refused as RankDeficient when the residuals are dependent to half of the
// digits.
func (s *Spectrum) Solve(lambda float64) Result {
	res := s.fault
	res.Lambda = lambda
	res.ResidualNorms = append([]float64(nil), s.norms...)
	if math.IsNaN(lambda) || lambda < 0 {
		res.refuse(Invalid, fmt.Sprintf("lambda is %v: it must be 0 or more", lambda))
		return res
	}
	if res.Status == ZeroResidual && math.IsInf(lambda, 1) {
		res = Result{Lambda: lambda, ResidualNorms: res.ResidualNorms}
	}
	if res.Status != OK {
		return res
	}
	res.Norm = s.Norm()
	for _, v := range s.sigma {
		if v > s.rounding() {
			res.Rank++
		}
	}
	if math.IsInf(lambda, 1) {
		res.C = make([]float64, s.n)
		for i := range res.C {
			res.C[i] = 1 / float64(s.n)
		}
		res.Condition = 1
		res.NormC = 1 / math.Sqrt(float64(s.n)) // and τ = 0
		res.Accuracy = epsilon
		return res
	}
	if s.triangle != nil && lambda == 0 {
		s.anderson(&res)
		return res
	}
	res.Condition = (1 + lambda) / (s.sigma[0] + lambda)
	if s.triangle == nil && s.sigma[0]+lambda <= s.rounding() {
		res.refuse(RankDeficient, fmt.Sprintf(
			"the %d residuals have numerical rank %d at lambda %g: raise lambda or shorten the window", s.n, res.Rank,
			lambda))
		return res
	}
	c := s.coefficients(lambda)
	for _, v := range c {
		res.NormC = math.Hypot(res.NormC, v)
	}
	if !isFinite(res.NormC) {
		res.refuse(NonFinite, "the coefficients are not finite: raise lambda")
		return res
	}
	res.C = c
	res.Accuracy = s.accuracy(res.Condition)
	norm, _ := s.deviation(lambda)
	res.Tau = excess(s.n, norm)
	return res
}

// coefficients returns z/Σz with z = V (σ + λ)⁻¹ Vᵀ1, scaled so that no λ overflows.
func (s *Spectrum) coefficients(lambda float64) []float64 {
	z := make([]float64, s.n)
	for k, sigma := range s.sigma {
		a := s.ones[k] * ((1 + lambda) / (sigma + lambda))
		for i := range z {
			z[i] += a * s.basis.At(i, k)
		}
	}
	sum := 0.0
	for _, v := range z {
		sum += v
	}
	for i := range z {
		z[i] /= sum
	}
	return z
}

func (s *Spectrum) fail(status Status, detail string, columns ...int) {
	s.fault = Result{Status: status, Detail: detail}
	for _, j := range columns {
		s.fault.Refused = append(s.fault.Refused, Refusal{Column: j, Reason: status})
	}
}

func (r *Result) refuse(status Status, detail string) {
	r.Status, r.Detail, r.C = status, detail, nil
}

func (r *Result) overflow() {
	r.refuse(Overflow, "the extrapolated point might exceed the largest finite value: raise lambda")
}

// nonFiniteColumns returns the columns to drop so that the rest is finite: those with a non-finite diagonal entry, or
// else the later one of each non-finite pair.
func nonFiniteColumns(g []float64, n int) []int {
	bad := make([]bool, n)
	for j := range n {
		bad[j] = !isFinite(g[j*n+j])
	}
	for j := range n {
		for i := range j {
			if !bad[i] && !bad[j] && !isFinite(g[i*n+j]) {
				bad[j] = true
			}
		}
	}
	var columns []int
	for j, b := range bad {
		if b {
			columns = append(columns, j)
		}
	}
	return columns
}
