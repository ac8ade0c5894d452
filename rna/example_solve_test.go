package rna_test

import (
	"context"
	"fmt"
	"math"

	"onlinerna/rna"
)

// EM for a mixture of two Poisson distributions, on the counts of Hasselblad (1969). Plain EM takes 3,396 evaluations.
func ExampleSolve() {
	deaths := []float64{162, 267, 271, 185, 111, 61, 27, 8, 3, 1} // days with 0, 1, 2, … deaths
	em := func(dst, x []float64) error {
		share, a, b := x[0], x[1], x[2]
		var n, first, firstSum, secondSum float64
		for i, days := range deaths {
			k := float64(i)
			pa := share * math.Exp(k*math.Log(a)-a)
			pb := (1 - share) * math.Exp(k*math.Log(b)-b)
			w := days * pa / (pa + pb)
			n += days
			first += w
			firstSum += w * k
			secondSum += (days - w) * k
		}
		dst[0], dst[1], dst[2] = first/n, firstSum/first, secondSum/(n-first)
		return nil
	}
	x := []float64{0.3, 1, 2.5}
	s, err := rna.Solve(context.Background(), em, x, rna.SolveOptions{
		Accept: func(x []float64) bool { return x[0] > 0 && x[0] < 1 && x[1] > 0 && x[2] > 0 },
	})
	fmt.Printf("%.4f, fewer than 100 evaluations: %v, converged: %v, %v\n", x, s.Evaluations < 100, s.Converged, err)
	// Output: [0.3599 1.2561 2.6634], fewer than 100 evaluations: true, converged: true, <nil>
}

// PageRank of six pages.
func ExampleSolve_pageRank() {
	links := [][]int{{1, 2}, {2}, {0}, {2, 4}, {3, 5}, {3}}
	rank := func(dst, x []float64) error {
		for i := range dst {
			dst[i] = 0.15 / float64(len(links))
		}
		for i, to := range links {
			for _, j := range to {
				dst[j] += 0.85 * x[i] / float64(len(to))
			}
		}
		return nil
	}
	x := []float64{1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}
	s, err := rna.Solve(context.Background(), rank, x, rna.SolveOptions{})
	fmt.Printf("%.3f %v %v\n", x, s.Converged, err)
	// Output: [0.302 0.153 0.326 0.099 0.067 0.054] true <nil>
}

// Entropic optimal transport by Sinkhorn's iteration, in the logarithms of the scales.
func ExampleSolve_transport() {
	from, to := []float64{0.5, 0.3, 0.2}, []float64{0.2, 0.2, 0.6}
	at := []float64{0, 1, 2} // both lie there; the cost is the squared distance
	kernel := func(i, j int) float64 { return math.Exp(-(at[i] - at[j]) * (at[i] - at[j]) / 0.3) }
	u := make([]float64, 3)
	sinkhorn := func(dst, x []float64) error {
		for i := range u {
			s := 0.0
			for j := range x {
				s += kernel(i, j) * math.Exp(x[j])
			}
			u[i] = from[i] / s
		}
		for j := range dst {
			s := 0.0
			for i := range u {
				s += kernel(i, j) * u[i]
			}
			dst[j] = math.Log(to[j] / s)
		}
		for j := range dst { // scales are known up to a factor
			dst[j] -= dst[2]
		}
		return nil
	}
	x := make([]float64, 3)
	s, err := rna.Solve(context.Background(), sinkhorn, x, rna.SolveOptions{})
	cost := 0.0
	for i := range u {
		for j := range x {
			cost += u[i] * kernel(i, j) * math.Exp(x[j]) * (at[i] - at[j]) * (at[i] - at[j])
		}
	}
	fmt.Printf("cost %.4f %v %v\n", cost, s.Converged, err)
	// Output: cost 0.9015 true <nil>
}
