package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"onlinerna/train/hook"
)

// TestMetrics checks the lines of metrics.jsonl against the run.
func TestMetrics(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	var steps []hook.StepRecord
	r := trained(t, c, cpuDevice(t, 1), watch{Step: func(s *hook.State) error {
		steps = append(steps, *s.Step)
		return nil
	}})
	path := filepath.Join(c.Out, "metrics.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) != 5*(3+1) || len(steps) != 15 {
		t.Fatalf("%d lines for %d steps", len(lines), len(steps))
	}
	for i, line := range lines {
		if epoch := i/4 + 1; i%4 == 3 {
			var rec hook.EpochRecord
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(rec, r.History[epoch-1]) || rec.Kind != "epoch" || rec.Epoch != epoch || rec.Step != 3*epoch ||
				rec.Train.Images != 24 || rec.SGD.Images != 16 {
				t.Errorf("line %d: %s is not %+v", i+1, line, r.History[epoch-1])
			}
			continue
		}
		var rec hook.StepRecord
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		k := i - i/4
		if rec != steps[k] || rec.Kind != "step" || rec.Step != k+1 || rec.Rate != r.Resolved.Schedule.At(i/4) ||
			rec.Images != 8 || rec.Loss <= 0 {
			t.Errorf("line %d: %s is not %+v", i+1, line, steps[k])
		}
	}
	// An epoch's loss is the mean of its steps' losses: no smoothing, equal batches.
	for e, rec := range r.History {
		loss := (steps[3*e].Loss + steps[3*e+1].Loss + steps[3*e+2].Loss) / 3
		near(t, "loss of an epoch", []float64{rec.Train.Loss}, []float64{loss}, 1e-5)
	}
	// A file left by a killed program is readable up to its last whole line.
	for _, tail := range []string{"", `{"kind":"st`, `{"kind":"epoch","epoch":6}`} {
		put(t, path, append(b, tail...))
		if h, err := ReadHistory(c.Out); err != nil || !reflect.DeepEqual(h, r.History) {
			t.Errorf("with %q at the end: %d epochs, %v", tail, len(h), err)
		}
	}
	put(t, path, append([]byte("{}\nx\n"), b...))
	if _, err := ReadHistory(c.Out); err == nil || !strings.Contains(err.Error(), path+": line 2") {
		t.Errorf("error %v does not name the line", err)
	}
}

// A log that another program cuts, removes or replaces while the run goes on is noticed at the next line: it is whole
// again as far as it can be, and the run's checkpoints agree with it.
func TestDisturbedMetrics(t *testing.T) {
	for _, c := range []struct {
		name, said string
		disturb    func(path string) error
		lost       int // lines
	}{
		{"cut in a line", "has been cut to 10 bytes", func(path string) error { return os.Truncate(path, 10) }, 4},
		{"emptied", "has been cut to 0 bytes", func(path string) error { return os.Truncate(path, 0) }, 4},
		{"removed", "has been removed or replaced", os.Remove, 0},
		{"renamed", "has been removed or replaced", func(path string) error { return os.Rename(path, path+".1") }, 0},
		{"replaced", "has been removed or replaced", func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, []byte("other\n"), 0o644))
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := tiny(filepath.Join(t.TempDir(), "run"))
			path := filepath.Join(spec.Out, metricsName)
			var said strings.Builder
			log := func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }
			disturb := watch{Step: func(s *hook.State) error {
				if s.Steps == 5 { // in the second epoch of three steps
					return c.disturb(path)
				}
				return nil
			}}
			r, err := New(spec, Deps{Device: cpuDevice(t, 1), Log: log, Hooks: []hook.Hook{disturb}})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.Train(t.Context()), r.Close()); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(said.String(), "Warning: "+path+" "+c.said); n != 1 {
				t.Errorf("said %d times: %s", n, said.String())
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), "\n"); n != 5*4-c.lost {
				t.Errorf("%d lines", n)
			}
			if h, err := ReadHistory(spec.Out); err != nil || h[len(h)-1].Epoch != 5 {
				t.Errorf("%d epochs, %v", len(h), err)
			}
			list, err := Verify(spec.Out)
			for _, v := range list {
				err = errors.Join(err, v.Err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
