package convex

import (
	"errors"
	"math"
	"strings"
	"testing"

	"onlinerna/rna"
)

// bowl is an ill-conditioned function that isn't quadratic.
func bowl(x, grad []float64) float64 {
	f := 0.0
	for i, v := range x {
		a := math.Pow(10, -3*float64(i)/float64(len(x)-1))
		s := math.Hypot(1, v-1)
		f += a * (s - 1 + (v-1)*(v-1))
		if grad != nil {
			grad[i] = a * ((v-1)/s + 2*(v-1))
		}
	}
	return f
}

// Without constants, backtracking finds the step, and RNA still accelerates.
func TestUnknownConstants(t *testing.T) {
	p := Problem{F: bowl, Dim: 30}
	ends := map[Method]float64{}
	for _, m := range []Method{GD, NesterovConvex, Offline{GD}, Online{GD}, Online{NesterovConvex}, LBFGS, BFGS} {
		res, err := Minimize(p, m, Options{Iterations: 300})
		if err != nil {
			t.Fatal(m, err)
		}
		if len(res.Values) != 301 || res.At[300] != 300 || res.Values[0] != bowl(make([]float64, 30), nil) {
			t.Errorf("%s: %d values", m, len(res.Values))
		}
		ends[m] = res.Values[300]
	}
	for _, m := range []Method{Online{GD}, LBFGS, BFGS} {
		if !(ends[m] < 1e-12) {
			t.Errorf("%s ends at %g", m, ends[m])
		}
	}
	if !(ends[Offline{GD}] < ends[GD]/5) {
		t.Errorf("offline RNA ends at %g, gradient descent at %g", ends[Offline{GD}], ends[GD])
	}
	for _, m := range []Method{NesterovStrong, OptimalAdaptive, PrintedAdaptive, PlainOnline{GD}, Anderson{GD}} {
		if _, err := Minimize(p, m, Options{}); err == nil || !strings.Contains(err.Error(), "takes the constant L") {
			t.Errorf("%s without constants: %v", m, err)
		}
	}
}

// Every method lowers either loss on sonar.
func TestEveryMethod(t *testing.T) {
	for _, loss := range []Loss{Logistic, Squares} {
		d, err := Sonar()
		if err != nil {
			t.Fatal(err)
		}
		r := risk(t, d, loss, 0)
		r.Reg = 1e-3 * r.Smoothness()
		best, err := r.Optimum()
		if err != nil {
			t.Fatal(err)
		}
		p := problem(t, r)
		for _, m := range Deterministic() {
			res, err := Minimize(p, m, Options{Iterations: 200})
			if err != nil {
				t.Fatal(m, err)
			}
			start, end := res.Values[0]-best.Value, res.Values[200]-best.Value
			if !(end < start/20) || end < -1e-14 {
				t.Errorf("%v, %s: from %g to %g", loss, m, start, end)
			}
			if f := p.F(res.W, nil); math.Abs(f-res.Values[200]) > 1e-14 {
				t.Errorf("%v, %s: the last point has %g, the curve %g", loss, m, f, res.Values[200])
			}
		}
	}
}

// Momentum of the strong sequence from √q stays at (1 − √q)/(1 + √q).
func TestMomentum(t *testing.T) {
	const q = 1e-4
	strong := momentumFrom(math.Sqrt(q), q)
	for range 5 {
		if b, want := strong(), (1-math.Sqrt(q))/(1+math.Sqrt(q)); math.Abs(b-want) > 1e-12 {
			t.Errorf("β = %v, want %v", b, want)
		}
	}
	convex := momentumFrom(1, 0)
	alpha := 1.0
	for range 20 {
		next := (math.Sqrt(math.Pow(alpha, 4)+4*alpha*alpha) - alpha*alpha) / 2
		if b, want := convex(), alpha*(1-alpha)/(alpha*alpha+next); math.Abs(b-want) > 1e-12 {
			t.Errorf("β = %v, want %v", b, want)
		}
		alpha = next
	}
}

func TestDivergence(t *testing.T) {
	calls := 0
	p := Problem{Dim: 1, L: 1, F: func(x, grad []float64) float64 {
		if grad != nil {
			grad[0] = 1
		}
		if calls++; calls > 5 {
			return math.NaN()
		}
		return -x[0]
	}}
	res, err := Minimize(p, GD, Options{})
	var bad *DivergedError
	if !errors.As(err, &bad) || bad.Method != GD || bad.At != len(res.Values) {
		t.Errorf("%v after %d values", err, len(res.Values))
	}
}

// A start at the optimum stays there.
func TestStartAtOptimum(t *testing.T) {
	start := []float64{1, 1, 1}
	for _, m := range []Method{GD, NesterovConvex, Offline{GD}, Online{GD}, Online{NesterovConvex}, LBFGS, BFGS} {
		res, err := Minimize(Problem{F: bowl, Dim: 3}, m, Options{Iterations: 20, Start: start})
		if err != nil || len(res.Values) != 21 || !(res.Values[20] < 1e-25) {
			t.Errorf("%s: %v, %v", m, res.Values, err)
		}
	}
}

func TestObserve(t *testing.T) {
	stop := errors.New("enough")
	seen := 0
	res, err := Minimize(Problem{F: bowl, Dim: 3}, GD, Options{Observe: func(p Progress) error {
		if bowl(p.W, nil) != p.Value || p.At != seen {
			t.Errorf("at %d: %v", p.At, p.Value)
		}
		if seen++; seen == 4 {
			return stop
		}
		return nil
	}})
	if !errors.Is(err, stop) || len(res.Values) != 4 {
		t.Errorf("%v after %d values", err, len(res.Values))
	}
}

func TestBadOptions(t *testing.T) {
	good := Problem{F: bowl, Dim: 3}
	for name, c := range map[string]struct {
		p   Problem
		m   Method
		opt Options
	}{
		"method":     {good, Iteration("newton"), Options{}},
		"stochastic": {good, SGD, Options{}},
		"function":   {Problem{Dim: 3}, GD, Options{}},
		"constant":   {Problem{F: bowl, Dim: 3, L: math.NaN()}, GD, Options{}},
		"infinite":   {Problem{F: bowl, Dim: 3, L: math.Inf(1)}, GD, Options{}},
		"convexity":  {Problem{F: bowl, Dim: 3, L: 1, Mu: 2}, GD, Options{}},
		"iterations": {good, GD, Options{Iterations: -1}},
		"window":     {good, GD, Options{Window: -1}},
		"windows":    {good, GD, Options{Window: rna.MaxColumns + 1}},
		"unused":     {good, BFGS, Options{Window: -1}},
		"start":      {good, GD, Options{Start: []float64{1}}},
		"lambda":     {good, GD, Options{Lambda: rna.Set(-1)}},
	} {
		if _, err := Minimize(c.p, c.m, c.opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
