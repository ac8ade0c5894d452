package rna

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The candidates equal the results of Extrapolate and Average and the iterate; the one with the least value is chosen
// and left in dst.
func TestSearch(t *testing.T) {
	vs := contraction(blockLen+9, 6, 7)
	d := len(vs[0])
	spaces(t, d, func(t *testing.T, s Space) {
		w := window(t, s, 4)
		push(t, w, vs...)
		lambdas := []float64{0, 1e-9, 1e-3, 1}
		want := [][]float64{vs[5], extrapolate(t, w, Options{Lambda: Set(math.Inf(1)), Beta: Set(.5)})}
		for _, lambda := range lambdas {
			want = append(want, extrapolate(t, w, Options{Lambda: Set(lambda), Beta: Set(.5)}))
		}
		for best := range want {
			dst, calls := make(Slice64, d), 0
			choice, err := w.Search(dst, alone(func() (float64, error) {
				sameBits(t, "candidate", dst, want[calls])
				calls++
				if calls-1 == best {
					return -1, nil
				}
				return float64(calls), nil
			}), SearchOptions{Lambdas: lambdas, Beta: Set(.5)})
			if err != nil {
				t.Fatal(err)
			}
			if calls != len(want) || len(choice.Candidates) != len(want) {
				t.Fatalf("%d calls for %d candidates, want %d", calls, len(choice.Candidates), len(want))
			}
			sameBits(t, "choice", dst, want[best])
			kind := min(Kind(best), Extrapolated)
			if choice.Kind != kind || choice.Value != -1 || kind == Extrapolated &&
				choice.Result.Lambda != lambdas[best-2] {
				t.Errorf("candidate %d: chose %v with λ = %v, value %v", best, choice.Kind, choice.Result.Lambda,
					choice.Value)
			}
		}
	})
}

