package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/extrapolate"
	"onlinerna/train/safetensors"
)

// checkpoints are four PyTorch files in either format, of epochs 8 to 11.
func checkpoints(ext string) []string {
	dir := filepath.Join("..", "..", "train", "extrapolate", "testdata")
	return []string{filepath.Join(dir, "ckpt-10"+ext), filepath.Join(dir, "ckpt-11"+ext),
		filepath.Join(dir, "ckpt-8"+ext), filepath.Join(dir, "ckpt-9"+ext)}
}

// extrapolated runs the command with --json.
func extrapolated(t *testing.T, args ...string) (extrapolate.Report, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.safetensors")
	var got extrapolate.Report
	if err := json.Unmarshal([]byte(mustRun(t, append([]string{"extrapolate", "--json", "-o", path}, args...)...)),
		&got); err != nil {
		t.Fatal(err)
	}
	return got, path
}

// Shells sort 10 before 8; .pt and safetensors files give the same result.
func TestExtrapolate(t *testing.T) {
	var first extrapolate.Report
	for i, ext := range []string{".safetensors", ".pt"} {
		got, path := extrapolated(t, checkpoints(ext)...)
		sum := 0.0
		for _, r := range got.Residuals {
			sum += r.C
		}
		if len(got.Residuals) != 3 || sum < 1-1e-9 || sum > 1+1e-9 || !strings.Contains(got.Residuals[0].Y, "ckpt-8") ||
			!strings.Contains(got.Residuals[2].X, "ckpt-11") {
			t.Errorf("%s: residuals %+v", ext, got.Residuals)
		}
		if got.Tensors["combined"] != 6 || got.Tensors["copied"] != 1 || got.Tensors["statistics"] != 2 ||
			got.BatchNorm != "last" {
			t.Errorf("%s: tensors %v, BatchNorm %q", ext, got.Tensors, got.BatchNorm)
		}
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Metadata["format"] != "pt" || !strings.Contains(f.Metadata["extrapolation"], `"method":"rna"`) ||
			strings.Contains(f.Metadata["extrapolation"], "testdata") {
			t.Errorf("%s: metadata %v", ext, f.Metadata)
		}
		if kind, ok := f.Metadata["kind"]; ok && kind != "rna" {
			t.Errorf("%s: kind %q", ext, kind)
		}
		if i == 0 {
			first = got
		}
		for j, r := range got.Residuals {
			if r.C != first.Residuals[j].C {
				t.Errorf("%s: c is %v, that of safetensors %v", ext, r.C, first.Residuals[j].C)
			}
		}
	}
}

func TestExtrapolateKinds(t *testing.T) {
	files := checkpoints(".safetensors")
	for _, c := range []struct {
		args    []string
		weights []float64 // of the files in the report's order
	}{
		{append([]string{"--average"}, files...), []float64{.25, .25, .25, .25}},
		{append([]string{"--lambda", "inf"}, files...), []float64{0, 1. / 3, 1. / 3, 1. / 3}},
		{append([]string{"--tau", "0"}, files...), []float64{0, 1. / 3, 1. / 3, 1. / 3}},
		{append([]string{"--lambda", "inf", "--beta", "0"}, files...), []float64{1. / 3, 1. / 3, 1. / 3, 0}},
		{append([]string{"--lambda", "inf", "--pairs"}, files...), []float64{0, .5, 0, .5}},
		{append([]string{"--lambda", "inf", "--y0", files[0]}, files[1:]...), []float64{0, 1. / 3, 1. / 3, 1. / 3}},
	} {
		got, _ := extrapolated(t, c.args...)
		for i, f := range got.Files {
			if d := f.Weight - c.weights[i]; d > 1e-12 || d < -1e-12 {
				t.Errorf("%v: weights %+v, want %v", c.args[:3], got.Files, c.weights)
				break
			}
		}
	}
	got, _ := extrapolated(t, append([]string{"--lambda", "inf", "--y0", files[0]}, files[1:]...)...)
	if got.Files[0].Path != files[0] {
		t.Errorf("the first of %+v is not that of --y0", got.Files)
	}
}

