package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"onlinerna/train/replay"
	"onlinerna/train/safetensors"
)

// TestReplay replays a run of LeNet and checks all files that the command writes.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	mustRun(t, append([]string{"train", "--epochs", "4", "-o", run, "-q", "--keep-every", "1", "--holdout", "0.01",
		"--rna-window", "2", "--ema", "5,12"}, quick...)...)
	svg, csv := filepath.Join(dir, "r.svg"), filepath.Join(dir, "r.csv")
	args := []string{"replay", run, "--rna-window", "2,3", "--lambda", "1e-9,auto", "--averages", "2", "--ema", "0.9,0.5",
		"--power-ema", "8", "--wsm", "linear:2", "--plot", svg, "--csv", csv, "--device", "cpu"}
	table := mustRun(t, args...)
	for _, line := range strings.Split(table, "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	for _, want := range []string{"1  SGD", "2  RNA of 2, lambda 1e-09", "5  RNA of 3, lambda auto", "6  average of 2",
		"8  EMA 0.5", "9  power EMA, γ = 8", "10  WSM linear of 2 epochs", "standard error",
		"WSM linear of 2 epochs, epoch 4: the fit is off by "} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), ">RNA of 2, lambda auto<") ||
		!strings.Contains(string(b), ">validation error, %<") {
		t.Errorf("%.300s, %v", b, err)
	}
	// A line per point: 4 of SGD, 2 and 1 of two lambdas each, 3 averages, 4 of two moving ones and of a power EMA, 3 of
	// a decay.
	if b, err := os.ReadFile(csv); err != nil || strings.Count(string(b), "\n") != 1+4+2*2+2*1+3+2*4+4+3 {
		t.Errorf("%s, %v", b, err)
	}
	var res replay.Result
	if err := json.Unmarshal([]byte(mustRun(t, "replay", run, "--json", "--device", "cpu")), &res); err != nil ||
		len(res.Epochs) != 4 || len(res.Curves) != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	// extrapolate writes the weights that the replay scores.
	point := filepath.Join(dir, "point.safetensors")
	said := mustRun(t, "extrapolate", run, "-o", point, "--wsm", "linear:2", "-q")
	if !strings.Contains(said, "epoch-0004-ema-12.safetensors") || !strings.Contains(said, "the fit is off by") {
		t.Error(said)
	}
	mustRun(t, "replay", run, "--rna-window", "0", "--averages", "0", "--wsm", "linear:2", "--keep",
		filepath.Join(dir, "points"), "--device", "cpu")
	same(t, point, filepath.Join(dir, "points", "wsm-linear2.safetensors"))
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"replay"}, 2, "want the folder of a run"},
		{[]string{"replay", dir}, 1, "nothing to replay"},
		{[]string{"replay", run, "--lambda", "much"}, 2, "numbers, inf or auto"},
		{[]string{"replay", run, "--rna-window", "0", "--averages", "0"}, 1, "nothing to compute"},
		{[]string{"replay", run, "--wsm", "linear"}, 2, "as linear:3"},
		{[]string{"replay", run, "--wsm", "linear:5"}, 1, "has 4 epochs"},
		{[]string{"replay", run, "--power-ema", "0"}, 2, "must be above 0"},
		{[]string{"extrapolate", run, "-o", point, "--wsm", "linear:2", "--beta", "0"}, 2, "go without --beta"},
		{[]string{"extrapolate", run, "-o", point, "--wsm", "linear:2", "--average"}, 2, "exclude each other"},
		{[]string{"extrapolate", run, "-o", point, "--power-ema", "-1"}, 2, "must be above 0"},
		{[]string{"extrapolate", run, run, "-o", point, "--power-ema", "8"}, 1, "the folder of a run alone"},
		{[]string{"replay", run, "--rna-window", "9"}, 1, "window 9 needs 10 snapshots"},
	} {
		if status := fails(t, c.args, c.want); status != c.status {
			t.Errorf("%v: status %d, want %d", c.args, status, c.status)
		}
	}
	if err := os.RemoveAll(filepath.Join(run, "kept")); err != nil {
		t.Fatal(err)
	}
	fails(t, []string{"replay", run}, "rna train --keep-every 1")
}

// same compares the tensors of two files of float32 weights.
func same(t *testing.T, a, b string) {
	t.Helper()
	var files [2]*safetensors.File
	for i, path := range []string{a, b} {
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	if len(files[0].Tensors) == 0 {
		t.Errorf("%s has no tensors", a)
	}
	for _, x := range files[0].Tensors {
		y, ok := files[1].Lookup(x.Name)
		v, w := make([]float32, x.Len()), make([]float32, x.Len())
		if err := errors.Join(files[0].Float32s(x, v, 0), files[1].Float32s(y, w, 0)); err != nil || !ok || !slices.Equal(v, w) {
			t.Errorf("%s differs in %s and %s: %v", x.Name, a, b, err)
		}
	}
}
