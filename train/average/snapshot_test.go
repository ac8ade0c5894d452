package average_test

import (
	"math"
	"testing"

	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
)

// TestSnapshots follows the weights and gradients of each step, and compares the window with them.
func TestSnapshots(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*average.Options)
		segments [][2]int // first and last step, from 1, of the newest segments
	}{
		{"points", func(r *average.Options) { r.PerEpoch = 2 }, [][2]int{{9, 9}, {10, 11}, {12, 12}}},
		{"each step", func(r *average.Options) { r.PerEpoch = 3 }, [][2]int{{10, 10}, {11, 11}, {12, 12}}},
		{"means", func(r *average.Options) { r.PerEpoch, r.SegmentMeans = 2, true }, [][2]int{{9, 9}, {10, 11}, {12, 12}}},
		{"means of epochs", func(r *average.Options) { r.SegmentMeans = true }, [][2]int{{4, 6}, {7, 9}, {10, 12}}},
		{"gradients", func(r *average.Options) { r.Residual = average.Gradients }, [][2]int{{7, 9}, {10, 12}}},
		{"gradients, means", func(r *average.Options) { r.Residual, r.SegmentMeans, r.PerEpoch = average.Gradients, true, 2 },
			[][2]int{{10, 11}, {12, 12}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := tiny("")
			cfg.Epochs = 4
			c.change(&cfg.RNA)
			var params, grads [][]float64
			var end seen
			r := trained(t, cfg, cpuDevice(t, 2), &end, watch{Step: func(s *hook.State) error {
				params, grads = append(params, numbers(t, s.Net.Params)), append(grads, numbers(t, s.Net.Grads))
				return nil
			}})
			w := rnaOf(r).Window()
			st := w.State()
			vector := func(i int) []float64 {
				v := make([]float64, w.Vector(i).Len())
				if err := w.Vector(i).ReadAt64(v, 0); err != nil {
					t.Fatal(err)
				}
				return v
			}
			var want [][]float64
			for _, s := range c.segments {
				x := params[s[1]-1]
				if cfg.RNA.SegmentMeans {
					x = mean(uniform(s[1]-s[0]+1), params[s[0]-1:s[1]])
				}
				want = append(want, x)
			}
			last, averages := r.History[3].RNA, r.History[3].Averages
			if last == nil || len(last.C) != 2 {
				t.Fatalf("record %+v", last)
			}
			if cfg.RNA.Residual == average.Gradients {
				for i, col := range st.Columns {
					s := c.segments[i]
					near(t, "y", vector(col.Y), want[i], 1e-6)
					g := mean(uniform(s[1]-s[0]+1), grads[s[0]-1:s[1]])
					for j := range g {
						g[j] = -g[j]
					}
					near(t, "residual", vector(col.R), g, 1e-5)
				}
				if *r.Resolved.RNA.Beta != 0 {
					t.Errorf("beta is %g", *r.Resolved.RNA.Beta)
				}
			} else {
				if w.Vectors() != 3 {
					t.Fatalf("%d vectors, want 3", w.Vectors())
				}
				for i := range want {
					near(t, "snapshot", vector(i), want[i], 1e-6)
				}
			}
			end.State.Record = &hook.EpochRecord{RNA: &hook.RNARecord{}}
			// The average and the extrapolated point are combinations of the snapshots.
			if err := rnaOf(r).Average(t.Context(), end.State, 2); err != nil {
				t.Fatal(err)
			}
			if ok, err := rnaOf(r).Point(t.Context(), end.State); !ok || err != nil {
				t.Fatal(ok, err)
			}
			near(t, "y⁺", numbers(t, r.Net.Params), mean(last.C, want[len(want)-2:]), 1e-6)
			if err := r.Net.Params.WriteAt64(mean(uniform(2), want[len(want)-2:]), 0); err != nil {
				t.Fatal(err)
			}
			if s, err := r.Evaluate(t.Context()); err != nil || len(averages) != 1 ||
				math.Abs(s.Loss-averages[0].Score.Loss) > 1e-5*s.Loss {
				t.Errorf("the mean scores %+v, %v; recorded are %+v", s, err, averages)
			}
		})
	}
	c := tiny("")
	c.RNA.PerEpoch = 4
	if _, err := train.New(c, train.Deps{Device: cpuDevice(t, 1)}); err == nil {
		t.Error("four snapshots in an epoch of three steps")
	}
	c.StepsLimit, c.RNA.PerEpoch = 1, 2
	if _, err := train.New(c, train.Deps{Device: cpuDevice(t, 1)}); err == nil {
		t.Error("two snapshots in an epoch of one step")
	}
	for want, r := range map[int]average.Options{4: {Start: 2, PerEpoch: 1}, 3: {Start: 2, PerEpoch: 2},
		2: {Start: 2, PerEpoch: 3}, 5: {Start: 4, PerEpoch: 1, Residual: average.Gradients}} {
		if got := r.FirstExtrapolation(); got != want {
			t.Errorf("%+v extrapolates from epoch %d on, want %d", r, got, want)
		}
	}
}
