package train

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/hook"
)

func state(t *testing.T, out string) (State, *Failure) {
	t.Helper()
	c, err := ReadSpec(out)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := ReadHistory(out)
	s, f, err := ReadState(out, c, h)
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

// A run that stops after epochs 1, 1 again and 3, in one process and resumed, ends as one that does not stop.
func TestTrainTo(t *testing.T) {
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	trained(t, tiny(whole), cpuDevice(t, 1)).Close()
	c := tiny(parts)
	c.CheckpointEvery = 2
	during := State("")
	r := newRun(t, c, cpuDevice(t, 1), &watch{Epoch: func(*hook.State) error {
		during, _ = state(t, parts)
		return nil
	}})
	to := func(epoch int) {
		t.Helper()
		if err := r.TrainTo(context.Background(), epoch); err != nil {
			t.Fatal(err)
		}
		if h, err := ReadHistory(parts); err != nil || len(h) != epoch {
			t.Fatalf("%d epochs, %v", len(h), err)
		}
		if s, _ := state(t, parts); s != Running {
			t.Errorf("paused in this process: %s", s)
		}
	}
	to(1)
	to(1)
	if during != Running {
		t.Errorf("a run that trains: %q", during)
	}
	list, _ := os.ReadDir(filepath.Join(parts, checkpointDir))
	if r.Close(); len(list) == 0 {
		t.Fatal("no checkpoint")
	}
	if s, _ := state(t, parts); s != Stopped {
		t.Errorf("closed: %s", s)
	}
	for _, epoch := range []int{3, 5} {
		var err error
		if r, err = Resume(parts, Deps{Device: cpuDevice(t, 1), Hooks: []hook.Hook{&watch{}}}, nil); err != nil {
			t.Fatal(err)
		}
		if _, _, steps := r.Position(); epoch == 5 && steps != 9 {
			t.Errorf("resumed at step %d", steps)
		}
		to(epoch)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if s, _ := state(t, parts); s != Done {
		t.Errorf("at the end: %s", s)
	}
	for _, name := range []string{"final.safetensors", "best.safetensors"} {
		a, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(parts, name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs, %v", name, err)
		}
	}
	a, _ := os.ReadFile(filepath.Join(whole, metricsName))
	b, _ := os.ReadFile(filepath.Join(parts, metricsName))
	if untimed(t, a) != untimed(t, b) {
		t.Error("the metrics differ")
	}
}

// A diverged run is recorded as failed, until it is resumed.
func TestFailure(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	c := tiny(out)
	c.Schedule.Rate = 1e6
	r := newRun(t, c, cpuDevice(t, 1))
	err := r.Train(context.Background())
	if err == nil {
		t.Fatal("it does not diverge")
	}
	r.Close()
	s, f := state(t, out)
	if s != Failed || f == nil || f.Error != err.Error() || !f.Diverged || f.Epoch < 1 {
		t.Errorf("%s, %+v", s, f)
	}
	if err := os.WriteFile(filepath.Join(out, failureName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, f := state(t, out); s != Failed || !strings.Contains(f.Error, "unknown") {
		t.Errorf("%s, %+v", s, f)
	}
	if r, err = Resume(out, Deps{Device: cpuDevice(t, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := r.Train(ctx); err == nil {
		t.Fatal("not interrupted")
	}
	r.Close()
	if s, f := state(t, out); s != Interrupted || f != nil {
		t.Errorf("%s, %+v", s, f)
	}
}
