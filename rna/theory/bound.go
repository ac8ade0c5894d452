package theory

import (
	"fmt"
	"math"
)

// The functions of this file are the paper's guarantees for extrapolation, computed from stated constants. Throughout
// g(y) = G(y − x*) + x*, exactly or up to errors, with a symmetric 0 ⪯ G ⪯ (1−κ)I, so that ‖G − I‖ ≤ 1. They are NaN
// where constants are out of range.

// MixingNorm bounds ‖I + β(G − I)‖ for all G: max(|1 − β|, |1 − βκ|). It is 1 − κ for β = 1.
func MixingNorm(beta, kappa float64) float64 { return max(math.Abs(1-beta), math.Abs(1-beta*kappa)) }

// NormBound is the bound on ‖c‖₂ for a λ > 0 (eq. bound_norm_lambda): √((1 + 1/λ)/N). The least bound is that of
// Kantorovich's inequality, (1 + 2λ)/(2√(λ(1 + λ)N)): half of this as λ → 0.
func NormBound(n int, lambda float64) float64 { return math.Sqrt((1 + 1/lambda) / float64(n)) }

// OptimalBound is the theorem on the optimal rate (optimal_rate): with λ = 0 and N residuals of any [Scheme], online
// RNA among them, in d dimensions,
//
//	‖r(y⁺)‖ ≤ ‖I + β(G − I)‖ ‖r(x_0)‖ 2ρ^(N−1)/(1 + ρ^(2(N−1))),   ρ = (1−√κ)/(1+√κ),
//
// and 0 for N > d. It is attained for β = 0. residual is ‖r(x_0)‖.
func OptimalBound(n, d int, kappa, beta, residual float64) float64 {
	if n > d {
		return 0
	}
	return MixingNorm(beta, kappa) * residual * ChebyshevRate(n, kappa)
}

// ConstrainedBound is the proposition on the rate of CNA (rate_constrained), for N residuals of the chain y_i = x_i:
//
//	‖r(y⁺)‖ ≤ ‖I + β(G − I)‖ ‖r(x_0)‖ C^{τ,κ}_{N−1},
//
// where C is the value of [ConstrainedChebyshev]; it is attained for β = 0. (The print has it for any scheme, whose
// coefficients are not those of the polynomial: G = 0, y_1 = 10x_1 − 9y_0, τ = 0 gives 4‖r(x_0)‖.) residual is
// ‖r(x_0)‖. N goes up to 10.
func ConstrainedBound(n int, kappa, tau, beta, residual float64) float64 {
	_, c, err := ConstrainedChebyshev(n, kappa, tau)
	if err != nil {
		return math.NaN()
	}
	return MixingNorm(beta, kappa) * residual * c
}

// PerturbationBound is the proposition on perturbed iterations (explicit_formula_perturbation): where x_i = g(y_{i-1})
// + e_i, residuals R̃ of the perturbed scheme and R of the exact one, from the same x_0, have the difference P with
//
//	‖P‖ ≤ ‖E‖ (1 + Σ_{j=1..N−1} (1−κ)^(j−1) ‖L_{N−1}‖ ‖L_{N−2}‖ … ‖L_{N−j}‖),
//
// where norms are ‖L_1‖ … ‖L_{N−1}‖ of the scheme ([Scheme.Norms]). The print has Σ_{j=1..N} (1−κ)^j ‖L_1‖ … ‖L_j‖,
// which its proof does not give and which is too small for G near 0: with G = 0, y = x, e_2 = −e_1 it says ‖P‖ ≤ ‖E‖ =
// √2‖e_1‖, where P = (e_1, e_2 − e_1) has the norm √5‖e_1‖. errors is ‖E‖.
func PerturbationBound(norms []float64, kappa, errors float64) float64 {
	sum, product := 1.0, 1.0
	for j := len(norms) - 1; j >= 0; j-- {
		product *= norms[j]
		sum += product
		product *= 1 - kappa
	}
	return errors * sum
}

// PerturbedBound is the theorem on perturbed iterations (convergence_perturbation), for CNA on the chain y_i = x_i:
//
//	‖(G − I)(y⁺ − x*)‖ ≤ ‖I + β(G − I)‖ (C^{τ,κ}_{N−1} ‖(G − I)(x_0 − x*)‖ + (1+τ)/√N ‖P‖) + (1+τ)/√N ‖E‖.
//
// The print has ‖E‖ under the factor ‖I + β(G − I)‖, too, against its own proof: for G = 0, β = 1 and κ → 1 that says
// 0, where y⁺ − x* is E c. residual is ‖(G − I)(x_0 − x*)‖, errors ‖E‖ and perturbation ‖P‖.
func PerturbedBound(n int, kappa, tau, beta, residual, errors, perturbation float64) float64 {
	norm := (1 + tau) / math.Sqrt(float64(n))
	return ConstrainedBound(n, kappa, tau, beta, residual) + norm*(MixingNorm(beta, kappa)*perturbation+errors)
}

