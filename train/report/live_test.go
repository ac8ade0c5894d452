package report

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// afterSteps is called after each step.
type afterSteps func(s *hook.State)

func (afterSteps) Name() string { return "after steps" }

func (f afterSteps) AfterStep(_ context.Context, s *hook.State) error {
	f(s)
	return nil
}

// A run is drawn from its first epoch on. If the figure cannot be written, the run continues and logs that once.
func TestLivePlot(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, blocked := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "run")
		path := filepath.Join(dir, "plot.svg")
		if blocked {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		p := NewProgress(io.Discard, io.Discard, true)
		var seen []bool
		run, err := train.New(train.Spec{Batch: 8, Epochs: 4, StepsLimit: 1, ValLimit: 1, Out: dir,
			Schedule: schedule.Schedule{Rate: 0.01}}, train.Deps{Device: dev, Hooks: []hook.Hook{p,
			afterSteps(func(s *hook.State) {
				b, _ := os.ReadFile(path)
				seen = append(seen, bytes.Contains(b, []byte("Training, mean of the epoch")))
			})}})
		if err != nil {
			t.Fatal(err)
		}
		log := ""
		run.Log = func(format string, args ...any) { log += format }
		p.Live = &Live{Run: run}
		if err := run.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Live.Draw(run.History)
		if len(seen) != 4 || seen[0] || seen[1] == blocked {
			t.Errorf("blocked %v: the figure was there at the steps %v", blocked, seen)
		}
		if n := strings.Count(log, "the figures of the run"); n != map[bool]int{true: 1}[blocked] {
			t.Errorf("blocked %v: said %d times: %s", blocked, n, log)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
}
