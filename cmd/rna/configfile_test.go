package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/schedule"
)

// TestConfigFile trains from a YAML file and from a run's config.json; the command line wins.
func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	yaml := file("a.yaml", "model: lenet\nepochs: 3\nbatch: 16\nsteps_limit: 2\nval_limit: 1\nmomentum: "+
		"0.5\noptimizer: sgd\n"+
		"schedule: {kind: cosine, rate: 0.03}\nrna: {start: 1, window: 2, averages: [], tau: 0.5}\nno_shuffle: "+
		"true\nseed: 7\n")
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	mustRun(t, "train", "--config", yaml, "-o", first, "-q", "--seed", "9", "--device", "cpu")
	mustRun(t, "train", "--config", filepath.Join(first, "config.json"), "-o", second, "-q", "--batch", "8",
		"--rna-lambda", "1e-3", "--averages", "2")
	a, err := train.ReadSpec(first)
	b, err2 := train.ReadSpec(second)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if a.Epochs != 3 || a.Batch != 16 || *a.Momentum != .5 || a.Schedule.Kind != schedule.Cosine ||
		a.Schedule.Rate != .03 || *a.Shuffle || a.Seed != 9 ||
		a.RNA.Window != 2 || len(a.RNA.Averages) != 0 || *a.RNA.Tau != .5 || a.StepsLimit != 2 {
		t.Errorf("%+v", a)
	}
	if has := winograd(t); *a.Winograd != has || *b.Winograd != has {
		t.Errorf("Winograd's algorithm: %v and %v, want the CPU's default, %v", *a.Winograd, *b.Winograd, has)
	}
	if b.Batch != 8 || *b.Momentum != .5 || b.Seed != 9 || *b.RNA.Lambda != 1e-3 || b.RNA.Tau != nil ||
		len(b.RNA.Averages) != 1 || *b.Shuffle {
		t.Errorf("%+v", b)
	}
	for _, c := range []struct{ path, want string }{
		{file("unknown.yaml", "epoch: 3\n"), `unknown key "epoch", did you mean epochs?`},
		{file("inner.json", `{"rna": {"windows": 3}}`), `unknown key "windows" in rna`},
		{file("kind.json", `{"epochs": "three"}`), "epochs three: want a whole number"},
		{file("broken.yaml", "a: [1\n"), "broken.yaml"},
		{filepath.Join(dir, "none.json"), "none.json"},
	} {
		if status, _, err := runRNA(t, "train", "--config", c.path); status == 0 || !strings.Contains(err, c.want) {
			t.Errorf("%s: status %d, stderr %q", c.path, status, err)
		}
	}
}

// TestExtend continues a finished run for more epochs.
func TestExtend(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	mustRun(t, append([]string{"train", "--epochs", "2", "--schedule", "cosine", "-o", run, "-q", "--rna", "off"},
		quick[:6]...)...)
	out := mustRun(t, "train", "--resume", run, "--epochs", "4", "-q")
	if !strings.Contains(out, "4 epochs in place of 2: the learning rate is that of a run of 4 epochs from here on") {
		t.Errorf("output\n%s", out)
	}
	h, err := train.ReadHistory(run)
	if err != nil || len(h) != 4 {
		t.Fatalf("%d epochs, %v", len(h), err)
	}
	c, err := train.ReadSpec(run)
	if err != nil || c.Epochs != 4 || h[2].Rate != c.Schedule.At(2) {
		t.Errorf("%d epochs, rate %g in epoch 3, %v", c.Epochs, h[2].Rate, err)
	}
	if status, _, err := runRNA(t, "train", "--resume", run, "--epochs", "3"); status == 0 || !strings.Contains(err,
		"epochs are done: a run of 3 epochs is shorter") {
		t.Errorf("status %d, stderr %q", status, err)
	}
}
