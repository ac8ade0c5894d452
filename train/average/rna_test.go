package average_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/rna"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

func TestOffline(t *testing.T) {
	dev := cpuDevice(t, 2)
	dir := t.TempDir()
	c := tiny(filepath.Join(dir, "off"))
	c.Epochs, c.RNA.Mode = 7, average.Off
	off := trained(t, c, dev)
	for _, lambda := range []float64{1e-9, 1e12} {
		c.Out, c.RNA.Mode, c.RNA.Lambda = filepath.Join(dir, fmt.Sprint(lambda)), average.Offline, &lambda
		c.RNA.Window, c.RNA.Averages = 3, []int{2, 3}
		var iterates [][]float64
		r := trained(t, c, dev, watch{Epoch: func(s *hook.State) error {
			iterates = append(iterates, numbers(t, s.Net.Params))
			if list, err := filepath.Glob(filepath.Join(c.Out, "average-*")); s.Epoch < 7 && (err != nil || len(list) > 0) {
				t.Errorf("averages are kept before the end of the run: %v, %v", list, err)
			}
			return nil
		}})
		if !slices.Equal(numbers(t, r.Net.Params), numbers(t, off.Net.Params)) {
			t.Error("offline RNA changed the training")
		}
		// The window holds N + 1 vectors: the ends of the last four epochs.
		w := rnaOf(r).Window()
		if w.Vectors() != 4 || w.Len() != 3 {
			t.Errorf("window of %d vectors and %d residuals, want 4 and 3", w.Vectors(), w.Len())
		}
		for i := range w.Vectors() {
			v := make([]float64, w.Vector(i).Len())
			if err := w.Vector(i).ReadAt64(v, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(v, iterates[3+i]) {
				t.Errorf("vector %d is not the end of epoch %d", i, 4+i)
			}
		}
		for e, rec := range r.History {
			switch epoch := e + 1; {
			case epoch < 4: // snapshots at 2 and 3 make one residual
				if rec.RNA != nil {
					t.Errorf("epoch %d: extrapolated", epoch)
				}
			default:
				if rec.RNA == nil || rec.RNA.Score == nil || rec.RNA.Status != "ok" || len(rec.RNA.C) != min(3, epoch-2) {
					t.Fatalf("epoch %d: %+v", epoch, rec.RNA)
				}
				sum := 0.0
				for _, x := range rec.RNA.C {
					sum += x
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Errorf("epoch %d: coefficients sum to %.17g", epoch, sum)
				}
			}
		}
		last := r.History[6]
		if last.RNA == nil {
			t.Fatal("no extrapolation at the end")
		}
		got, _ := at(t, r, filepath.Join(c.Out, "rna.safetensors"))
		near(t, "y⁺ = X c", got, mean(last.RNA.C, iterates[4:]), 1e-6)
		if lambda > 1 {
			near(t, "c for a large lambda", last.RNA.C, uniform(3), 1e-9)
			near(t, "y⁺ for a large lambda", got, mean(uniform(3), iterates[4:]), 1e-6)
		}
		for i, k := range []int{2, 3} {
			dst, err := r.Net.NewParams()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Average(dst, k); err != nil {
				t.Fatal(err)
			}
			near(t, "average", numbers(t, dst), mean(uniform(k), iterates[7-k:]), 1e-6)
			kept, _ := at(t, r, filepath.Join(c.Out, fmt.Sprintf("average-%d.safetensors", k)))
			near(t, "kept average", kept, mean(uniform(k), iterates[7-k:]), 1e-6)
			// The score in the record is that of these weights.
			if err := r.Net.Params.Copy(dst); err != nil {
				t.Fatal(err)
			}
			if s, err := r.Evaluate(t.Context()); err != nil || len(last.Averages) != 2 ||
				last.Averages[i] != (hook.AverageRecord{Epochs: k, Score: *s}) {
				t.Errorf("averages %+v, evaluated again %+v, %v", last.Averages, s, err)
			}
			dst.Free()
		}
		if _, err := r.Net.LoadWeights(filepath.Join(c.Out, "rna.safetensors")); err != nil {
			t.Fatal(err)
		}
		if s, err := r.Evaluate(t.Context()); err != nil || *s != *last.RNA.Score {
			t.Errorf("the score of rna.safetensors is %+v, %v; recorded was %+v", s, err, last.RNA.Score)
		}
	}
}

// TestEvery: RNA extrapolates in every third epoch from its start on, where it has two residuals, and in the last one.
func TestEvery(t *testing.T) {
	c := tiny("")
	c.Epochs, c.RNA.Every, c.RNA.Window = 7, 3, 3
	var got []int
	for _, rec := range trained(t, c, cpuDevice(t, 2)).History {
		if rec.RNA != nil {
			got = append(got, rec.Epoch)
		}
		if rec.SGDStats != nil {
			t.Errorf("epoch %d: statistics of a network without BatchNorm", rec.Epoch)
		}
	}
	if !slices.Equal(got, []int{5, 7}) { // the start is epoch 2, and residuals end in epochs 3 and 4
		t.Errorf("extrapolated in the epochs %v", got)
	}
}

// TestCombined checks that statistics are combined with c and that negative variances become 0.
func TestCombined(t *testing.T) {
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 20, 6, 16))
	c.RNA.Stats = average.Combine
	var stats [][]float64
	var last seen
	r := trained(t, c, cpuDevice(t, 2), &last, watch{Epoch: func(s *hook.State) error {
		stats = append(stats, numbers(t, s.Net.Stats))
		return nil
	}})
	for _, rec := range r.History { // RNA starts in epoch 2
		if (rec.SGDStats != nil) != (rec.Epoch >= 2) {
			t.Errorf("epoch %d: the recalibrated iterate scores %+v", rec.Epoch, rec.SGDStats)
		}
	}
	coefficients := r.History[len(r.History)-1].RNA.C
	want := mean(coefficients, stats[5-len(coefficients):])
	for _, s := range r.Net.Variances() {
		for j := s.Off; j < s.Off+s.Len; j++ {
			want[j] = max(want[j], 0)
		}
	}
	_, got := at(t, r, filepath.Join(c.Out, "rna.safetensors"))
	near(t, "combined statistics", got, want, 1e-6)
	// Coefficients that would give a negative variance.
	h := rnaOf(r)
	first := r.Net.Variances()[0]
	h.Stats()[len(h.Stats())-2][first.Off+first.Len-1] *= 100
	if err := h.SetStats(t.Context(), last.State, []float64{-9, 10}); err != nil {
		t.Fatal(err)
	}
	combined := numbers(t, r.Net.Stats)
	variance := combined[first.Off : first.Off+first.Len]
	if slices.Min(variance) != 0 {
		t.Errorf("the smallest combined variance is %g, want one cut off at 0", slices.Min(variance))
	}
}

