package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"onlinerna/train/replay"
)

// TestReplay replays a run of LeNet and checks all files that the command writes.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	mustRun(t, append([]string{"train", "--epochs", "4", "-o", run, "-q", "--keep-every", "1", "--holdout", "0.01",
		"--rna-window", "2"}, quick...)...)
	svg, csv := filepath.Join(dir, "r.svg"), filepath.Join(dir, "r.csv")
	args := []string{"replay", run, "--rna-window", "2,3", "--lambda", "1e-9,auto", "--averages", "2", "--ema", "0.9,0.5",
		"--plot", svg, "--csv", csv, "--device", "cpu"}
	table := mustRun(t, args...)
	for _, line := range strings.Split(table, "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	for _, want := range []string{"1  SGD", "2  RNA of 2, lambda 1e-09", "5  RNA of 3, lambda auto", "6  average of 2",
		"8  EMA 0.5", "standard error"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), ">RNA of 2, lambda auto<") ||
		!strings.Contains(string(b), ">validation error, %<") {
		t.Errorf("%.300s, %v", b, err)
	}
	// A line per point: 4 of SGD, 2 and 1 of two lambdas each, 3 averages, 4 of two moving ones.
	if b, err := os.ReadFile(csv); err != nil || strings.Count(string(b), "\n") != 1+4+2*2+2*1+3+2*4 {
		t.Errorf("%s, %v", b, err)
	}
	var res replay.Result
	if err := json.Unmarshal([]byte(mustRun(t, "replay", run, "--json", "--device", "cpu")), &res); err != nil ||
		len(res.Epochs) != 4 || len(res.Curves) != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"replay"}, 2, "want the folder of a run"},
		{[]string{"replay", dir}, 1, "nothing to replay"},
		{[]string{"replay", run, "--lambda", "much"}, 2, "numbers, inf or auto"},
		{[]string{"replay", run, "--rna-window", "0", "--averages", "0"}, 1, "nothing to compute"},
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
