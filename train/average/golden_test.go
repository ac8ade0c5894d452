package average_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/golden"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/option"
	"onlinerna/train/schedule"
)

// of returns the hook of RNA with options, given as names and values.
func of(settings string, averages ...int) func() averaging {
	var o average.Options
	if err := average.Table.Apply(&o, option.Settings(settings)...); err != nil {
		panic(err)
	}
	o.Resolve(6, 3, append([]int{}, averages...))
	return func() averaging { return average.NewRNA(o) }
}

// plays are runs that together reach the branches of the hooks.
var plays = []play{
	{name: "offline", net: "small-norm", epochs: 6, batches: 3, val: true, resume: 7,
		hook: of("rna-lambda 1e-3", 2, 3)},
	{name: "defaults", net: "small-plain", epochs: 5, batches: 2, val: true, held: true, resume: 1, hook: of("", 3)},
	{name: "combine", net: "small-norm", epochs: 6, batches: 2, held: true, resume: 5,
		hook: of("rna-lambda 1e-2 rna-bn combine rna-beta 0.5 rna-window 2", 2, 4)},
	{name: "combine-plain", net: "small-plain", epochs: 4, batches: 1, val: true,
		hook: of("rna-lambda 0.1 rna-bn combine rna-start 1", 2)},
	{name: "online-reset", net: "small-norm", epochs: 7, batches: 2, val: true,
		hook: of("rna online rna-lambda 1e-2 rna-every 2", 2)},
	{name: "online-keep", net: "small-plain", epochs: 8, batches: 3, val: true, held: true,
		hook: of("rna online rna-lambda 1e-6 rna-accept true rna-momentum keep rna-window 4 rna-beta 0.25")},
	{name: "accept-norm", net: "small-norm", epochs: 7, batches: 2, held: true,
		hook: of("rna online rna-lambda 1 rna-accept true rna-start 3")},
	{name: "rose", net: "small-norm", epochs: 7, batches: 2, val: true, held: true,
		hook:    of("rna online rna-lambda 1e-2 rna-accept true rna-start 1", 2),
		weights: func(epoch int) float64 { return []float64{1, 0.6, 0.3, 0.35, 0.9, 0.4, 0.2}[epoch-1] }},
	{name: "search", net: "small-norm", epochs: 6, batches: 2, val: true, held: true,
		hook: of("rna online rna-lambda auto rna-accept true rna-window 2")},
	{name: "search-plain", net: "small-plain", epochs: 6, batches: 2, val: true, held: true,
		hook: of("rna online rna-lambda auto rna-beta 0.5 rna-start 1")},
	{name: "tau", net: "small-plain", epochs: 5, batches: 3, val: true, hook: of("rna-tau 0.05 rna-window 4", 2)},
	{name: "parts", net: "small-norm", epochs: 3, batches: 5, stepBatches: 2, val: true,
		hook: of("rna-per-epoch 2 rna-lambda 1e-2 rna-bn combine rna-start 1", 3)},
	{name: "each-step", net: "small-plain", epochs: 2, batches: 5, stepBatches: 2, val: true,
		hook: of("rna-per-epoch 3 rna-lambda 1e-2 rna-start 1 rna-window 4")},
	{name: "means", net: "small-plain", epochs: 3, batches: 4, val: true, resume: 7,
		hook: of("rna-per-epoch 2 rna-segment-means true rna-lambda 1e-2 rna-window 2", 2)},
	{name: "gradients", net: "small-norm", epochs: 5, batches: 3, val: true, skips: 8, resume: 7,
		hook: of("rna-residual gradients rna-lambda 1e-3 rna-bn combine", 2)},
	{name: "gradients-online", net: "small-plain", epochs: 5, batches: 4, val: true, skips: 5, resume: 11,
		hook: of("rna online rna-residual gradients rna-segment-means true rna-beta 0.5 rna-lambda 1e-2 rna-per-epoch 2",
			2, 3)},
	{name: "every", net: "small-plain", epochs: 8, batches: 1, val: true, ends: 6,
		hook: of("rna online rna-every 3 rna-lambda 1e-2 rna-start 1", 2)},
	{name: "again", net: "small-norm", epochs: 5, batches: 2, val: true, again: 4, hook: of("rna-lambda 1e-2", 2)},
	{name: "unscored", net: "small-norm", epochs: 4, batches: 1, hook: of("rna-lambda 1e-2", 2)},
	{name: "still", net: "small-plain", epochs: 4, batches: 1, val: true,
		weights: func(int) float64 { return 0 }, hook: of("rna online", 2)},
	{name: "still-search", net: "small-plain", epochs: 4, batches: 1, val: true, held: true,
		weights: func(int) float64 { return 0 }, hook: of("rna online rna-lambda auto", 2)},
	{name: "far", net: "small-plain", epochs: 6, batches: 1, val: true,
		hook:    of("rna online rna-lambda 1e-2 rna-start 1", 2),
		weights: func(epoch int) float64 { return []float64{1, 2, 1e200, 1.7e308, -1.7e308, 1}[epoch-1] }},
	{name: "far-search", net: "small-plain", epochs: 4, batches: 1, held: true, hook: of("rna-lambda auto rna-start 1", 2),
		weights: func(epoch int) float64 { return []float64{1, 1e170, 1e165, 2}[epoch-1] }},
	{name: "clipped", net: "small-norm", epochs: 5, batches: 16, val: true, hook: of("rna-lambda 1e-4 rna-bn combine"),
		weights: func(epoch int) float64 { return math.Ldexp(16, -epoch) }},
	{name: "not-finite", net: "small-plain", epochs: 3, batches: 3, val: true, hook: of("rna-per-epoch 3 rna-start 1"),
		weights: func(epoch int) float64 { return []float64{1, 2, math.Inf(1)}[epoch-1] }},
	{name: "ema", net: "small-norm", epochs: 3, batches: 2, val: true, resume: 1,
		hook: func() averaging { return average.NewEMA([]float64{12}, 1) }},
	{name: "emas", net: "small-plain", epochs: 5, batches: 2, held: true, resume: 4,
		hook: func() averaging { return average.NewEMA([]float64{1, 5.5, 12}, 2) }},
	{name: "ema-decay", net: "small-norm", epochs: 4, batches: 5, stepBatches: 2, val: true, held: true, resume: 7,
		schedule: schedule.Schedule{Kind: schedule.Cosine, By: schedule.ByStep, Rate: 0.1, WarmupSteps: 4},
		hook:     func() averaging { return average.NewDecayEMA(0.75, 2) }},
	{name: "ema-decay-epochs", net: "small-plain", epochs: 4, batches: 3, stepBatches: 2, val: true,
		schedule: schedule.Schedule{Kind: schedule.Cosine, Rate: 0.1, Warmup: 2},
		hook:     func() averaging { return average.NewDecayEMA(0.9, 1) }},
}

