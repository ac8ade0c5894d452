package train

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// config.json names the options that a run was given, also after it went on; --config takes the file.
func TestGiven(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	c := tiny(out)
	c.Epochs = 2
	r := newRun(t, c, cpuDevice(t, 1))
	if err := r.TrainTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	r.Close()
	got, err := ReadSpec(out)
	if err != nil || !slices.Contains(got.Given, "epochs") || slices.Contains(got.Given, "lr-final") ||
		slices.Contains(got.Given, "winograd") ||
		got.Schedule.Final == nil {
		t.Fatalf("%v, final rate %v, %v", got.Given, got.Schedule.Final, err)
	}
	before, err := os.ReadFile(filepath.Join(out, configName))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Resume(out, Deps{Device: cpuDevice(t, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(out, configName))
	if err != nil || !bytes.Equal(before, after) || !bytes.Contains(after, []byte(`"given": [`)) {
		t.Errorf("%v\n%s", err, after)
	}
	if _, err := ReadOptions(filepath.Join(out, configName)); err != nil {
		t.Error(err)
	}
}