func TestExtrapolateMistakes(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.safetensors")
	files := checkpoints(".safetensors")
	other := filepath.Join("..", "..", "train", "extrapolate", "testdata", "golden.safetensors")
	attack := filepath.Join("..", "..", "train", "torchfile", "testdata", "attack.pt")
	same := filepath.Join(t.TempDir(), "same.safetensors")
	if b, err := os.ReadFile(files[0]); err != nil || os.WriteFile(same, b, 0o666) != nil {
		t.Fatal(err, same)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-o", out}, 2, "no files"},
		{files, 2, "--out is missing"},
		{append([]string{"-o", out, "--lambda", "1", "--average"}, files...), 2, "exclude each other"},
		{append([]string{"-o", out, "--average", "--beta", "1"}, files...), 2, "does not take --beta"},
		{append([]string{"-o", out, "--auto"}, files...), 2, "--eval"},
		{append([]string{"-o", out, "--model", "lenet"}, files...), 2, "--model is for"},
		{append([]string{"-o", out, "--bn", "reestimate"}, files...), 2, "--data"},
		{append([]string{"-o", out, "--bn", "mean"}, files...), 2, `"mean"`},
		{append([]string{"-o", out, "--pairs"}, files[:3]...), 2, "no pairs"},
		{append([]string{"-o", out, "--order", "size"}, files...), 1, `"size"`},
		{append([]string{"-o", out, "--lambda", "-1"}, files...), 2, "--lambda -1"},
		{[]string{"-o", out, files[0]}, 1, "two or more"},
		{[]string{"-o", out, files[0], files[0]}, 1, "given twice"},
		{[]string{"-o", files[0], files[0], files[1]}, 2, "name another output"},
		{[]string{"-o", out, files[0], same}, 1, "no extrapolation"},
		{[]string{"-o", out, files[0], other}, 1, "do not hold the same tensors"},
		{[]string{"-o", out, files[0], attack}, 1, "system"},
		{[]string{"-o", out, files[0], filepath.Join(dir, "none.pt")}, 1, "none.pt"},
		{[]string{"-o", filepath.Join(dir, "none", "out"), files[0], files[1]}, 2, "none"},
	} {
		status, _, stderr := runRNA(t, append([]string{"extrapolate"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.want) || strings.HasPrefix(stderr, "rna: rna:") {
			t.Errorf("%v: status %d, stderr %q, want %d and %q", c.args, status, stderr, c.status, c.want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left of commands that failed", left)
	}
}

// A run's own weights, chosen by held-out loss.
func TestExtrapolateAuto(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, epochs := range []string{"2", "3", "4"} {
		run := filepath.Join(dir, "run"+epochs)
		mustRun(t, append([]string{"train", "--epochs", epochs, "--quiet", "--rna", "off", "--schedule", "constant", "--out",
			run}, quick[:6]...)...)
		files = append(files, filepath.Join(run, "final.safetensors"))
	}
	got, path := extrapolated(t, append([]string{"--auto", "--eval", "glyphs", "--limit-batches", "4", "--order", "step"},
		files...)...)
	chosen := 0
	for i, c := range got.Auto {
		if c.Chosen {
			chosen++
			if i > 0 && -*c.ToLast <= *c.Error {
				t.Errorf("%+v was chosen, within the standard error", c)
			}
		}
		if i > 0 && c.Status == "" && (c.Error == nil || !(*c.Error > 0)) {
			t.Errorf("%+v has no standard error", c)
		}
	}
	if chosen != 1 || len(got.Auto) < 5 || got.Auto[0].Kind != "last" || got.Auto[1].Kind != "average" {
		t.Errorf("candidates %+v", got.Auto)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%v is left beside the output", left)
	}
	if out := mustRun(t, "eval", "--weights", path, "--data", "glyphs"); !strings.Contains(out, "lenet on 4000 images") {
		t.Errorf("eval: %s", out)
	}
}

// Statistics re-estimated on training images depend only on the weights, and nothing else changes.
func TestExtrapolateReestimate(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, epochs := range []string{"1", "2"} {
		run := filepath.Join(dir, "run"+epochs)
		mustRun(t, "train", "--model", "resnet20", "--epochs", epochs, "--limit-batches", "2", "--limit-val", "1", "--batch",
			"16", "--schedule", "constant", "--quiet", "--rna", "off", "--out", run)
		files = append(files, filepath.Join(run, "final.safetensors"))
	}
	read := func(path string) map[string][]float64 {
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all := map[string][]float64{}
		for _, x := range f.Tensors {
			if x.DType.Float() {
				all[x.Name] = make([]float64, x.Len())
				if err := f.Float64s(x, all[x.Name], 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		return all
	}
	reestimate := []string{"--average", "--bn", "reestimate", "--data", "glyphs", "--batch", "16", "--bn-batches", "2"}
	_, last := extrapolated(t, append([]string{"--average"}, files...)...)
	_, fresh := extrapolated(t, append(reestimate, files...)...)
	_, again := extrapolated(t, append(reestimate, "--workers", "1", last, fresh)...) // the average of equal weights
	before, after, third := read(last), read(fresh), read(again)
	moved := 0
	for name, v := range after {
		statistic := strings.Contains(name, "running_")
		for i, x := range v {
			if x != before[name][i] {
				if moved++; !statistic {
					t.Fatalf("%s has changed: %v, was %v", name, x, before[name][i])
				}
			}
			if x != third[name][i] {
				t.Fatalf("%s is %v at first and %v from other statistics", name, x, third[name][i])
			}
			if strings.Contains(name, "running_var") && x <= 0 {
				t.Fatalf("%s has the element %v", name, x)
			}
		}
	}
	if moved < 1000 {
		t.Errorf("%d elements of statistics have changed", moved)
	}
}

func TestInspect(t *testing.T) {
	files := checkpoints(".pt")
	out := mustRun(t, append([]string{"inspect"}, files...)...)
	for _, want := range []string{"conv.weight", "[8 4 3 3]", "BF16", "running variance", "copied", "ckpt-11.pt",
		"would combine", "‖c‖"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if out := mustRun(t, "inspect", files[0]); strings.Contains(out, "would") {
		t.Errorf("one file is to be combined: %s", out)
	}
	var in extrapolate.Inspection
	if err := json.Unmarshal([]byte(mustRun(t, append([]string{"inspect", "--json"}, files...)...)), &in); err != nil {
		t.Fatal(err)
	}
	if len(in.Files) != 4 || len(in.Tensors) != 9 || *in.Files[0].Step != 8 || in.Files[0].Distance != nil ||
		*in.Files[1].Distance <= 0 || len(in.RNA.Residuals) != 3 {
		t.Errorf("inspection %+v", in)
	}
	if status, _, stderr := runRNA(t, "inspect"); status != 2 || !strings.Contains(stderr, "no files") {
		t.Errorf("status %d, %q", status, stderr)
	}
}
