package rna

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"onlinerna/internal/golden"
)

// systems are windows whose residuals are well and badly conditioned, dependent, equal, zero and single.
func systems(t *testing.T) map[string]*Window {
	t.Helper()
	all := map[string]*Window{}
	add := func(name string, create func(int, int) (Space, error), chain bool, vs ...Slice64) {
		space, err := create(len(vs[0]), 2)
		if err != nil {
			t.Fatal(err)
		}
		w := window(t, space, len(vs))
		for i, v := range vs {
			if chain {
				err = w.Push(v)
			} else {
				err = w.PushResidual(path[i][:len(v)], v)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		all[name] = w
	}
	add("1 chain", NewHost64, true, path...)
	add("2 chain of float32", NewHost32, true, path...)
	add("3 residuals", NewHost64, false, Slice64{4, 0, 0, 1}, Slice64{0, 3, 1, 0}, Slice64{1, 0, 2, 0},
		Slice64{0, 0, 0, 1})
	add("4 badly conditioned", NewHost64, false, Slice64{1, 1, 0, 0}, Slice64{1, 1 + 0x1p-12, 0, 0},
		Slice64{1, 1, 0x1p-14, 0})
	add("5 worse", NewHost64, false, Slice64{1, 1, 0, 0}, Slice64{1, 1 + 0x1p-20, 0, 0}, Slice64{1, 1, 0x1p-24, 0x1p-28})
	add("6 dependent", NewHost64, false, Slice64{1, 0, 0, 0}, Slice64{0, 2, 0, 0}, Slice64{-1, 4, 0, 0},
		Slice64{3, -4, 0, 0})
	add("7 equal", NewHost64, false, Slice64{1, 2, 0, 0}, Slice64{1, 2, 0, 0}, Slice64{1, 2, 0, 0})
	add("8 one zero", NewHost64, false, Slice64{1, 2, 0, 0}, Slice64{0, 0, 0, 0}, Slice64{3, 0, 0, 1})
	add("9 all zero", NewHost64, false, Slice64{0, 0, 0, 0}, Slice64{0, 0, 0, 0})
	add("A single", NewHost64, false, Slice64{1, 2, 2, 0})
	add("B more than elements", NewHost64, false, Slice64{3, 1}, Slice64{1, -2}, Slice64{-1, 1}, Slice64{.5, .25})
	add("C of several sizes", NewHost64, false, Slice64{1e6, 0, 1, 0}, Slice64{1, 2, 0, 0}, Slice64{0, 1e-4, 0, 1e-5})
	// The third difference is 1.2 and 1.6 times the rounding of the first and third residuals, beside √2 for noise.
	add("D within the noise", NewHost64, false, Slice64{1, 0, 0, 0}, Slice64{1, 1, 0, 0},
		Slice64{1, 0, 1.2 * 9 * epsilon, 0})
	add("E above the noise", NewHost64, false, Slice64{1, 0, 0, 0}, Slice64{1, 1, 0, 0},
		Slice64{1, 0, 1.6 * 9 * epsilon, 0})
	return all
}

// ordered calls f in the order of the names.
func ordered[V any](m map[string]V, f func(name string, v V)) {
	for c := '0'; c <= 'Z'; c++ {
		for name, v := range m {
			if strings.HasPrefix(name, string(c)) {
				f(name, v)
			}
		}
	}
}

var (
	lambdas = []float64{0, 2e-27, 6e-27, 1e-24, 1e-12, 1e-6, .1, 10, 1e300, math.Inf(1), -1, math.NaN()}
	taus    = []float64{0, 1e-9, 1e-3, .1, .5, 1, 3, 100, 1e9, math.Inf(1), -1, math.NaN()}
)

func TestGoldenSolve(t *testing.T) {
	s := &transcript{}
	ordered(systems(t), func(name string, w *Window) {
		s.Line(name)
		for _, lambda := range lambdas {
			if !(lambda >= 0) && name[0] != '1' {
				continue
			}
			s.result(fmt.Sprint("lambda ", lambda), solve(t, w, Options{Lambda: Set(lambda)}))
		}
		for _, tau := range taus {
			if !(tau >= 0) && name[0] != '1' {
				continue
			}
			s.result(fmt.Sprint("tau ", tau), solve(t, w, Options{Tau: Set(tau)}))
		}
		if !strings.ContainsAny(name[:1], "148") {
			return
		}
		for _, opt := range []Options{
			{}, {Newest: 1}, {Newest: 2}, {Newest: 99}, {Newest: -1}, {Newest: 2, Tau: Set(.5)}, {MaxNorm: .4}, {MaxNorm: .6},
			{MaxNorm: 2}, {MaxNorm: 1e9}, {MaxNorm: -1}, {MaxNorm: math.NaN()}, {Beta: Set(math.Inf(1))},
			{Beta: Set(math.Inf(-1))},
			{Beta: Set(math.NaN())}, {Lambda: Set(1), Tau: Set(1)}, {Lambda: Set(0), MaxNorm: 1},
		} {
			s.result(fmt.Sprint(opt), solve(t, w, opt))
		}
	})
	golden.Numbers(t, "solve.txt", s.String())
}

// spectrum adds the results of a decomposition.
func (s *transcript) spectrum(name string, p *Spectrum) {
	s.Line(name, "n", p.n, "exp", p.exp, "norm", p.Norm(), "norms", p.norms, "rounding",
		golden.Rough(p.rounding(), 0), "noise", p.noise != nil, "fault", p.fault.Status)
	for _, v := range p.noise {
		s.Line("  noise", golden.Rough(v, 1e-12))
	}
	if p.sigma != nil {
		s.Line("  sigma", golden.Around(p.sigma, 1, 1e-14))
	}
	for i, lambda := range p.Lambdas() {
		err := 0.
		if p.sigma != nil && lambda > 1e-12 {
			err = epsilon / p.sigma[0]
		}
		s.Line("  grid", i, golden.Rough(lambda, err))
	}
	for _, lambda := range []float64{0, 1e-12, 1e-3, math.Inf(1)} {
		s.result(fmt.Sprint("  lambda ", lambda), p.Solve(lambda))
	}
	s.result("  tau", p.Constrain(.5))
}

// Decompositions of the residuals, of their Gram matrices and of matrices that are none.
func TestGoldenSpectrum(t *testing.T) {
	s := &transcript{}
	ordered(systems(t), func(name string, w *Window) {
		for _, k := range []int{0, 2}[:1+len(name)%2] {
			p, err := w.QR(k)
			if err != nil {
				t.Fatal(err)
			}
			s.spectrum(fmt.Sprint(name, " QR ", k), p)
			if name[0] != '5' && name[0] != 'C' { // whose Gram matrices are rounding
				s.spectrum(fmt.Sprint(name, " Gram ", k), w.Spectrum(k))
			}
		}
	})
	golden.Numbers(t, "spectrum.txt", s.String())
}

func TestGoldenFactor(t *testing.T) {
	s := &transcript{}
	nan, inf := math.NaN(), math.Inf(1)
	s.spectrum("nil", Factor(nil))
	unit := Factor(mat.NewSymDense(2, []float64{1, 0, 0, 2}))
	for _, v := range []float64{-1, -1e-300, math.NaN(), math.Inf(-1)} {
		s.result(fmt.Sprint("lambda ", v), unit.Solve(v))
		s.result(fmt.Sprint("tau ", v), unit.Constrain(v))
	}
	for _, upper := range [][]float64{ // 3×3, by rows
		{1, 0, 0, 2, 0, 4}, {4, 1, .5, 3, -1, 2}, {nan, 0, 0, 1, 0, 1}, {1, nan, 0, 1, 0, 1}, {1, nan, inf, 1, 0, 1},
		{1, 0, 0, inf, 0, nan}, {1, 0, 0, 1, inf, -1}, {-1, 0, 0, 1, 0, -1}, {0, 1, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0},
		{0, 0, 0, 0, -1, 0}, {1, 9, 0, 1, 0, 1}, {1, 1.5, 0, 1, 0, 1}, {1, -1.5, .25, 1, 0, 1}, {1, 1, 1, 1, 1, 1},
		{1, 1, 0, 1, 0, 1}, {1e-300, 0, 0, 2e-300, 0, 3e-300}, {1e300, 1e299, 0, 1e300, 0, 2e300}, {1, 0, 0, 1e-40, 0, 1},
		{1, 0, 0, 0, 0, 1}, {1, 0, 0, 1e-12, 0, 1}, {1, 2, 0, 4, 0, 1}, {1, 0, 0, 1, 2.0000000001, 4},
		{1, -9, 0, 1, 0, 1}, {1, 1 + 9.6e-14, 0, 1, 0, 1}, {1, 1 + 7e-14, 0, 1, 0, 1},
	} {
		m := mat.NewSymDense(3, nil)
		at := 0
		for i := range 3 {
			for j := i; j < 3; j++ {
				m.SetSym(i, j, upper[at])
				at++
			}
		}
		s.spectrum(fmt.Sprint(upper), Factor(m))
		c, noise := NoiseCoefficients(m)
		s.Line("  noise", c, noise)
	}
	for _, c := range [][]float64{{1}, {.5, .5}, {1, 0}, {2, -1, 0}, {.25, .25, .25, .25}} {
		s.Line("from uniform", c, FromUniform(c))
	}
	for n := range 6 {
		s.Line("stationary", n, StationaryCoefficients(n), StationaryCoefficients(n) == nil)
	}
	for _, g := range [][]float64{{2}, {2, -1, -1, 3}, {4, 2, 2, 5}, {4, 4, 4, 5}, {4, 5, 5, 5}} {
		n := int(math.Sqrt(float64(len(g))))
		c, noise := NoiseCoefficients(mat.NewSymDense(n, g))
		s.Line("noise", g, c, noise, c == nil)
	}
	s.Line(DefaultLambdas())
	for _, c := range [][]float64{{1, 0}, {.5, .5}, {3, -2}} {
		norm, rounding := product(mat.NewDense(2, 2, []float64{1, 2, 0, 4}), c, []float64{.25, .5})
		s.Line("product", c, norm, rounding)
	}
	golden.Numbers(t, "factor.txt", s.String())
}

// Exact products are kept while columns come and go, in any slots.
func TestGoldenExact(t *testing.T) {
	s := &transcript{}
	space, _ := NewHost64(5, 1)
	s.w = window(t, space, 3)
	for k := range 9 {
		y, r := make(Slice64, 5), Slice64{1, 1, 1, 1, 1}
		r[k%5] += math.Ldexp(float64(k+1), -20-k%3)
		r[k*k%5] -= 0x1p-21
		s.Line("push", k, s.w.PushResidual(y, r))
		if k == 5 {
			s.w.forget(1)
		}
		for _, lambda := range []float64{1e-16, 1e-9} {
			for _, newest := range []int{2, 0} {
				s.result(fmt.Sprint("  lambda ", lambda), solve(t, s.w, Options{Lambda: Set(lambda), Newest: newest}))
			}
		}
	}
	golden.Numbers(t, "exact.txt", s.String())
}

// choice adds a search's outcome.
func (s *transcript) choice(name string, c Choice, dst []float64, err error) {
	s.Line(name, c.Kind, "lambda", c.Result.Lambda, "value", c.Value, "no difference", c.NoDifference, "at", dst, err)
	for _, k := range c.Candidates {
		s.Line("   ", k.Kind, k.Result.Status, golden.Rough(k.Result.Lambda, 1e-9), len(k.Result.C),
			golden.Rough(k.Value, 1e-12),
			golden.Rough(k.Difference, 1e-10), golden.Rough(k.Error, 1e-10), k.Result.Detail)
	}
	if c.Result.Status != OK {
		s.Line("   ", c.Result.Err())
	}
}

// Searches with losses of one and of several samples: distances to a goal.
func TestGoldenSearch(t *testing.T) {
	s := &transcript{}
	goals := []Slice64{{0, 0, 0, 0, 3}, {.25, -.625, .5, .25, 2.25}, {1, -1, 1, 0, 1}, {100, 0, 0, 0, 0}}
	ordered(systems(t), func(name string, w *Window) {
		d := w.Space().Dim()
		for g, goal := range goals {
			for _, samples := range []int{1, 2, 6} {
				for _, opt := range []SearchOptions{
					{}, {Lambdas: []float64{0, 1e-3, 1e-3, 2}}, {Lambdas: []float64{}, Beta: Set(.5)}, {Newest: 2, MaxNorm: .8},
				} {
					first, grid := name[0] == '1', opt.Lambdas == nil
					switch { // a part of all combinations
					case samples == 2 && (grid || !first), samples == 6 && grid && !first, samples != 1 && g > 1,
						g > 0 && !first, opt.Newest > 0 && !first && name[0] != '3',
						grid && strings.ContainsAny(name[:1], "4567C"):
						continue
					}
					dst := make(Slice64, d)
					calls := 0
					choice, err := w.Search(dst, func() ([]float64, error) {
						calls++
						x := make([]float64, samples)
						for i := range x {
							for j, v := range dst {
								e := v - goal[j] + float64(i*(j%3-1))/16
								x[i] += e * e
							}
						}
						return x, nil
					}, opt)
					s.choice(fmt.Sprint(name, " goal ", g, " samples ", samples, " ", opt, " calls ", calls), choice, dst, err)
				}
			}
		}
	})
	golden.Numbers(t, "search.txt", s.String())
}

// Choices by samples: a letter for each ratio of a candidate's lead to its standard error, from 1/2 to 20.
func TestGoldenChoose(t *testing.T) {
	s := &transcript{}
	for _, n := range []int{1, 2, 3, 6, 30} {
		for _, usable := range []int{1, 3, 8} {
			for _, kept := range []bool{true, false} {
				letters := ""
				for ratio := .5; ratio < 20; ratio *= 1.1 {
					list := make([]Candidate, usable+2)
					list[usable+1].Result.Status = Overflow
					list[usable+1].Value = 7
					x := make([]float64, n)
					calls := 0
					choice, err := Choose(list, func(c *Candidate) ([]float64, error) {
						calls++
						for i := range x {
							x[i] = float64(i % 3)
							if c == &list[0] && !kept {
								x[i] = math.NaN()
							}
							if c == &list[1] { // a lead with the standard error 1
								size := math.Sqrt(float64(n*(n-1)) / float64(max(n&^1, 1)))
								x[i] += size*float64(1-2*(i%2))*float64(min(n&^1-i, 1)) - ratio
							}
						}
						return x, nil
					})
					if calls != usable+1 || !math.IsNaN(list[usable+1].Value) {
						t.Error(calls, list[usable+1].Value)
					}
					letter := "?"
					for i := range list {
						if err == nil && choice.Value == list[i].Value {
							letter = string(rune('a' + i))
							break
						}
					}
					if choice.NoDifference {
						letter += "*"
					}
					letters += letter
				}
				s.Line(n, usable, kept, letters)
			}
		}
	}
	_, err := Choose(nil, nil)
	s.Line(err)
	golden.Numbers(t, "choose.txt", s.String())
}

// Searches that can't be, losses that fail or are not finite, and points that overflow.
func TestGoldenSearchEdges(t *testing.T) {
	s := &transcript{}
	space, _ := NewHost64(5, 1)
	nan, inf := math.NaN(), math.Inf(1)
	w := window(t, space, 3)
	values := func(list ...any) (*int, func() ([]float64, error)) {
		calls := 0
		return &calls, func() ([]float64, error) {
			calls++
			switch v := list[min(calls, len(list))-1].(type) {
			case float64:
				return []float64{v}, nil
			case []float64:
				return v, nil
			default:
				return nil, v.(error)
			}
		}
	}
	try := func(name string, dst Sink, opt SearchOptions, list ...any) {
		calls, losses := values(list...)
		choice, err := w.Search(dst, losses, opt)
		at, _ := dst.(Slice64)
		s.choice(fmt.Sprint(name, " calls ", *calls), choice, at, err)
	}
	try("empty", make(Slice64, 5), SearchOptions{}, 1.)
	list, err := w.Candidates(SearchOptions{})
	s.Line("candidates", len(list), list[0].Kind, list[0].Value, err)
	push(t, w, path[0])
	try("no residual", make(Slice64, 5), SearchOptions{}, 1.)
	push(t, w, path[1], path[2], path[3])
	for name, opt := range map[string]SearchOptions{"1 lambda": {Lambdas: []float64{1, -1}}, "2 beta": {Beta: Set(nan)},
		"3 newest": {Newest: -1}, "4 norm": {MaxNorm: -2}} {
		calls, losses := values(1.)
		choice, err := w.Search(make(Slice64, 5), losses, opt)
		if choice.Result.Status != Invalid || err != nil || *calls != 0 {
			t.Error(name, choice, err)
		}
	}
	try("short", make(Slice64, 4), SearchOptions{}, 1.)
	try("nil", nil, SearchOptions{}, 1.)
	grid := SearchOptions{Lambdas: []float64{1, 1e-3, 0}}
	broken := errors.New("broken")
	for i, list := range [][]any{
		{3., 2., 1., 2.}, {1., 2., 3., 4.}, {nan, 2., 1., 3.}, {nan, nan, inf, nan}, {inf, nan, 5., 4.}, {2., inf, nan, 1.},
		{-inf, 1., 2., 3.}, {broken}, {1., broken}, {1., 2., 3., broken}, {[]float64{}, 1.}, {[]float64{1, 2}, []float64{1}},
		{[]float64{1}, []float64{1, 2}}, {[]float64{3, 3, 4}, []float64{1, 1, 2}, []float64{1, 1, 1.5}, []float64{.9, 1.2,
			1}},
		{[]float64{3, 3, 4}, []float64{1, 5, 2}, []float64{2, 2, 5}, []float64{3, 3, 3}},
		{[]float64{nan, 1, 1}, []float64{1, 5, 2}, []float64{1, 2, 1}, []float64{1, 1, 3}},
		{[]float64{5, 5}, []float64{1, 1.1}, []float64{1, 1}, []float64{.9, .9}},
	} {
		try(fmt.Sprint("list ", i), make(Slice64, 5), grid, list...)
	}
	try("all refused", make(Slice64, 5), SearchOptions{MaxNorm: .1}, 1.)
	try("lost", &remote{v: make(Slice64, 5), failAt: 2}, grid, 1., 2.)
	s.Line("push", w.PushPair(Slice64{1e308, 1, 0, 0, 0}, Slice64{.5e308, 0, 0, 0, 0}))
	for _, beta := range []float64{1, -3, 50} {
		try("overflow", make(Slice64, 5), SearchOptions{Lambdas: []float64{1, 1e-3, 0}, Beta: Set(beta)}, 3., 2., 1., 0.)
	}
	try("float32", &remote{v: make(Slice64, 5)}, grid, 3.)
	s.Line("residual", w.PushResidual(path[3], path[4]))
	try("residual", make(Slice64, 5), SearchOptions{Newest: 1}, 3., 2., 1.)
	s.Line("pair", w.PushPair(path[3], path[4]))
	for _, beta := range []float64{0, 1} {
		try("newest", make(Slice64, 5), SearchOptions{Newest: 1, Beta: Set(beta)}, 3., 2., 1.)
	}
	w.Break()
	try("newest without a chain", make(Slice64, 5), SearchOptions{Newest: 1}, 3., 2., 1.)
	for _, opt := range []SearchOptions{{}, grid, {Newest: 1, MaxNorm: .5}, {Lambdas: []float64{}}} {
		list, err := w.Candidates(opt)
		s.choice("candidates", Choice{Candidates: list}, nil, err)
	}
	golden.Numbers(t, "search-edges.txt", s.String())
}
