package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"onlinerna/internal/files"
	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// rich has a state of every kind: weights, BatchNorm statistics, momentum, a window, an EMA, best weights.
func rich(t *testing.T, out string) Spec {
	return Spec{Data: pictures(t, 36, 11, 12), Model: "conv6", Batch: 3, Epochs: 5, Seed: 3, Out: out, EMA: []float64{3, 6},
		CheckpointSteps: 1, RNA: average.Options{Mode: average.Offline, Window: 3}}
}

// trainOn trains or resumes a run on ranks up to an epoch, or until the rank with the highest number stops it in the
// given step.
func trainOn(t *testing.T, n, stop int, c Spec, resume bool) []error {
	t.Helper()
	return rankstest.Errors(t, n, time.Minute, func(g *ranks.Group) (err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		dev, _ := cpuOne()
		d := Deps{Device: dev, Ranks: g, Hooks: []hook.Hook{watch{Step: func(s *hook.State) error {
			if g.Rank() == n-1 && s.Steps == stop {
				cancel()
			}
			return nil
		}}}}
		var r *Run
		if resume {
			r, err = Resume(c.Out, d, nil)
		} else {
			r, err = New(c, d)
		}
		if err != nil {
			return err
		}
		return errors.Join(r.Train(ctx), r.Close())
	})
}

// stateOf are hashes of all that a run has loaded from its checkpoint on ranks.
func stateOf(t *testing.T, n int, out string) string {
	t.Helper()
	var list []string
	rankstest.Run(t, n, time.Minute, func(g *ranks.Group) error {
		dev, _ := cpuOne()
		r, err := Resume(out, Deps{Device: dev, Ranks: g, Hooks: []hook.Hook{watch{}}}, nil)
		if err != nil {
			return err
		}
		defer r.Close()
		var own []string
		add := func(what string, v device.Vector) error {
			h, err := network.Hash(v)
			own = append(own, what+" "+h)
			return err
		}
		err = errors.Join(add("weights", r.Net.Params), add("statistics", r.Net.Stats))
		for i, v := range r.engine.update.State {
			err = errors.Join(err, add(fmt.Sprint("state ", i), v))
		}
		w := r.Hook("rna").(*average.RNA).Window()
		tmp, _ := r.Net.NewParams()
		for i := range w.Vectors() {
			x := make([]float64, tmp.Len())
			err = errors.Join(err, w.Vector(i).ReadAt64(x, 0), tmp.WriteAt64(x, 0), add(fmt.Sprint("snapshot ", i), tmp))
		}
		if g.First() {
			list = own
			if w.Vectors() < 2 {
				err = errors.Join(err, fmt.Errorf("%d snapshots", w.Vectors()))
			}
		}
		return err
	})
	best, err := os.ReadFile(filepath.Join(out, bestFile))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s best %x", strings.Join(list, ", "), len(best)) + string(best)
}

// checkpointFiles are the names in the newest checkpoint.
func checkpointFiles(t *testing.T, out string) []string {
	t.Helper()
	dir, err := Checkpoint(out)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range all {
		list = append(list, e.Name())
	}
	return list
}

// Each rank writes its share of a checkpoint. Any number of ranks reads the same bits again, also those of a single
// process; the same ranks go on with equal bits.
func TestShares(t *testing.T) {
	dir := t.TempDir()
	c := rich(t, filepath.Join(dir, "run"))
	whole := c
	whole.Out = filepath.Join(dir, "whole")
	for _, err := range trainOn(t, 4, 0, whole, false) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range trainOn(t, 4, 10, c, false) { // of 15, 3 an epoch
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
	}
	list := checkpointFiles(t, c.Out)
	for _, name := range []string{"weights-00001-of-00004.safetensors", "weights-00004-of-00004.safetensors",
		"weights.safetensors.index.json", "momentum-00002-of-00004.safetensors", "rna-000-00003-of-00004.safetensors",
		"ema-00004-of-00004.safetensors", "best-00004-of-00004.part"} {
		if !slices.Contains(list, name) {
			t.Errorf("%s is missing in %v", name, list)
		}
	}
	if slices.Contains(list, "weights.safetensors") || slices.Contains(list, bestFile) {
		t.Errorf("whole vectors in %v", list)
	}
	copyOf := func(n int) string {
		to := filepath.Join(dir, fmt.Sprint("copy-", n))
		if err := os.CopyFS(to, os.DirFS(c.Out)); err != nil {
			t.Fatal(err)
		}
		return to
	}
	want := stateOf(t, 4, copyOf(4))
	for _, n := range []int{1, 2, 3, 5} {
		if got := stateOf(t, n, copyOf(n)); got != want {
			t.Errorf("%d ranks read another state", n)
		}
	}
	single := c
	single.Out = filepath.Join(dir, "copy-1")
	for _, n := range []int{1, 3} { // one process goes on, and three ranks from its checkpoint
		for _, err := range trainOn(t, n, map[int]int{1: 12, 3: 15}[n], single, true) {
			if !errors.Is(err, ErrInterrupted) {
				t.Fatal(err)
			}
		}
		if has := slices.Contains(checkpointFiles(t, single.Out), "weights.safetensors"); has != (n == 1) {
			t.Errorf("%d ranks wrote %v", n, checkpointFiles(t, single.Out))
		}
	}
	for _, err := range trainOn(t, 4, 0, c, true) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{finalName, bestFile, "rna.safetensors", "ema.safetensors"} {
		a, err := os.ReadFile(filepath.Join(whole.Out, name))
		b, e := os.ReadFile(filepath.Join(c.Out, name))
		if err != nil || e != nil || string(a) != string(b) {
			t.Errorf("%s differs from that of a run without a stop (%v, %v)", name, err, e)
		}
	}
	results, err := Verify(c.Out)
	for _, v := range results {
		err = errors.Join(err, v.Err)
	}
	if err != nil {
		t.Error(err)
	}
}

// Rank 0 writes whole checkpoints if another rank cannot write to the folder.
func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	c := rich(t, filepath.Join(dir, "run"))
	files.Fault = func(call, path string) error {
		if call == "create" && strings.HasPrefix(filepath.Base(path), ".probe.") {
			return syscall.EROFS
		}
		return nil
	}
	defer func() { files.Fault = nil }()
	for _, err := range trainOn(t, 3, 14, c, false) {
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
	}
	list := checkpointFiles(t, c.Out)
	for _, name := range list {
		if network.ShareOf(name) != (network.Share{}) {
			t.Errorf("%s is a share", name)
		}
	}
	if !slices.Contains(list, "rna-001.safetensors") || !slices.Contains(list, "ema.safetensors") {
		t.Errorf("%v", list)
	}
	stateOf(t, 2, c.Out)
}
