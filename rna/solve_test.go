package rna

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onlinerna/rna/internal/fixedpoint"
)

// solveProblem returns the solution of a problem, checked: the residual is that of the point.
func solveProblem(t *testing.T, p fixedpoint.Problem, tolerance float64, most int) *Solution {
	t.Helper()
	x := slices.Clone(p.Start)
	s, err := Solve(t.Context(), p.G, x, SolveOptions{Tolerance: tolerance, Accept: p.Accept, MaxEvaluations: most})
	if err != nil {
		t.Fatal(err)
	}
	y := make([]float64, len(x))
	if err := p.G(y, x); err != nil {
		t.Fatal(err)
	}
	r := 0.0
	for i := range x {
		r = math.Hypot(r, y[i]-x[i])
	}
	if math.Abs(r-s.Residual) > 1e-12*(1+r) {
		t.Errorf("residual %v at the point, %v in the solution", r, s.Residual)
	}
	return s
}

// TestSolveProblems judges Solve on problems that it was not tuned on: never more than 1.1 times the evaluations of
// plain iteration, and at least five times fewer on half of them.
func TestSolveProblems(t *testing.T) {
	var gains []float64
	for _, k := range slices.Concat(fixedpoint.Kinds(), fixedpoint.Others()) {
		t.Run(k.Name, func(t *testing.T) {
			for seed := range uint64(3) {
				p, tolerance := k.New(100+seed), 1e-10
				if seed == 2 {
					tolerance = 1e-6
				}
				plain, ok := p.Plain(tolerance, 20_000)
				if !ok && k.Name != "sine" { // rounding keeps plain iteration from the tolerance, too
					continue
				}
				s := solveProblem(t, p, tolerance, 2*plain)
				gains = append(gains, float64(plain)/float64(s.Evaluations))
				if !s.Converged || float64(s.Evaluations) > 1.1*float64(plain) {
					t.Errorf("seed %d: %d evaluations, converged %v; plain iteration takes %d", seed, s.Evaluations, s.Converged,
						plain)
				}
				t.Logf("seed %d, tolerance %.0e: %d evaluations, %d refused; plain %d", seed, tolerance, s.Evaluations, s.Refused,
					plain)
			}
		})
	}
	slices.Sort(gains)
	if len(gains) < 100 || gains[len(gains)/2] < 5 {
		t.Errorf("the median gain over %d problems is %.2f", len(gains), gains[len(gains)/2])
	}
	t.Logf("median gain %.2f", gains[len(gains)/2])
}

// TestSolveForgets takes few evaluations where old residuals mislead. The rules that forget them overlap.
func TestSolveForgets(t *testing.T) {
	kinds := slices.Concat(fixedpoint.Kinds(), fixedpoint.Others())
	for name, most := range map[string]int{"Sinkhorn": 110, "mean field of Ising spins": 100,
		"Chambolle and Pock, total variation": 340} {
		k, sum := kinds[slices.IndexFunc(kinds, func(k fixedpoint.Kind) bool { return k.Name == name })], 0
		for seed := range uint64(4) {
			sum += solveProblem(t, k.New(100+seed), 1e-10, 20_000).Evaluations
		}
		if sum > most {
			t.Errorf("%s: %d evaluations", name, sum)
		}
	}
}

