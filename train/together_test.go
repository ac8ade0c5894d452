package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
	"onlinerna/train/schedule"
)

// outcome holds the results of a run.
type outcome struct {
	losses  []float64 // one per step
	history []hook.EpochRecord
	params  []float64
	err     error
}

// runOn runs a config on a device; adjust, if not nil, may change the run before it trains.
func runOn(ctx context.Context, c Spec, dev device.Device, g *ranks.Group, adjust func(*Run),
	hooks ...hook.Hook) (o outcome) {
	hooks = append(hooks, watch{Step: func(s *hook.State) error { o.losses = append(o.losses, s.Step.Loss); return nil }})
	r, err := New(c, Deps{Device: dev, Ranks: g, Hooks: hooks})
	if err != nil {
		return outcome{err: err}
	}
	defer r.Close()
	if adjust != nil {
		adjust(r)
	}
	o.err = r.Train(ctx)
	o.history = r.History
	o.params = make([]float64, r.Net.Params.Len())
	if err := r.Net.Params.ReadAt64(o.params, 0); err != nil {
		o.err = err
	}
	return o
}

// together runs a config on ranks, each with its own device.
func together(t testing.TB, n int, c Spec, dev func() (device.Device, error), f func(g *ranks.Group, c Spec,
	dev device.Device) outcome) []outcome {
	t.Helper()
	list := make([]outcome, n)
	rankstest.Errors(t, n, time.Minute, func(g *ranks.Group) error {
		d, err := dev()
		if err != nil {
			list[g.Rank()].err = err
			return err
		}
		if d, ok := d.(interface{ Close() error }); ok {
			defer d.Close()
		}
		own := c
		if f == nil {
			list[g.Rank()] = runOn(context.Background(), own, d, g, nil)
		} else {
			list[g.Rank()] = f(g, own, d)
		}
		return nil
	})
	return list
}

func reference64() (device.Device, error) { return device.NewReference(op.Float64), nil }
func cpuOne() (device.Device, error)      { return cpu.New(cpu.Options{Threads: 1}) }

func apart(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	d := 0.
	for i := range a {
		if x := math.Abs(a[i]-b[i]) / max(1, math.Abs(b[i])); !(x <= d) {
			d = x
		}
	}
	return d
}

// Ranks train as one process that accumulates their batches.
func TestRanksTrainAsOne(t *testing.T) {
	t.Parallel()
	colour := pictures(t, 43, 11, 12) // 43 images: 4 batches of 10 and one of 3
	for _, c := range []struct {
		name string
		dev  func() (device.Device, error)
		cfg  Spec
		tol  float64
	}{
		{"reference, float64", reference64, Spec{Data: colour, Model: "conv6", Batch: 10, Epochs: 2, Seed: 3,
			RNA: average.Options{Mode: average.Off}}, 1e-12},
		{"cpu, float32", cpuOne, tiny(""), 2e-4},
		{"focal loss, class weights, balanced", reference64, Spec{Data: colour, Model: "conv6", Batch: 10, Epochs: 2,
			Sampler: Balanced, Regularize: Regularize{Loss: Focal, ClassWeights: ClassWeights{"3", "1"}},
			RNA: average.Options{Mode: average.Off}}, 1e-12},
		{"a teacher", reference64, Spec{Data: colour, Model: "conv6", Batch: 10, Epochs: 2,
			Regularize: Regularize{Teacher: teacherOf(t, colour, 5), Mixup: .3},
			RNA:        average.Options{Mode: average.Off}}, 1e-12},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{2, 3, 4} {
				for _, accumulate := range []int{1, 2} {
					if accumulate == 2 && n > 2 {
						continue
					}
					if c.cfg.StepsLimit > 0 {
						c.cfg.StepsLimit = 7
					}
					one := c.cfg
					one.Accumulate = n * accumulate
					dev, err := c.dev()
					if err != nil {
						t.Fatal(err)
					}
					want := runOn(context.Background(), one, dev, nil, nil)
					if want.err != nil {
						t.Fatal(want.err)
					}
					many := c.cfg
					many.Accumulate = accumulate
					list := together(t, n, many, c.dev, nil)
					for k, got := range list {
						if got.err != nil {
							t.Fatalf("%d ranks, rank %d: %v", n, k, got.err)
						}
						if d := apart(got.losses, want.losses); d > c.tol {
							t.Errorf("%d ranks: losses of rank %d differ by %g: %v, %v", n, k, d, got.losses, want.losses)
						}
						if d := apart(got.params, want.params); d > c.tol {
							t.Errorf("%d ranks: parameters of rank %d differ by %g", n, k, d)
						}
						if !slices.Equal(got.params, list[0].params) {
							t.Errorf("%d ranks: rank %d has other bits", n, k)
						}
						for e, rec := range got.history {
							if rec.Train.Images != want.history[e].Train.Images || rec.SGD.Images != want.history[e].SGD.Images {
								t.Errorf("%d ranks, epoch %d: %d images trained, %d evaluated; want %d and %d", n, e+1,
									rec.Train.Images, rec.SGD.Images, want.history[e].Train.Images, want.history[e].SGD.Images)
							}
							if want.history[e].SGD.Images > 0 && c.cfg.Model == "" &&
								math.Abs(rec.SGD.Loss-want.history[e].SGD.Loss) > c.tol {
								t.Errorf("epoch %d: validation loss %g, want %g", e+1, rec.SGD.Loss, want.history[e].SGD.Loss)
							}
						}
					}
				}
			}
		})
	}
}

