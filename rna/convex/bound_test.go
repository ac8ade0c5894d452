package convex

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// A known problem is one whose optimum is.
type known struct {
	name string
	Problem
	best, distance float64 // f*, and ‖x*‖ of the x* nearest to the origin
}

// quadratic is Σ e_j (w_j − s_j)²/2 with eigenvalues e.
func quadratic(name string, eigenvalues []float64, rng *rand.Rand) known {
	d := len(eigenvalues)
	solution := make([]float64, d)
	k := known{name: name, Problem: Problem{Dim: d, L: floats.Max(eigenvalues), Mu: floats.Min(eigenvalues)}}
	for j, e := range eigenvalues {
		if e > 0 {
			solution[j] = rng.NormFloat64()
			k.distance = math.Hypot(k.distance, solution[j])
		}
	}
	k.F = func(w, grad []float64) float64 {
		sum := 0.0
		for j, e := range eigenvalues {
			r := w[j] - solution[j]
			sum += e * r * r / 2
			if grad != nil {
				grad[j] = e * r
			}
		}
		return sum
	}
	return k
}

// knownProblems are strongly convex and convex, from well to badly conditioned.
func knownProblems(t *testing.T) []known {
	t.Helper()
	rng := rand.New(rand.NewPCG(19, 3))
	spread := func(d int, low float64) []float64 { // from low, geometrically, to 1
		e := make([]float64, d)
		for j := range e {
			e[j] = math.Pow(low, 1-float64(j)/float64(d-1))
		}
		return e
	}
	singular := make([]float64, 60) // with eigenvalues as far down as 1e-12, so that it looks merely convex
	copy(singular[10:], spread(50, 1e-12))
	ks := []known{
		quadratic("quadratic, κ = 1e-2", spread(50, 1e-2), rng),
		quadratic("quadratic, κ = 1e-5", spread(80, 1e-5), rng),
		quadratic("singular quadratic", singular, rng),
	}
	add := func(name string, r *Risk) {
		best, err := r.Optimum()
		if err != nil {
			t.Fatal(name, err)
		}
		ks = append(ks, known{name, problem(t, r), best.Value, floats.Norm(best.W, 2)})
	}
	for _, kappa := range []float64{1e-3, 1e-6, 1e-9} {
		add(fmt.Sprintf("sonar, logistic, κ = %g", kappa), sonarRisk(t, kappa))
	}
	sonar, err := Sonar()
	if err != nil {
		t.Fatal(err)
	}
	squares := risk(t, sonar, Squares, 0)
	squares.Reg = 1e-4 * squares.Smoothness()
	add("sonar, squares, κ = 1e-4", squares)
	dense, sparse := twins(t, 300, 20, 0.5)
	add("random, logistic, convex", risk(t, dense, Logistic, 0))
	add("random, sparse squares, convex", risk(t, sparse, Squares, 0))
	return ks
}

// exceeds returns the number of values that exceed a bound, up to rounding, and the largest factor by which they do.
func exceeds(values []float64, best float64, bound func(k int) float64) (often int, worst float64) {
	for k, v := range values {
		by := (v - best - 4e-16*max(1, math.Abs(values[0]))) / bound(k)
		worst = max(worst, by)
		if by > 1+1e-12 {
			often++
		}
	}
	return often, worst
}

// Algorithm 3 keeps Nesterov's bound at every iteration, also for the curves that RNA drives down; gradient descent
// keeps its own.
func TestBoundsHold(t *testing.T) {
	beaten := 0
	for _, p := range knownProblems(t) {
		gap := p.F(make([]float64, p.Dim), nil) - p.best
		for _, m := range []Method{OptimalAdaptive, GD} {
			res, err := Minimize(p.Problem, m, Options{Iterations: 400})
			if err != nil {
				t.Fatal(p.name, m, err)
			}
			rate := NesterovBound
			if m == GD {
				rate = GradientBound
			}
			often, worst := exceeds(res.Values, p.best,
				func(k int) float64 { return rate(k, p.L, p.Mu, gap, p.distance) })
			t.Logf("%s, %s: at most %.2f of the bound", p.name, m, worst)
			if often > 0 {
				t.Errorf("%s, %s: the bound is exceeded %d times, up to %.2g times", p.name, m, often, worst)
			}
			if m == OptimalAdaptive && res.Values[100]-p.best < 1e-3*NesterovBound(100, p.L, p.Mu, gap, p.distance) {
				beaten++
			}
		}
	}
	if beaten < 2 {
		t.Errorf("RNA was 1000 times below Nesterov's bound on %d problems", beaten)
	}
}

// The counter-example to Algorithm 3 as printed.
func TestPrintedAdaptive(t *testing.T) {
	for _, p := range knownProblems(t) {
		if !strings.HasPrefix(p.name, "sonar, logistic") {
			continue
		}
		gap := p.F(make([]float64, p.Dim), nil) - p.best
		res, err := Minimize(p.Problem, PrintedAdaptive, Options{Iterations: 500})
		if err != nil {
			t.Fatal(err)
		}
		often, worst := exceeds(res.Values, p.best,
			func(k int) float64 { return NesterovBound(k, p.L, p.Mu, gap, p.distance) })
		t.Logf("%s: exceeded %d times, up to %.1f times", p.name, often, worst)
		if often == 0 {
			t.Errorf("%s: as printed it keeps the bound too", p.name)
		}
	}
}

func TestBoundArguments(t *testing.T) {
	for _, v := range []float64{
		GradientBound(-1, 1, .5, 1, 1), GradientBound(1, 0, 0, 1, 1), GradientBound(1, 1, 2, 1, 1),
		NesterovBound(-1, 1, .5, 1, 1), NesterovBound(1, 0, 0, 1, 1), NesterovBound(1, 1, -1, 1, 1),
	} {
		if !math.IsNaN(v) {
			t.Errorf("a bound of %g from constants that can't be", v)
		}
	}
	// By hand: (1 − 1/4)²·3 = 27/16 and 4·5²/(2·2) = 25; (1 − 1/2)²(3 + 25/2) = 31/8; 4/16·(3 + 4·25/2) = 53/4.
	for _, tt := range []struct{ got, want float64 }{
		{GradientBound(2, 4, 1, 3, 5), 27. / 16},
		{GradientBound(2, 4, 0, 30, 5), 25},
		{GradientBound(2, 4, .5, 1, 5), 49. / 64},
		{GradientBound(2, .5, .25, 1, 5), 1. / 4},
		{GradientBound(0, 4, 1, 3, 5), 3},
		{NesterovBound(2, 4, 1, 3, 5), 31. / 8},
		{NesterovBound(2, 4, 0, 3, 5), 53. / 4},
	} {
		if !(math.Abs(tt.got-tt.want) <= 1e-14) {
			t.Errorf("%g, want %g", tt.got, tt.want)
		}
	}
}