func TestOnline(t *testing.T) {
	for _, momentum := range []average.Momentum{average.Reset, average.Keep} {
		for every, injections := range map[int][]int{1: {4, 5}, 2: {4}} {
			c := tiny(filepath.Join(t.TempDir(), "run"))
			c.RNA.Mode, c.RNA.Momentum, c.RNA.Every = average.Online, momentum, every
			var iterates [][]float64
			zero := false // the momentum after epoch 4
			r := trained(t, c, cpuDevice(t, 2), watch{Epoch: func(s *hook.State) error {
				iterates = append(iterates, numbers(t, s.Net.Params))
				return nil
			}, Step: func(s *hook.State) error {
				if s.Epoch != 5 || s.Batch != 1 {
					return nil
				}
				v, err := s.Net.NewParams()
				if err != nil {
					return err
				}
				defer v.Free()
				for found := false; !found; { // the newest may be renamed meanwhile
					dirs, err := filepath.Glob(filepath.Join(c.Out, "checkpoint", "*", "momentum.safetensors"))
					if err == nil {
						err = s.Net.LoadVector(slices.Max(dirs), v)
					}
					if found = err == nil; !found && !errors.Is(err, fs.ErrNotExist) {
						return err
					}
				}
				zero = !slices.ContainsFunc(numbers(t, v), func(x float64) bool { return x != 0 })
				return nil
			}})
			var got []int
			for _, rec := range r.History {
				if rec.RNA != nil && rec.RNA.Injected {
					got = append(got, rec.Epoch)
				}
			}
			if !slices.Equal(got, injections) {
				t.Fatalf("every %d: injected after epochs %v, want %v", every, got, injections)
			}
			if zero != (momentum == average.Reset) {
				t.Errorf("momentum %s: zero after the injection: %v", momentum, zero)
			}
			point, _ := at(t, r, filepath.Join(c.Out, "rna.safetensors"))
			final, _ := at(t, r, filepath.Join(c.Out, "final.safetensors"))
			meta, err := network.ReadMeta(filepath.Join(c.Out, "final.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			last := slices.Contains(injections, 5)
			if slices.Equal(point, final) != last || (meta.Kind == "rna") != last || meta.Epoch != 5 {
				t.Errorf("every %d: final weights are the extrapolated ones: %v; metadata %+v", every, slices.Equal(point, final),
					meta)
			}
			// The chain of iterates is broken: the last residual starts from the extrapolated point.
			st := rnaOf(r).Window().State()
			is := func(i int, want []float64) bool {
				v := make([]float64, len(want))
				if err := rnaOf(r).Window().Vector(i).ReadAt64(v, 0); err != nil {
					t.Fatal(err)
				}
				return slices.Equal(v, want)
			}
			if col := st.Columns[len(st.Columns)-1]; !is(col.Y, iterates[3]) || last == is(col.X, iterates[4]) {
				t.Error("the last residual does not go from the point put in after epoch 4 to the iterate of epoch 5")
			}
			if !is(st.Tail, iterates[4]) {
				t.Error("the next residual does not start where training goes on")
			}
		}
	}
}

// TestWildPoints checks that non-finite points are neither kept nor used.
func TestWildPoints(t *testing.T) {
	for _, c := range []struct {
		name   string
		sizes  []float64 // of the weights in the window
		beta   float64
		status string
	}{
		{"overflow", []float64{1e38, 2e38, 3e38, 3.3e38}, 1000, rna.Overflow.String()},
		{"a loss that is NaN", []float64{1e30, 2e30, 2.5e30, 2.7e30}, 1, "the extrapolated weights give no finite loss"},
		{"no residual", []float64{1, 1, 1, 1}, 1, rna.ZeroResidual.String()},
	} {
		cfg := tiny(filepath.Join(t.TempDir(), "run"))
		cfg.RNA.Mode, cfg.RNA.Window, cfg.RNA.Beta = average.Online, 3, &c.beta
		cfg.Epochs = 1
		var last seen
		r := trained(t, cfg, cpuDevice(t, 2), &last)
		h := rnaOf(r)
		n := r.Net.Params.Len()
		for i, size := range c.sizes {
			v := make([]float64, n)
			for j := range v {
				v[j] = size * (1 - float64((j*(i+1))%7)/1000)
				if c.name == "no residual" {
					v[j] = size
				}
			}
			if err := h.Window().Push(rna.Slice64(v)); err != nil {
				t.Fatal(err)
			}
		}
		before, files1 := numbers(t, r.Net.Params), files(t, cfg.Out)
		s := last.State
		s.Record = &hook.EpochRecord{}
		if err := h.Extrapolate(t.Context(), s, true); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if rec := s.Record.RNA; rec.Status != c.status || rec.Injected || rec.Score != nil {
			t.Errorf("%s: %+v, want status %q", c.name, rec, c.status)
		}
		if !slices.Equal(numbers(t, r.Net.Params), before) || !slices.Equal(files(t, cfg.Out), files1) {
			t.Errorf("%s: the weights or the files have changed", c.name)
		}
	}
}
