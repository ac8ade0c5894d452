package replay

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/extrapolate"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/merge"
	"onlinerna/train/network"
)

// trained runs a training, closes it and returns its records.
func trained(t *testing.T, c train.Spec, dev device.Device) []hook.EpochRecord {
	t.Helper()
	r, err := train.New(c, train.Deps{Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r.History
}

func replayed(t *testing.T, dir string, dev device.Device, o Options) *Result {
	t.Helper()
	r, err := Open(dir, train.Deps{Device: dev}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	res, err := r.Curves(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// weights reads the tensors in a file of the run's net.
func weights(t *testing.T, net *network.Network, path string) (params, stats []float64) {
	t.Helper()
	if _, err := net.LoadWeights(path); err != nil {
		t.Fatal(err)
	}
	if net.Stats != nil {
		stats = traintest.Numbers(t, net.Stats)
	}
	return traintest.Numbers(t, net.Params), stats
}

// TestRebuild: two kept EMAs give the EMA of a run with another exponent, and the mean of the iterates of the last
// epochs, but for the distance of the fit.
func TestRebuild(t *testing.T) {
	dev := traintest.CPU(t, 2)
	c := traintest.Spec(train.Options(), train.Spec{Out: filepath.Join(t.TempDir(), "run")}, traintest.Tiny)
	c.Epochs, c.StepsLimit, c.EMA, c.KeepEvery, c.RNA.Mode = 6, 5, []float64{5, 12}, 1, average.Off
	var iterates [][]float64
	power := func(gamma float64) (x []float64) {
		for s, w := range iterates {
			if x == nil {
				x = make([]float64, len(w))
			}
			for i := range w {
				x[i] += (gamma + 1) / (float64(s+1) + gamma) * (w[i] - x[i])
			}
		}
		return x
	}
	r, err := train.New(c, train.Deps{Device: dev, Hooks: []hook.Hook{traintest.Watch{Step: func(s *hook.State) error {
		iterates = append(iterates, traintest.Numbers(t, s.Net.Params))
		return nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Close()
	o := Options{Profiles: []merge.Profile{{Gamma: 12}, {Gamma: 8}, {Schedule: "linear", Epochs: 3}},
		Keep: filepath.Join(t.TempDir(), "points")}
	res := replayed(t, c.Out, dev, o)
	last := iterates[len(iterates)-15:]
	wanted := [][]float64{power(12), power(8), traintest.Mean(traintest.Uniform(15), last)}
	net, err := network.New(dev, "lenet", r.Net.Model().Config, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	for i, k := range res.Curves[1:] {
		first := 1
		if k.WSM != "" {
			first = 3
		}
		if len(k.Points) != 7-first || k.Points[0].Epoch != first {
			t.Fatalf("%s: %+v", k.Name, k.Points)
		}
		p := k.Points[len(k.Points)-1]
		if p.Fit == nil || p.Val == nil || *p.Fit > .2 || i == 0 && *p.Fit > 1e-6 {
			t.Fatalf("%s: %+v", k.Name, p)
		}
		got, _ := weights(t, net, k.File)
		far, moved := 0.0, 0.0
		for j, v := range wanted[i] {
			far += (got[j] - v) * (got[j] - v)
			moved += (iterates[len(iterates)-1][j] - v) * (iterates[len(iterates)-1][j] - v)
		}
		if far := math.Sqrt(far / moved); far > .1 || i == 0 && far > 1e-4 {
			t.Errorf("%s: %v of the distance to the iterate away, fit %v", k.Name, far, *p.Fit)
		}
	}
	if got := res.Curves[3]; got.Name != "WSM linear of 3 epochs" || got.WSM != "linear:3" ||
		filepath.Base(got.File) != "wsm-linear3.safetensors" || filepath.Base(res.Curves[2].File) != "power-ema8.safetensors" {
		t.Errorf("%+v", got)
	}
	again, err := Open(c.Out, train.Deps{Device: dev}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Curves(t.Context(), Options{Profiles: []merge.Profile{{Schedule: "linear", Epochs: 7}}}); err == nil ||
		!strings.Contains(err.Error(), "has 6 epochs") {
		t.Error(err)
	}
	again.Config.EMA = nil
	if _, err := again.Curves(t.Context(), Options{Profiles: []merge.Profile{{Gamma: 8}}}); err == nil ||
		!strings.Contains(err.Error(), "--ema 5,12 --keep-every 1") {
		t.Error(err)
	}
}

// TestAsTrained: the training's parameters reproduce its points, with their statistics and scores, whatever other
// curves are computed.
func TestAsTrained(t *testing.T) {
	dev := traintest.CPU(t, 2)
	pictures := traintest.Pictures(t, 24, 6, 16)
	lambda := 1e-3
	for _, x := range []struct {
		name string
		rna  average.Options
	}{
		{"reestimate", average.Options{Window: 3, Lambda: &lambda, Averages: []int{2}, Batches: 2}},
		{"combine", average.Options{Window: 3, Lambda: &lambda, Averages: []int{2}, Stats: average.Combine}},
		{"auto", average.Options{Window: 3, Search: true, Averages: []int{2}, Batches: 2}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := traintest.Spec(train.Options(), train.Spec{Out: filepath.Join(t.TempDir(), "run"), Data: pictures},
				traintest.TinyColour)
			c.RNA, c.KeepEvery, c.KeepBest, c.Holdout = x.rna, 1, 1, 0.2
			history := trained(t, c, dev)
			o := Options{Windows: []int{2, 3}, Lambdas: []Lambda{{Value: lambda}}, Averages: []int{2}, Decays: []float64{0.75},
				Keep: filepath.Join(t.TempDir(), "points")}
			if x.rna.Search {
				o.Lambdas = []Lambda{{Auto: true}}
			}
			res := replayed(t, c.Out, dev, o)
			byName := map[string]*Curve{}
			for _, k := range res.Curves {
				byName[k.Name] = k
			}
			same := func(name string, want func(hook.EpochRecord) *network.Score, first int) *Curve {
				k := byName[name]
				if k == nil || len(k.Points) != len(history)-first+1 {
					t.Fatalf("%s: %+v", name, k)
				}
				for _, p := range k.Points {
					w := want(history[p.Epoch-1])
					if w == nil || p.Val == nil || p.Held == nil || math.Abs(p.Val.Loss-w.Loss) > 1e-5*w.Loss ||
						p.Val.Images != w.Images {
						t.Errorf("%s, epoch %d: %+v, in training %+v", name, p.Epoch, p.Val, w)
					}
				}
				return k
			}
			same("SGD", func(r hook.EpochRecord) *network.Score { return r.SGD }, 1)
			same("average of 2", func(r hook.EpochRecord) *network.Score {
				if len(r.Averages) == 0 { // training starts later
					return byName["average of 2"].Points[r.Epoch-2].Val
				}
				return &r.Averages[0].Score
			}, 2)
			rna := byName["RNA of 3, lambda "+map[bool]string{false: "0.001", true: "auto"}[x.rna.Search]]
			last, want := rna.Points[len(rna.Points)-1], history[len(history)-1].RNA
			if len(rna.Points) != 2 || len(last.C) != len(want.C) || last.Choice != want.Choice {
				t.Fatalf("%+v, in training %+v", rna.Points, want)
			}
			if (last.Lambda == nil) != (want.Lambda == nil) || want.Lambda != nil && *last.Lambda != *want.Lambda ||
				!x.rna.Search && last.Lambda == nil {
				t.Errorf("lambda %v, in training %v", last.Lambda, want.Lambda)
			}
			for j, v := range want.C {
				if math.Abs(last.C[j]-v) > 1e-9*want.NormC {
					t.Errorf("c is %v, in training %v", last.C, want.C)
				}
			}
			if s := want.Score; math.Abs(last.Val.Loss-s.Loss) > 1e-5*s.Loss {
				t.Errorf("score %+v, in training %+v", last.Val, s)
			}
			r, err := Open(c.Out, train.Deps{Device: dev}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if x.name == "auto" {
				searched(t, r, o, rna, want.Candidates)
			}
			if x.name == "combine" != (res.Stats == Combine) {
				t.Errorf("statistics %q", res.Stats)
			}
			if x.name == "reestimate" {
				same("SGD, BatchNorm recalibrated", func(r hook.EpochRecord) *network.Score {
					if r.SGDStats == nil { // RNA starts later
						return byName["SGD, BatchNorm recalibrated"].Points[r.Epoch-1].Val
					}
					return r.SGDStats
				}, 1)
			}
			params, stats := weights(t, r.Run.Net, rna.File)
			wantParams, wantStats := weights(t, r.Run.Net, filepath.Join(c.Out, "rna.safetensors"))
			traintest.Near(t, "weights", params, wantParams, 0x1p-23)
			traintest.Near(t, "statistics", stats, wantStats, 1e-5)
			// The moving average, by hand.
			var ema []float64
			for i, path := range r.files {
				w, _ := weights(t, r.Run.Net, path)
				for j := range w {
					if i > 0 {
						w[j] = 0.25*w[j] + 0.75*ema[j]
					}
				}
				ema = w
			}
			got, _ := weights(t, r.Run.Net, byName["EMA 0.75"].File)
			traintest.Near(t, "EMA", got, ema, 1e-6)
		})
	}
}

// searched checks that a search reproduces the run's held-out losses, for differing candidates.
func searched(t *testing.T, r *Replay, o Options, c *Curve, want []hook.CandidateRecord) {
	t.Helper()
	if err := r.check(&o); err != nil {
		t.Fatal(err)
	}
	last := len(r.files) - 1
	s := &step{r, o, r.Run.At(r.epochs[last]), t.TempDir(), last}
	err := s.with(r.files[last-c.Window:], func(series *extrapolate.Series) error {
		if err := series.Measure(t.Context()); err != nil {
			return err
		}
		choice, err := s.search(t.Context(), series, c, func(coef []float64) []float64 {
			all := make([]float64, len(series.Pairs()))
			copy(all[len(all)-len(coef):], coef)
			return series.Weights(all, *c.Beta)
		})
		if err != nil {
			return err
		}
		if len(choice.Candidates) != len(want) || choice.Candidates[0].Value == choice.Candidates[1].Value {
			t.Fatalf("%d candidates, in training %d", len(choice.Candidates), len(want))
		}
		for i, x := range choice.Candidates {
			if w := want[i]; w.Loss == nil || math.Abs(x.Value-*w.Loss) > 1e-5**w.Loss || x.Kind.String() != w.Kind {
				t.Errorf("candidate %d: %v with loss %g, in training %+v", i, x.Kind, x.Value, w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A run with TensorBoard files can be replayed.
func TestTensorBoard(t *testing.T) {
	dev := traintest.CPU(t, 1)
	c := traintest.Spec(train.Options(), train.Spec{Out: filepath.Join(t.TempDir(), "run")}, traintest.Tiny)
	c.Epochs, c.KeepEvery, c.TensorBoard = 2, 1, true
	trained(t, c, dev)
	if res := replayed(t, c.Out, dev, Options{Averages: []int{2}}); len(res.Epochs) != 2 {
		t.Errorf("%+v", res)
	}
	if all, err := filepath.Glob(filepath.Join(c.Out, "events.*")); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestNoFiniteLoss: a point so far away that its loss overflows has the reason in place of scores, with and without
// held-out images; other curves have theirs.
func TestNoFiniteLoss(t *testing.T) {
	dev := traintest.CPU(t, 2)
	for _, holdout := range []float64{0, 0.02} {
		c := traintest.Spec(train.Options(), train.Spec{Out: filepath.Join(t.TempDir(), "run")}, traintest.Tiny)
		c.Epochs, c.RNA.Mode, c.KeepEvery, c.Holdout = 3, average.Off, 1, holdout
		trained(t, c, dev)
		res := replayed(t, c.Out, dev, Options{Windows: []int{2}, Betas: []float64{1e30, 1}})
		far, near := res.Curves[1].Points[0], res.Curves[2].Points[0]
		if far.Val != nil || far.Held != nil || far.Status != "the weights give no finite loss" || len(far.C) != 2 {
			t.Errorf("held out %g: %+v", holdout, far)
		}
		if near.Val == nil || (near.Held == nil) != (holdout == 0) || near.Status != "" {
			t.Errorf("held out %g: %+v", holdout, near)
		}
	}
}

// TestGivenImages replays a run on images of a program's, which the run has no place of.
func TestGivenImages(t *testing.T) {
	set, val, err := data.Open("glyphs", data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	deps := train.Deps{Device: traintest.CPU(t, 1), Train: set, Val: val}
	c := traintest.Spec(train.Options(), train.Spec{Out: filepath.Join(t.TempDir(), "run")}, traintest.Tiny)
	c.Epochs, c.KeepEvery = 2, 1
	run, err := train.New(c, deps)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	// A replay needs neither the run's initial weights nor its teacher, and keeps no averages.
	r, err := Open(c.Out, deps, func(c *train.Spec) {
		c.Init, c.Teacher, c.TeacherAlpha, c.TeacherTemperature = "lost.safetensors", "lost.safetensors", .5, 1
		c.EMA = []float64{5, 12}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var seen [][3]int
	res, err := r.Curves(context.Background(), Options{Averages: []int{2}, Windows: []int{1},
		Lambdas:  []Lambda{{Value: math.Inf(1)}, {Value: .5}},
		Progress: func(epoch, i, of int) { seen = append(seen, [3]int{epoch, i, of}) }})
	if err != nil || res.Curves[0].Points[1].Val == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if !slices.Equal(seen, [][3]int{{1, 0, 2}, {2, 1, 2}}) {
		t.Errorf("progress %v", seen)
	}
	if average, half := res.Curves[1].Points[0].Lambda, res.Curves[2].Points[0].Lambda; average != nil || half == nil ||
		*half != .5 {
		t.Errorf("lambda %v of %s, %v of %s", average, res.Curves[1].Name, half, res.Curves[2].Name)
	}
	const links = "/proc/self/fd"
	list, err := os.ReadDir(links)
	if err != nil {
		t.Skip(err)
	}
	for _, f := range list {
		if to, err := os.Readlink(filepath.Join(links, f.Name())); err == nil && strings.HasSuffix(to, ".safetensors") {
			t.Errorf("%s stays open", to)
		}
	}
}

func TestMistakes(t *testing.T) {
	dev := traintest.CPU(t, 2)
	dir := filepath.Join(t.TempDir(), "run")
	c := traintest.Spec(train.Options(), train.Spec{Out: dir}, traintest.Tiny)
	c.Epochs, c.RNA.Mode = 3, average.Online
	trained(t, c, dev)
	refused := func(want string, o Options) {
		t.Helper()
		r, err := Open(dir, train.Deps{Device: dev}, nil)
		if err == nil {
			defer r.Close()
			_, err = r.Curves(t.Context(), o)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	refused("rna train --keep-every 1", Options{})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	c.KeepEvery = 1
	trained(t, c, dev)
	refused("were put back", Options{Windows: []int{2}})
	refused("window 3 needs 4 snapshots", Options{Windows: []int{3}})
	refused("window 3 needs 4 snapshots", Options{Windows: []int{2, 3}})
	refused("average of 4 needs 4 snapshots", Options{Averages: []int{4}})
	refused("held-out images", Options{Windows: []int{2}, Lambdas: []Lambda{{Auto: true}}})
	refused("between 0 and 1", Options{Decays: []float64{1}})
	refused("between 0 and 1", Options{Decays: []float64{0}})
	refused("lambda -1: must be 0 or more", Options{Lambdas: []Lambda{{Value: -1}}})
	for _, n := range []int{0, 101} {
		refused("between 1 and 100 residuals", Options{Windows: []int{n}})
	}
	refused("window 100 needs 101 snapshots", Options{Windows: []int{100}})
	refused("window 100 needs 101 snapshots", Options{Windows: []int{100}, Averages: []int{101}})
	for _, n := range []int{1, 1001} {
		refused("between 2 and 1000", Options{Averages: []int{n}})
	}
	refused("average of 1000 needs 1000", Options{Averages: []int{1000}})
	refused("must be finite", Options{Betas: []float64{math.Inf(-1)}})
	refused("must be finite", Options{Betas: []float64{math.Inf(1)}})
	names := ""
	for _, c := range (&Replay{Run: &train.Run{}}).curves(Options{Windows: []int{2}, Betas: []float64{1, .5}, Stats: Last,
		Lambdas: []Lambda{{Value: math.Inf(1)}, {Value: .5}, {Auto: true}}})[1:] {
		names += c.Name + ": " + c.fileName() + "\n"
	}
	if want := `RNA of 2, lambda inf, beta 1: rna-window2-lambdainf-beta1.safetensors
RNA of 2, lambda inf, beta 0.5: rna-window2-lambdainf-beta0.5.safetensors
RNA of 2, lambda 0.5, beta 1: rna-window2-lambda0.5-beta1.safetensors
RNA of 2, lambda 0.5, beta 0.5: rna-window2-lambda0.5-beta0.5.safetensors
RNA of 2, lambda auto, beta 1: rna-window2-lambdaauto-beta1.safetensors
RNA of 2, lambda auto, beta 0.5: rna-window2-lambdaauto-beta0.5.safetensors
`; names != want {
		t.Errorf("curves\n%swant\n%s", names, want)
	}
	refused("unknown way", Options{Stats: "none"})
	if res := replayed(t, dir, dev, Options{Averages: []int{3}, Decays: []float64{0.9}}); len(res.Curves) != 3 ||
		len(res.Curves[1].Points) != 1 || len(res.Curves[2].Points) != 3 {
		t.Errorf("%+v", res.Curves)
	}
	if err := os.Remove(filepath.Join(dir, "kept", "epoch-0002.safetensors")); err != nil {
		t.Fatal(err)
	}
	refused("epoch-0002.safetensors is missing", Options{})
}
