package train

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// origins lists the names of the images of a set.
func origins(s data.Dataset) []string {
	var list []string
	for i := range s.Len() {
		list = append(list, s.Name(i))
	}
	return list
}

func TestSplit(t *testing.T) {
	set, _, err := data.Open(pictures(t, 20, 0, 8), data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var before []string
	for seed := range uint64(2) {
		c := Spec{Holdout: 0.25, Seed: seed}
		train, held, err := split(&c, set)
		if err != nil {
			t.Fatal(err)
		}
		a, b := origins(train), origins(held)
		if len(a) != 15 || len(b) != 5 || !slices.IsSorted(b) {
			t.Errorf("seed %d: %d images to train on and %d held out: %v", seed, len(a), len(b), b)
		}
		all := slices.Sorted(slices.Values(append(slices.Clone(a), b...)))
		if want := slices.Sorted(slices.Values(origins(set))); !slices.Equal(all, want) {
			t.Errorf("seed %d: together they are %v", seed, all)
		}
		if slices.Equal(b, before) {
			t.Error("the seed does not choose")
		}
		before = b
	}
	c := Spec{Holdout: 0.001}
	if _, held, err := split(&c, set); err != nil || held.Len() != 1 {
		t.Errorf("a small share: %v", err)
	}
	c.Holdout = 0.99
	if _, _, err := split(&c, set); err == nil || !strings.Contains(err.Error(), "none to train on") {
		t.Errorf("error %v", err)
	}
}

// TestHoldout checks that all scored weights are also scored on the held-out images, and that the best weights have the
// lowest loss or error there.
func TestHoldout(t *testing.T) {
	for _, val := range []int{6, 0} {
		by := map[int]string{6: hook.ByLoss, 0: hook.ByError}[val]
		c := tinyColour(filepath.Join(t.TempDir(), "run"), pictures(t, 20, val, 16))
		c.Holdout, c.BestBy = 0.2, by
		r := trained(t, c, cpuDevice(t, 2))
		if n, _ := r.Images(); n != 16 || r.in.held.Images() != 4 {
			t.Errorf("%d images to train on, %d held out", n, r.in.held.Images())
		}
		var best hook.ScoreRecord
		epoch := 0
		for _, rec := range r.History {
			var kinds []network.Kind
			for _, h := range rec.Held {
				kinds = append(kinds, h.Kind)
				if epoch == 0 || hook.Compare(h.Score, best.Score, by) < 0 {
					best, epoch = h, rec.Epoch
				}
			}
			if b := rec.Best; b == nil || b.ScoreRecord != best || b.Epoch != epoch {
				t.Errorf("epoch %d: the record has %+v as the best so far, want %+v of epoch %d", rec.Epoch, b, best, epoch)
			}
			want := []network.Kind{network.SGD, network.SGDStats, network.Average, network.RNA}
			switch {
			case rec.Epoch == 1:
				want = want[:1]
			case rec.Epoch < 4:
				want = want[:2]
			}
			if !slices.Equal(kinds, want) {
				t.Errorf("epoch %d: %v on held-out images, want %v", rec.Epoch, kinds, want)
			}
		}
		meta, err := r.Net.LoadWeights(filepath.Join(c.Out, "best.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := r.judge.evaluateHeld(t.Context()); err != nil || *s != best.Score || meta.Kind != best.Kind ||
			meta.Epoch != epoch {
			t.Errorf("best is %+v of %+v, %v; want %+v of epoch %d", s, meta, err, best, epoch)
		}
	}
}
