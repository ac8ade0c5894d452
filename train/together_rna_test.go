package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// Ranks that keep a part of each snapshot extrapolate as one process does, also when a run resumes with another number
// of ranks.
func TestRNAOverRanks(t *testing.T) {
	lambda := 1e-2
	c := Spec{Data: pictures(t, 24, 3, 12), Model: "conv6", Batch: 2, Epochs: 3, Seed: 3, Accumulate: 6,
		RNA: average.Options{Mode: average.Online, Start: 1, Window: 4, Lambda: &lambda, Every: 2}}
	dev, _ := reference64()
	want := runOn(context.Background(), c, dev, nil, nil)
	if want.err != nil {
		t.Fatal(want.err)
	}
	check := func(what string, k int, got outcome) {
		t.Helper()
		if got.err != nil || len(got.history) != c.Epochs {
			t.Fatalf("%s, rank %d: %v", what, k, got.err)
		}
		for e, rec := range got.history {
			a, b := rec.RNA, want.history[e].RNA
			if (a == nil) != (b == nil) || a != nil && (a.Status != b.Status || apart(a.C, b.C) > 1e-10 ||
				a.Injected != b.Injected) {
				t.Errorf("%s, rank %d, epoch %d: %+v, want %+v", what, k, e+1, a, b)
			}
		}
		if d := apart(got.params, want.params); d > 1e-10 {
			t.Errorf("%s: parameters of rank %d differ by %g", what, k, d)
		}
	}
	last := want.history[2].RNA
	if last == nil || len(last.C) < 2 || !last.Injected {
		t.Fatalf("nothing was extrapolated: %+v", last)
	}
	of := func(n int) Spec { c := c; c.Accumulate = 6 / n; return c }
	for k, got := range together(t, 2, of(2), reference64, nil) {
		check("2 ranks", k, got)
	}

	// Three ranks stop in the second epoch; two and one resume.
	saved := of(3)
	saved.Out = filepath.Join(t.TempDir(), "run")
	for k, o := range together(t, 3, saved, reference64, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		return runOn(ctx, c, dev, g, func(r *Run) {
			w := r.Hook("rna").(*average.RNA).Window().Space().(rna.Divided)
			if most := (r.Net.Params.Len() + 2) / 3; w.Own().Dim() > most || w.Dim() != r.Net.Params.Len() {
				t.Errorf("rank %d keeps %d of %d elements", g.Rank(), w.Own().Dim(), w.Dim())
			}
		}, second{watch{Step: func(s *hook.State) error {
			if g.Rank() == 1 && s.Epoch == 2 && s.Batch > 0 {
				cancel()
			}
			return nil
		}}})
	}) {
		if !errors.Is(o.err, ErrInterrupted) {
			t.Fatalf("rank %d: %v", k, o.err)
		}
	}
	for _, n := range []int{2, 1} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(saved.Out)); err != nil {
			t.Fatal(err)
		}
		list := make([]outcome, n)
		resume := func(g *ranks.Group) error {
			dev, _ := reference64()
			r, err := Resume(dir, Deps{Device: dev, Ranks: g}, func(c *Spec) { c.Accumulate = 6 / n })
			if err != nil {
				return err
			}
			defer r.Close()
			err = r.Train(context.Background())
			o := outcome{err: err, history: r.History, params: make([]float64, r.Net.Params.Len())}
			list[g.Rank()] = o
			return errors.Join(err, r.Net.Params.ReadAt64(list[g.Rank()].params, 0))
		}
		if n == 1 {
			if err := resume(nil); err != nil {
				t.Fatal(err)
			}
		} else {
			rankstest.Run(t, n, time.Minute, resume)
		}
		for k, got := range list {
			check(fmt.Sprintf("3 ranks and then %d", n), k, got)
		}
	}
}
