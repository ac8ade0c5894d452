package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/option"
	"onlinerna/train/runs"
)

// Densities are those of Optuna's Parzen estimators: testdata/tpe.py wrote them.
func TestDensity(t *testing.T) {
	b, err := os.ReadFile("testdata/tpe.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Kind            string
			Points, At, Log []float64
		}
		Joint struct {
			Points, At [][]float64
			Log        []float64
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil || len(golden.Cases) < 30 {
		t.Fatal(len(golden.Cases), err)
	}
	dimensions := map[string]Dimension{"lin": {Kind: "lin", Lo: -1, Hi: 3}, "log": {Kind: "log", Lo: 1e-4, Hi: 2},
		"int": {Kind: "int", Lo: 2, Hi: 9}, "list": {Values: []string{"a", "b", "c", "d"}}}
	for _, c := range golden.Cases {
		d := dimensions[c.Kind]
		if c.Kind == "log" {
			for _, list := range [][]float64{c.Points, c.At} {
				for i := range list {
					list[i] = math.Log(list[i])
				}
			}
		}
		p := mix([]Dimension{d}, single(c.Points))
		for i, x := range c.At {
			if got := p.log([]float64{x}); math.Abs(got-c.Log[i]) > 1e-9*max(1, math.Abs(c.Log[i])) {
				t.Errorf("%s, %d points, at %g: %.12g, want %.12g", c.Kind, len(c.Points), x, got, c.Log[i])
			}
		}
	}
	j := golden.Joint
	p := mix([]Dimension{dimensions["lin"], dimensions["list"]}, j.Points)
	for i, x := range j.At {
		if got := p.log(x); math.Abs(got-j.Log[i]) > 1e-9*math.Abs(j.Log[i]) {
			t.Errorf("at %g: %.12g, want %.12g", x, got, j.Log[i])
		}
	}
}

func single(points []float64) (list [][]float64) {
	for _, x := range points {
		list = append(list, []float64{x})
	}
	return list
}

// Draws have the distribution that log gives.
func TestDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, d := range []Dimension{{Kind: "lin", Lo: -1, Hi: 3}, {Kind: "int", Lo: 2, Hi: 5},
		{Values: []string{"a", "b", "c"}}} {
		points := map[string][]float64{"lin": {-.9, 2.5}, "int": {2, 4, 4}, "": {1, 1, 2}}[d.Kind]
		p := mix([]Dimension{d}, single(points))
		const n = 40_000
		count := map[float64]float64{}
		for range n {
			x := p.draw(r)[0]
			if d.Kind == "lin" {
				x = math.Floor(4*x) / 4
			}
			count[x]++
		}
		for x, c := range count {
			want := 0.
			switch d.Kind {
			case "lin":
				for k := range 100 {
					want += math.Exp(p.log([]float64{x + (float64(k)+.5)/400})) / 400
				}
			default:
				want = math.Exp(p.log([]float64{x}))
			}
			if sd := math.Sqrt(want * (1 - want) / n); math.Abs(c/n-want) > 5*sd {
				t.Errorf("%+v at %g: %g, want %g ± %g", d, x, c/n, want, sd)
			}
		}
	}
}

// minimise runs a sweep of a function in place of training, and returns the best value and the number of epochs. Runs
// of fewer than all epochs have the value of f for those.
func minimise(space []string, trials, epochs, eta, width int, search string, seed uint64,
	f func(x []option.Setting, epoch int) float64) (best float64, spent int, err error) {
	p := Plan{Set: space, Trials: trials, Search: search, Seeds: 1, Options: option.Settings(fmt.Sprint("seed ", seed))}
	list, err := p.Candidates()
	if err != nil {
		return 0, 0, err
	}
	h := Halving{Rungs: rungs(epochs, eta, 0), Eta: eta, Width: width}
	if search == TPE {
		if h.Propose, err = (&Sweep{Plan: p}).proposer(list); err != nil {
			return 0, 0, err
		}
	}
	best = math.Inf(1)
	reached := make([]int, len(list))
	_, err = h.Decide(context.Background(), len(list), func(c, to int) func() ([]Value, error) {
		settings := list[c].Settings
		spent += to - reached[c]
		reached[c] = to
		return func() ([]Value, error) {
			v := f(settings, to)
			if to == epochs {
				best = min(best, v)
			}
			return []Value{{v, v}}, nil
		}
	})
	return best, spent, err
}

func setting(x []option.Setting, name string) float64 {
	for _, s := range x {
		if s.Name == name {
			v, err := strconv.ParseFloat(s.Text, 64)
			if err != nil {
				panic(err)
			}
			return v
		}
	}
	panic(name)
}

