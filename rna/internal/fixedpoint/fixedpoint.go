// Package fixedpoint has fixed-point problems of many fields, on which solvers of g(x) = x are tried. Each is a
// function of a seed: solvers are tuned on some seeds and judged on others.
package fixedpoint

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Problem is a map g with a start. Several seeds give several problems of a kind.
type Problem struct {
	Start []float64
	G     func(dst, x []float64) error

	// Accept reports whether g may be evaluated at x. Nil accepts all finite x.
	Accept func(x []float64) bool
}

// A Kind makes problems.
type Kind struct {
	Name string
	New  func(seed uint64) Problem
}

// Kinds lists all of them.
func Kinds() []Kind {
	return []Kind{
		{"EM of Poisson mixtures", poissonMixture},
		{"EM of separate Gaussians", separateGaussians},
		{"EM of overlapping Gaussians", overlappingGaussians},
		{"EM of a factor model", factorModel},
		{"EM of Student's t", studentT},
		{"EM of a multinomial with missing cells", geneticLinkage},
		{"IRLS of least absolute deviations", leastAbsolute},
		{"MM of logistic regression", logisticMM},
		{"MM of Bradley and Terry", bradleyTerry},
		{"ISTA of the lasso", ista},
		{"projected gradient of non-negative least squares", nonNegative},
		{"gradient descent on a quadratic", quadratic},
		{"gradient descent on logistic regression", logisticGradient},
		{"ADMM of the lasso", admm},
		{"Douglas–Rachford of two sets", douglasRachford},
		{"alternating projections", alternating},
		{"Sinkhorn", sinkhorn},
		{"unbalanced transport", unbalanced},
		{"matrix balancing", balancing},
		{"value iteration", valueIteration},
		{"policy evaluation", policyEvaluation},
		{"PageRank", pageRank},
		{"Bratu's equation", bratu},
		{"nonlinear heat equation", heat},
		{"Jacobi on Poisson's equation", jacobi},
		{"mean field of Ising spins", ising},
		{"self-consistent field", selfConsistent},
		{"belief propagation", beliefPropagation},
		{"NMF by multiplicative updates", nmf},
		{"equilibrium layer", equilibrium},
		{"contraction with a complex spectrum", rotations},
		{"contraction with a spectrum near 1", nearOne},
		{"non-normal contraction", nonNormal},
		{"absolute values", absolute},
		{"sine", sine},
		{"averaged rotation, not contractive", averagedRotation},
		{"power iteration", powerIteration},
		{"k-means with soft assignment", softMeans},
		{"Chandrasekhar's H-equation", chandrasekhar},
		{"logistic map", logisticMap},
	}
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

func normals(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return v
}

// matVec writes A x to dst; A is row-major with len(x) columns.
func matVec(dst, a, x []float64) {
	n := len(x)
	for i := range dst {
		s := 0.0
		for j, v := range a[i*n : (i+1)*n] {
			s += v * x[j]
		}
		dst[i] = s
	}
}

// matTVec writes Aᵀ y to dst; A is row-major with len(dst) columns.
func matTVec(dst, a, y []float64) {
	clear(dst)
	n := len(dst)
	for i, v := range y {
		for j, w := range a[i*n : (i+1)*n] {
			dst[j] += v * w
		}
	}
}

// normSquared estimates ‖A‖₂², slightly from above, by power iteration.
func normSquared(a []float64, rows, cols int) float64 {
	x, y := make([]float64, cols), make([]float64, rows)
	for i := range x {
		x[i] = 1 + float64(i%7)
	}
	s := 0.0
	for range 200 {
		matVec(y, a, x)
		matTVec(x, a, y)
		s = norm(x)
		scale(x, 1/s)
	}
	return 1.02 * s
}

func norm(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}

func scale(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// soft is soft thresholding.
func soft(v, t float64) float64 { return math.Copysign(max(math.Abs(v)-t, 0), v) }

// positive accepts vectors of positive elements.
func positive(x []float64) bool {
	for _, v := range x {
		if !(v > 0) {
			return false
		}
	}
	return true
}

func filled(n int, v float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = v
	}
	return x
}

// Plain counts the evaluations of plain iteration until ‖g(x) − x‖ ≤ tolerance · max(‖g(x)‖, the first residual), and
// reports whether most were enough.
func (p Problem) Plain(tolerance float64, most int) (evaluations int, ok bool) {
	x, y := slices.Clone(p.Start), make([]float64, len(p.Start))
	first := 0.0
	for n := 1; n <= most; n++ {
		if err := p.G(y, x); err != nil {
			return n, false
		}
		r := 0.0
		for i, v := range y {
			r += (v - x[i]) * (v - x[i])
		}
		r = math.Sqrt(r)
		if n == 1 {
			first = r
		}
		if r <= tolerance*max(first, norm(y)) {
			return n, true
		}
		x, y = y, x
	}
	return most, false
}
