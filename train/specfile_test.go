package train

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzReadFile reads arbitrary configs; an accepted one, once written, reads back equal.
func FuzzReadFile(f *testing.F) {
	f.Add([]byte(`{"model": "lenet", "batch": 8, "schedule": {"kind": "hold"}, "rna": {"window": 5}}`), false)
	f.Add([]byte("model: lenet\nbatch: 8\nmean: [0.5]\nrna:\n  window: 5\n"), true)
	f.Add([]byte(`{"lr": 0.1, "schedule": "cosine", "checkpoint-every": "10m", "batch": "auto", `+
		`"rna_lambda": "auto", "train-crop-ramp": [1, 3]}`), false)
	f.Add([]byte("{}{}"), false)
	f.Add([]byte("a: &a [*a]"), true)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte, yaml bool) {
		path := filepath.Join(dir, "c.json")
		if yaml {
			path = filepath.Join(dir, "c.yaml")
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := ReadOptions(path)
		if err != nil {
			return
		}
		var c Spec
		if err := table.Apply(&c, list...); err != nil {
			t.Fatal(err)
		}
		if err := c.write(dir); err != nil {
			t.Fatal(err)
		}
		again, err := readSpec(dir)
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if err := again.write(dir); err != nil {
			t.Fatal(err)
		}
		if third, err := readSpec(dir); err != nil || !reflect.DeepEqual(third, again) {
			t.Fatalf("%v: %+v, and then %+v", err, again, third)
		}
	})
}