// Functions to minimise, which scripts/sweep_check.py has, too.
var functions = map[string]struct {
	space []string
	f     func(x []option.Setting) float64
}{
	"bowl": {[]string{"lr=log:1e-5..10", "weight-decay=log:1e-7..1"}, func(x []option.Setting) float64 {
		a, b := math.Log10(setting(x, "lr"))+1.3, math.Log10(setting(x, "weight-decay"))+3.5
		return a*a + .3*b*b
	}},
	"valley": {[]string{"lr=log:1e-3..1", "momentum=lin:0..0.99"}, func(x []option.Setting) float64 {
		a := math.Log10(setting(x, "lr")) - math.Log10(1-setting(x, "momentum")) // of the effective rate
		return (a-.2)*(a-.2) + .05*setting(x, "momentum")
	}},
	"mixed": {[]string{"lr=log:1e-4..1", "batch=16,32,64,128", "warmup=int:0..10", "label-smoothing=lin:0..0.5"},
		func(x []option.Setting) float64 {
			a := math.Log10(setting(x, "lr")) - math.Log10(setting(x, "batch")/64) + 1.5
			b := setting(x, "warmup") - 4
			return a*a + .01*b*b + math.Abs(setting(x, "label-smoothing")-.1) + .2*math.Abs(math.Log2(setting(x, "batch")/32))
		}},
}

// curve is the value of a run after some of its 27 epochs: it falls to f; faster ones need not end lower.
func curve(x []option.Setting, epoch int, f float64) float64 {
	return f + 2*math.Exp(-float64(epoch)*.1*(1+f/(1+f))) - 2*math.Exp(-2.7*(1+f/(1+f)))
}

