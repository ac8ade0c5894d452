package main

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/train"
)

// losses returns those of the steps and epochs of a run.
func losses(t *testing.T, dir string) (all []float64) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r struct {
			Kind string
			Loss float64
			SGD  struct{ Loss float64 }
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		switch r.Kind {
		case "step":
			all = append(all, r.Loss)
		case "epoch":
			all = append(all, r.SGD.Loss)
		}
	}
	return all
}

// bfloat16 products on the CPU are selected by the flag, recorded, and kept by a resumed run; losses are close to those
// of float32. A warning appears once if they are slow.
func TestPrecisionOnCPU(t *testing.T) {
	dir := t.TempDir()
	args := []string{"train", "--device", "cpu", "--epochs", "1", "--limit-batches", "5", "--limit-val", "1", "--batch",
		"16", "--rna", "off", "--seed", "3"}
	warned := func(stderr string) bool { return strings.Count(stderr, "float32 is faster") == 1 }
	got := map[string][]float64{}
	for given, recorded := range map[string]string{"": "", "float32": "", "bfloat16": "bfloat16"} {
		out := filepath.Join(dir, "run"+given)
		status, said, stderr := runRNA(t, append(slices.Clone(args), "--precision", given, "--out", out)...)
		if status != 0 || warned(stderr) != (recorded != "" && !simd.Default().BFloat16()) {
			t.Errorf("%q: status %d, %s", given, status, stderr)
		}
		if !strings.Contains(said, strings.TrimSpace("device cpu "+recorded)+"\n") {
			t.Errorf("%q: %s", given, said)
		}
		if c, err := train.ReadSpec(out); err != nil || c.Precision != recorded {
			t.Errorf("precision %q of %q is recorded, %v", c.Precision, given, err)
		}
		got[given] = losses(t, out)
	}
	want := got["float32"]
	if !slices.Equal(got[""], want) {
		t.Errorf("losses %v by default, in float32 %v", got[""], want)
	}
	for i, v := range got["bfloat16"] {
		if len(got["bfloat16"]) != len(want) || v == want[i] || !(math.Abs(v-want[i]) <= .03) {
			t.Fatalf("losses %v, in float32 %v", got["bfloat16"], want)
		}
	}

	narrow := filepath.Join(dir, "runbfloat16")
	if status, said, stderr := runRNA(t, "train", "--resume", narrow); status != 0 || !strings.Contains(said,
		"device cpu bfloat16") {
		t.Errorf("resumed: status %d, %s %s", status, said, stderr)
	}
	weights := filepath.Join(narrow, "final.safetensors")
	for _, command := range []string{"eval --data glyphs --weights " + weights, "bench train --model lenet --steps 1 " +
		"--warmup 1"} {
		a := append(strings.Fields(command), "--device", "cpu", "--precision")
		if status, _, stderr := runRNA(t, append(a, "bfloat16")...); status != 0 ||
			warned(stderr) == simd.Default().BFloat16() {
			t.Errorf("%s: status %d, %s", command, status, stderr)
		}
	}
}

// The precision recorded by a run on the CPU applies to its replay; a run recorded on a GPU needs an explicit precision
// to resume on the CPU. The recorded choice of Winograd's algorithm does not depend on bfloat16.
func TestRecordedPrecision(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := runRNA(t, "train", "--device", "cpu", "--precision", "bfloat16", "--epochs", "2",
		"--limit-batches", "5", "--limit-val", "1", "--batch", "16",
		"--keep-every", "1", "--rna", "off", "--out", dir); status != 0 {
		t.Fatal(stderr)
	}
	all := losses(t, dir)
	status, said, stderr := runRNA(t, "replay", dir, "--device", "cpu", "--rna-window", "0", "--averages", "2", "--json")
	if want := strconv.FormatFloat(all[len(all)-1], 'g', -1, 64); status != 0 || !strings.Contains(said, want) {
		t.Errorf("replay: status %d, no loss %s in %s %s", status, want, said, stderr)
	}

	file := filepath.Join(dir, "config.json")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if simd.Default() != simd.Go && !strings.Contains(string(config), `"winograd": true`) {
		t.Errorf("no choice of Winograd's algorithm in %s", config)
	}
	for _, checkpoint := range []string{"", "checkpoint/*/"} {
		files, err := filepath.Glob(filepath.Join(dir, checkpoint+"config.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %sconfig.json: %v", checkpoint, err)
		}
		for _, f := range files {
			if err := os.WriteFile(f, []byte(strings.Replace(string(config), `"device": "cpu"`, `"device": "cuda:0"`, 1)),
				0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	status, _, stderr = runRNA(t, "train", "--resume", dir, "--device", "cpu")
	if status == 0 || !strings.Contains(stderr, "that of device cuda:0: on device cpu give one of --precision float32") {
		t.Errorf("resumed without a precision: status %d, %s", status, stderr)
	}
}
