package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBenchTrain(t *testing.T) {
	dir := t.TempDir()
	file, figure := filepath.Join(dir, "bench.json"), filepath.Join(dir, "bench.svg")
	out := mustRun(t, "bench", "train", "--model", "lenet", "--batch", "4", "--steps", "2", "--warmup", "1", "--threads", "1",
		"--device", "cpu", "--eval", "--winograd", "--json", file, "--svg", figure)
	for _, want := range []string{"lenet, evaluation, batch 4", "images/s", "conv2d", "all products"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Mode     string
		Batch    int
		Threads  int
		Level    string
		Winograd bool
		Steps    []float64
		Images   struct{ Median float64 } `json:"images_per_s"`
		Kinds    []struct{ Name string }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Mode != "evaluation" || r.Batch != 4 || r.Threads != 1 || len(r.Steps) != 2 || r.Images.Median <= 0 || len(r.Kinds) == 0 || r.Winograd != (r.Level != "go") {
		t.Errorf("%s", text)
	}
	if svg, err := os.ReadFile(figure); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("figure: %v, %.40s", err, svg)
	}
}

func TestBenchMistakes(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		want   []string
	}{
		{"bench tarin", 2, []string{`unknown command "tarin"`, "did you mean train?"}},
		{"bench train --btach 3", 2, []string{"unknown option --btach", "did you mean --batch?"}},
		{"bench train --batch 0", 2, []string{"--batch 0", "at least 1"}},
		{"bench train --warmup 0", 2, []string{"--warmup 0"}},
		{"bench train --steps -2", 2, []string{"--steps -2"}},
		{"bench train extra", 2, []string{`unexpected argument "extra"`}},
		{"bench train --model lenot", 1, []string{`"lenot"`, `"lenet"`}},
		{"bench train --device gpu", 1, []string{`unknown device "gpu"`}},
		{"bench train --winograd --device reference", 1, []string{"device reference has no Winograd", "--device cpu"}},
		{"bench train --model lenet --image-size -1", 1, []string{"image size -1"}},
		{"bench train --model lenet --image-size 4", 1, []string{"too small"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, _, stderr := runRNA(t, strings.Fields(c.args)...)
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("stderr %q does not say %q", stderr, w)
				}
			}
		})
	}
}

func TestBenchHelp(t *testing.T) {
	out := mustRun(t, "bench", "train", "--help")
	for _, want := range []string{"--model", "--eval", "--json", "--svg", "--threads", "make bench-pytorch"} {
		if !strings.Contains(out, want) {
			t.Errorf("help lacks %s", want)
		}
	}
	if out := mustRun(t, "bench"); !strings.Contains(out, "train") {
		t.Errorf("rna bench: %s", out)
	}
}