// counts reads a cell of the page's table: a count for each seed, 0 for "-".
func counts(t *testing.T, cell string) (list []int) {
	for _, word := range strings.Split(cell, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil && strings.TrimSpace(word) != "-" {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// TestSolvePage has the table say that Solve takes at most as many evaluations as its best rival in two thirds of
// the problems, and counts Solve's again: processors that round in another way differ by little on the whole.
func TestSolvePage(t *testing.T) {
	page, err := os.ReadFile("../docs/solve.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == 7 {
			rows[strings.TrimSpace(cells[0])] = cells[1:]
		}
	}
	total, stated, counted, ratio := 0, 0, 0, 0.0
	for _, k := range slices.Concat(fixedpoint.Kinds(), fixedpoint.Others()) {
		row := rows[k.Name]
		if row == nil {
			t.Errorf("no row for %s", k.Name)
			continue
		}
		for i, ours := range counts(t, row[1]) {
			best := 2 * counts(t, row[0])[i]
			for _, cell := range row[2:] {
				if n := counts(t, cell)[i]; n > 0 {
					best = min(best, n)
				}
			}
			n := solveProblem(t, k.New(100+uint64(i)), 1e-10, 20_000).Evaluations
			total++
			ratio += math.Log(float64(n) / float64(ours))
			if ours <= best {
				stated++
			}
			if n <= best {
				counted++
			}
		}
	}
	ratio = math.Exp(ratio / float64(total))
	if total != 102 || 3*stated < 2*total || counted < stated-6 || math.Abs(ratio-1) > 0.05 {
		t.Errorf("of %d problems %d are won in the page and %d here, by %.3f times the page's evaluations", total, stated,
			counted, ratio)
	}
}

// judged returns a solver behind a plain step of residual 1, at a rate of 1 a step, with two evaluations to spend and n
// residuals. Its next point is extrapolated, five residuals long, with a predicted residual of ½.
func judged(t *testing.T, n int) *solver {
	t.Helper()
	const d = 12
	space, err := NewHost64(d, 1)
	if err != nil {
		t.Fatal(err)
	}
	y, x := make(Slice64, d), make(Slice64, d)
	s := &solver{space: space, y: y, x: x}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(nil) })
	for i := range n { // residuals of length 1
		clear(y)
		clear(x)
		y[i], x[i] = 1, 2
		if err := s.window.PushPair(y, x); err != nil {
			t.Fatal(err)
		}
	}
	s.settle(1)
	s.sol.Evaluations = early
	s.newest, s.rate, s.credit, s.limit, s.length, s.predicted, s.trial = 1, 1, 2, 4, 5, .5, true
	return s
}

