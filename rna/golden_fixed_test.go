package rna

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"onlinerna/internal/golden"
	"onlinerna/rna/internal/fixedpoint"
)

var errDomain = errors.New("outside the domain")

// problems are small fixed-point problems that reach each rule of the safeguards.
var problems = []struct {
	name  string
	start []float64
	g     func(dst, x []float64) error
	o     SolveOptions
}{
	{"linear", []float64{1, 2, 3, 4}, func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = (.9-.3*float64(i))*v + 1
		}
		return nil
	}, SolveOptions{}},
	{"slow", []float64{9, -7, 5, 3, 2, 1}, func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = (1-.5/float64(1+i*i*i))*v + .01*x[(i+1)%6]*float64(i%2) - .125
		}
		return nil
	}, SolveOptions{MaxEvaluations: 40, Tolerance: 1e-7, Window: 3}},
	{"cosines", []float64{.1, .9, -.4}, func(dst, x []float64) error {
		for i := range x {
			dst[i] = math.Cos(x[(i+1)%3]) + .1*x[i]
		}
		return nil
	}, SolveOptions{Tolerance: 1e-8}},
	{"square root", []float64{.01}, func(dst, x []float64) error {
		dst[0] = math.Sqrt(x[0])
		if x[0] < 0 {
			return errDomain
		}
		return nil
	}, SolveOptions{Tolerance: 1e-8}},
	{"saddle", []float64{1e-3, 2, -1}, func(dst, x []float64) error {
		dst[0] = x[0] + .5*(x[0]-x[0]*x[0]*x[0])
		dst[1], dst[2] = .5*x[1]+.1*x[0], .8*x[2]
		return nil
	}, SolveOptions{Tolerance: 1e-7}},
	{"diverging", []float64{1, 1}, func(dst, x []float64) error {
		dst[0], dst[1] = 2*x[0]+x[1]*x[1], -3*x[1]+1
		return nil
	}, SolveOptions{MaxEvaluations: 25}},
	{"finite", []float64{8, -3, 5}, func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = math.Copysign(max((.9-.2*float64(i))*math.Abs(v)-.125, 0), v)
		}
		return nil
	}, SolveOptions{}},
	{"quadratic", []float64{.5, .25, 2}, func(dst, x []float64) error { // Newton's method for roots of 2
		for i, v := range x {
			dst[i] = (v + 2/v) / 2
		}
		return nil
	}, SolveOptions{}},
	{"steps", []float64{20, 1}, func(dst, x []float64) error {
		dst[0], dst[1] = x[0]-math.Atan(x[0]), .5*x[1]+.1*math.Sin(x[0])
		return nil
	}, SolveOptions{Tolerance: 1e-9}},
	{"rotation", []float64{3, 1}, func(dst, x []float64) error {
		dst[0], dst[1] = .6*x[0]-.79*x[1]+1, .79*x[0]+.6*x[1]
		return nil
	}, SolveOptions{MaxEvaluations: 40, Tolerance: 1e-8}},
	{"logarithm", []float64{40, 1}, func(dst, x []float64) error {
		if x[0] <= 0 {
			return errDomain
		}
		dst[0], dst[1] = x[0]-.5*math.Log(x[0]), .95*x[1]
		return nil
	}, SolveOptions{MaxEvaluations: 40, Tolerance: 1e-9}},
	{"accepted", []float64{40, 1}, func(dst, x []float64) error {
		dst[0], dst[1] = x[0]-.5*math.Log(x[0]), .95*x[1]
		return nil
	}, SolveOptions{Tolerance: 1e-9, Accept: func(x []float64) bool { return x[0] > .9 && x[1] > 0 }}},
	{"nothing accepted", []float64{40, 1}, func(dst, x []float64) error {
		dst[0], dst[1] = .8*x[0], .5*x[1]+1
		return nil
	}, SolveOptions{Tolerance: 1e-4, Accept: func(x []float64) bool { return false }}},
	{"projected", []float64{3, 2, 1}, func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = math.Sqrt(v*x[(i+1)%3]*.25) + .3*float64(i)
		}
		return nil
	}, SolveOptions{Tolerance: 1e-9, MaxEvaluations: 30, Projection: func(x []float64) {
		for i, v := range x {
			x[i] = math.Round(64*v) / 64
		}
	}}},
	{"NaN", []float64{4, 1}, func(dst, x []float64) error {
		dst[0], dst[1] = x[0]-math.Sqrt(x[0]-.5), .9*x[1]
		return nil
	}, SolveOptions{Tolerance: 1e-9, MaxEvaluations: 60}},
	{"a wall", []float64{4, 1}, func(dst, x []float64) error {
		if x[0] < 2 {
			return errDomain
		}
		dst[0], dst[1] = x[0]-.75, .9*x[1]
		return nil
	}, SolveOptions{MaxEvaluations: 200}},
	{"fails at the start", []float64{1}, func(dst, x []float64) error { return errDomain }, SolveOptions{}},
	{"fixed at the start", []float64{1, 0}, func(dst, x []float64) error { copy(dst, x); return nil }, SolveOptions{}},
	{"zero", []float64{0, 0, 0}, func(dst, x []float64) error { clear(dst); return nil }, SolveOptions{}},
	{"kink", []float64{5, -4}, func(dst, x []float64) error {
		dst[0], dst[1] = .97*math.Abs(x[0])-.2*max(x[1], 0), .9*x[1]-.5*min(x[0]-1, 0)
		return nil
	}, SolveOptions{MaxEvaluations: 40, Tolerance: 1e-8}},
	{"huge", []float64{1e200, -2e200}, func(dst, x []float64) error {
		dst[0], dst[1] = .5*x[0]+1e199, .25*x[1]
		return nil
	}, SolveOptions{}},
	{"overflow", []float64{1e307, 1}, func(dst, x []float64) error {
		dst[0], dst[1] = -3*x[0], .5*x[1]
		return nil
	}, SolveOptions{MaxEvaluations: 4}},
	{"two in a wave", []float64{2, 2.5}, func(dst, x []float64) error {
		dst[0], dst[1] = x[0]+.3*math.Sin(2*x[0]), x[1]+.05*math.Sin(7*x[1])-.01
		return nil
	}, SolveOptions{Tolerance: 1e-9}},
}

