package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"onlinerna/data"
	"onlinerna/internal/files"
	"onlinerna/internal/golden"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/merge"
	"onlinerna/train/network"
	"onlinerna/train/option"
)

// small is a run of a small net on a few glyphs.
func small(t testing.TB, settings string) train.Spec {
	t.Helper()
	traintest.Small()
	const usual = "batch 8  limit-batches 3  limit-val 2  seed 3  schedule constant  lr 0.5  momentum 0.3  rna off  " +
		"rna-bn-batches 2  keep-every 1  "
	return traintest.Spec(train.Options(), train.Spec{Out: filepath.Join(t.TempDir(), "run")},
		option.Settings(usual+settings))
}

// exact is a device whose results are the same on all processors but for the last digits.
func exact() device.Device { return device.NewReference(op.Float64) }

// described writes all that a replay makes.
func described(t *testing.T, r *Replay, keep string, res *Result) string {
	t.Helper()
	text := strings.NewReplacer(r.Dir, "RUN", keep, "KEEP").Replace(traintest.Lines(t, res))
	text = regexp.MustCompile(`A{8,}=*`).ReplaceAllString(text, "…")
	for _, c := range res.Curves {
		if c.File == "" {
			continue
		}
		meta, err := network.ReadMeta(c.File)
		if err != nil {
			t.Fatal(err)
		}
		params, stats := weights(t, r.Run.Net, c.File)
		text += fmt.Sprintf("%s: %s of epoch %d: %s | %s\n", filepath.Base(c.File), meta.Kind, meta.Epoch,
			traintest.Row(params), traintest.Row(stats))
	}
	return text
}

// all are options with each kind of curve.
func all() Options {
	return Options{Windows: []int{1, 3}, Lambdas: []Lambda{{Value: 1e-3}, {Auto: true}, {Value: math.Inf(1)}},
		Betas: []float64{1, .5}, Averages: []int{2, 4}, Decays: []float64{.5, .9},
		Profiles: []merge.Profile{{Gamma: 8}, {Schedule: "linear", Epochs: 2}, {Schedule: "1-sqrt", Epochs: 3.5}}}
}