// TestSolveJudges has the credit, the limit, the window and the counts after a point by hand.
func TestSolveJudges(t *testing.T) {
	type state struct {
		credit, limit               float64
		columns                     int
		accelerated, refused, stood int // stood: slow successes in a row
	}
	nothing := func(*solver) {}
	for _, c := range []struct {
		name     string
		residual float64
		change   func(*solver)
		want     state
	}{
		{"success", math.Exp(-3), nothing, state{4, 8, 10, 1, 0, 0}},
		{"success after two points", math.Exp(-3), func(s *solver) { s.away = 2 }, state{4, 8, 10, 3, 0, 0}},
		{"great success", math.Exp(-30), nothing, state{10, 8, 10, 1, 0, 0}},
		{"success where plain steps gain nothing", math.Exp(-3), func(s *solver) { s.rate = 0 },
			state{3, 8, 10, 1, 0, 0}},
		{"slow success", math.Exp(-.5), nothing, state{1.5, 8, 10, 1, 0, 1}},
		{"second slow success", math.Exp(-.5), func(s *solver) { s.slow = 1 }, state{1.5, 8, 1, 1, 0, 0}},
		{"success after a slow one", math.Exp(-1.5), func(s *solver) { s.slow = 1 }, state{2.5, 8, 10, 1, 0, 0}},
		{"excursion", 1.5, nothing, state{1, 4, 10, 0, 0, 0}},
		{"excursion without credit", 1.5, func(s *solver) { s.credit = 1.9 }, state{.9, 1.25, 10, 0, 1, 0}},
		{"long excursion without credit", 1.5, func(s *solver) { s.credit, s.away, s.length = 1.9, 3, 8 },
			state{.9, 2, 10, 0, 4, 0}},
		{"short excursion without credit", 1.5, func(s *solver) { s.credit, s.length = 1.9, 2 },
			state{.9, 1, 10, 0, 1, 0}},
		{"ten times the prediction", 4.9, nothing, state{1, 4, 10, 0, 0, 0}},
		{"more than that", 5.1, nothing, state{1, 4, 7, 0, 0, 0}},
		{"hundred times the residual", 99, func(s *solver) { s.predicted = 50 }, state{1, 4, 10, 0, 0, 0}},
		{"beyond", 101, func(s *solver) { s.predicted = 50 }, state{1, 1.25, 10, 0, 1, 0}},
		{"NaN", math.NaN(), nothing, state{1, 1.25, 10, 0, 1, 0}},
		{"nearly plain", .9, func(s *solver) { s.length = .29 }, state{2.05, 4, 10, 1, 0, 0}},
		{"not plain enough", math.Exp(-1), func(s *solver) { s.length = .31 }, state{2, 8, 10, 1, 0, 0}},
		{"nearly plain, but worse", 1.1, func(s *solver) { s.length = .29 }, state{1, 4, 10, 0, 0, 0}},
		{"nearly plain, much credit", .9, func(s *solver) { s.length, s.credit = .29, 9.98 }, state{10, 4, 10, 1, 0, 0}},
	} {
		s := judged(t, 10)
		c.change(s)
		if err := s.judgeTrial(c.residual); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := state{s.credit, s.limit, s.window.Len(), s.sol.Accelerated, s.sol.Refused, s.slow}
		if math.Abs(got.credit-c.want.credit) < 1e-12 {
			got.credit = c.want.credit
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	s := judged(t, 2)
	if err := s.judgeTrial(6); err != nil || s.window.Len() != 2 {
		t.Errorf("of two residuals %d are left, %v", s.window.Len(), err)
	}
	// Plain steps go on where one gains a tenth more than the one before; a rise forgets.
	for _, c := range []struct {
		residual float64
		speeding bool
		columns  int
	}{{math.Exp(-1.09), false, 10}, {math.Exp(-1.11), true, 10}, {1.01, false, 1}} {
		s := judged(t, 10)
		s.plain, s.trial = true, false
		if err := s.judgePlain(c.residual); err != nil || s.speeding != c.speeding || s.window.Len() != c.columns ||
			math.Abs(s.credit-2.05) > 1e-12 || s.trial == (c.speeding || c.columns < 2) {
			t.Errorf("plain step to %v: %+v, %v", c.residual, s, err)
		}
	}
	// Residuals a million times the newest are forgotten.
	for _, c := range []struct {
		size float64
		left int
	}{{1.01e-6, 11}, {.99e-6, 1}} {
		s := judged(t, 10)
		s.evaluate = func() error {
			clear(s.y.(Slice64))
			clear(s.x.(Slice64))
			s.x.(Slice64)[0] = c.size
			return nil
		}
		if r, _, err := s.observe(); err != nil || r != c.size || s.window.Len() != c.left {
			t.Errorf("residual %v, %v: %d are left, want %d", r, err, s.window.Len(), c.left)
		}
	}
}

// halving is x ↦ ½x + 1 with the fixed point 2.
func halving(dst, x []float64) error {
	for i, v := range x {
		dst[i] = v/2 + 1
	}
	return nil
}

func TestSolveCounts(t *testing.T) {
	x := []float64{0, 10}
	var seen []SolveProgress
	s, err := Solve(context.Background(), halving, x,
		SolveOptions{Progress: func(p SolveProgress) { seen = append(seen, p) }})
	if err != nil || !s.Converged || math.Abs(x[0]-2) > 1e-9 || math.Abs(x[1]-2) > 1e-9 {
		t.Fatalf("%v, %+v, %v", x, s, err)
	}
	// One plain step after the start; then a single secant is exact.
	if s.Evaluations != 3 || s.Accelerated != 0 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
	if len(seen) != 3 || seen[0].Residual != math.Hypot(1, 4) || seen[0].Accelerated || seen[1].Accelerated ||
		!seen[2].Accelerated || seen[2].Best != s.Residual {
		t.Errorf("progress %+v", seen)
	}
}

// TestSolveStart ends at once at a fixed point, and with one evaluation.
func TestSolveStart(t *testing.T) {
	x := []float64{2}
	s, err := Solve(context.Background(), halving, x, SolveOptions{})
	if err != nil || !s.Converged || s.Evaluations != 1 || x[0] != 2 || s.Residual != 0 {
		t.Errorf("%v, %+v, %v", x, s, err)
	}
	x = []float64{1e300}
	if s, err = Solve(context.Background(), halving, x, SolveOptions{MaxEvaluations: 2}); err != nil || s.Converged ||
		s.Evaluations != 2 {
		t.Errorf("%v, %+v, %v", x, s, err)
	}
}

// TestSolveFailures has g fail in each way at extrapolated and at plain points.
func TestSolveFailures(t *testing.T) {
	slow := func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = v - 0.1*float64(i+1)*math.Atan(v-1)
		}
		return nil
	}
	bad := errors.New("outside")
	for name, spoil := range map[string]func(dst []float64) error{
		"error":    func([]float64) error { return bad },
		"NaN":      func(dst []float64) error { dst[1] = math.NaN(); return nil },
		"infinite": func(dst []float64) error { dst[0] = math.Inf(1); return nil },
	} {
		// Every third evaluation after the tenth fails.
		n := 0
		x := []float64{30, -20, 10}
		s, err := Solve(context.Background(), func(dst, x []float64) error {
			if err := slow(dst, x); err != nil {
				return err
			}
			if n++; n > 10 && n%3 == 0 {
				return spoil(dst)
			}
			return nil
		}, x, SolveOptions{MaxEvaluations: 4000})
		if err != nil || !s.Converged {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		for _, v := range x {
			if math.Abs(v-1) > 1e-8 {
				t.Errorf("%s: ends at %v", name, x)
			}
		}
		// From the fifth evaluation on all fail: the best point is left, with g's error.
		n = 0
		x = []float64{30, -20, 10}
		s, err = Solve(context.Background(), func(dst, x []float64) error {
			if err := slow(dst, x); err != nil {
				return err
			}
			if n++; n > 4 {
				return spoil(dst)
			}
			return nil
		}, x, SolveOptions{})
		if err == nil || name == "error" && !errors.Is(err, bad) || s.Converged || !(s.Residual < math.Inf(1)) ||
			math.IsNaN(x[0]) {
			t.Errorf("%s: %v, %+v, %v", name, x, s, err)
		}
	}
	x := []float64{1}
	if s, err := Solve(context.Background(), func(_, _ []float64) error { return bad }, x,
		SolveOptions{}); !errors.Is(err, bad) || s.Evaluations != 1 || x[0] != 1 {
		t.Errorf("g fails at the start: %v, %+v, %v", x, s, err)
	}
}

// TestSolveRetreats halves plain steps that leave g's domain.
func TestSolveRetreats(t *testing.T) {
	g := func(dst, x []float64) error { // Newton's method for x² = 2, doubled, only for 0 < x < 10
		if x[0] <= 0 || x[0] >= 10 {
			return errors.New("outside of (0, 10)")
		}
		dst[0] = x[0] - 1.5*(x[0]*x[0]-2)/(2*x[0])
		return nil
	}
	x := []float64{0.1}
	s, err := Solve(context.Background(), g, x, SolveOptions{})
	if err != nil || !s.Converged || math.Abs(x[0]-math.Sqrt2) > 1e-9 {
		t.Errorf("%v, %+v, %v", x, s, err)
	}
}

// TestSolveDomain evaluates g at accepted points alone, and projects before it asks.
func TestSolveDomain(t *testing.T) {
	asked, projected := 0, 0
	g := func(dst, x []float64) error {
		if !(x[0] > 0) {
			t.Fatalf("g is evaluated at %v", x)
		}
		dst[0], dst[1] = 0.9*x[0]+0.001, 0.99*x[1]+0.001*x[0]
		return nil
	}
	for _, project := range []func(x []float64){nil, func(x []float64) { projected++; x[0] = max(x[0], 1e-3) }} {
		x := []float64{5, 50}
		s, err := Solve(context.Background(), g, x, SolveOptions{Projection: project,
			Accept: func(x []float64) bool { asked++; return x[0] > 0 }})
		if err != nil || !s.Converged || math.Abs(x[0]-0.01) > 1e-6 {
			t.Errorf("%v, %+v, %v", x, s, err)
		}
	}
	if asked == 0 || projected == 0 {
		t.Errorf("asked %d times, projected %d times", asked, projected)
	}
	// A domain that refuses every extrapolation leaves plain iteration: the first one is halved until it has been refused
	// six times.
	var refused []float64
	x := []float64{0, 10}
	refuse := SolveOptions{MaxEvaluations: 2, Accept: func(x []float64) bool {
		refused = append(refused, x[0])
		return false
	}}
	if _, err := Solve(context.Background(), halving, x, refuse); err != nil || len(refused) != 6 ||
		math.Abs(refused[0]-2) > 1e-12 || math.Abs(refused[5]-(1.5+.5/32)) > 1e-12 {
		t.Errorf("refused %v, %v", refused, err)
	}
	x = []float64{0, 10}
	s, err := Solve(context.Background(), halving, x, SolveOptions{Accept: func([]float64) bool { return false }})
	if n, _ := (fixedpoint.Problem{Start: []float64{0, 10}, G: halving}).Plain(1e-10, 100); err != nil ||
		s.Evaluations != n || s.Refused != 0 {
		t.Errorf("%d evaluations, plain iteration takes %d; %v", s.Evaluations, n, err)
	}
}

func TestSolveCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	x := []float64{100}
	s, err := Solve(ctx, func(dst, x []float64) error {
		if n++; n == 3 {
			cancel()
		}
		dst[0] = x[0] / (1 + x[0])
		return nil
	}, x, SolveOptions{})
	if !errors.Is(err, context.Canceled) || s.Evaluations != 3 || s.Converged || !(x[0] < 1) {
		t.Errorf("%v, %+v, %v", x, s, err)
	}
}

