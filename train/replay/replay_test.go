package replay

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
)

// trained is a run that is over, and was closed.
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
	r, err := Open(dir, dev, nil)
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

// weights are the tensors in a file of the run's net.
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

// TestAsTrained: with the parameters of the training its points come again, with their statistics and scores, whatever else is computed beside.
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
			c := traintest.Spec(train.Options(), train.Spec{Out: filepath.Join(t.TempDir(), "run"), Data: pictures}, traintest.TinyColour)
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
					if w == nil || p.Val == nil || p.Held == nil || math.Abs(p.Val.Loss-w.Loss) > 1e-5*w.Loss || p.Val.Images != w.Images {
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
			for j, v := range want.C {
				if math.Abs(last.C[j]-v) > 1e-9*want.NormC {
					t.Errorf("c is %v, in training %v", last.C, want.C)
				}
			}
			if s := want.Score; math.Abs(last.Val.Loss-s.Loss) > 1e-5*s.Loss {
				t.Errorf("score %+v, in training %+v", last.Val, s)
			}
			r, err := Open(c.Out, dev, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
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

// A run that wrote files for TensorBoard is replayed as others are.
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

func TestMistakes(t *testing.T) {
	dev := traintest.CPU(t, 2)
	dir := filepath.Join(t.TempDir(), "run")
	c := traintest.Spec(train.Options(), train.Spec{Out: dir}, traintest.Tiny)
	c.Epochs, c.RNA.Mode = 3, average.Online
	trained(t, c, dev)
	refused := func(want string, o Options) {
		t.Helper()
		r, err := Open(dir, dev, nil)
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
	refused("average of 4 needs 4 snapshots", Options{Averages: []int{4}})
	refused("held-out images", Options{Windows: []int{2}, Lambdas: []Lambda{{Auto: true}}})
	refused("between 0 and 1", Options{Decays: []float64{1}})
	refused("unknown way", Options{Stats: "none"})
	if res := replayed(t, dir, dev, Options{Averages: []int{3}, Decays: []float64{0.9}}); len(res.Curves) != 3 || len(res.Curves[1].Points) != 1 || len(res.Curves[2].Points) != 3 {
		t.Errorf("%+v", res.Curves)
	}
	if err := os.Remove(filepath.Join(dir, "kept", "epoch-0002.safetensors")); err != nil {
		t.Fatal(err)
	}
	refused("epoch-0002.safetensors is missing", Options{})
}
