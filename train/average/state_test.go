package average_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
	"onlinerna/train/schedule"
)

// TestSaveAndLoad saves the hooks within a segment, loads them into others and saves these again: files and small parts
// are equal. Hooks of other parameters reject them.
func TestSaveAndLoad(t *testing.T) {
	c := tiny("")
	c.Epochs, c.EMA = 4, []float64{5, 12}
	c.RNA.PerEpoch, c.RNA.SegmentMeans, c.RNA.Window = 1, true, 2
	var r *train.Run
	done := false
	check := func(s *hook.State) error {
		if s.Steps != 10 { // at three steps per epoch
			return nil
		}
		done = true
		saved := func(h hook.SavingHook) (string, json.RawMessage) {
			dir := t.TempDir()
			small, err := h.Save(s, dir)
			if err != nil {
				t.Fatal(err)
			}
			return dir, small
		}
		other := c.RNA
		loaded := func(h interface {
			hook.SavingHook
			hook.OpeningHook
			hook.ClosingHook
		}, dir string, small json.RawMessage) error {
			t.Helper()
			if err := h.Open(s); err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if err := h.Load(s, dir, small); err != nil {
				return err
			}
			again, got := saved(h)
			if string(got) != string(small) {
				t.Errorf("%s: %s, was %s", h.Name(), got, small)
			}
			list, err := os.ReadDir(dir)
			if err != nil || len(list) == 0 {
				t.Errorf("%s: %d files, %v", h.Name(), len(list), err)
			}
			for _, f := range list {
				a, errA := os.ReadFile(filepath.Join(dir, f.Name()))
				b, errB := os.ReadFile(filepath.Join(again, f.Name()))
				if errA != nil || errB != nil || !bytes.Equal(a, b) {
					t.Errorf("%s: %s differs (%v, %v)", h.Name(), f.Name(), errA, errB)
				}
			}
			return nil
		}
		dir, small := saved(rnaOf(r))
		if !strings.Contains(string(small), `"pushed":3`) || !strings.Contains(string(small), `"mean":1`) {
			t.Errorf("RNA: %s", small)
		}
		if err := loaded(average.NewRNA(other), dir, small); err != nil {
			t.Error(err)
		}
		few := other
		few.Window, few.Averages = 1, nil
		if err := loaded(average.NewRNA(few), dir, small); err == nil ||
			!strings.Contains(err.Error(), "residuals, the config's for 1") {
			t.Errorf("a window of 1: %v", err)
		}
		whole := other
		whole.SegmentMeans = false
		if err := loaded(average.NewRNA(whole), dir, small); err == nil ||
			!strings.Contains(err.Error(), "does not ask for") {
			t.Errorf("no means: %v", err)
		}
		dir, small = saved(r.Hook("ema").(*average.EMA))
		if err := loaded(average.NewEMA([]float64{5, 12}, 0), dir, small); err != nil {
			t.Error(err)
		}
		for _, gammas := range [][]float64{{5}, {12}, {12, 5}, {4, 12}, {5, 12.5}} {
			if err := loaded(average.NewEMA(gammas, 0), dir, small); err == nil {
				t.Errorf("averages with the exponents %v", gammas)
			}
		}
		if err := loaded(average.NewDecayEMA(0.9, 1), dir, small); err == nil {
			t.Error("an average with a decay")
		}
		if err := loaded(average.NewEMA([]float64{5, 12}, 0), t.TempDir(), small); err == nil {
			t.Error("an average without its file")
		}
		if err := os.Remove(filepath.Join(dir, "ema-5.safetensors")); err != nil {
			t.Error(err)
		}
		if err := loaded(average.NewEMA([]float64{5, 12}, 0), dir, small); err == nil {
			t.Error("an average without the file of the other")
		}
		before := *s
		before.Steps = 0
		e := average.NewEMA([]float64{12}, 0)
		if err := e.Open(&before); err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := e.Load(&before, t.TempDir(), json.RawMessage("12")); err != nil { // as older programs wrote it
			t.Error(err)
		}
		dir = t.TempDir()
		if _, err := e.Save(&before, dir); err != nil {
			t.Error(err)
		}
		if list, _ := os.ReadDir(dir); len(list) > 0 {
			t.Errorf("%d files before the first step", len(list))
		}
		return nil
	}
	var err error
	if r, err = train.New(c, train.Deps{Device: cpuDevice(t, 2), Hooks: []hook.Hook{watch{Step: check}}}); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Train(t.Context()); err != nil || !done {
		t.Fatal(err, done)
	}
	last := r.History[3].RNA
	if last == nil || len(last.C) != 2 || last.Distance == nil {
		t.Errorf("record %+v", last)
	}
}