// sure is a residual with the digits that are sure on all processors.
func sure(r float64) string { return golden.Rough(max(r, 1e-12), 1e-5) }

// trace adds the steps of a solve.
func trace(s *golden.Script, o SolveOptions) SolveOptions {
	o.Progress = func(p SolveProgress) {
		s.Line("   ", p.Evaluations, sure(p.Residual), sure(p.Best), p.Accelerated)
	}
	if accept := o.Accept; accept != nil {
		o.Accept = func(x []float64) bool {
			ok := accept(x)
			s.Line("      may it be", fmt.Sprintf("%.4g", x), ok)
			return ok
		}
	}
	return o
}

func TestGoldenFixedPoints(t *testing.T) {
	s := &golden.Script{}
	for _, m := range problems {
		few := SolveOptions{MaxEvaluations: min(9, cmp.Or(m.o.MaxEvaluations, 9)), Window: 2, Tolerance: 1e-3,
			Accept: m.o.Accept}
		for _, o := range []SolveOptions{m.o, few} {
			x := append([]float64(nil), m.start...)
			s.Line(m.name)
			sol, err := Solve(context.Background(), m.g, x, trace(s, o))
			s.Line("  evaluations", sol.Evaluations, "converged", sol.Converged, "accelerated", sol.Accelerated, "refused",
				sol.Refused, "residual", sure(sol.Residual), fmt.Sprintf("%.5g", x), err)
		}
	}
	golden.Numbers(t, "solver.txt", s.String())
}