// TestPlays compares all that the hooks make of scripted runs with the golden files. A resumed run makes the same.
func TestPlays(t *testing.T) {
	for _, c := range plays {
		t.Run(c.name, func(t *testing.T) {
			g := &stage{T: t}
			text, err := g.play(c, 0)
			if err != nil {
				text += fmt.Sprintf("error: %v\n", err)
			}
			golden.Numbers(t, c.name+".txt", text)
			if c.resume == 0 {
				return
			}
			c.resume = 0
			if whole, err := g.play(c, 0); err != nil || whole != text {
				t.Errorf("resumed the run makes\n%s, else\n%s, %v", text, whole, err)
			}
		})
	}
}

// TestFaults lets each call of short runs fail in turn, of the run, of the device and of its vectors.
func TestFaults(t *testing.T) {
	g := &stage{T: t}
	var text strings.Builder
	for _, x := range []struct {
		name   string
		epochs int
	}{{"combine", 4}, {"accept-norm", 5}, {"search", 4}, {"gradients", 3}, {"gradients-online", 3}, {"means", 2},
		{"emas", 3}, {"ema", 2}} {
		c := plays[slices.IndexFunc(plays, func(c play) bool { return c.name == x.name })]
		c.epochs = x.epochs
		fmt.Fprintf(&text, "%s\n", c.name)
		for k := 1; ; k++ {
			_, err := g.play(c, k)
			if g.faults.What == "" {
				break
			}
			fmt.Fprintf(&text, "  %s: %v\n", g.faults.What, err)
		}
	}
	golden.Numbers(t, "faults.txt", text.String())
}

// random is the part of a temporary file's name that differs.
var random = regexp.MustCompile(`\.[0-9a-f]{8}:`)

