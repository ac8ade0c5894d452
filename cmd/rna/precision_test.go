package main

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/level"
	"onlinerna/train"
)

// losses are those of the steps and epochs of a run.
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

// Products of bfloat16 on the CPU are said by the flag, recorded, and kept by a resumed run; losses are near those of float32. Where
// they are slow, that is said once.
func TestPrecisionOnCPU(t *testing.T) {
	dir := t.TempDir()
	args := []string{"train", "--device", "cpu", "--epochs", "1", "--limit-batches", "5", "--limit-val", "1", "--batch", "16", "--rna", "off", "--seed", "3"}
	warned := func(stderr string) bool { return strings.Count(stderr, "float32 is faster") == 1 }
	got := map[string][]float64{}
	for given, recorded := range map[string]string{"": "", "float32": "", "bfloat16": "bfloat16"} {
		out := filepath.Join(dir, "run"+given)
		status, said, stderr := runRNA(t, append(slices.Clone(args), "--precision", given, "--out", out)...)
		if status != 0 || warned(stderr) != (recorded != "" && !level.BFloat16()) {
			t.Errorf("%q: status %d, %s", given, status, stderr)
		}
		if !strings.Contains(said, strings.TrimSpace("device cpu "+recorded)+"\n") {
			t.Errorf("%q: %s", given, said)
		}
		if c, err := train.ReadConfig(out); err != nil || c.Precision != recorded {
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
	if status, said, stderr := runRNA(t, "train", "--resume", narrow); status != 0 || !strings.Contains(said, "device cpu bfloat16") {
		t.Errorf("resumed: status %d, %s %s", status, said, stderr)
	}
	weights := filepath.Join(narrow, "final.safetensors")
	for _, command := range []string{"eval --data glyphs --weights " + weights, "bench train --model lenet --steps 1 --warmup 1"} {
		a := append(strings.Fields(command), "--device", "cpu", "--precision")
		if status, _, stderr := runRNA(t, append(a, "bfloat16")...); status != 0 || warned(stderr) == level.BFloat16() {
			t.Errorf("%s: status %d, %s", command, status, stderr)
		}
	}
}