// TestGolden compares all that replays make with the golden files.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		options        Options
		change         func(t testing.TB, r *train.Run, files []string)
	}{
		{name: "all", settings: "model small-norm  epochs 4  holdout 0.01  limit-val 6  lr 1  ema 5,12", options: all()},
		{name: "last", settings: "model small-norm  epochs 4", options: Options{Stats: Last, Windows: []int{2},
			Betas: []float64{.5}, Averages: []int{3}, Decays: []float64{.75}}},
		{name: "combine", settings: "model small-norm  epochs 4  rna-bn combine  holdout 0.005", options: Options{
			Windows: []int{3}, Lambdas: []Lambda{{Auto: true}, {Value: .01}}, Averages: []int{3}, Decays: []float64{.75}}},
		{name: "plain", settings: "model small-plain  epochs 6  keep-every 2  ema 3,7", options: Options{Windows: []int{2, 1},
			Averages: []int{2}, Profiles: []merge.Profile{{Gamma: .5}, {Gamma: 3}, {Schedule: "cosine", Epochs: 4}}}},
		{name: "online", settings: "model small-plain  epochs 3  rna online  rna-start 1", options: Options{
			Averages: []int{2}, Decays: []float64{.5}}},
		{name: "still", settings: "model small-plain  epochs 3  holdout 0.005", options: Options{Windows: []int{1, 2},
			Lambdas: []Lambda{{Value: 1e-9}, {Auto: true}, {Value: 0}}, Averages: []int{3}},
			change: func(t testing.TB, r *train.Run, files []string) { rewrite(t, r, files, 1, 1, 1) }},
		{name: "far", settings: "model small-plain  epochs 4  holdout 0.005", options: Options{Windows: []int{2},
			Lambdas: []Lambda{{Value: 1e-9}, {Auto: true}}, Averages: []int{2}, Decays: []float64{.5}},
			change: func(t testing.TB, r *train.Run, files []string) { rewrite(t, r, files, 1, 1e200, 6e307, 3) }},
		{name: "averaged", settings: "model small-plain  epochs 3  holdout 0.01", options: Options{Windows: []int{2},
			Lambdas: []Lambda{{Auto: true}}, Betas: []float64{1, .5}},
			change: func(t testing.TB, r *train.Run, files []string) { rewrite(t, r, files, 1, -8, 8) }},
		{name: "extrapolated", settings: "model small-plain  epochs 3  holdout 0.01", options: Options{Windows: []int{2},
			Lambdas: []Lambda{{Auto: true}}, Betas: []float64{1, .5}},
			change: func(t testing.TB, r *train.Run, files []string) { rewrite(t, r, files, 1, -4, 16) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := exact()
			spec := small(t, c.settings)
			trained(t, spec, dev)
			r, err := Open(spec.Out, train.Deps{Device: dev}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if c.change != nil {
				c.change(t, r.Run, r.files)
			}
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			c.options.Keep = filepath.Join(t.TempDir(), "keep", "points")
			text := ""
			c.options.Progress = func(epoch, done, of int) { text += fmt.Sprintf("epoch %d: %d of %d\n", epoch, done, of) }
			res, err := r.Curves(t.Context(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			golden.Numbers(t, c.name+".txt", text+described(t, r, c.options.Keep, res))
			if list := traintest.Files(t, temporary); len(list) > 0 {
				t.Errorf("temporary files %v", list)
			}
		})
	}
}

// rewrite replaces kept weights by multiples of each other's.
func rewrite(t testing.TB, r *train.Run, files []string, factors ...float64) {
	t.Helper()
	for i, path := range files {
		n := r.Net
		meta, err := n.LoadWeights(files[0])
		if err != nil {
			t.Fatal(err)
		}
		w := traintest.Numbers(t, n.Params)
		for k := range w {
			w[k] *= factors[i] / factors[0]
		}
		if err := errors.Join(n.Params.WriteAt64(w, 0), n.SaveWeights(path, n.Params, n.Stats, meta)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestErrors compares the errors of options, runs and files that do not fit.
func TestErrors(t *testing.T) {
	var text strings.Builder
	dev := exact()
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	unique := regexp.MustCompile(`rna-replay-\d+|\.[0-9a-f]{8}:`)
	keep := filepath.Join(t.TempDir(), "keep")
	say := func(what, dir string, err error) {
		hidden := strings.NewReplacer(dir, "RUN", temporary, "TMP", keep, "KEEP").Replace(fmt.Sprint(err))
		fmt.Fprintf(&text, "  %s: %s\n", what, unique.ReplaceAllString(hidden, "*"))
	}
	opened := func(spec train.Spec, deps train.Deps, adjust func(*train.Spec)) (*Replay, error) {
		deps.Device = dev
		r, err := Open(spec.Out, deps, adjust)
		if err == nil {
			t.Cleanup(func() { r.Close() })
		}
		return r, err
	}
	run := func(settings string) train.Spec {
		c := small(t, settings)
		trained(t, c, dev)
		return c
	}
	emas := run("model small-norm  epochs 3  holdout 0.002  ema 5,12")
	plain := run("model small-plain  epochs 4  keep-every 2")
	online := run("model small-plain  epochs 2  rna online")
	ctx := t.Context()
	fmt.Fprintf(&text, "others\n")
	none := run("model small-plain  epochs 1  keep-every 0")
	_, err := opened(none, train.Deps{}, nil)
	say("a run that kept nothing", none.Out, err)
	none.Out = t.TempDir()
	_, err = opened(none, train.Deps{}, nil)
	say("no run", none.Out, err)
	for _, c := range []struct {
		name string
		spec train.Spec
	}{{"averages kept", emas}, {"each second epoch", plain}, {"online", online}} {
		fmt.Fprintf(&text, "%s\n", c.name)
		r, err := opened(c.spec, train.Deps{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range []Options{
			{},
			{Stats: "none"},
			{Stats: Combine},
			{Windows: []int{0}}, {Windows: []int{101}}, {Windows: []int{1, 2}}, {Windows: []int{2, 3}}, {Windows: []int{100, 2}},
			{Averages: []int{1}}, {Averages: []int{1001}}, {Averages: []int{1000}}, {Averages: []int{2, 4, 3}},
			{Averages: []int{3}}, {Averages: []int{4}, Windows: []int{3}}, {Averages: []int{5}, Windows: []int{3}},
			{Lambdas: []Lambda{{Value: -1}}}, {Lambdas: []Lambda{{Value: math.NaN()}}}, {Lambdas: []Lambda{{Auto: true}}},
			{Lambdas: []Lambda{{Auto: true, Value: -1}}, Windows: []int{1}}, {Lambdas: []Lambda{}, Windows: []int{1}},
			{Betas: []float64{1, math.NaN()}}, {Betas: []float64{math.Inf(1)}}, {Betas: []float64{}, Windows: []int{1}},
			{Decays: []float64{0}}, {Decays: []float64{.5, 1}}, {Decays: []float64{-.5}}, {Decays: []float64{math.NaN()}},
			{Profiles: []merge.Profile{{Gamma: 8}}}, {Profiles: []merge.Profile{{Schedule: "linear", Epochs: 3}}},
			{Profiles: []merge.Profile{{Schedule: "linear", Epochs: 3.5}}},
			{Profiles: []merge.Profile{{Schedule: "x", Epochs: 1}}},
			{Keep: filepath.Join(c.spec.Out, "config.json")},
		} {
			_, err := r.Curves(ctx, o)
			say(fmt.Sprintf("options %d", i), c.spec.Out, err)
		}
	}
	fmt.Fprintf(&text, "adjusted\n")
	auto := Options{Windows: []int{1}, Lambdas: []Lambda{{Auto: true}}}
	for i, adjust := range []func(*train.Spec){
		func(c *train.Spec) { c.Model = "small-plain" },
		func(c *train.Spec) { c.Data = "nowhere" },
		func(c *train.Spec) { c.EMA, c.EMADecay, c.EMAEvery = nil, 0.9, 7 },
		func(c *train.Spec) { c.Init, c.InitKey, c.KeepEvery, c.KeepBest = "lost", "x", 3, 2 },
		func(c *train.Spec) {
			c.Teacher, c.TeacherAlpha, c.TeacherTemperature, c.TensorBoard = "lost", .5, 2, true
		},
		func(c *train.Spec) { c.Holdout = 0 },
	} {
		r, err := opened(emas, train.Deps{}, adjust)
		if err == nil {
			_, err = r.Curves(ctx, auto)
		}
		say(fmt.Sprintf("change %d", i), emas.Out, err)
	}
	r, err := opened(plain, train.Deps{Train: data.Glyphs(0)}, nil)
	if err == nil {
		_, err = r.Curves(ctx, Options{})
	}
	say("no images to score on", plain.Out, err)

	if r, err = opened(emas, train.Deps{}, nil); err != nil {
		t.Fatal(err)
	}
	kept := func(name string) string { return filepath.Join(emas.Out, "kept", name+".safetensors") }
	scratch := func() string {
		list, err := filepath.Glob(filepath.Join(temporary, "rna-replay-*"))
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	for _, damage := range []struct {
		name string
		file string // of the run that is damaged, "" for none
		do   func(file string) error
	}{
		{"no file", "epoch-0002", os.Remove},
		{"a part of a file", "epoch-0002", func(file string) error { return os.Truncate(file, 200) }},
		{"no former file", "epoch-0001", os.Remove},
		{"not a number in a former file", "epoch-0001", func(file string) error {
			meta, err := r.Run.Net.LoadWeights(file)
			if err == nil {
				err = r.Run.Net.Params.Fill(math.NaN())
			}
			return errors.Join(err, r.Run.Net.SaveWeights(file, r.Run.Net.Params, r.Run.Net.Stats, meta))
		}},
		{"no power average", "epoch-0001-ema-12", os.Remove},
		{"a part of a power average", "epoch-0002-ema-5", func(file string) error { return os.Truncate(file, 200) }},
		{"an iterate for a power average", "epoch-0002-ema-5", func(file string) error {
			return files.Copy(file, kept("epoch-0002"))
		}},
		{"no temporary folder", "", func(string) error { return os.RemoveAll(scratch()) }},
		{"a folder for a point", "", func(string) error {
			return errors.Join(os.RemoveAll(filepath.Join(scratch(), "point.safetensors")),
				os.MkdirAll(filepath.Join(scratch(), "point.safetensors", "x"), 0o755))
		}},
		{"a folder for a moving average", "", func(string) error {
			return errors.Join(os.RemoveAll(filepath.Join(scratch(), "next.safetensors")),
				os.MkdirAll(filepath.Join(scratch(), "next.safetensors", "x"), 0o755))
		}},
		{"a file for the kept points", "", func(string) error {
			return errors.Join(os.RemoveAll(keep), os.WriteFile(keep, nil, 0o644))
		}},
	} {
		fmt.Fprintf(&text, "%s\n", damage.name)
		for i, o := range []Options{{}, {Averages: []int{2}}, {Decays: []float64{.5}}, {Windows: []int{1}}, auto,
			{Profiles: []merge.Profile{{Gamma: 5}}}} {
			was, err := os.ReadFile(kept("epoch-0001"))
			if damage.file != "" {
				was, err = os.ReadFile(kept(damage.file))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(keep); err != nil {
				t.Fatal(err)
			}
			o.Keep = keep
			o.Progress = func(epoch, _, _ int) {
				if epoch == 2 {
					if err := damage.do(kept(damage.file)); err != nil {
						t.Error(err)
					}
				}
			}
			_, err = r.Curves(ctx, o)
			say(fmt.Sprintf("curves %d", i), emas.Out, err)
			if damage.file != "" {
				if err := os.WriteFile(kept(damage.file), was, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	fmt.Fprintf(&text, "a context that ends\n")
	last := ""
	for k := int64(0); last != "<nil>"; k++ {
		ends := &ending{Context: ctx}
		ends.left.Store(k)
		_, err = r.Curves(ends, Options{Windows: []int{2}, Averages: []int{3}, Decays: []float64{.5},
			Profiles: []merge.Profile{{Schedule: "linear", Epochs: 3}}})
		if got := fmt.Sprint(err); got != last {
			say("then", emas.Out, err)
			last = got
		}
	}
	golden.Numbers(t, "errors.txt", text.String())
}

// ending is a context that ends when it has been asked a number of times.
type ending struct {
	context.Context
	left atomic.Int64
}

func (c *ending) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}