func TestSolveMistakes(t *testing.T) {
	x := []float64{1}
	for _, c := range []struct {
		g    func(dst, x []float64) error
		x    []float64
		o    SolveOptions
		want string
	}{
		{nil, x, SolveOptions{}, "without a map"},
		{halving, nil, SolveOptions{}, "without elements"},
		{halving, x, SolveOptions{Tolerance: -1}, "tolerance"},
		{halving, x, SolveOptions{Tolerance: math.NaN()}, "tolerance"},
		{halving, x, SolveOptions{MaxEvaluations: -1}, "evaluations"},
		{halving, x, SolveOptions{Window: -1}, "window"},
		{halving, x, SolveOptions{Window: MaxColumns + 1}, ""}, // more than elements: they count
	} {
		_, err := Solve(context.Background(), c.g, slices.Clone(c.x), c.o)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestSolveIn takes the same steps in spaces of its own, in float64 to the bit.
func TestSolveIn(t *testing.T) {
	p := fixedpoint.Kinds()[0].New(3)
	want := slices.Clone(p.Start)
	sol, err := Solve(context.Background(), p.G, want, SolveOptions{Window: 4})
	if err != nil {
		t.Fatal(err)
	}
	space, err := NewHost64(len(want), 2)
	if err != nil {
		t.Fatal(err)
	}
	got, dst := slices.Clone(p.Start), make([]float64, len(want))
	s, err := SolveIn(context.Background(), space, func(to, at Point) error { return p.G(to.(Slice64), at.(Slice64)) },
		Slice64(dst), Slice64(got), SolveOptions{Window: 4})
	if err != nil || *s != *sol || !slices.Equal(got, want) {
		t.Errorf("%v, want %v; %+v, want %+v; %v", got, want, s, sol, err)
	}
	narrow, err := NewHost32(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, b := Slice32{0, 10}, make(Slice32, 2)
	s, err = SolveIn(context.Background(), narrow, func(to, at Point) error {
		for i, v := range at.(Slice32) {
			to.(Slice32)[i] = v/2 + 1
		}
		return nil
	}, b, a, SolveOptions{})
	if err != nil || !s.Converged || math.Abs(float64(a[0])-2) > 1e-4 {
		t.Errorf("%v, %+v, %v", a, s, err)
	}
	for _, o := range []SolveOptions{{Accept: func([]float64) bool { return true }}, {Projection: func([]float64) {}}} {
		if _, err := SolveIn(context.Background(), narrow, func(to, at Point) error { return nil }, b, a, o); err == nil {
			t.Error("no error for options that take slices")
		}
	}
	if _, err := SolveIn(context.Background(), space, func(to, at Point) error { return nil }, b, a,
		SolveOptions{}); err == nil {
		t.Error("no error for vectors of another length")
	}
}