// More ranks than batches, and than evaluation images.
func TestMoreRanksThanImages(t *testing.T) {
	c := Spec{Data: pictures(t, 5, 2, 12), Model: "conv6", Batch: 2, Epochs: 1, Seed: 3, Out: filepath.Join(t.TempDir(),
		"run"), RNA: average.Options{Mode: average.Off}}
	one := c
	one.Accumulate, one.Out = 4, ""
	want := runOn(context.Background(), one, device.NewReference(op.Float64), nil, nil)
	for k, got := range together(t, 4, c, reference64, nil) {
		if got.err != nil || apart(got.params, want.params) > 1e-12 || got.history[0].SGD.Images != 2 ||
			got.history[0].Train.Images != 5 {
			t.Errorf("rank %d: %v, %+v", k, got.err, got.history)
		}
	}
}

// The same ranks and seed give the same bits.
func TestRanksRepeat(t *testing.T) {
	c := tinyColour("", pictures(t, 40, 12, 12))
	a, b := together(t, 3, c, cpuOne, nil), together(t, 3, c, cpuOne, nil)
	for k := range a {
		if a[k].err != nil || b[k].err != nil || !slices.Equal(a[k].params, b[0].params) ||
			!slices.Equal(a[k].losses, b[0].losses) {
			t.Errorf("rank %d: %v, %v", k, a[k].err, b[k].err)
		}
		if k > 0 && a[k].history[4].RNA.Score.Loss != a[0].history[4].RNA.Score.Loss {
			t.Error("ranks have different scores of RNA")
		}
	}
	if h := a[0].history[4]; h.RNA == nil || h.RNA.Score == nil || h.SGDStats == nil || h.RNA.Score.Images != 12 ||
		h.SGDStats.Images != 12 {
		t.Errorf("%+v", h)
	}
}

// A run resumes with another number of ranks, from the same place of the same order.
func TestResumeWithOtherRanks(t *testing.T) {
	colour := pictures(t, 43, 11, 12)
	c := Spec{Data: colour, Model: "conv6", Batch: 3, Epochs: 2, Seed: 3, Out: filepath.Join(t.TempDir(), "run"),
		RNA: average.Options{Mode: average.Off}}
	const stopAt = 2 // the run stops at the end of this step
	first := together(t, 4, c, reference64, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		return runOn(ctx, c, dev, g, nil, second{watch{Step: func(s *hook.State) error {
			if g.Rank() == 2 && s.Steps == stopAt-1 { // a signal that one rank receives
				cancel()
			}
			return nil
		}}})
	})
	for k, o := range first {
		if !errors.Is(o.err, ErrInterrupted) || !Common(o.err) || len(o.losses) != stopAt {
			t.Fatalf("rank %d: %v after %d steps", k, o.err, len(o.losses))
		}
	}
	losses := make([][]float64, 3)
	rankstest.Run(t, 3, time.Minute, func(g *ranks.Group) error {
		dev, _ := reference64()
		r, err := Resume(c.Out, Deps{Device: dev, Hooks: []hook.Hook{watch{Step: func(s *hook.State) error {
			losses[g.Rank()] = append(losses[g.Rank()], s.Step.Loss)
			return nil
		}}}, Ranks: g}, nil)
		if err != nil {
			return err
		}
		defer r.Close()
		if r.pos.Batch != 8 || r.pos.Epoch != 1 {
			return fmt.Errorf("goes on at batch %d of epoch %d", r.pos.Batch, r.pos.Epoch)
		}
		if err := r.Train(context.Background()); err != nil {
			return err
		}
		if h := r.History; len(h) != 2 || h[0].Train.Images != 43 || h[1].Train.Images != 43 {
			return fmt.Errorf("history %+v", h)
		}
		return nil
	})
	// 8 of 15 batches were done: 7 are 3 steps of 3 ranks, and 15 of the next epoch 5.
	if n := len(losses[0]); n != 3+5 || !slices.Equal(losses[0], losses[2]) {
		t.Errorf("%d steps, %v", n, losses)
	}
}

