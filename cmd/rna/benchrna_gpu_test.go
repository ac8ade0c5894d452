//go:build gpu

package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RNA is measured on CPU and GPU, whose Gram matrices are compared first, and the network on the GPU.
func TestBenchRNAOnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "rna.csv")
	out := mustRun(t, "bench", "rna", "--model", "lenet", "--device", "cuda", "--batch", "2", "--steps", "1", "--repeats",
		"1", "--window", "2,4", "--csv", file)
	for _, want := range []string{"forward + backward of lenet on cuda, batch 2", "\ncpu: ", "\ncuda:0: ",
		"cuda:0, online, weights on the host"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 1+1+2*2+3*2 {
		t.Errorf("%d lines, %v", len(rows), err)
	}
	out = mustRun(t, "bench", "rna", "--dim", "1000", "--window", "3", "--repeats", "1", "--rna-device", "cuda:0")
	if strings.Contains(out, "\ncpu: ") || !strings.Contains(out, "\ncuda:0: ") {
		t.Errorf("--rna-device cuda:0:\n%s", out)
	}
	if status, _, stderr := runRNA(t, "bench", "rna", "--dim", "1000", "--rna-device", "cuda:99"); status != 1 ||
		!strings.Contains(stderr, "no GPU 99") {
		t.Errorf("GPU 99: status %d, %s", status, stderr)
	}
}
