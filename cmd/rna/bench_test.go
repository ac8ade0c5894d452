package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/cuda"
	"onlinerna/train/bench"
)

func TestBenchTrain(t *testing.T) {
	dir := t.TempDir()
	file, figure := filepath.Join(dir, "bench.json"), filepath.Join(dir, "bench.svg")
	out := mustRun(t, "bench", "train", "--model", "lenet", "--batch", "4", "--steps", "2", "--warmup", "1", "--threads",
		"1",
		"--device", "cpu", "--eval", "--winograd", "--json-file", file, "--plot", figure)
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
	if r.Mode != "evaluation" || r.Batch != 4 || r.Threads != 1 || len(r.Steps) != 2 || r.Images.Median <= 0 ||
		len(r.Kinds) == 0 || r.Winograd != (r.Level != "go") {
		t.Errorf("%s", text)
	}
	if svg, err := os.ReadFile(figure); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("figure: %v, %.40s", err, svg)
	}
	if out := mustRun(t, "bench", "table", file, file); !strings.Contains(out, "lenet, evaluation, batch 4 of 28×28") ||
		!strings.Contains(out, " 1.00\n") {
		t.Errorf("table:\n%s", out)
	}
}

func TestBenchMistakes(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		want   []string
	}{
		{"bench tarin", 2, []string{`unknown command "tarin"`, "did you mean train?"}},
		{"bench table", 2, []string{"no files"}},
		{"bench table /nowhere/a.json", 1, []string{"/nowhere/a.json"}},
		{"bench train --btach 3", 2, []string{"unknown option --btach", "did you mean --batch?"}},
		{"bench train --batch 0", 2, []string{"batch 0 must be at least 1"}},
		{"bench train --warmup 0", 2, []string{"--warmup 0"}},
		{"bench train --steps -2", 2, []string{"--steps -2"}},
		{"bench train extra", 2, []string{`unexpected argument "extra"`}},
		{"bench train --eval --batch auto", 1, []string{"training at --batch auto"}},
		{"bench train --model lenet --input disk", 1, []string{`unknown input "disk"`, "synthetic, memory, loader"}},
		{"bench train --model lenet --input loader", 1, []string{"name a set of them"}},
		{"bench train --model lenet --data /nowhere", 1, []string{"/nowhere"}},
		{"bench train --model lenet --json-file /nowhere/a.json", 2, []string{"/nowhere/a.json cannot be written"}},
		{"bench train --device cpu --debug-sync", 1, []string{"--debug-sync", "--device cuda"}},
		{"bench train --model lenot", 1, []string{`"lenot"`, `"lenet"`}},
		{"bench train --device gpu", 1, []string{`unknown device "gpu"`}},
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
	for _, want := range []string{"--model", "--eval", "--json", "--plot", "--threads", "make bench-pytorch"} {
		if !strings.Contains(out, want) {
			t.Errorf("help lacks %s", want)
		}
	}
	if out := mustRun(t, "bench"); !strings.Contains(out, "train") {
		t.Errorf("rna bench: %s", out)
	}
}

func TestBenchRNA(t *testing.T) {
	dir := t.TempDir()
	lines, file, figure := filepath.Join(dir, "rna.csv"), filepath.Join(dir, "rna.json"), filepath.Join(dir, "rna.svg")
	out := mustRun(t, "bench", "rna", "--model", "lenet", "--batch", "2", "--steps", "1", "--repeats", "1", "--window",
		"4-6:2,2", "--threads", "1",
		"--rna-device", "cpu", "--csv", lines, "--json-file", file, "--plot", figure)
	for _, want := range []string{"vectors of 61,706 float32", "1 thread", "forward + backward of lenet on cpu",
		"batch 2", "\ncpu, online", "an epoch of ImageNet", "N = 6 at its end (cpu, full)"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Dim    int
		Passes []struct{ N int }
		Net    struct{ Batch int }
	}
	if err := json.Unmarshal(text, &r); err != nil || r.Dim != 61706 || r.Net.Batch != 2 || len(r.Passes) != 6 ||
		r.Passes[0].N != 2 || r.Passes[5].N != 6 {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err := os.ReadFile(lines); err != nil || strings.Count(string(text), "\n") != 8 {
		t.Errorf("lines: %v\n%s", err, text)
	}
	if svg, err := os.ReadFile(figure); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("figure: %v, %.40s", err, svg)
	}
	out = mustRun(t, "bench", "rna", "--dim", "1000", "--window", "3", "--repeats", "1", "--rna-device", "cpu")
	if strings.Contains(out, "forward + backward") || !strings.Contains(out, "vectors of 1,000 float32") {
		t.Errorf("--dim:\n%s", out)
	}
}

func TestBenchRNAMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	type mistake struct {
		args   string
		status int
		want   []string
	}
	cases := []mistake{
		{"--windows 3", 2, []string{"unknown option --windows", "did you mean --window?"}},
		{"--window many", 2, []string{`"many" is no number`, "2-10"}},
		{"--window 2,,5", 2, []string{`"" is no number`}},
		{"--window 0-5", 2, []string{"from 1 to 1024"}},
		{"--window 2000", 2, []string{"from 1 to 1024"}},
		{"--window 9-5", 2, []string{`"9-5" is an empty range`}},
		{"--window 2-5:0", 2, []string{"empty range"}},
		{"--window 2-5:x", 2, []string{`"2-5:x" is no number`}},
		{"--dim 0", 2, []string{"--dim 0: must be at least 1"}},
		{"--batch 0", 2, []string{"--batch 0"}},
		{"--repeats -1", 2, []string{"--repeats -1"}},
		{"--steps 0", 2, []string{"--steps 0"}},
		{"--dim 10 --batch 4", 2, []string{"RNA alone", "--batch"}},
		{"--dim 10 --model lenet", 2, []string{"--model"}},
		{"--csv " + dir + "/none/a.csv", 2, []string{"/none/a.csv cannot be written"}},
		{"--csv " + file + "/a.csv", 2, []string{"a.csv cannot be written"}},
		{"--plot " + dir, 2, []string{"it is a folder"}},
		{"--plot " + file, 2, []string{"drawn as .svg, .png, .pdf"}},
		{"--csv " + file + " --plot " + file, 2, []string{"written twice"}},
		{"--model lenot", 1, []string{`"lenot"`, `"lenet"`}},
		{"--device gpu --model lenet", 1, []string{`unknown device "gpu"`}},
		{"--rna-device cud --model lenet", 1, []string{`unknown device "cud" for RNA`, "did you mean cuda?"}},
		{"--rna-device cuda:x --model lenet", 1, []string{"is no number of a GPU"}},
		{"--rna-device cpu:1 --model lenet", 1, []string{`unknown device "cpu:1" for RNA`}},
	}
	if bench.FreeMemory() > 0 {
		cases = append(cases, []mistake{
			{"--rna-device cpu --model lenet --batch 100000000", 1, []string{"a batch of 100000000 takes", "are free"}},
			{"--rna-device cpu --dim 100000000 --window 1024", 1, []string{"a window of 1024 residuals takes", "are free"}},
			{"--rna-device cpu --dim 100000000000", 1, []string{"a window of 1 residual", "are free"}},
		}...)
	}
	if _, err := cuda.Devices(); err != nil {
		cases = append(cases, []mistake{
			{"--device cuda --model lenet", 1, []string{"device cuda: ", "--device cpu"}},
			{"--rna-device cuda:1 --model lenet", 1, []string{"device cuda:1 for RNA: ", "--rna-device cpu"}},
		}...)
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			status, out, stderr := runRNA(t, append([]string{"bench", "rna"}, strings.Fields(c.args)...)...)
			if status != c.status || out != "" {
				t.Errorf("exit status %d, want %d; output %q", status, c.status, out)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("stderr %q does not say %q", stderr, w)
				}
			}
		})
	}
}
