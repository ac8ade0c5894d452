package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestComparison(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	speed := `"images_per_s": {"min": 80, "q1": 90, "median": 100, "q3": 110, "max": 120}`
	work := `"model": "resnet50", "mode": "training", "batch": 256, "image_size": 224, "card": "H200",` +
		` "precision": "bfloat16"`
	files := []string{
		file("rna.json", `{`+work+`, "software": "go1.26", "device_peak_bytes": 17000000000,`+
			` "peak_gflop_per_s": 500, "gflop_per_s": {"median": 250},`+speed+`,
			"inputs": [{"input": "synthetic",`+speed+`},
			{"input": "loader", "images_per_s": {"q1": 40, "median": 50, "q3": 60}}]}`),
		file("pytorch.json", `{`+work+`, "software": "PyTorch 2.9", "layout": "channels_last",`+
			` "compile": "max-autotune", "images_per_s": {"q1": 70, "median": 80, "q3": 85}}`),
		file("other.json", `{"model": "lenet", "mode": "training", "batch": 8, "image_size": 28, "device": "cpu",`+
			` "software": "go1.26", "level": "avx2", "low_memory": true,`+speed+`}`),
		file("later.json", `{"model": "lenet", "mode": "training", "batch": 8, "image_size": 28, "device": "cpu",`+
			` "software": "go1.26", "level": "avx2", "precision": "float32", "winograd": true,
			"images_per_s": {"median": 150}}`),
		file("narrow.json", `{"model": "lenet", "mode": "training", "batch": 8, "image_size": 28, "device": "cpu",`+
			` "software": "go1.26", "level": "avx2", "precision": "bfloat16",`+speed+`}`),
	}
	list, err := ReadResults(files...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteComparison(&b, list); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 7 {
		t.Fatalf("%d lines:\n%s", len(lines), &b)
	}
	for i, want := range [][]string{
		{"images/s", "of peak", "ratio"},
		{"rna", "H200", "bfloat16", "resnet50, training, batch 256 of 224×224", "synthetic", "100", "50.0 %", "17.0 GB"},
		{"loader", "50.0"},
		{"PyTorch 2.9, channels_last, compiled: max-autotune", "80.0", "0.80"},
		{"rna --winograd=false --low-memory", "cpu", "lenet"},
		{"rna  ", "cpu", "float32", "1.50"}, // a missing precision means float32
		{"rna  ", "cpu", "bfloat16"},
	} {
		for _, w := range want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("no %q in %q", w, lines[i])
			}
		}
	}
	for name, text := range map[string]string{"broken.json": "{", "empty.json": "{}"} {
		if _, err := ReadResults(files[0], file(name, text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadResults(filepath.Join(dir, "none.json")); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("%v", err)
	}
}
