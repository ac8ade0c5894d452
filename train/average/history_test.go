package average

import (
	"math"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/hook"
)

// Only the statistics of the window's snapshots are kept, however long the run is.
func TestStatisticsDoNotGrow(t *testing.T) {
	space, err := rna.NewHost64(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := rna.NewWindow(space, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	h := &RNA{window: w}
	for i := range 10 {
		h.keepStatistics([]float64{float64(i)})
		if want := min(i+1, 3); len(h.stats) != want || h.stats[0][0] != float64(i+1-want) {
			t.Errorf("after %d: %v", i+1, h.stats)
		}
	}
}

// vector is a dummy vector.
type vector struct{ device.Vector }

// Steps may overlap with a hook that needs only the ends of epochs.
func TestAsync(t *testing.T) {
	for _, c := range []struct {
		hook RNA
		want bool
	}{
		{RNA{cfg: Options{}}, true},
		{RNA{cfg: Options{PerEpoch: 1}}, true},
		{RNA{cfg: Options{PerEpoch: 2}}, false},
		{RNA{cfg: Options{}, mean: running{v: vector{}}}, false},
		{RNA{cfg: Options{}, descent: running{v: vector{}}}, false},
	} {
		if got := c.hook.Async(); got != c.want {
			t.Errorf("%+v: %v", c.hook.cfg, got)
		}
	}
	window := Options{Window: 3, Mode: Offline}
	both := window
	both.Mode, both.SegmentMeans = Online, true
	if x := NewRNA(window).Holds(); x.Weights != 1 || x.Snapshots != window.Capacity()+1 {
		t.Errorf("holds %+v", x)
	}
	if x := NewRNA(both).Holds(); x.Weights != 3 || x.Snapshots != 7 {
		t.Errorf("holds %+v", x)
	}
	if x, y := NewEMA([]float64{5, 12}, 1).Holds(), NewDecayEMA(.9, 1).Holds(); x.Weights != 2 || y.Weights != 1 {
		t.Errorf("averages hold %+v and %+v", x, y)
	}
	for x, want := range map[float64]bool{1: true, math.Inf(1): false, math.Inf(-1): false, math.NaN(): false} {
		if n := number(x); (n != nil) != want || want && *n != x {
			t.Errorf("%g is %v", x, n)
		}
	}
}

// The record has the distance that noise alone would give, if the noise model applies.
func TestNoteNoise(t *testing.T) {
	space, err := rna.NewHost64(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		residuals [][]float64
		want      float64 // −1: none
	}{
		// Orthogonal residuals with squares 1 and 4: c = (4/5, 1/5), at the distance 0.3·√2.
		{"noise", [][]float64{{1, 0, 0}, {0, 2, 0}}, .3 * math.Sqrt2},
		{"no noise", [][]float64{{1, 0, 0}, {2, 0, 0}}, -1},
	} {
		w, err := rna.NewWindow(space, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for _, r := range c.residuals {
			if err := w.PushResidual(rna.Slice64{0, 0, 0}, rna.Slice64(r)); err != nil {
				t.Fatal(err)
			}
		}
		res, err := w.Solve(rna.Options{Lambda: rna.Set(1e-3)})
		if err != nil {
			t.Fatal(err)
		}
		var rec hook.RNARecord
		(&RNA{window: w}).note(&rec, res)
		if rec.Distance == nil || rec.NormC == 0 || rec.Condition != res.Condition || rec.Lambda == nil ||
			*rec.Lambda != 1e-3 {
			t.Errorf("%s: %+v", c.name, rec)
		}
		if d := rec.NoiseDistance; (d == nil) != (c.want < 0) || d != nil && (math.Abs(*d-c.want) > 1e-12 || rec.Noise != 1) {
			t.Errorf("%s: distance %v, noise %v", c.name, d, rec.Noise)
		}
	}
}

// Zero fields get the documented defaults; the window depends on the epochs, from 3 to 10.
func TestResolve(t *testing.T) {
	for _, c := range []struct{ epochs, given, want int }{{2, 0, 3}, {12, 0, 6}, {90, 0, 10}, {90, 4, 4}} {
		var r Options
		r.Resolve(c.epochs, c.given, nil)
		if r.Window != c.want || !slices.Equal(r.Averages, []int{c.want}) {
			t.Errorf("%d epochs: window %d, averages %v", c.epochs, r.Window, r.Averages)
		}
		if r.Mode != Offline || *r.Lambda != 1e-9 || *r.Beta != 1 || r.Start != 2 || r.Every != 1 || r.PerEpoch != 1 ||
			r.Stats != Reestimate || r.Batches != 20 || r.Momentum != Reset || r.Residual != Weights {
			t.Errorf("%+v", r)
		}
	}
	r := Options{Search: true, Residual: Gradients}
	r.Resolve(12, 5, []int{5, 10})
	if r.Lambda != nil || *r.Beta != 0 || r.Window != 5 || !slices.Equal(r.Averages, []int{5, 10}) {
		t.Errorf("%+v", r)
	}
}

// A numberRun has one weight.
type numberRun struct {
	hook.Run
	weight *number64
}

func (r numberRun) Iterate() (device.Vector, error) { return r.weight, nil }

// A number64 is a vector of one element.
type number64 struct {
	device.Vector
	x float64
}

func (*number64) Len() int { return 1 }

func (v *number64) ReadAt(dst []float32, off int) error { return rna.Slice64{v.x}.ReadAt(dst, off) }

func (v *number64) ReadAt64(dst []float64, off int) error { return rna.Slice64{v.x}.ReadAt64(dst, off) }

// TestRefusedSnapshots: training goes on over snapshots within an epoch that the window refuses. At the end of an epoch
// it goes on if a difference overflows, which the record says; the loop has checked that the weights are finite.
func TestRefusedSnapshots(t *testing.T) {
	const huge = 1.7e308
	space, err := rna.NewHost64(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []float64{-huge, math.NaN(), math.Inf(1)} {
		w, err := rna.NewWindow(space, 3)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		h := &RNA{cfg: Options{PerEpoch: 4}, window: w}
		weight := &number64{}
		s := hook.New(hook.State{Epoch: 1, Batches: 4, StepBatches: 1, Seconds: &hook.Seconds{},
			Record: &hook.EpochRecord{}}, numberRun{weight: weight})
		for batch, x := range []float64{huge, bad, 1} {
			s.Batch, weight.x = batch+1, x
			if err := h.AfterStep(t.Context(), s); err != nil {
				t.Errorf("%g after %g: %v", x, huge, err)
			}
		}
		if st := w.State(); w.Len() != 1 || st.Columns[0].Y != 0 || st.Columns[0].X != 1 {
			t.Errorf("%g: %+v", bad, st)
		}
		weight.x = huge
		if err := h.window.Push(weight); err != nil {
			t.Fatal(err)
		}
		weight.x = bad
		err = h.AfterEpoch(t.Context(), s)
		if overflow := bad == -huge; (err == nil) != overflow ||
			overflow && (s.Record.RNA == nil || s.Record.RNA.Status != rna.Overflow.String()) || w.Len() != 2 {
			t.Errorf("%g at the end of an epoch: %v, record %+v, %d residuals", bad, err, s.Record.RNA, w.Len())
		}
	}
}
