package average_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/rna"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// TestTau checks the bound of CNA, and that τ = 0 gives the average.
func TestTau(t *testing.T) {
	for _, tau := range []float64{0, 0.1} {
		c := tiny("")
		c.Epochs, c.RNA.Window, c.RNA.Tau = 6, 3, &tau
		r := trained(t, c, cpuDevice(t, 2))
		if r.Resolved.RNA.Lambda != nil {
			t.Errorf("lambda is %g beside a tau", *r.Resolved.RNA.Lambda)
		}
		rec := r.History[5].RNA
		if rec == nil || len(rec.C) != 3 || rec.NormC > (1+tau)/math.Sqrt(3)*(1+1e-9) {
			t.Fatalf("tau %g: %+v", tau, rec)
		}
		if tau == 0 {
			near(t, "c", rec.C, uniform(3), 1e-12)
		}
	}
}

// TestSearch checks that λ is chosen by held-out loss, with separate statistics for each candidate.
func TestSearch(t *testing.T) {
	c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 25, 6, 16))
	c.Epochs, c.Holdout, c.RNA.Search, c.RNA.Window = 6, 0.2, true, 3
	var last seen
	r := trained(t, c, cpuDevice(t, 2), &last)
	kinds := map[string]bool{}
	for _, rec := range r.History {
		if rec.RNA == nil {
			continue
		}
		a := rec.RNA
		if len(a.Candidates) != 2+len(rna.DefaultLambdas()) || a.Candidates[0].Kind != "kept" ||
			a.Candidates[1].Kind != "averaged" || a.Candidates[2].Lambda == nil {
			t.Fatalf("epoch %d: candidates %+v", rec.Epoch, a.Candidates)
		}
		for _, k := range a.Candidates {
			if k.Loss == nil || k.Status != "ok" || (k.Kind == "kept") != (k.Error == nil) {
				t.Fatalf("epoch %d: candidate %+v", rec.Epoch, k)
			}
		}
		kinds[a.Choice] = true
		if a.Status != "ok" || a.Choice != "kept" && (len(a.C) < 2 || a.NormC == 0) {
			t.Errorf("epoch %d: record %+v", rec.Epoch, a)
		}
		i := slices.IndexFunc(a.Candidates, func(k hook.CandidateRecord) bool {
			return k.Kind == a.Choice && math.Abs(*k.Loss-rec.HeldScore(network.RNA).Loss) < 1e-5
		})
		if i < 0 {
			t.Errorf("epoch %d: chosen is %q with loss %g: %+v", rec.Epoch, a.Choice, rec.HeldScore(network.RNA).Loss,
				a.Candidates)
		} else if k := a.Candidates[i]; i > 0 && -*k.Difference <= *k.Error {
			t.Errorf("epoch %d: chosen is %+v, within the standard error", rec.Epoch, k)
		}
		// The candidate "kept" is the iterate with re-estimated statistics.
		if math.Abs(*a.Candidates[0].Loss-rec.HeldScore(network.SGDStats).Loss) > 1e-5 {
			t.Errorf("epoch %d: the iterate has loss %g as a candidate and %g by itself", rec.Epoch, *a.Candidates[0].Loss,
				rec.HeldScore(network.SGDStats).Loss)
		}
	}
	if len(kinds) == 0 {
		t.Error("nothing was chosen")
	}
	// rna.safetensors has the weights and the statistics of the choice.
	if _, err := r.Net.LoadWeights(filepath.Join(c.Out, "rna.safetensors")); err != nil {
		t.Fatal(err)
	}
	if s, err := last.EvaluateHeld(t.Context()); err != nil || *s != *r.History[5].HeldScore(network.RNA) {
		t.Errorf("rna.safetensors scores %+v, %v; want %+v", s, err, r.History[5].HeldScore(network.RNA))
	}
}

// TestSearchEnds: a search that is cancelled returns the error and records no choice.
func TestSearchEnds(t *testing.T) {
	c := tiny("")
	c.Epochs, c.Holdout, c.RNA.Search = 4, 0.01, true
	var last seen
	r := trained(t, c, cpuDevice(t, 2), &last)
	last.Record.RNA = &hook.RNARecord{}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := last.Temporarily(func() error {
		ok, err := rnaOf(r).Point(ctx, last.State)
		if ok {
			t.Error("a point of a search that was cancelled")
		}
		return err
	})
	if !errors.Is(err, context.Canceled) || last.Record.RNA.Choice != "" || last.Record.RNA.Candidates != nil {
		t.Errorf("%v, record %+v", err, last.Record.RNA)
	}
}

// TestAcceptance checks that online RNA uses only accepted points.
func TestAcceptance(t *testing.T) {
	c := tiny("")
	c.Epochs, c.Holdout, c.RNA.Mode, c.RNA.Accept = 8, 0.01, average.Online, true
	c.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 0.05}
	r := trained(t, c, cpuDevice(t, 2))
	for _, rec := range r.History {
		if rec.RNA == nil {
			continue
		}
		rises := rec.HeldScore(network.RNA).Loss > rec.HeldScore(network.SGD).Loss
		if rec.RNA.Injected == rises || (rec.RNA.Outcome == "value rose") != rises {
			t.Errorf("epoch %d: the loss rises: %v, record %+v", rec.Epoch, rises, rec.RNA)
		}
	}
}