// TestOpenings compares the errors of hooks that a run opens or loads with options or state that do not fit.
func TestOpenings(t *testing.T) {
	g := &stage{T: t}
	var text strings.Builder
	say := func(what string, err error, dir string) {
		fmt.Fprintf(&text, "%s: %s\n", what, random.ReplaceAllString(strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"), ":"))
	}
	// A hook in the middle of an epoch, and the folder and small part of its state.
	made := func(name string, h averaging) (*hook.State, string, json.RawMessage) {
		r := g.script(play{net: name, epochs: 5, batches: 4, val: true}, 0)
		s := r.state()
		if err := h.Open(s); err != nil {
			t.Fatal(err)
		}
		for s.Steps < 18 {
			if s.Batch %= s.Batches; s.Batch == 0 {
				s.Epoch++
			}
			s.Record = &hook.EpochRecord{}
			err := r.advance(s, h)
			if err == nil && s.Batch == s.Batches {
				err = h.AfterEpoch(t.Context(), s)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		dir := t.TempDir()
		small, err := h.Save(s, dir)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "file")
		traintest.Put(t, file, nil)
		_, err = h.Save(s, file)
		say(h.Name()+" in a file for a folder", err, file)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		return s, dir, small
	}
	load := func(what string, s *hook.State, h averaging, dir string, small json.RawMessage) {
		t.Helper()
		if err := h.Open(s); err != nil {
			t.Fatal(err)
		}
		say(what, h.Load(s, dir, small), dir)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name, net, settings string
		others              []string
	}{
		{"means", "small-plain", "rna-segment-means true", []string{"", "rna-window 4",
			"rna-per-epoch 2 rna-segment-means true", "rna-segment-means true rna-residual gradients",
			"rna online rna-segment-means true"}},
		{"gradients", "small-norm", "rna-residual gradients rna-bn combine", []string{"rna-bn combine",
			"rna-residual gradients", "rna-residual gradients rna-segment-means true"}},
		{"means alone", "small-plain", "rna-segment-means true rna-start 5", nil},
		{"parts", "small-norm", "rna-bn combine rna-per-epoch 2", []string{"", "rna-per-epoch 2 rna-segment-means true"}},
	} {
		fmt.Fprintf(&text, "\n%s\n", c.name)
		s, dir, small := made(c.net, of(c.settings)())
		load("itself", s, of(c.settings)(), dir, small)
		for _, other := range c.others {
			load("by "+other, s, of(other)(), dir, small)
		}
		load("no JSON", s, of(c.settings)(), dir, json.RawMessage("{"))
		for _, change := range [][2]string{{`"n":3`, `"n":4`}, {`"version":1`, `"version":9`}, {`"stats":[[`, `"stats":[[1,`},
			{`"stats":[[`, `"none":[[`}, {`"vectors":`, `"vectors":1`}, {`"tail":`, `"tail":7`}, {`"mean":`, `"none":`}} {
			if changed := strings.Replace(string(small), change[0], change[1], 1); changed != string(small) {
				load("with "+change[1], s, of(c.settings)(), dir, json.RawMessage(changed))
			}
		}
		for _, name := range files(t, dir) {
			path, away := filepath.Join(dir, name), filepath.Join(dir, "away")
			if err := os.Rename(path, away); err != nil {
				t.Fatal(err)
			}
			load("without "+name, s, of(c.settings)(), dir, small)
			if err := os.Rename(away, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	fmt.Fprintf(&text, "\nema\n")
	s, dir, small := made("small-plain", average.NewEMA([]float64{5, 12}, 2))
	for _, c := range []struct {
		what  string
		hook  averaging
		small string
	}{
		{"itself", average.NewEMA([]float64{5, 12}, 3), string(small)},
		{"one", average.NewEMA([]float64{12}, 3), string(small)},
		{"others", average.NewEMA([]float64{12, 5}, 3), string(small)},
		{"three", average.NewEMA([]float64{1, 5, 12}, 3), string(small)},
		{"a decay", average.NewDecayEMA(0.9, 2), string(small)},
		{"a decay of a decay", average.NewDecayEMA(0.9, 2), `{"decay":0.9,"every":3}`},
		{"a decay of another", average.NewDecayEMA(0.9, 2), `{"decay":0.8,"every":2}`},
		{"a decay of the same", average.NewDecayEMA(0.9, 2), `{"decay":0.9,"every":2}`},
		{"a number", average.NewEMA([]float64{12}, 3), `12`},
		{"another number", average.NewEMA([]float64{12}, 3), `5`},
		{"a text", average.NewEMA([]float64{12}, 3), `"x"`},
	} {
		load(c.what, s, c.hook, dir, json.RawMessage(c.small))
	}
	load("another folder", s, average.NewEMA([]float64{5, 12}, 3), filepath.Join(dir, "none"), small)
	s.Steps = 0
	load("before the first step", s, average.NewEMA([]float64{5, 12}, 3), filepath.Join(dir, "none"), small)

	fmt.Fprintf(&text, "\nsnapshots of an epoch\n")
	for _, c := range []struct{ perEpoch, batches, step int }{{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {3, 2, 1}, {2, 5, 2},
		{3, 5, 2}, {4, 5, 2}, {1, 1, 4}, {2, 3, 4}} {
		s := g.script(play{net: "small-plain", batches: c.batches, stepBatches: c.step}, 0).state()
		h := of(fmt.Sprintf("rna-per-epoch %d", c.perEpoch))()
		say(fmt.Sprintf("%d of %d batches, %d a step", c.perEpoch, c.batches, c.step), h.Open(s), dir)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []int{0, 1025} {
		s := g.script(play{net: "small-plain", batches: 1}, 0).state()
		say(fmt.Sprintf("a window of %d", n), average.NewRNA(average.Options{Window: n}).Open(s), dir)
	}
	golden.Check(t, "openings.txt", text.String())
}

// TestOptionTexts compares the options' descriptions, values, errors, defaults and limits.
func TestOptionTexts(t *testing.T) {
	var text strings.Builder
	texts := strings.Fields("0 1 -1 2 100 101 0.5 1e-9 -1e-9 inf nan auto true 2,100 5,1 x")
	for _, o := range average.Table {
		fmt.Fprintf(&text, "%s, %s: %s\n", o.Name, o.Type(), o.Usage())
		if o.Values != nil {
			fmt.Fprintf(&text, "  values %v, others %v\n", o.Values(), o.Open)
		}
		fmt.Fprintf(&text, "  clears %v\n", o.Clears)
		list := texts
		if o.Values != nil && !o.Open {
			list = append([]string{"x"}, o.Values()...)
		}
		for _, x := range list {
			var c average.Options
			err := o.Set(&c, x)
			was := o.Text(&c)
			set := o.IsSet(&c)
			o.Unset(&c)
			fmt.Fprintf(&text, "  %s: %q %v, error %v; unset %q\n", x, was, set, err, o.Text(&c))
		}
	}
	number := func(x float64) *float64 { return &x }
	sets := []average.Options{
		{},
		{Mode: average.Online, Accept: true},
		{Accept: true},
		{Mode: average.Off, Accept: true},
		{Tau: number(0.1)},
		{Tau: number(0.1), Lambda: number(1e-3)},
		{Tau: number(0.1), Search: true},
		{Search: true},
		{Search: true, Lambda: number(1e-3)},
		{Search: true, Stats: average.Combine},
		{Lambda: number(0.01), Stats: average.Combine, Residual: average.Gradients, Start: 4},
		{Residual: average.Gradients, Beta: number(0.5), PerEpoch: 2, Averages: []int{}},
		{PerEpoch: 3, Window: 7, Averages: []int{2, 9, 5}, Every: 4, Batches: 7, Momentum: average.Keep, Start: 1},
		{PerEpoch: 5, SegmentMeans: true, Mode: average.Online, Residual: average.Gradients, Averages: []int{100}},
	}
	for i, o := range sets {
		for k, c := range []struct {
			epochs, window int
			averages       []int
		}{{7, 0, nil}, {1, 0, []int{4}}, {19, 0, []int{}}, {40, 5, nil}} {
			if i > 0 && k > 1 {
				continue
			}
			r := o
			r.Resolve(c.epochs, c.window, c.averages)
			fmt.Fprintf(&text, "\noptions %d of %d epochs, window %d, averages %v: %s\n", i, c.epochs, c.window, c.averages,
				strings.Join(strings.Split(strings.TrimSpace(traintest.Lines(t, r)), "\n"), "; "))
			fmt.Fprintf(&text, "  %s; first extrapolation %d, capacity %d, holds %+v; error %v; held out %v\n", r.Rule(),
				r.FirstExtrapolation(), r.Capacity(), average.NewRNA(r).Holds(), r.Check(false), r.Check(true))
		}
		fmt.Fprintf(&text, "unresolved: %s; capacity %d; error %v; held out %v\n", o.Rule(), o.Capacity(), o.Check(false),
			o.Check(true))
	}
	golden.Check(t, "options.txt", text.String())
}
