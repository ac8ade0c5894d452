package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"onlinerna/internal/files"
	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/internal/store"
	"onlinerna/train/ranks"
)

// TestTrainingGoesOn delays a checkpoint on its way to the disk: the next step runs meanwhile, and the next checkpoint
// waits.
func TestTrainingGoesOn(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.CheckpointSteps, c.StepsLimit, c.Epochs = 2, 6, 1
	released, waited := make(chan struct{}), false
	release := sync.OnceFunc(func() { close(released) })
	files.Trace = func(x files.Change) {
		if x.What == files.Filled && x.Synced && strings.Contains(x.Path, "000002.new") {
			select {
			case <-released:
			case <-time.After(20 * time.Second):
				waited = true
			}
		}
	}
	defer func() { files.Trace = nil }()
	steps := 0
	r := newRun(t, c, cpuDevice(t, 1), watch{Step: func(s *hook.State) error {
		if steps++; steps == 4 { // the checkpoint after step 2 is being written
			release()
		}
		return nil
	}})
	if err := r.Train(context.Background()); err != nil || steps != 6 || waited {
		t.Errorf("%d steps, %v; training waited for a checkpoint: %v", steps, err, waited)
	}
	if _, err := ReadSpec(c.Out); err != nil {
		t.Error(err)
	}
}

// spoiling puts a file into a checkpoint that cannot be a part of it.
type spoiling struct {
	watch
	saves int
}

func (*spoiling) Name() string { return "spoiling" }

func (h *spoiling) Save(_ *hook.State, dir string) (json.RawMessage, error) {
	if h.saves++; h.saves == 3 {
		return json.RawMessage("1"), os.Mkdir(filepath.Join(dir, "spoiling.folder"), 0o777)
	}
	return json.RawMessage("1"), nil
}

func (*spoiling) Load(*hook.State, string, json.RawMessage) error { return nil }

// TestBackgroundFailure makes a checkpoint fail on its way to the disk: the run ends at a later step with an error that
// names the file, and resumes from the previous checkpoint with equal results.
func TestBackgroundFailure(t *testing.T) {
	dir := t.TempDir()
	c := tiny(filepath.Join(dir, "plain"))
	c.CheckpointSteps, c.StepsLimit, c.Epochs = 2, 8, 1
	trained(t, c, cpuDevice(t, 1), &spoiling{saves: 9})
	c.Out = filepath.Join(dir, "spoiled")
	r := newRun(t, c, cpuDevice(t, 1), &spoiling{})
	err := r.Train(context.Background())
	if err == nil || !strings.Contains(err.Error(), "writing the checkpoint") ||
		!strings.Contains(err.Error(), "spoiling.folder") {
		t.Fatal(err)
	}
	if _, _, steps := r.Position(); steps < 4 || steps > 6 {
		t.Errorf("the run ended after step %d, want 5 or, at the latest, 6", steps)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	again, err := Resume(c.Out, Deps{Device: cpuDevice(t, 1), Hooks: []hook.Hook{&spoiling{saves: 9}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, _, steps := again.Position(); steps != 2 {
		t.Errorf("resumed after step %d, want 2", steps)
	}
	if err := again.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	sameFolders(t, c.Out, filepath.Join(dir, "plain"))
}

// awaited waits after a step until the current checkpoint is written or has failed.
func awaited(r **Run, step int, then func()) watch {
	return watch{Step: func(s *hook.State) error {
		if s.Steps == step {
			if (*r).folder.writing != nil {
				<-(*r).folder.writing.done
			}
			then()
		}
		return nil
	}}
}

// TestBackgroundFailureOfRanks makes rank 0's checkpoint fail on its way to the disk: all ranks end at the next step
// with its error.
func TestBackgroundFailureOfRanks(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.CheckpointSteps, c.StepsLimit, c.Epochs, c.RNA.Mode = 2, 16, 1, average.Off // 8 steps
	for k, o := range together(t, 2, c, cpuOne, func(g *ranks.Group, c Spec, dev device.Device) outcome {
		var r *Run
		return runOn(context.Background(), c, dev, g, func(own *Run) { r = own }, &spoiling{},
			second{awaited(&r, 5, func() {})})
	}) {
		if o.err == nil || !Common(o.err) || !strings.Contains(o.err.Error(), "writing the checkpoint") ||
			!strings.Contains(o.err.Error(), "spoiling.folder") {
			t.Errorf("rank %d: %v", k, o.err)
		}
		if n := len(o.losses); n < 5 || n > 6 {
			t.Errorf("rank %d ended after step %d, want 5 or, at the latest, 6", k, n)
		}
	}
	if m, err := store.Find(filepath.Join(c.Out, checkpointDir)); err != nil || m.Step != 2 {
		t.Errorf("the checkpoint is of step %d, want 2: %v", m.Step, err)
	}
}

// TestInterruptAfterBackgroundFailure stops a run right after a checkpoint failed on its way to the disk: its state is
// still saved.
func TestInterruptAfterBackgroundFailure(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	c.CheckpointSteps, c.StepsLimit, c.Epochs = 2, 8, 1
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var r *Run
	r = newRun(t, c, cpuDevice(t, 1), &spoiling{}, second{awaited(&r, 5, cancel)})
	var said []string
	r.Log = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if err := r.Train(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "spoiling.folder") }) {
		t.Errorf("what went wrong is not said: %q", said)
	}
	if m, err := store.Find(filepath.Join(c.Out, checkpointDir)); err != nil || m.Step != 5 {
		t.Errorf("the checkpoint is of step %d, want 5: %v", m.Step, err)
	}
}
