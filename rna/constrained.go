package rna

import (
	"fmt"
	"math"
)

// Constrain returns the coefficients of CNA (Algorithm 2) for a τ ≥ 0, 0 and +Inf included:
//
//	minimise ‖R c‖   subject to   Σ c_i = 1 and ‖c‖₂ ≤ (1+τ)/√N.
//
// They equal [Spectrum.Solve] at the λ(τ) that meets the bound with equality, returned as Result.Lambda, or at λ = 0
// if the bound holds there. τ = 0 is the uniform average, +Inf is Anderson acceleration. Solve returns the inverse
// τ(λ) as Result.Tau.
//
// A Gram matrix cannot distinguish a λ(τ) below its rounding from 0. The coefficients then keep the bound, and ‖R c‖
// is minimal up to that rounding.
func (s *Spectrum) Constrain(tau float64) Result {
	switch {
	case math.IsNaN(tau) || tau < 0:
		res := s.fault
		res.refuse(Invalid, fmt.Sprintf("tau is %v: it must be 0 or more", tau))
		return res
	case tau == 0:
		return s.Solve(math.Inf(1))
	case s.fault.Status != OK || math.IsInf(tau, 1):
		return s.Solve(0)
	}
	low := 0.0
	free := s.Solve(0)
	if free.Status == RankDeficient {
		low = 2 * s.rounding()
		free = s.Solve(low)
	}
	if free.Status != OK || free.Tau <= tau {
		return free
	}
	return s.Solve(s.lambda(tau, low))
}

// lambda returns the λ > low with τ(λ) = tau, from above. There τ(low) must exceed tau.
//
// With h(λ) = ‖c − 1/N‖⁻¹, which grows with λ and is nearly linear in it, the steps are Newton's,
// held in a bracket that they or bisections of log λ narrow.
func (s *Spectrum) lambda(tau, low float64) float64 {
	goal := math.Sqrt(tau * (2 + tau) / float64(s.n))
	// ‖c − 1/N‖ ≤ 1/(λ√N), so that the bound holds here.
	high := 1 / math.Sqrt(tau*(2+tau))
	lambda := high
	for range 200 {
		norm, slope := s.deviation(lambda)
		if norm > goal {
			low = lambda
		} else {
			high = lambda
			if norm >= goal*(1-8*epsilon) {
				break
			}
		}
		if high-low <= 2*epsilon*high {
			break
		}
		// h' = −‖·‖'/‖·‖², and the goal is a shade inside the bound, to end on its good side.
		lambda += (norm - goal*(1-4*epsilon)) / -slope * (norm / goal)
		if !(lambda > low && lambda < high) {
			lambda = math.Sqrt(max(low, 1e-3*s.rounding()*s.rounding())) * math.Sqrt(high)
			if !(lambda > low && lambda < high) {
				lambda = low + (high-low)/2
			}
		}
	}
	return high
}

// deviation returns ‖c − 1/N‖₂ and its derivative by λ. Differences of
// eigenvalues, not of coefficients, keep it exact where c is nearly uniform.
func (s *Spectrum) deviation(lambda float64) (norm, slope float64) {
	// With w = 1/(σ + λ), the weights a²w of sum W and the mean eigenvalue m under them, the
	// deviation has the component a w (m − σ)/N along an eigenvector. And
	// d‖c‖²/dλ = −2 Σ a²w (w − w̄)²/W², where w̄ is the mean of w. All w are scaled by 1 + λ.
	scale := 1 + lambda
	var w1, w2, mean, mean2 float64
	for k, sigma := range s.sigma {
		w := scale / (sigma + lambda)
		p := s.ones[k] * s.ones[k] * w
		w1 += p
		w2 += p * w
		mean += p * sigma
		mean2 += p * w * sigma
	}
	mean /= w1
	mean2 /= w2
	variance := 0.0
	for k, sigma := range s.sigma {
		w := scale / (sigma + lambda)
		norm = math.Hypot(norm, s.ones[k]*(w/scale)*(mean-sigma)/float64(s.n))
		e := (w / scale) * (w2 / w1) * (mean2 - sigma)
		variance += s.ones[k] * s.ones[k] * w * e * e
	}
	if norm > 0 {
		slope = -variance / (w1 * w1 * scale * norm)
	}
	return norm, slope
}

// excess returns the τ of coefficients at distance norm from 1/N: √N ‖c‖ − 1 = √(1 + N norm²) − 1.
func excess(n int, norm float64) float64 {
	square := float64(n) * norm * norm
	return square / (math.Sqrt(1+square) + 1)
}