// With equal trials the estimator finds better points than random draws. ONLINERNA_SWEEPS names a file for the results
// of more seeds, which make check-sweep compares with Optuna's.
func TestSearch(t *testing.T) {
	path, seeds := os.Getenv("ONLINERNA_SWEEPS"), 12
	if path != "" {
		seeds = 50
	}
	type result struct {
		Best  []float64
		Spent []int
	}
	all := map[string]map[string]*result{}
	for name, c := range functions {
		all[name] = map[string]*result{}
		for _, method := range []string{"random", "tpe", "asha", "tpe-asha"} {
			r := &result{}
			all[name][method] = r
			for seed := range seeds {
				trials, eta, search := 60, 0, Random
				if method == "tpe" || method == "tpe-asha" {
					search = TPE
				}
				if method == "asha" || method == "tpe-asha" {
					trials, eta = 100, 3
				}
				best, spent, err := minimise(c.space, trials, 27, eta, 1, search, uint64(seed),
					func(x []option.Setting, epoch int) float64 { return curve(x, epoch, c.f(x)) })
				if err != nil {
					t.Fatal(err)
				}
				r.Best, r.Spent = append(r.Best, best), append(r.Spent, spent)
			}
		}
		center := func(method string) (m float64) {
			for _, x := range all[name][method].Best {
				m += math.Log(x+1e-9) / float64(seeds)
			}
			return m
		}
		if random, tpe := center("random"), center("tpe"); tpe > random-.2 {
			t.Errorf("%s: logarithm of the best %g, at random %g", name, tpe, random)
		}
		t.Logf("%s: random %.3g, tpe %.3g, asha %.3g, tpe-asha %.3g", name, center("random"), center("tpe"), center("asha"),
			center("tpe-asha"))
	}
	if path != "" {
		b, err := json.Marshal(all)
		if err == nil {
			err = os.WriteFile(path, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecorded lets searches choose on the records of a whole grid, ten times each: ONLINERNA_RECORDED names the folder
// of that sweep. The results lie beside those of TestSearch.
func TestRecorded(t *testing.T) {
	dir := os.Getenv("ONLINERNA_RECORDED")
	if dir == "" {
		t.Skip("ONLINERNA_RECORDED is not set: make check-sweep RUNS=folder")
	}
	plan, err := ReadPlan(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := runs.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		Options         []float64
		Losses, Seconds []float64 // by epoch; the losses are the lowest so far
	}
	type result struct {
		Best, Seconds []float64
		Spent         []int
	}
	var all struct {
		Epochs  int
		Runs    []record
		Results map[string]*result
	}
	space, err := plan.space()
	if err != nil {
		t.Fatal(err)
	}
	byPoint := map[string]*record{}
	for _, r := range list {
		all.Epochs = r.Config.Epochs
		var c record
		for _, d := range space {
			x, err := strconv.ParseFloat(r.Option(d.Name), 64)
			if err != nil {
				t.Fatal(r.Dir, err)
			}
			c.Options = append(c.Options, x)
		}
		for _, e := range r.History {
			c.Losses = append(c.Losses, e.Best.Score.Loss)
			c.Seconds = append(c.Seconds, e.Seconds.Data+e.Seconds.Compute+e.Seconds.Eval)
		}
		all.Runs = append(all.Runs, c)
	}
	for i := range all.Runs {
		byPoint[fmt.Sprint(all.Runs[i].Options)] = &all.Runs[i]
	}
	if all.Results = map[string]*result{}; len(byPoint) != len(list) {
		t.Fatalf("%d runs of %d points: want a grid with one seed", len(list), len(byPoint))
	}
	for _, method := range []string{"asha", "random", "tpe", "tpe-asha"} {
		r := &result{}
		all.Results[method] = r
		trials, eta, search := len(list)/4, 0, Random
		if strings.HasPrefix(method, "tpe") {
			search = TPE
		}
		if strings.HasSuffix(method, "asha") {
			trials, eta = len(list)/2, 3
		}
		for seed := range 10 {
			reached, seconds := map[*record]int{}, 0.
			best, spent, err := minimise(plan.Set, trials, all.Epochs, eta, 1, search, uint64(seed),
				func(x []option.Setting, epoch int) float64 {
					var point []float64
					for _, d := range space {
						point = append(point, setting(x, d.Name))
					}
					c := byPoint[fmt.Sprint(point)]
					for ; reached[c] < min(epoch, len(c.Seconds)); reached[c]++ {
						seconds += c.Seconds[reached[c]]
					}
					if epoch > len(c.Losses) {
						return math.Inf(1)
					}
					return c.Losses[epoch-1]
				})
			if err != nil {
				t.Fatal(err)
			}
			r.Best, r.Spent, r.Seconds = append(r.Best, best), append(r.Spent, spent), append(r.Seconds, seconds)
		}
	}
	b, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(os.Getenv("ONLINERNA_SWEEPS")), "recorded.json"), b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A search has no point twice, takes all of a small space, and is a function of its seed.
func TestSearchPoints(t *testing.T) {
	points := func(seed uint64, width int) (list []string) {
		_, _, err := minimise([]string{"batch=1,2,3,4,5", "epochs=1,2,3,4"}, 100, 9, 3, width, TPE, seed,
			func(x []option.Setting, epoch int) float64 {
				if epoch == 1 {
					list = append(list, fmt.Sprint(x))
				}
				return setting(x, "batch") + math.Abs(setting(x, "epochs")-2)
			})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	one := points(1, 3)
	seen := map[string]bool{}
	for _, p := range one {
		seen[p] = true
	}
	if len(one) != 20 || len(seen) != 20 || !reflect.DeepEqual(points(1, 3), one) || reflect.DeepEqual(points(2, 3), one) {
		t.Errorf("%d points, %d different", len(one), len(seen))
	}
}

// A search that is interrupted again and again ends with the same candidates and weights.
func TestSearchResumes(t *testing.T) {
	search := func(dir string) *Sweep {
		s := tiny(dir)
		s.Plan.Set, s.Plan.Trials, s.Plan.Search = []string{"lr=log:1e-3..0.5", "momentum=lin:0..0.9"}, 14, TPE
		s.Plan.Options = option.Settings("batch 8  epochs 3  limit-batches 2  limit-val 2  seed 3  rna off")
		return s
	}
	whole, parts := t.TempDir(), t.TempDir()
	complete(t, search(whole))
	for i := 0; ; i++ {
		s := search(parts)
		ctx, stop := context.WithCancel(t.Context())
		left := 2 + i%3
		s.Open = func(*train.Spec, int) (device.Device, error) {
			if left--; left <= 0 {
				stop()
			}
			return cpu.New(cpu.Options{Threads: 1})
		}
		_, err := s.Run(ctx)
		stop()
		if err == nil {
			if i < 4 {
				t.Errorf("%d interruptions", i)
			}
			break
		}
		if !errors.Is(err, train.ErrInterrupted) || i > 60 {
			t.Fatal(i, err)
		}
	}
	want := contents(t, whole)
	same(t, contents(t, parts), want)
	list, _, err := runs.Find(whole)
	if err != nil || len(list) != 14 {
		t.Fatal(len(list), err)
	}
	p := search(whole).Plan
	drawn, err := p.Candidates()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range list {
		text := r.Option("lr") + " " + r.Option("momentum")
		random := drawn[i].Settings[0].Text + " " + drawn[i].Settings[1].Text
		if (text == random) != (i < 10) {
			t.Errorf("candidate %d is %s, at random %s", i+1, text, random)
		}
	}
}