// The defaults of a solve, and its state before the first evaluation.
func TestGoldenDefaults(t *testing.T) {
	s := &golden.Script{}
	for _, d := range []int{1, 2, 29, 30, 31, 400} {
		for _, bits := range []int{32, 64} {
			space, err := NewHost32(d, 1)
			if bits == 64 {
				space, err = NewHost64(d, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []SolveOptions{{}, {Window: 7}, {Window: 1}} {
				sv := &solver{space: space, opt: o}
				err = sv.begin()
				s.Line(d, bits, o.Window, sv.window.Cap(), sv.opt.MaxEvaluations, sv.opt.Tolerance, sv.limit, sv.credit, sv.ref,
					sv.sol.Residual, err)
				_, err = sv.end(nil)
				s.Line("  end", err)
			}
		}
	}
	golden.Numbers(t, "defaults.txt", s.String())
}

// Short solves of the problems of package fixedpoint.
func TestGoldenProblems(t *testing.T) {
	s := &golden.Script{}
	for _, k := range fixedpoint.Kinds() {
		if k.Name == "gradient descent on logistic regression" || k.Name == "non-normal contraction" {
			continue // rounding decides after a few steps
		}
		p := k.New(3)
		x := append([]float64(nil), p.Start...)
		sol, err := Solve(context.Background(), p.G, x, SolveOptions{Tolerance: 1e-4, MaxEvaluations: 40, Accept: p.Accept})
		s.Line(k.Name, sol.Evaluations, sol.Converged, sol.Accelerated, sol.Refused, sure(sol.Residual), err)
	}
	golden.Numbers(t, "problems.txt", s.String())
}

// Solves in spaces, errors of the arguments, cancelled solves and spaces that fail.
func TestGoldenSolveIn(t *testing.T) {
	s := &golden.Script{}
	ctx := context.Background()
	g := func(dst, x Point) error {
		var v, w [3]float32
		if err := x.ReadAt(v[:], 0); err != nil {
			return err
		}
		for i := range v {
			w[i] = .5*v[(i+1)%3] + .25*v[i] + float32(i)
		}
		return dst.WriteAt(w[:], 0)
	}
	add := func(name string, space Space, sol *Solution, x Point, err error) {
		s.Line(name, err)
		if sol != nil {
			s.Line("  evaluations", sol.Evaluations, "converged", sol.Converged, "accelerated", sol.Accelerated, "refused",
				sol.Refused, "residual", sure(sol.Residual), fmt.Sprintf("%.5g", x))
		}
	}
	wide, _ := NewHost64(3, 1)
	narrow, _ := NewHost32(3, 1)
	for _, space := range []Space{wide, narrow} {
		for _, o := range []SolveOptions{
			{}, {Tolerance: .25}, {Tolerance: -1}, {Tolerance: math.NaN()}, {MaxEvaluations: 3}, {MaxEvaluations: -1},
			{Window: 1}, {Window: -1}, {Window: 100}, {Projection: func([]float64) {}},
			{Accept: func([]float64) bool { return true }},
		} {
			x := Slice32{5, 0, -3}
			o.Progress = nil
			sol, err := SolveIn(ctx, space, g, make(Slice32, 3), x, o)
			add(fmt.Sprint(space.Bits(), " ", o.Tolerance, " ", o.MaxEvaluations, " ", o.Window), space, sol, x, err)
		}
	}
	x := Slice64{5, 0, -3}
	for _, c := range []struct {
		name   string
		space  Space
		g      func(dst, x Point) error
		dst, x Point
	}{
		{"no space", nil, g, x, x}, {"no map", wide, nil, x, x}, {"no dst", wide, g, nil, x}, {"no x", wide, g, x, nil},
		{"short dst", wide, g, x[:2], x}, {"short x", wide, g, make(Slice64, 3), x[:2]},
	} {
		sol, err := SolveIn(ctx, c.space, c.g, c.dst, c.x, SolveOptions{})
		add(c.name, c.space, sol, c.x, err)
	}
	_, err := Solve(ctx, nil, x, SolveOptions{})
	s.Line("solve without a map", err)
	_, err = Solve(ctx, problems[0].g, nil, SolveOptions{})
	s.Line("solve without elements", err)
	for k := range 4 { // cancelled after k evaluations
		ctx, cancel := context.WithCancel(ctx)
		x := Slice64{5, 0, -3}
		n := 0
		sol, err := SolveIn(ctx, wide, func(dst, x Point) error {
			if n++; n == k {
				cancel()
			}
			return g(dst, x)
		}, make(Slice64, 3), x, SolveOptions{})
		cancel()
		add(fmt.Sprint("cancelled after ", k), wide, sol, x, err)
	}
	for _, method := range []string{"New", "Store", "GramRow", "Combine"} {
		for calls := range 24 {
			x := Slice64{5, 0, -3}
			sol, err := SolveIn(ctx, &faulty{Space: wide, method: method, calls: calls}, g, make(Slice64, 3), x,
				SolveOptions{Tolerance: 1e-4})
			if err == nil {
				break
			}
			add(fmt.Sprint(method, " fails after ", calls), wide, sol, x, err)
		}
	}
	golden.Numbers(t, "solve-in.txt", s.String())
}

// The safeguards' decisions after one and two residuals, from states at their limits.
func TestGoldenJudgements(t *testing.T) {
	s := &golden.Script{}
	nan := math.NaN()
	for _, c := range []struct {
		name string
		set  func(s *solver)
	}{
		{"plain", func(s *solver) { s.trial, s.plain = false, true }},
		{"speeding", func(s *solver) { s.trial, s.plain, s.rate = false, true, .25 }},
		{"plain, poor", func(s *solver) { s.trial, s.plain, s.credit = false, true, .96 }},
		{"plain, rich", func(s *solver) { s.trial, s.plain, s.credit = false, true, 9.97 }},
		{"retreating", func(s *solver) { s.trial, s.plain, s.retreats = false, false, 3 }},
		{"retreated", func(s *solver) { s.trial, s.plain, s.retreats = false, false, mostRetreats }},
		{"trial", func(s *solver) {}},
		{"nearly plain", func(s *solver) { s.length = .29 }},
		{"hardly plain", func(s *solver) { s.length = .3 }},
		{"poor", func(s *solver) { s.credit = 1.9 }},
		{"just enough", func(s *solver) { s.credit = 2 }},
		{"rich", func(s *solver) { s.credit = 9.5 }},
		{"away", func(s *solver) { s.away, s.length = 2, .1 }},
		{"slow", func(s *solver) { s.slow = 1 }},
		{"no rate", func(s *solver) { s.rate = 0 }},
		{"negative rate", func(s *solver) { s.rate = -.5 }},
		{"as predicted", func(s *solver) { s.predicted = .1 }},
		{"early", func(s *solver) { s.sol.Evaluations = 3 }},
		{"almost late", func(s *solver) { s.sol.Evaluations, s.limit = early-1, early-1 }},
		{"limited", func(s *solver) { s.limit = .5 }},
		{"limited to 8", func(s *solver) { s.limit = 8 }},
		{"nothing accepted", func(s *solver) { s.accept = func() bool { return false } }},
		{"projected", func(s *solver) {
			s.project = func() { s.y.(Slice64)[0] = 7 }
			s.accept = func() bool { return s.y.(Slice64)[1] < .5 }
		}},
	} {
		for _, n := range []int{2, 12} {
			for _, rs := range [][]float64{
				{.1}, {.9}, {1.001}, {nan, nan}, {1.5, .5}, {5, 99, .25},
			} {
				sv := judged(t, n)
				c.set(sv)
				sv.lastError = errDomain
				s.Line(c.name, n, rs)
				for _, r := range rs {
					var err error
					if sv.trial {
						err = sv.judgeTrial(r)
					} else {
						err = sv.judgePlain(r)
					}
					s.Line(" ", fmt.Sprintf("%.6g", []float64{sv.credit, sv.limit, sv.length, sv.rate, sv.ref, sv.predicted}),
						sv.away, sv.slow, sv.retreats, sv.trial, sv.plain, sv.speeding, sv.sol.Accelerated, sv.sol.Refused,
						sv.window.Len(),
						[]float64(sv.y.(Slice64)[:3]), err)
				}
			}
		}
	}
	golden.Numbers(t, "judgements.txt", s.String())
}
