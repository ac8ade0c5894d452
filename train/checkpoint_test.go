package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/hook"
	"onlinerna/train/internal/store"
	"onlinerna/train/internal/traintest"
)

// TestCheckpointKilled resumes from the files that a program killed during a checkpoint leaves.
func TestCheckpointKilled(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	stopped(t, tiny(out), 5)
	newest, err := Checkpoint(out)
	if err != nil {
		t.Fatal(err)
	}
	next := newest[:len(newest)-1] + "9"
	put(t, filepath.Join(next+".new", "weights.safetensors"), []byte("half"))
	put(t, filepath.Join(next, "weights.safetensors"), []byte("half, being removed"))
	r, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.pos.Steps != 5 || len(r.Resolved.Notes) > 0 {
		t.Errorf("at step %d, want 5; %q", r.pos.Steps, r.Resolved.Notes)
	}
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{next + ".new", next} {
		if _, err := os.Stat(d); err == nil {
			t.Errorf("%s is left", d)
		}
	}
}

// TestKilledAtBegin continues from each state that a program killed at the start of a run leaves: there is no run, or
// it can be resumed.
func TestKilledAtBegin(t *testing.T) {
	source := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := newRun(t, tiny(source), cpuDevice(t, 1))
	if err := begun.Train(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	begun.Close()
	for name, harm := range map[string]func(dir string) error{
		"a folder": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)) },
		"half a checkpoint": func(dir string) error {
			c, err := Checkpoint(dir)
			return errors.Join(err, os.RemoveAll(filepath.Join(dir, "metrics.jsonl")), os.Remove(filepath.Join(dir, configName)),
				os.Rename(c, c+".new"))
		},
		"no config.json": func(dir string) error { return os.Remove(filepath.Join(dir, configName)) },
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
		if list, err := filepath.Glob(filepath.Join(dir, checkpointDir, "0*")); err != nil || len(list) != 2 {
			t.Fatal(list, err)
		} else if err := os.RemoveAll(list[1]); err != nil { // the checkpoint of the interrupt
			t.Fatal(err)
		}
		if err := harm(dir); err != nil {
			t.Fatal(err)
		}
		dev := cpuDevice(t, 1)
		r, err := Resume(dir, Deps{Device: dev}, nil)
		if resumes := name == "no config.json"; resumes != (err == nil) || !resumes &&
			!strings.Contains(err.Error(), "nothing to resume") {
			t.Errorf("%s: %v", name, err)
		} else if !resumes {
			r = newRun(t, tiny(dir), dev)
		}
		if r == nil {
			continue
		}
		if err := r.Train(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
		whole := tiny(filepath.Join(t.TempDir(), "whole"))
		trained(t, whole, dev)
		sameFolders(t, dir, whole.Out)
	}
}

// TestDamagedCheckpoint flips a bit of each file of the newest checkpoint: the run resumes from the previous one and
// ends with equal results.
func TestDamagedCheckpoint(t *testing.T) {
	dev := cpuDevice(t, 1)
	source := filepath.Join(t.TempDir(), "run")
	stopped(t, tiny(source), 11)
	whole := tiny(filepath.Join(t.TempDir(), "whole"))
	trained(t, whole, dev)
	newest, err := Checkpoint(source)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range traintest.Files(t, newest) {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, checkpointDir, filepath.Base(newest), name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)*(i+1)/20] ^= 1 << (i % 8)
		put(t, path, b)
		r, err := Resume(dir, Deps{Device: dev}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if said := strings.Join(r.Resolved.Notes, "\n"); !strings.Contains(said, path) ||
			!strings.Contains(said, "damaged") || r.pos.Steps >= 11 {
			t.Errorf("%s: at step %d, %q", name, r.pos.Steps, said)
		}
		if err := r.Train(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
		sameFolders(t, dir, whole.Out)
	}
}

// TestReadConfig reads the config of a run whose checkpoints have damaged configs: it takes the run folder's, and
// without that the error names the damaged files.
func TestReadConfig(t *testing.T) {
	c := tiny(filepath.Join(t.TempDir(), "run"))
	stopped(t, c, 4)
	list, err := store.List(filepath.Join(c.Out, checkpointDir))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for _, dir := range list {
		put(t, filepath.Join(dir, configName), []byte("{}"))
	}
	if got, err := ReadSpec(c.Out); err != nil || got.Seed != c.Seed {
		t.Errorf("seed %d, want %d: %v", got.Seed, c.Seed, err)
	}
	put(t, filepath.Join(c.Out, configName), []byte("{"))
	if _, err := ReadSpec(c.Out); err == nil || !strings.Contains(err.Error(), filepath.Join(list[0], configName)) {
		t.Errorf("the error is %v", err)
	}
}

