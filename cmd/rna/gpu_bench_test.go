//go:build gpu

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"onlinerna/train/bench"
)

// Training is measured with each input, and its kinds of ops by the GPU's clock and relative to the GPU's limits.
func TestBenchTrainOnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	file, figure := filepath.Join(dir, "bench.json"), filepath.Join(dir, "bench.svg")
	out := mustRun(t, "bench", "train", "--model", "lenet", "--device", "cuda", "--batch", "8", "--steps", "3",
		"--warmup", "1", "--data", "glyphs", "--json-file", file, "--plot", figure)
	for _, want := range []string{"device cuda, ", "memory of the device: ", "\nmemory ", "\nloader ",
		"by the device's clock in 3 steps of their own", "of copy", "\npeak, ", "matrices by cuBLAS", "\ncopy: "} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	share := 0.
	for _, k := range r.Kinds {
		share += k.Share
	}
	if r.Peak <= 0 || r.Triad <= 0 || r.Card == "" || r.Precision == "" || len(r.Inputs) != 3 || share < 0.999 ||
		share > 1.001 || r.Products.Seconds <= 0 || r.DeviceMemory <= 0 {
		t.Errorf("shares add up to %g:\n%s", share, text)
	}
	if svg, err := os.ReadFile(figure); err != nil || !strings.Contains(string(svg), "products in "+r.Precision) {
		t.Errorf("figure: %v, %.40s", err, svg)
	}
	mustRun(t, "bench", "train", "--model", "lenet", "--device", "cuda", "--batch", "4", "--steps", "1", "--warmup", "1",
		"--debug-sync", "--eval")
}

// The batch fits in the GPU's memory.
func TestBenchMemoryOnGPU(t *testing.T) {
	needSim(t, 8)
	out := mustRun(t, "bench", "train", "--model", "lenet", "--device", "cuda", "--batch", "auto", "--steps", "1",
		"--warmup", "1")
	if !regexp.MustCompile(`training, batch \d+ of`).MatchString(out) || !strings.Contains(out, ": it takes ") {
		t.Errorf("bench:\n%s", out)
	}
	status, _, stderr := runRNA(t, "bench", "train", "--model", "lenet", "--device", "cuda", "--batch", "100000",
		"--steps", "1")
	if status != 1 || !strings.Contains(stderr, "lenet at batch 100000 takes") || !strings.Contains(stderr, " fits") {
		t.Errorf("bench: status %d, %s", status, stderr)
	}
}