// On any function, with NaN and infinities in it, the choice is no worse than the iterate and
// the average.
func TestSearchIsNeverWorse(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	vs := contraction(20, 7, 3)
	s, _ := NewHost64(20, 1)
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
	for range 300 {
		w := window(t, s, 1+rng.IntN(5))
		push(t, w, vs[:1+rng.IntN(7)]...)
		dst := make(Slice64, 20)
		values := map[float64]float64{} // by the point's first element
		choice, err := w.Search(dst, alone(func() (float64, error) {
			v := float64(rng.IntN(5))
			if rng.IntN(3) == 0 {
				v = odd[rng.IntN(3)]
			}
			values[dst[0]] = v
			return v, nil
		}), SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := values[dst[0]]; got != choice.Value && !(math.IsNaN(got) && math.IsNaN(choice.Value)) {
			t.Fatalf("dst has the value %v, the choice %v", got, choice.Value)
		}
		if choice.Kind != Kept && !isFinite(choice.Value) {
			t.Fatalf("chose the value %v", choice.Value)
		}
		for i, c := range choice.Candidates {
			if isFinite(c.Value) && !(choice.Value <= c.Value) {
				t.Fatalf("chose %v where candidate %d has %v", choice.Value, i, c.Value)
			}
		}
		if w.Cap() == 1 && len(values) != 1 {
			t.Fatalf("%d values of one point", len(values))
		}
	}
}

func TestSearchOutcomes(t *testing.T) {
	s, _ := NewHost32(2, 1)
	never := alone(func() (float64, error) { t.Error("evaluated"); return 0, nil })
	zero := alone(func() (float64, error) { return 0, nil })
	dst := Slice32{-1, -2}

	w := window(t, s, 3)
	if c, err := w.Search(dst, never, SearchOptions{}); err != nil || c.Result.Status != TooFew || dst[0] != -1 {
		t.Errorf("empty window: %v, %v, wrote %v", c.Result.Status, err, dst)
	}
	push(t, w, []float64{1, 2})
	if c, err := w.Search(dst, zero, SearchOptions{}); err != nil || c.Kind != Kept ||
		len(c.Candidates) != 1 || dst[1] != 2 {
		t.Errorf("y_0 alone: %v, %v, wrote %v", c.Kind, err, dst)
	}
	push(t, w, []float64{3, 2}, []float64{4, 4})
	for _, opt := range []SearchOptions{{Lambdas: []float64{1, -1}}, {Newest: -1}, {Beta: Set(math.NaN())},
		{MaxNorm: -1}} {
		if c, err := w.Search(dst, never, opt); err != nil || c.Result.Status != Invalid || c.Result.Detail == "" {
			t.Errorf("%+v: %v, %v", opt, c.Result.Status, err)
		}
	}
	if _, err := w.Search(make(Slice32, 3), never, SearchOptions{}); err == nil {
		t.Error("a destination of another length went through")
	}
	// No candidate within the limit but the iterate.
	c, err := w.Search(dst, zero, SearchOptions{MaxNorm: .1})
	if err != nil || c.Kind != Kept || c.Candidates[1].Result.Status != CoefficientsTooLarge ||
		!math.IsNaN(c.Candidates[1].Value) {
		t.Errorf("limit on ‖c‖: %v, %v, %+v", c.Kind, err, c.Candidates)
	}
	// The function fails at the third point: dst has the iterate.
	calls, lost := 0, errors.New("lost the loss")
	_, err = w.Search(dst, alone(func() (float64, error) {
		if calls++; calls == 3 {
			return 0, lost
		}
		return 0, nil
	}), SearchOptions{})
	if !errors.Is(err, lost) || dst[0] != 4 || dst[1] != 4 {
		t.Errorf("the function fails: %v, dst is %v", err, dst)
	}
	// An overflow leaves out the candidate.
	big := float64(math.MaxFloat32)
	w = window(t, s, 3)
	push(t, w, []float64{0, 0}, []float64{big, 0}, []float64{.5 * big, .5 * big})
	if c, err := w.Search(dst, zero, SearchOptions{Beta: Set(30)}); err != nil || c.Kind != Kept ||
		c.Candidates[1].Result.Status != Overflow {
		t.Errorf("overflow: %v, %v, %+v", c.Kind, err, c.Candidates)
	}
	// The newest iterate of each kind of window.
	w = window(t, s, 3)
	if err := w.Latest(dst); err == nil {
		t.Error("an empty window has a newest iterate")
	}
	for _, step := range []struct {
		push func() error
		want float32
	}{
		{func() error { return w.Push(Slice32{1, 0}) }, 1},
		{func() error { return w.Push(Slice32{2, 0}) }, 2},
		{func() error { w.Break(); return nil }, 2},
		{func() error { return w.PushPair(Slice32{5, 0}, Slice32{6, 0}) }, 6},
		{func() error { return w.PushResidual(Slice32{7, 0}, Slice32{8, 0}) }, 7},
		{func() error { return w.Push(Slice32{9, 0}) }, 9},
	} {
		if err := errors.Join(step.push(), w.Latest(dst)); err != nil || dst[0] != step.want {
			t.Errorf("the newest iterate is %v, %v, want %v", dst[0], err, step.want)
		}
	}
	for k := Kept; k <= Extrapolated; k++ {
		if text, err := k.MarshalText(); err != nil || len(text) < 4 {
			t.Errorf("kind %d reads %q", int(k), text)
		}
	}
}

// The grid of a search follows the spectrum: on residuals that are nearly orthogonal every λ of it has coefficients of
// its own, where a fixed grid of small ones gives the same c throughout.
func TestSearchGrid(t *testing.T) {
	const d, n = 2000, 5
	rng := rand.New(rand.NewPCG(3, 8))
	s, _ := NewHost64(d, 1)
	w := window(t, s, n)
	for k := range n {
		r := make(Slice64, d)
		for i := range r {
			r[i] = (1 + .2*float64(k)) * rng.NormFloat64()
		}
		if err := w.PushResidual(make(Slice64, d), r); err != nil {
			t.Fatal(err)
		}
	}
	spectrum := w.Spectrum(0)
	if condition := spectrum.Solve(0).Condition; condition > 5 {
		t.Fatalf("residuals with a condition number of %g", condition)
	}
	grid := spectrum.Lambdas()
	if len(grid) != len(DefaultLambdas()) || grid[0] < 0.01 || grid[len(grid)-1] != 10 {
		t.Errorf("grid %v", grid)
	}
	for i := 1; i < len(grid); i++ {
		if a, b := spectrum.Solve(grid[i-1]).C, spectrum.Solve(grid[i]).C; !(grid[i] > grid[i-1]) ||
			relativeError(a, b) < 1e-3 {
			t.Errorf("λ = %g and %g have the same c", grid[i-1], grid[i])
		}
	}
	if near := relativeError(spectrum.Solve(10).C, spectrum.Solve(math.Inf(1)).C); near > 0.05 {
		t.Errorf("at λ = 10 c is %g from the average", near)
	}
	value := alone(func() (float64, error) { return 1, nil })
	choice, err := w.Search(make(Slice64, d), value, SearchOptions{})
	if err != nil || len(choice.Candidates) != 2+len(grid) || choice.Candidates[2].Result.Lambda != grid[0] {
		t.Errorf("%v, %+v", err, choice.Candidates)
	}
	if g := Factor(nil).Lambdas(); len(g) != len(grid) {
		t.Errorf("no residuals have the grid %v", g)
	}
}

// A candidate is taken only where its loss is lower than the first one's by the test, and then than the taken one's by
// more than the standard error of the difference, sample by sample.
func TestChoose(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	noise := make([]float64, 400) // shared by all candidates, a hundred times as large as their differences
	for i := range noise {
		noise[i] = 1 + 100*rng.NormFloat64()
	}
	for _, c := range []struct {
		name         string
		shift, own   []float64 // of the candidates: mean of the loss, and spread of noise that they do not share
		want         int
		noDifference bool
	}{
		{"clear", []float64{0, -.5, -1}, []float64{0, 1, 1}, 2, false},
		{"within the error", []float64{0, -.5, -1}, []float64{0, 100, 100}, 0, true},
		{"worse", []float64{0, .5, 1}, []float64{0, 1, 1}, 0, false},
		// Own noise of 1 has a standard error of 1/√399 = 0.0501; of the best of two the test takes 1.966 of these.
		{"1.9 standard errors", []float64{0, -.0951, 1}, []float64{0, 1, 1}, 0, true},
		{"2.0 standard errors", []float64{0, -.1001, 1}, []float64{0, 1, 1}, 1, false},
		{"better than the first, not than the second", []float64{0, -1, -1.5}, []float64{0, 1, 100}, 1, true},
	} {
		list := make([]Candidate, 3)
		at := -1
		choice, err := Choose(list, func(*Candidate) ([]float64, error) {
			at++
			x := make([]float64, len(noise))
			for i, v := range noise { // own noise that averages to nothing
				x[i] = v + c.shift[at] + c.own[at]*float64(1-2*(i%2))
			}
			return x, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if choice.Value != list[c.want].Value || choice.NoDifference != c.noDifference {
			t.Errorf("%s: chose %v of %+v, no difference: %v", c.name, choice.Value, list, choice.NoDifference)
		}
		if d, e := list[1].Difference, list[1].Error; math.Abs(d-c.shift[1]) > 1e-12 ||
			math.Abs(e-c.own[1]/math.Sqrt(399)) > 1e-12 {
			t.Errorf("%s: difference %v ± %v", c.name, d, e)
		}
	}
	if _, err := Choose(nil, nil); err == nil {
		t.Error("no candidates")
	}
	n := 2
	if _, err := Choose(make([]Candidate, 2), func(*Candidate) ([]float64, error) {
		n--
		return noise[:n+1],
			nil
	}); err == nil {
		t.Error("losses of other samples")
	}
}

// Where candidates are equally good the iterate is left in at most 5 % of searches, whether their losses are
// independent or go together, and for skew ones.
func TestChooseNull(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 5))
	const candidates, samples, runs = 8, 250, 1000
	list := make([]Candidate, candidates)
	for _, c := range []struct {
		name   string
		shared float64 // of the variance of candidates' differences from the first
		draw   func() float64
		least  float64
	}{
		{"independent", 0, rng.NormFloat64, .02},
		{"related", .5, rng.NormFloat64, .02},
		{"nearly alike", .95, rng.NormFloat64, .005},
		{"skew", .5, func() float64 { return rng.ExpFloat64() - 1 }, .02},
	} {
		left := 0
		x, common := make([]float64, samples), make([]float64, samples)
		for range runs {
			for i := range common {
				common[i] = math.Sqrt(c.shared) * c.draw()
			}
			at := -1
			choice, err := Choose(list, func(*Candidate) ([]float64, error) {
				at++
				for i := range x {
					if x[i] = 0; at > 0 {
						x[i] = common[i] + math.Sqrt(1-c.shared)*c.draw()
					}
				}
				return x, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if choice.Value != list[0].Value {
				left++
			}
		}
		share := float64(left) / runs
		t.Logf("%s: left in %.1f %%", c.name, 100*share)
		// Three standard errors of the simulation.
		if margin := 3 * math.Sqrt(Significance*(1-Significance)/runs); share > Significance+margin || share < c.least {
			t.Errorf("%s: the iterate is left in %.1f %% of searches among equals", c.name, 100*share)
		}
	}
}

// alone is a function as the loss of one sample.
func alone(value func() (float64, error)) func() ([]float64, error) {
	return func() ([]float64, error) {
		v, err := value()
		return []float64{v}, err
	}
}

// A candidate without a point has no value, whatever it had before.
func TestChooseForgetsValues(t *testing.T) {
	if got := DefaultLambdas(); !slices.Equal(got, []float64{1e-12, 1e-9, 1e-6, 1e-3, .1, 10}) {
		t.Errorf("%v", got)
	}
	list := []Candidate{{Kind: Kept, Value: 5}, {Kind: Averaged, Value: 1, Result: Result{Status: RankDeficient}}}
	choice, err := Choose(list, func(*Candidate) ([]float64, error) { return []float64{3}, nil })
	if err != nil || choice.Kind != Kept || list[0].Value != 3 || !math.IsNaN(list[1].Value) {
		t.Errorf("%+v, %v", list, err)
	}
}
