package rna

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// NoiseCoefficients are the limit of RNA's coefficients in the second regime of the theorem on perturbed iterations
// (convergence_perturbation), where noise dominates. For residuals r̃_i = r + e_i with independent noise of variance
// σ_i², Σ c_i = 1 gives
//
//	E‖R̃ c‖² = ‖r‖² + Σ c_i² σ_i²,
//
// which is least for c_i ∝ 1/σ_i². Noise of one size gives the average, c_i = 1/N: τ = 0 in CNA. The σ_i² are taken
// from the Gram matrix R̃ᵀR̃, whose elements off the diagonal estimate ‖r‖² by their mean. noise is Σ σ_i² over Σ
// ‖r̃_i‖²: near 1 where residuals are nearly orthogonal. c is nil for fewer than two residuals, or if a residual has
// no noise.
//
// For N = 2 the model has as many parameters as the matrix, and c is RNA's own for λ = 0 (unless the residuals' product
// is negative): two residuals cannot tell noise from curvature. [StationaryCoefficients] are those of another null
// model, with noise that is not independent.
func NoiseCoefficients(gram mat.Symmetric) (c []float64, noise float64) {
	n := gram.SymmetricDim()
	if n < 2 {
		return nil, 0
	}
	drift, all := 0.0, 0.0
	for i := range n {
		all += gram.At(i, i)
		for j := range i {
			drift += gram.At(i, j)
		}
	}
	drift = max(0, 2*drift/float64(n*(n-1)))
	c = make([]float64, n)
	sum := 0.0
	for i := range n {
		variance := gram.At(i, i) - drift
		if !(variance > 0) || math.IsInf(variance, 1) {
			return nil, 0
		}
		noise += variance / all
		c[i] = 1 / variance
		sum += c[i]
	}
	for i := range c {
		c[i] /= sum
	}
	return c, noise
}

// StationaryCoefficients are RNA's coefficients for n residuals of a chain whose iterates only scatter about a point,
// x_i = x* + e_i with independent e_i of one size: neighbouring residuals e_i − e_{i−1} have the correlation −½, and
// c_i is proportional to i(n+1−i), a parabola, where [NoiseCoefficients] gives the average. c is nil for n < 1.
func StationaryCoefficients(n int) []float64 {
	if n < 1 {
		return nil
	}
	c := make([]float64, n)
	for i := range c {
		c[i] = 6 * float64((i+1)*(n-i)) / float64(n*(n+1)*(n+2))
	}
	return c
}

// FromUniform is ‖c − 1/N‖₂, which is √(((1+τ)² − 1)/N) for the τ of c.
func FromUniform(c []float64) float64 {
	sum := 0.0
	for _, v := range c {
		d := v - 1/float64(len(c))
		sum += d * d
	}
	return math.Sqrt(sum)
}
