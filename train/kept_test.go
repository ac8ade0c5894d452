package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/network"
)

// TestKept keeps every second iterate and the two best ones complete, and removes all others.
func TestKept(t *testing.T) {
	dev := cpuDevice(t, 2)
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 20, 6, 16))
	c.KeepEvery, c.KeepBest = 2, 2
	r := trained(t, c, dev)
	want := append(bestEpochs(r.History, 2, hook.ByError), 2, 4)
	slices.Sort(want)
	want = slices.Compact(want)
	files, err := os.ReadDir(filepath.Join(c.Out, keptDir))
	if err != nil || len(files) != len(want) {
		t.Fatalf("kept %v, want epochs %v: %v", files, want, err)
	}
	for i, e := range want {
		path := keptFile(c.Out, e)
		if filepath.Base(path) != files[i].Name() {
			t.Errorf("%s, want epoch %d", files[i].Name(), e)
		}
		meta, err := r.Net.LoadWeights(path)
		if err != nil || meta.Epoch != e || meta.Kind != network.SGD || meta.Model != "conv6" || len(meta.Classes) != 2 {
			t.Errorf("%s: %+v, %v", path, meta, err)
		}
		score, err := r.Evaluate(t.Context())
		if err != nil || score.Top1 != r.History[e-1].SGD.Top1 || score.Loss != r.History[e-1].SGD.Loss {
			t.Errorf("epoch %d: %+v, its record %+v, %v", e, score, r.History[e-1].SGD, err)
		}
	}
	c.Out, c.KeepEvery = filepath.Join(t.TempDir(), "other"), -1
	if r, err := New(c, Deps{Device: dev}); err == nil {
		r.Close()
		t.Error("keeping every -1 epochs is no error")
	}
}

// TestUnkeptEMA: several power averages bring a warning unless they are kept.
func TestUnkeptEMA(t *testing.T) {
	for _, keep := range []int{0, 1} {
		c := tinyColour("", pictures(t, 20, 6, 16))
		c.EMA, c.KeepEvery, c.Epochs = []float64{5, 12}, keep, 1
		r := newRun(t, c, cpuDevice(t, 1))
		said := ""
		r.Log = func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" }
		if err := r.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said, "of --ema 5,12 only the last is used") != (keep == 0) {
			t.Errorf("keep-every %d: said %q", keep, said)
		}
	}
}

func TestBestEpochs(t *testing.T) {
	loss := func(epoch int, val float64, held ...float64) hook.EpochRecord {
		rec := hook.EpochRecord{Epoch: epoch, SGD: &network.Score{Loss: val}}
		for _, x := range held {
			rec.Held = append(rec.Held, hook.ScoreRecord{Kind: network.SGD, Score: network.Score{Loss: x}})
		}
		return rec
	}
	if got := bestEpochs([]hook.EpochRecord{loss(1, 3), loss(2, 1), loss(3, 2), loss(4, 1)}, 2,
		hook.ByLoss); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("%v", got)
	}
	if got := bestEpochs([]hook.EpochRecord{loss(1, 1, 3), loss(2, 2, 1)}, 1, hook.ByLoss); !slices.Equal(got, []int{2}) {
		t.Errorf("%v", got)
	}
	right := loss(2, 2)
	right.SGD.Top1 = 50
	if got := bestEpochs([]hook.EpochRecord{loss(1, 1), right, loss(3, 3)}, 2, hook.ByError); !slices.Equal(got,
		[]int{2, 1}) {
		t.Errorf("by error %v", got)
	}
	if got := bestEpochs([]hook.EpochRecord{{Epoch: 1}}, 3, hook.ByError); got != nil {
		t.Errorf("%v", got)
	}
}

// A run that has any number of epochs to come has those that are there.
func TestKeptOfMany(t *testing.T) {
	out := t.TempDir()
	for _, name := range []string{"epoch-9998.safetensors", "epoch-9999.safetensors", "epoch-10000.safetensors",
		"epoch-10000.5.safetensors", "epoch-00009997.safetensors", "epoch-10001.tmp", "epoch--1.safetensors"} {
		traintest.Put(t, filepath.Join(out, keptDir, name), nil)
	}
	c := Spec{Epochs: math.MaxInt, KeepEvery: 1}
	epochs, paths, err := Kept(out, c)
	if want := []int{9998, 9999, 10000}; err != nil || !slices.Equal(epochs, want) || len(paths) != len(want) ||
		paths[2] != keptFile(out, 10000) {
		t.Errorf("%v, %v, %v", epochs, paths, err)
	}
	c.KeepEvery = 5000
	if epochs, _, err := Kept(out, c); err != nil || !slices.Equal(epochs, []int{10000}) {
		t.Errorf("every 5000: %v, %v", epochs, err)
	}
	traintest.Put(t, keptFile(out, 20000), nil)
	if _, _, err := Kept(out, c); err == nil || !strings.Contains(err.Error(), keptFile(out, 15000)+" is missing") {
		t.Error(err)
	}
	if epochs, _, err := Kept(filepath.Join(out, "none"), c); err != nil || len(epochs) != 0 {
		t.Errorf("%v, %v", epochs, err)
	}
}