// TestDamagedMetrics resumes a run with a flipped bit in its metrics, and expects a warning.
func TestDamagedMetrics(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	stopped(t, tiny(out), 11)
	path := filepath.Join(out, "metrics.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 100, len(whole) / 2} {
		b := bytes.Clone(whole)
		b[at] ^= 4
		put(t, path, b)
		r, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, nil)
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		if said := strings.Join(r.Resolved.Notes, "\n"); !strings.Contains(said, path+" is damaged") || r.pos.Steps != 11 {
			t.Errorf("byte %d: at step %d, %q", at, r.pos.Steps, said)
		}
		r.Close()
		list, err := Verify(out)
		if err != nil || !slices.ContainsFunc(list, func(v Verified) bool { return v.Path == path && v.Err != nil }) {
			t.Errorf("byte %d: %+v, %v", at, list, err)
		}
	}
}

// TestLostMetrics resumes runs with missing or truncated metrics. It expects a warning, the weights of an undisturbed
// run, and whole lines afterwards.
func TestLostMetrics(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	trained(t, tiny(whole), cpuDevice(t, 1)).Close()
	for name, left := range map[string]float64{"is gone": -1, "is cut short": 0.55, "cut short, it had": 0} {
		out := filepath.Join(t.TempDir(), "run")
		stopped(t, tiny(out), 11)
		path := filepath.Join(out, "metrics.jsonl")
		b, err := os.ReadFile(path)
		if err == nil && left < 0 {
			err = os.Remove(path)
		} else if err == nil {
			err = os.Truncate(path, int64(left*float64(len(b))))
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if said := strings.Join(r.Resolved.Notes, "\n"); !strings.Contains(said, path+" is") ||
			!strings.Contains(said, name) || r.pos.Steps != 11 {
			t.Errorf("%s: at step %d, %q", name, r.pos.Steps, said)
		}
		if err := errors.Join(r.Train(context.Background()), r.Close()); err != nil {
			t.Fatal(err)
		}
		if h, err := ReadHistory(out); err != nil || len(h) == 0 {
			t.Errorf("%s: %d epochs, %v", name, len(h), err)
		}
		a, err := os.ReadFile(filepath.Join(whole, "final.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(out, "final.safetensors")); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: other weights than those of an uninterrupted run, %v", name, err)
		}
		list, err := Verify(out)
		if err != nil || slices.ContainsFunc(list, func(v Verified) bool { return v.Err != nil }) {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

// TestVerify detects a flipped bit in any file of a run.
func TestVerify(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	c := tiny(out)
	c.KeepEvery, c.KeepBest, c.EMA = 2, 1, []float64{6}
	trained(t, c, cpuDevice(t, 1)).Close()
	wrong := func() (list []string) {
		all, err := Verify(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			if v.Err != nil {
				list = append(list, v.Err.Error())
			} else if !v.Sums {
				t.Errorf("%s has no checksums", v.Path)
			}
		}
		return list
	}
	if list := wrong(); list != nil {
		t.Fatal(list)
	}
	for _, name := range traintest.Files(t, out) {
		if strings.Contains(name, "/.lock") {
			continue
		}
		path := filepath.Join(out, filepath.FromSlash(name))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/3] ^= 16
		put(t, path, b)
		if list := wrong(); len(list) != 1 || !strings.Contains(list[0], path) {
			t.Errorf("%s: %q", path, list)
		}
		b[len(b)/3] ^= 16
		put(t, path, b)
	}
	// files that the run should have
	for _, name := range traintest.Files(t, out) {
		path := filepath.Join(out, filepath.FromSlash(name))
		if strings.Contains(name, "/.lock") || name == failureName || name == sessionsName {
			continue
		}
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		if list := wrong(); len(list) == 0 || !slices.ContainsFunc(list, func(s string) bool {
			return strings.Contains(s, path)
		}) {
			t.Errorf("%s is missing: %q", path, list)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	// Characters of patterns in the path, and a file that the system adds.
	plain := out
	out = filepath.Join(t.TempDir(), "run [1] *?")
	if runtime.GOOS == "windows" { // which has no * and ? in names
		out = filepath.Join(t.TempDir(), "run [1]")
	}
	if err := os.CopyFS(out, os.DirFS(plain)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(out, "._final.safetensors"), []byte("attributes"))
	if list := wrong(); list != nil {
		t.Error(list)
	}
	for _, name := range []string{finalName, "kept/epoch-0002.safetensors"} {
		path := filepath.Join(out, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/3] ^= 16
		put(t, path, b)
		if list := wrong(); len(list) != 1 || !strings.Contains(list[0], path) {
			t.Errorf("%s: %q", path, list)
		}
		b[len(b)/3] ^= 16
		put(t, path, b)
	}
	out = plain
	if _, err := Verify(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Error(err)
	}
	// weights without the files to resume them
	if err := os.RemoveAll(filepath.Join(out, checkpointDir)); err != nil {
		t.Fatal(err)
	}
	if list := wrong(); list != nil {
		t.Error(list)
	}
}

// TestEditedConfig resumes with a config.json that differs from the checkpoint's: the checkpoint's applies.
func TestEditedConfig(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	stopped(t, tiny(out), 5)
	path := filepath.Join(out, configName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, []byte(strings.Replace(string(b), `"epochs": 5`, `"erochs": 4`, 1)))
	r, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if said := strings.Join(r.Resolved.Notes, "\n"); !strings.Contains(said, "epochs, erochs") || r.Resolved.Epochs != 5 {
		t.Errorf("%d epochs, %q", r.Resolved.Epochs, said)
	}
	now, err := os.ReadFile(path)
	other, err2 := os.ReadFile(path + ".other")
	if err := errors.Join(err, err2); err != nil || !bytes.Equal(now, b) || !strings.Contains(string(other), "erochs") {
		t.Errorf("config.json %s, beside it %s, %v", now, other, err)
	}
}

// TestTwoRuns: no other process may write into the folder of a running run.
func TestTwoRuns(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	c := tiny(out)
	tried := 0
	watcher := traintest.Watch{Epoch: func(s *hook.State) error {
		if s.Epoch != 2 {
			return nil
		}
		tried++
		_, err := Resume(out, Deps{Device: cpuDevice(t, 1), Hooks: []hook.Hook{traintest.Watch{}}}, nil)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) ||
			!strings.Contains(err.Error(), out) {
			t.Errorf("resumed: %v", err)
		}
		return nil
	}}
	r, err := New(c, Deps{Device: cpuDevice(t, 1), Hooks: []hook.Hook{watcher}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Train(t.Context()), r.Close()); err != nil || tried != 1 {
		t.Error(err, tried)
	}
}

// TestResumeLocks: no other process goes on with a run that is being resumed, and writes a newer checkpoint.
func TestResumeLocks(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	stopped(t, tiny(out), 5)
	var other error
	r, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, func(*Spec) {
		var r *Run
		if r, other = Resume(out, Deps{Device: cpuDevice(t, 1)}, nil); other == nil {
			other = errors.Join(r.Train(t.Context()), r.Close())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if held := (*store.HeldError)(nil); !errors.As(other, &held) || r.pos.Steps != 5 {
		t.Errorf("resumed at step %d; another process: %v", r.pos.Steps, other)
	}
	newest, err := Checkpoint(out)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := store.Read(newest); err != nil || m.Step != r.pos.Steps {
		t.Errorf("%s is of step %d, the run at step %d: %v", newest, m.Step, r.pos.Steps, err)
	}
	// A resume that fails leaves no lock.
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, func(c *Spec) { c.Data = "missing" }); err == nil {
		t.Error("resumed without the data")
	}
	if store.Held(filepath.Join(out, checkpointDir)) {
		t.Error("the lock is held")
	}
}

// TestCheckpointEvery counts checkpoints by each kind of interval, and resumes from those within an epoch.
func TestCheckpointEvery(t *testing.T) {
	dev := cpuDevice(t, 1)
	whole := tiny(filepath.Join(t.TempDir(), "whole"))
	trained(t, whole, dev)
	for _, c := range []struct {
		name string
		set  func(*Spec)
		want int // plus the one written at the start
	}{
		{"epochs", func(c *Spec) { c.CheckpointEvery = 2 }, 3},
		{"steps", func(c *Spec) { c.CheckpointSteps = 2 }, 8},
		{"minutes", func(c *Spec) { c.CheckpointMinutes = 1e-9 }, 15},
	} {
		conf := tiny(filepath.Join(t.TempDir(), "run"))
		conf.CheckpointKeep = 100
		c.set(&conf)
		trained(t, conf, dev).Close()
		list, err := store.List(filepath.Join(conf.Out, checkpointDir))
		if err != nil || len(list) != c.want+1 {
			t.Errorf("by %s: %d checkpoints, %v", c.name, len(list), err)
		}
		for _, newer := range list[:len(list)/2] { // continue from the middle
			if err := os.RemoveAll(newer); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Resume(conf.Out, Deps{Device: dev}, nil)
		if err == nil {
			err = errors.Join(r.Train(t.Context()), r.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"final.safetensors", "best.safetensors", "checkpoint/momentum.safetensors",
			"rna.safetensors"} {
			a, err := os.ReadFile(inRun(t, conf.Out, name))
			b, err2 := os.ReadFile(inRun(t, whole.Out, name))
			if err := errors.Join(err, err2); err != nil || !bytes.Equal(a, b) {
				t.Errorf("by %s: %s differs, %v", c.name, name, err)
			}
		}
	}
}