// TestLoadStatistics: BatchNorm statistics are saved and needed if they are combined, for a network that has some.
func TestLoadStatistics(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  train.Spec
		way   average.Statistics
		needs bool
	}{
		{"re-estimated", tinyColour("", pictures(t, 20, 6, 16)), average.Reestimate, false},
		{"combined", tinyColour("", pictures(t, 20, 6, 16)), average.Combine, true},
		{"without BatchNorm", tiny(""), average.Combine, false},
	} {
		c.spec.RNA.Stats = c.way
		var last seen
		r := trained(t, c.spec, cpuDevice(t, 2), &last)
		dir := t.TempDir()
		small, err := rnaOf(r).Save(last.State, dir)
		if err != nil || strings.Contains(string(small), `"stats"`) != c.needs {
			t.Errorf("%s: %.200s, %v", c.name, small, err)
		}
		if err := rnaOf(r).Load(last.State, dir, small); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, change := range []func(list [][]float64) [][]float64{
			func(list [][]float64) [][]float64 { return list[1:] },
			func(list [][]float64) [][]float64 { return append([][]float64{{1, 2}}, list[1:]...) },
		} {
			if !c.needs {
				continue
			}
			var parts map[string]any
			if err := json.Unmarshal(small, &parts); err != nil {
				t.Fatal(err)
			}
			parts["stats"] = change(slices.Clone(rnaOf(r).Stats()))
			broken, err := json.Marshal(parts)
			if err != nil {
				t.Fatal(err)
			}
			if err := rnaOf(r).Load(last.State, dir, broken); err == nil || !strings.Contains(err.Error(), "statistics") {
				t.Errorf("%s: other statistics: %v", c.name, err)
			}
		}
	}
}

// TestDecayFromTheStart: without a warm-up the average starts with the weights of the first step.
func TestDecayFromTheStart(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.Epochs, c.StepsLimit, c.RNA.Mode = 1, 5, average.Off
	c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 0.05}
	c.EMADecay, c.EMAEvery = 0.75, 2
	var want []float64
	r := trained(t, c, cpuDevice(t, 2), watch{Step: func(s *hook.State) error {
		w := numbers(t, s.Net.Params)
		if s.Steps == 1 {
			want = w
		} else if s.Steps%2 == 0 {
			for i := range w {
				want[i] = 0.75*want[i] + 0.25*w[i]
			}
		}
		return nil
	}})
	got, _ := at(t, r, filepath.Join(c.Out, "ema.safetensors"))
	near(t, "the average", got, want, 1e-6)
}

// TestSharedVectors: six ranks each keep a part of the window's vectors and write whole tensors, two of which lie in
// the parts of several ranks. The newest vector's files are the weights.
func TestSharedVectors(t *testing.T) {
	const n = 6
	out, dir := filepath.Join(t.TempDir(), "run"), t.TempDir()
	rankstest.Run(t, n, time.Minute, func(g *ranks.Group) error {
		dev, err := cpu.New(cpu.Options{Threads: 1})
		if err != nil {
			return err
		}
		defer dev.Close()
		c := tiny(out)
		c.Epochs, c.StepsLimit = 3, 1
		var last seen
		r, err := train.New(c, train.Deps{Device: dev, Ranks: g, Hooks: []hook.Hook{&last}})
		if err != nil {
			return err
		}
		defer r.Close()
		if err := r.Train(context.Background()); err != nil {
			return err
		}
		if k := len(r.Net.Straddling(n, n)); k != 2 {
			return fmt.Errorf("%d tensors lie in the parts of several ranks", k)
		}
		last.Share = network.Share{Index: g.Rank(), Of: n}
		if _, err := rnaOf(r).Save(last.State, dir); err != nil {
			return err
		}
		if err := g.Barrier(); err != nil {
			return err
		}
		v, err := r.Net.NewParams()
		if err != nil {
			return err
		}
		defer v.Free()
		newest := filepath.Join(dir, fmt.Sprintf("rna-%03d.safetensors", rnaOf(r).Window().Vectors()-1))
		if err := r.Net.LoadVector(newest, v); err != nil {
			return err
		}
		if !slices.Equal(numbers(t, v), numbers(t, r.Net.Params)) {
			return errors.New("the newest vector in the files is not the weights")
		}
		return nil
	})
}
