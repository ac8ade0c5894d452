package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

const loraA, loraB = "model.q.lora_A.weight", "model.q.lora_B.weight"

// saveAdapter writes an adapter for a layer with 5 inputs and 3 outputs.
func saveAdapter(t *testing.T, dir string, rank int, config string, seed float64) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, adapterConfig), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := statedict.Create(filepath.Join(dir, adapterWeights), []statedict.Tensor{
		{Name: loraA, DType: safetensors.F64, Shape: []int{rank, 5}}, {Name: loraB, DType: safetensors.F64,
			Shape: []int{3, rank}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{loraA: 5 * rank, loraB: 3 * rank} {
		v, b := make([]float64, n), make([]byte, 8*n)
		for i := range v {
			v[i] = math.Sin(seed + float64(i*len(dir)))
		}
		if _, err := safetensors.Encode(b, v, safetensors.F64); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteAt(name, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// change is scale B A.
func change(t *testing.T, dir string, scale float64) []float64 {
	t.Helper()
	f, err := statedict.Open(filepath.Join(dir, adapterWeights), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, b := values(t, f, loraA), values(t, f, loraB)
	rank := len(a) / 5
	out := make([]float64, 15)
	for i := range out {
		for k := range rank {
			out[i] += scale * b[i/5*rank+k] * a[k*5+i%5]
		}
	}
	return out
}

// TestAdapters compares the product of the merged factors with the sum of the products.
func TestAdapters(t *testing.T) {
	dir := t.TempDir()
	var folders []string
	scales := []float64{16.0 / 2, 6 / math.Sqrt(4), 1.0 / 3}
	for i, c := range []struct {
		rank   int
		config string
	}{
		{2, `{"r": 2, "lora_alpha": 16, "bias": "none"}`},
		{4, `{"r": 4, "lora_alpha": 6, "use_rslora": true}`},
		{3, `{"r": 3, "lora_alpha": 1, "base_model_name_or_path": "base", "target_modules": ["q"]}`},
	} {
		folders = append(folders, filepath.Join(dir, fmt.Sprint("adapter-", i)))
		saveAdapter(t, folders[i], c.rank, c.config, float64(i))
	}
	weights := []float64{0.5, -0.25, 0.75}
	out := filepath.Join(dir, "new", "merged")
	if err := MergeAdapters(folders, weights, out); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "new", "empty")
	if err := errors.Join(os.Mkdir(empty, 0o777), os.Chmod(empty, 0o750), MergeAdapters(folders, weights, empty)); err != nil {
		t.Fatal(err)
	}
	private(t, empty, 0o750)
	equal(t, empty, out)
	want := make([]float64, 15)
	for k, f := range folders {
		for i, v := range change(t, f, scales[k]) {
			want[i] += weights[k] * v
		}
	}
	near(t, "change", change(t, out, 1), want, 1e-14)
	var config map[string]any
	b, err := os.ReadFile(filepath.Join(out, adapterConfig))
	if err != nil || json.Unmarshal(b, &config) != nil || config["r"] != 9.0 || config["lora_alpha"] != 9.0 ||
		config["base_model_name_or_path"] != "base" {
		t.Errorf("%v, %s", err, b)
	}
	if err := MergeAdapters([]string{folders[0], folders[1], folders[0] + "/."}, weights, filepath.Join(dir,
		"twice")); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("an adapter twice: %v", err)
	}
	for config, want := range map[string]string{
		`{"r": 2}`:                  "want numbers",
		`{"r": 3, "lora_alpha": 1}`: "in an adapter of rank 3",
		`{"r": 2, "lora_alpha": 1, "use_dora": true}`:         "plain LoRA",
		`{"r": 2, "lora_alpha": 1, "rank_pattern": {"q": 4}}`: "of one rank",
		`{"r": 2, "lora_alpha": 1, "bias": "all"}`:            "without biases",
		`{`: "unexpected end",
	} {
		if err := os.WriteFile(filepath.Join(folders[0], adapterConfig), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := MergeAdapters(folders, weights, filepath.Join(dir, "bad")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 4 {
		t.Errorf("left behind: %v", all)
	}
}