// An error of one rank ends all, with the rank's name.
func TestErrorOfOneRankEndsAll(t *testing.T) {
	good := pictures(t, 12, 4, 12)
	base := Spec{Data: good, Model: "conv6", Batch: 2, Epochs: 2, Seed: 3, RNA: average.Options{Mode: average.Off}}
	for name, c := range map[string]struct {
		change func(g *ranks.Group, c *Spec)
		want   string
	}{
		"a missing folder": {func(g *ranks.Group, c *Spec) { c.Data = filepath.Join(good, "nowhere") }, "rank 1 on"},
		"another run's folder": {func(g *ranks.Group, c *Spec) { c.Out = filepath.Join(good, "run") },
			"the run's folder: rank 1 on"},
		"another seed":  {func(g *ranks.Group, c *Spec) { c.Seed = 7 }, "seed: rank 1 on"},
		"less memory":   {func(g *ranks.Group, c *Spec) { c.LowMemory = true }, "low-memory: rank 1 on"},
		"another rate":  {func(g *ranks.Group, c *Spec) { c.Schedule.Rate = 1 }, "lr: rank 1 on"},
		"another model": {func(g *ranks.Group, c *Spec) { c.Model = "resnet20" }, "model: rank 1 on"},
		"other data": {func(g *ranks.Group, c *Spec) { c.Data = pictures(t, 14, 4, 12) },
			"training images: rank 1 on"},
		"no weights":    {func(g *ranks.Group, c *Spec) { c.Init = "nowhere.safetensors" }, "nowhere.safetensors"},
		"no such batch": {func(g *ranks.Group, c *Spec) { c.Batch = -3 }, "rank 1 on"},
		"a file as a folder": {func(g *ranks.Group, c *Spec) { c.Data = filepath.Join(good, "train", "plain", "000.png") },
			"rank 1 on"},
	} {
		t.Run(name, func(t *testing.T) {
			from := time.Now()
			for k, o := range together(t, 3, base, reference64, func(g *ranks.Group, own Spec, dev device.Device) outcome {
				if g.Rank() == 1 {
					c.change(g, &own)
				}
				return runOn(context.Background(), own, dev, g, nil)
			}) {
				if o.err == nil || !strings.Contains(o.err.Error(), c.want) || !Common(o.err) {
					t.Errorf("rank %d: %v", k, o.err)
				}
			}
			if time.Since(from) > 20*time.Second {
				t.Error("it took", time.Since(from))
			}
		})
	}
}

// A non-finite loss on one rank ends all, and the weights stay as they were.
func TestDivergenceIsCommon(t *testing.T) {
	c := tiny("")
	c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 1e30}
	for k, o := range together(t, 2, c, cpuOne, nil) {
		var d *DivergedError
		if !errors.As(o.err, &d) || !Common(o.err) {
			t.Errorf("rank %d: %v", k, o.err)
		}
	}
}

// A rank with deviating weights is named when the state is saved, and nothing is written.
func TestStrayingRankIsNamed(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	for k, o := range together(t, 3, c, cpuOne, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		return runOn(context.Background(), c, dev, g, nil, second{watch{Epoch: func(s *hook.State) error {
			if g.Rank() == 1 && s.Epoch == 2 {
				return s.Net.Params.WriteAt([]float32{7}, 100)
			}
			return nil
		}}})
	}) {
		if o.err == nil || !strings.Contains(o.err.Error(), "hash of the parameters: rank 1 on") {
			t.Errorf("rank %d: %v", k, o.err)
		}
	}
	list, _ := filepath.Glob(filepath.Join(c.Out, "checkpoint", "0*"))
	if len(list) != 2 {
		t.Errorf("checkpoints: %v", list)
	}
}

// Only rank 0 writes; unreadable images are counted over all ranks.
func TestUnreadableImagesAreCountedTogether(t *testing.T) {
	dir := pictures(t, 40, 8, 12)
	for _, i := range []int{4, 6, 21} { // three of 40
		class := []string{"plain", "striped"}[i%2]
		if err := os.WriteFile(filepath.Join(dir, "train", class, fmt.Sprintf("%03d.png", i)), []byte("none"),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		share data.MaxBad
		fails bool
	}{{0.05, true}, {2, true}, {0.08, false}, {3, false}} {
		cfg := Spec{Data: dir, Model: "conv6", Batch: 2, Epochs: 1, Seed: 3, MaxBad: &c.share,
			RNA: average.Options{Mode: average.Off}}
		for k, o := range together(t, 4, cfg, reference64, nil) {
			if (o.err != nil) != c.fails || c.fails && !strings.Contains(o.err.Error(), "3 of 40 images") || !c.fails &&
				o.history[0].Bad != 3 {
				t.Errorf("max-bad %v, rank %d: %v", c.share, k, o.err)
			}
		}
	}
}

// second is a watch beside another.
type second struct{ watch }

func (second) Name() string { return "second" }