// StochasticBound is the proposition on gradient steps with noise (convergence_stoch_gradient), for CNA with β = 1 on
// the chain y_i = x_i: with x_i = y_{i-1} − ∇f(y_{i-1})/L + e_i, a quadratic f whose Hessian lies between κL and L, and
// E‖e_i‖² ≤ σ²,
//
//	E‖∇f(y⁺)‖ ≤ (1−κ) C^{τ,κ}_{N−1} ‖∇f(x_0)‖ + (1+τ) L σ (1 + (1−κ) gain),
//
// where gain is that of [PerturbationBound] for ‖L_i‖ = 1, 1 + Σ_{j<N} (1−κ)^(j−1) ≤ 1 + 1/κ. The print has E‖E‖ ≤ σ
// for the N columns of E together, which holds for √N σ, and the printed sum.
func StochasticBound(n int, kappa, tau, l, sigma, gradient float64) float64 {
	norms := make([]float64, n-1)
	for i := range norms {
		norms[i] = 1
	}
	return ConstrainedBound(n, kappa, tau, 1,
		gradient) + (1+tau)*l*sigma*(1+(1-kappa)*PerturbationBound(norms, kappa, 1))
}

// NonlinearBound is the proposition on nonlinear perturbations (conv_nonlinear), for CNA on the chain y_i = x_i: where
// ‖I + β(G − I)‖ ‖P‖ + ‖E‖ ≤ γ √N D^α (eq. nonlinear_perturbation),
//
//	‖(G − I)(y⁺ − x*)‖ ≤ ‖I + β(G − I)‖ C^{τ,κ}_{N−1} ‖(G − I)(x_0 − x*)‖ + (1+τ) γ D^α.
//
// (The print has the factor 1−κ before all of it, which counts the factor in the assumption twice.) residual is
// ‖(G − I)(x_0 − x*)‖, and distance D bounds ‖y_i − x*‖.
func NonlinearBound(n int, kappa, tau, beta, residual, gamma, distance, alpha float64) float64 {
	return ConstrainedBound(n, kappa, tau, beta, residual) + (1+tau)*gamma*math.Pow(distance, alpha)
}

// LinearisationError is the proposition on smooth functions (bound_function_smooth_gradient): for a gradient step of
// 1/L on an f with 0 ⪯ ∇²f ⪯ LI and a Hessian with the Lipschitz constant M, the error of the step linearised at x*
// (eq. nonlinear_perturbation) is at most
//
//	‖e‖ ≤ min(D, M D²/(2L)),   D = ‖y − x*‖:
//
// of the order α = 1 for large D, and 2 for small.
func LinearisationError(l, m, distance float64) float64 {
	return min(distance, m*distance*distance/(2*l))
}

// LinearisationGamma returns γ of eq. (nonlinear_perturbation), with α = 2, for N gradient steps in the chain y_i = x_i
// on such an f: ‖E‖ ≤ √N M D²/(2L), and ‖P‖ follows by [PerturbationBound].
func LinearisationGamma(n int, kappa, beta, l, m float64) float64 {
	norms := make([]float64, n-1)
	for i := range norms {
		norms[i] = 1
	}
	return (MixingNorm(beta, kappa)*PerturbationBound(norms, kappa, 1) + 1) * m / (2 * l)
}

// AsymptoticOrders is the proposition on the asymptotic rate (asymptotic_optimal_rate): with errors of the order D^α, α
// > 1, CNA with τ = O(D^−s), 0 < s < tau, and RNA with λ = O(D^r), 0 < r < lambda, come to the rate of
// [AsymptoticBound] as D → 0.
func AsymptoticOrders(alpha float64) (tau, lambda float64, err error) {
	if !(alpha > 1) {
		return 0, 0, fmt.Errorf("rna: errors of the order D^%v: the order must exceed 1", alpha)
	}
	return alpha - 1, 2 * (alpha - 1), nil
}

// AsymptoticBound is the limit of that proposition for D → 0, where errors no longer count: the bound of the optimal
// rate. (The print lacks the factor of [ChebyshevRate], and d.) residual is ‖(G − I)(x_0 − x*)‖.
func AsymptoticBound(n int, kappa, beta, residual float64) float64 {
	return MixingNorm(beta, kappa) * residual * ChebyshevRate(n, kappa)
}
