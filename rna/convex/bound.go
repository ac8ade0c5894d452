package convex

import "math"

// GradientBound is the guarantee for k steps of gradient descent with step 1/L (eq. conv_gradient_method):
//
//	f(x_k) − f* ≤ min((1 − κ)^k gap, L distance²/(2k)),   κ = μ/L,
//
// where gap is f(x_0) − f* and distance ‖x_0 − x*‖. μ may be 0. It is NaN unless 0 ≤ μ ≤ L, L > 0 and k ≥ 0.
func GradientBound(k int, l, mu, gap, distance float64) float64 {
	if k < 0 || !(l > 0 && mu >= 0 && mu <= l) {
		return math.NaN()
	}
	bound := math.Pow(1-mu/l, float64(k)) * gap
	if k > 0 {
		bound = min(bound, l*distance*distance/(2*float64(k)))
	}
	return bound
}

// NesterovBound is the guarantee for k iterations of Nesterov's method, or of Algorithm 3 ([OptimalAdaptive]) (eq.
// rate_nesterov, with its constants):
//
//	f(x_k) − f* ≤ (1 − √κ)^k (gap + μ distance²/2)         for μ > 0,
//	f(x_k) − f* ≤ 4/(k + 2)² (gap + L distance²/2)         for μ = 0,
//
// where gap is f(x_0) − f* and distance ‖x_0 − x*‖. It is NaN unless 0 ≤ μ ≤ L, L > 0 and k ≥ 0.
func NesterovBound(k int, l, mu, gap, distance float64) float64 {
	if k < 0 || !(l > 0 && mu >= 0 && mu <= l) {
		return math.NaN()
	}
	if mu == 0 {
		return 4 / float64((k+2)*(k+2)) * (gap + l*distance*distance/2)
	}
	return math.Pow(1-math.Sqrt(mu/l), float64(k)) * (gap + mu*distance*distance/2)
}
