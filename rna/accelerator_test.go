package rna

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// linear is the map g(y) = a∘y + b of a separable linear contraction.
type linear struct{ a, b []float64 }

func newLinear(d int) linear {
	g := linear{make([]float64, d), make([]float64, d)}
	for i := range d {
		g.a[i] = .99 * float64(i) / float64(d)
		g.b[i] = math.Sin(float64(i))
	}
	return g
}

func (g linear) at(y []float64) []float64 {
	x := make([]float64, len(y))
	for i := range y {
		x[i] = float64(g.a[i]*y[i]) + g.b[i]
	}
	return x
}

func (g linear) residual(y []float64) (norm float64) {
	for i, x := range g.at(y) {
		norm = math.Hypot(norm, x-y[i])
	}
	return norm
}

func accelerator(t *testing.T, w *Window, opt AcceleratorOptions) *Accelerator {
	t.Helper()
	a, err := NewAccelerator(w, opt)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func next(t *testing.T, a *Accelerator, y, x []float64) Step {
	t.Helper()
	step, err := a.Next(Slice64(y), Slice64(x))
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// Without safeguards it is the loop of the package docs, online and offline.
func TestAcceleratorIsTheLoop(t *testing.T) {
	const d, n = 30, 4
	g := newLinear(d)
	s, _ := NewHost64(d, 1)
	opt := Options{Lambda: Set(1e-8), Beta: Set(.9)}
	for _, offline := range []bool{false, true} {
		w := window(t, s, n)
		a := accelerator(t, w, AcceleratorOptions{Options: opt, Offline: offline})
		y, loop := make(Slice64, d), window(t, s, n)
		if err := a.Start(y); err != nil {
			t.Fatal(err)
		}
		iterate, want := make(Slice64, d), make(Slice64, d)
		push(t, loop, iterate)
		for range 9 {
			from := append(Slice64(nil), iterate...)
			x := Slice64(g.at(iterate))
			step := next(t, a, y, x)
			if offline {
				push(t, loop, x)
			} else if err := loop.PushPair(from, x); err != nil {
				t.Fatal(err)
			}
			copy(want, extrapolate(t, loop, opt))
			sameBits(t, "point", y, want)
			if step.Outcome != Accepted || !near(step.Residual, g.residual(from), 1e-12) {
				t.Errorf("%v, residual %v, want %v", step.Outcome, step.Residual, g.residual(from))
			}
			if iterate = x; !offline {
				copy(iterate, want)
			}
		}
		vectors := map[bool]int{false: 2*n + 1, true: n + 1}[offline]
		if got := w.Vectors() + len(w.free); got > vectors {
			t.Errorf("offline %v: %d vectors, want %d", offline, got, vectors)
		}
	}
}

func TestAcceleratorEveryAndRestart(t *testing.T) {
	const d = 30
	g := newLinear(d)
	s, _ := NewHost64(d, 1)
	w := window(t, s, 5)
	a := accelerator(t, w, AcceleratorOptions{Every: 3, Restart: 4})
	y := make(Slice64, d)
	if err := a.Start(y); err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 12; k++ {
		x := g.at(y)
		step := next(t, a, y, x)
		wantLen := (k-1)%4 + 1
		if w.Len() != wantLen || step.Restarted != (k > 1 && wantLen == 1) {
			t.Errorf("iterate %d: %d residuals, want %d; restarted %v", k, w.Len(), wantLen, step.Restarted)
		}
		due := k%3 == 0
		if (step.Outcome == Accepted) != due || !due && step.Outcome != NotDue {
			t.Errorf("iterate %d: %v", k, step.Outcome)
		}
		if !due {
			sameBits(t, "point", y, x)
		} else if len(step.Result.C) != wantLen {
			t.Errorf("iterate %d: c = %v", k, step.Result.C)
		}
	}
}

// An extrapolated point is taken only when the function does not rise, and none by a
// function that is NaN there.
func TestAcceleratorValue(t *testing.T) {
	const d = 30
	g := newLinear(d)
	s, _ := NewHost64(d, 1)
	for name, value := range map[string]func(v []float64, asked int) float64{
		"falls": func(v []float64, _ int) float64 { return g.residual(v) },
		"rises": func(v []float64, asked int) float64 { return float64(asked) },
		"even":  func(v []float64, _ int) float64 { return 1 },
		"NaN":   func(v []float64, asked int) float64 { return []float64{1, math.NaN()}[asked%2] },
		"-Inf":  func(v []float64, asked int) float64 { return []float64{1, math.Inf(-1)}[asked%2] },
	} {
		w := window(t, s, 5)
		asked := 0
		a := accelerator(t, w, AcceleratorOptions{Value: func(p Source) (float64, error) {
			v := value(p.(Slice64), asked)
			asked++
			return v, nil
		}})
		y := make(Slice64, d)
		if err := a.Start(y); err != nil {
			t.Fatal(err)
		}
		for k := 1; k <= 6; k++ {
			x := g.at(y)
			step := next(t, a, y, x)
			want := ValueRose
			if name == "falls" || name == "even" {
				want = Accepted
			}
			if step.Outcome != want || asked != 2*k {
				t.Errorf("%s: %v after %d values (%v at x, %v), want %v", name, step.Outcome, asked, step.ValueX,
					step.Value, want)
			}
			if want == ValueRose {
				sameBits(t, name, y, x)
			} else if step.Value > step.ValueX {
				t.Errorf("%s: accepted %v over %v", name, step.Value, step.ValueX)
			}
		}
	}
	lost := errors.New("lost the loss")
	w := window(t, s, 5)
	a := accelerator(t, w, AcceleratorOptions{Value: func(Source) (float64, error) { return 0, lost }})
	y := make(Slice64, d)
	if err := a.Start(y); err != nil {
		t.Fatal(err)
	}
	x := g.at(y)
	if _, err := a.Next(y, Slice64(x)); !errors.Is(err, lost) {
		t.Errorf("the function fails: %v", err)
	}
	sameBits(t, "point", y, x)
}

// λ by a search: no worse than x, and the iterate where nothing is better.
func TestAcceleratorSearch(t *testing.T) {
	const d = 30
	g := newLinear(d)
	s, _ := NewHost64(d, 1)
	w := window(t, s, 5)
	worst := false
	opt := AcceleratorOptions{Lambdas: []float64{0, 1e-6, 1e-2}, Value: func(p Source) (float64, error) {
		if worst {
			return math.Inf(1), nil
		}
		return g.residual(p.(Slice64)), nil
	}}
	a := accelerator(t, w, opt)
	y := make(Slice64, d)
	if err := a.Start(y); err != nil {
		t.Fatal(err)
	}
	for k := range 8 {
		worst = k == 5
		x := g.at(y)
		step := next(t, a, y, x)
		if want := k > 0 && k != 5; (step.Outcome == Accepted) != want || !worst && g.residual(y) > g.residual(x) {
			t.Errorf("step %d: %v, value %v, %v at x", k, step.Outcome, step.Value, step.ValueX)
		}
	}
	opt.MaxNorm = .01
	a = accelerator(t, w, opt)
	if err := a.Start(y); err != nil {
		t.Fatal(err)
	}
	if step := next(t, a, y, g.at(y)); step.Outcome != Refused || step.Result.Status != CoefficientsTooLarge {
		t.Errorf("all candidates refused: %v, %v", step.Outcome, step.Result.Status)
	}
}

// A point whose residual is larger is taken back, one that gives NaN too, and refused
// solves leave x.
func TestAcceleratorTakesBack(t *testing.T) {
	const d = 30
	g := newLinear(d)
	s, _ := NewHost64(d, 1)
	start := func(opt AcceleratorOptions) (*Accelerator, Slice64) {
		a := accelerator(t, window(t, s, 2), opt)
		y := make(Slice64, d)
		if err := a.Start(y); err != nil {
			t.Fatal(err)
		}
		return a, y
	}
	for name, spoil := range map[string]func(x []float64){
		"rises": func(x []float64) { x[0] += 1e6 },
		"NaN":   func(x []float64) { x[3] = math.NaN() },
		"huge":  func(x []float64) { x[0] = math.Inf(1) },
	} {
		a, y := start(AcceleratorOptions{MaxGrowth: 1})
		for range 3 {
			if step := next(t, a, y, g.at(y)); step.Outcome != Accepted {
				t.Fatal(name, step.Outcome)
			}
		}
		// The window holds what it was before y⁺; x is spoilt after it.
		last := g.at(y)
		if step := next(t, a, y, last); step.Outcome != Accepted {
			t.Fatal(name, step.Outcome)
		}
		x := g.at(y)
		spoil(x)
		step := next(t, a, y, x)
		want := Diverged
		if name == "rises" {
			want = ResidualRose
		}
		if step.Outcome != want || math.IsNaN(step.Residual) != (want == Diverged) {
			t.Errorf("%s: %v, residual %v", name, step.Outcome, step.Residual)
		}
		sameBits(t, name, y, last)
		// The iteration goes on from there.
		if step := next(t, a, y, g.at(y)); step.Outcome != Accepted || !near(step.Residual, g.residual(last), 1e-12) {
			t.Errorf("%s: then %v, residual %v, want %v", name, step.Outcome, step.Residual, g.residual(last))
		}
	}
	// NaN from a plain y gives y back.
	a, y := start(AcceleratorOptions{Every: 10})
	next(t, a, y, g.at(y))
	was := append(Slice64(nil), y...)
	x := g.at(y)
	x[1] = math.NaN()
	if step := next(t, a, y, x); step.Outcome != Diverged {
		t.Errorf("NaN: %v", step.Outcome)
	}
	sameBits(t, "y", y, was)

	a, y = start(AcceleratorOptions{Options: Options{MaxNorm: .01}})
	x = g.at(y)
	if step := next(t, a, y, x); step.Outcome != Refused || step.Result.Status != CoefficientsTooLarge {
		t.Errorf("limit on ‖c‖: %v, %v", step.Outcome, step.Result.Status)
	}
	sameBits(t, "x", y, x)
	// A fixed point.
	a, y = start(AcceleratorOptions{MaxGrowth: 1})
	for range 3 {
		if step := next(t, a, y, append([]float64(nil), y...)); step.Outcome != Refused ||
			step.Result.Status != ZeroResidual || step.Residual != 0 {
			t.Errorf("fixed point: %v, %v", step.Outcome, step.Result.Status)
		}
	}
}

// An accelerator that was saved with its window goes on as if it had not been.
func TestAcceleratorResume(t *testing.T) {
	const d = 30
	g := newLinear(d)
	s, _ := NewHost64(d, 1)
	opt := AcceleratorOptions{Every: 2, MaxGrowth: 1, Restart: 3}
	for stop := 1; stop < 7; stop++ {
		a := accelerator(t, window(t, s, 4), opt)
		y := make(Slice64, d)
		if err := a.Start(y); err != nil {
			t.Fatal(err)
		}
		for range stop {
			next(t, a, y, g.at(y))
		}
		text, err := json.Marshal(a.State())
		var state AcceleratorState
		if err := errors.Join(err, json.Unmarshal(text, &state)); err != nil {
			t.Fatal(err)
		}
		w, err := save(t, a.Window()).load(s)
		if err != nil {
			t.Fatal(err)
		}
		b, z := accelerator(t, w, opt), append(Slice64(nil), y...)
		if err := b.Resume(state); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			one, other := next(t, a, y, g.at(y)), next(t, b, z, g.at(z))
			sameBits(t, "point", z, y)
			if one.Outcome != other.Outcome || one.Restarted != other.Restarted {
				t.Errorf("stopped after %d: %+v, resumed %+v", stop, one, other)
			}
		}
	}
}

func TestAcceleratorArguments(t *testing.T) {
	s, _ := NewHost64(2, 1)
	one, two := window(t, s, 1), window(t, s, 2)
	value := func(Source) (float64, error) { return 0, nil }
	for name, err := range map[string]error{
		"nil window":        second(NewAccelerator(nil, AcceleratorOptions{})),
		"lambda":            second(NewAccelerator(two, AcceleratorOptions{Options: Options{Lambda: Set(-1)}})),
		"every":             second(NewAccelerator(two, AcceleratorOptions{Every: -1})),
		"restart":           second(NewAccelerator(two, AcceleratorOptions{Restart: -1})),
		"restart too late":  second(NewAccelerator(two, AcceleratorOptions{Restart: 2})),
		"growth":            second(NewAccelerator(two, AcceleratorOptions{MaxGrowth: math.NaN()})),
		"growth, offline":   second(NewAccelerator(two, AcceleratorOptions{MaxGrowth: 1, Offline: true})),
		"growth, one":       second(NewAccelerator(one, AcceleratorOptions{MaxGrowth: 1})),
		"lambdas, no value": second(NewAccelerator(two, AcceleratorOptions{Lambdas: []float64{1}})),
		"lambdas and tau": second(NewAccelerator(two, AcceleratorOptions{Lambdas: []float64{1}, Value: value,
			Options: Options{Tau: Set(1)}})),
		"bad lambdas": second(NewAccelerator(two, AcceleratorOptions{Lambdas: []float64{-1}, Value: value})),
	} {
		if err == nil {
			t.Errorf("%s: went through", name)
		}
	}
	a := accelerator(t, two, AcceleratorOptions{})
	if _, err := a.Next(make(Slice64, 2), make(Slice64, 2)); err == nil {
		t.Error("a step before the start went through")
	}
	if err := a.Start(make(Slice64, 2)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []Source{nil, make(Slice64, 3)} {
		if _, err := a.Next(make(Slice64, 2), x); err == nil {
			t.Error("an iterate of another length went through")
		}
	}
	if err := a.Resume(AcceleratorState{OnTrial: true}); err == nil {
		t.Error("a trial in an empty window went through")
	}
	for o := Accepted; o <= Diverged; o++ {
		if text, err := o.MarshalText(); err != nil || len(text) < 6 {
			t.Errorf("outcome %d reads %q", int(o), text)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Whatever the iterates and the function are, points are finite, outcomes are typed and what is
// accepted does not rise.
func FuzzAccelerator(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(0), []byte{1, 2, 3, 250, 255, 7})
	f.Add(uint64(2), uint8(1), uint8(7), []byte{255, 255, 0, 0, 9})
	f.Add(uint64(3), uint8(5), uint8(29), []byte{3, 254, 3, 253, 3, 3, 3, 3, 3})
	f.Fuzz(func(t *testing.T, seed uint64, n, flags uint8, xs []byte) {
		const d = 3
		cols := 1 + int(n)%6
		s, _ := NewHost32(d, 1)
		w := window(t, s, cols)
		defer w.Close()
		rng := rand.New(rand.NewPCG(seed, 1))
		var opt AcceleratorOptions
		opt.Lambda = Set([]float64{0, 1e-13, 1e-9, math.Inf(1)}[flags%4])
		if flags&4 != 0 {
			opt.Lambda, opt.Tau = Value{}, Set(rng.Float64())
		}
		opt.Offline = flags&8 != 0
		if flags&16 != 0 && !opt.Offline && cols > 1 {
			opt.MaxGrowth = 1
		}
		if flags&32 != 0 {
			opt.Restart = cols - 1
		}
		opt.Every = int(flags >> 6)
		opt.Value = func(Source) (float64, error) {
			return []float64{rng.NormFloat64(), 0, math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(5)], nil
		}
		if flags&4 == 0 && flags&2 != 0 {
			opt.Lambda, opt.Lambdas = Value{}, []float64{0, 1e-6}
		}
		a := accelerator(t, w, opt)
		y := make(Slice32, d)
		if err := a.Start(y); err != nil {
			t.Fatal(err)
		}
		for _, b := range xs {
			x := make(Slice32, d)
			for i := range x {
				switch {
				case b == 255 && i == 1:
					x[i] = float32(math.NaN())
				case b == 254:
					x[i] = math.MaxFloat32 * float32(rng.Float64()*2-1)
				case b == 253:
					x[i] = y[i]
				default:
					x[i] = y[i]/2 + float32(b%8) + float32(rng.NormFloat64())
				}
			}
			step, err := a.Next(y, x)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range y {
				if !isFinite(float64(v)) {
					t.Fatalf("%v: y[%d] = %v", step.Outcome, i, v)
				}
			}
			if (step.Outcome == Accepted) != (step.Result.C != nil) && step.Outcome != ValueRose {
				t.Fatalf("%v with c = %v", step.Outcome, step.Result.C)
			}
			// a search leaves out what is not finite
			if step.Outcome == Accepted && (!isFinite(step.Value) || isFinite(step.ValueX) &&
				step.Value > step.ValueX) {
				t.Fatalf("accepted the value %v over %v", step.Value, step.ValueX)
			}
			if (step.Outcome == Diverged) != math.IsNaN(step.Residual) {
				t.Fatalf("%v with the residual %v", step.Outcome, step.Residual)
			}
		}
	})
}
