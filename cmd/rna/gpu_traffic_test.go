//go:build gpu

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/bench"
)

func TestDevicePropertiesOnGPU(t *testing.T) {
	needGPU(t)
	file := filepath.Join(t.TempDir(), "device.json")
	mustRun(t, "devices", "--properties", file)
	text, err := os.ReadFile(file)
	var p struct{ DeviceName string }
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.DeviceName == "" {
		t.Errorf("%s: %v", text, err)
	}
}

// A device reports and times the work of a step.
func TestBenchTrafficOnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	file, table := filepath.Join(dir, "traffic.json"), filepath.Join(dir, "traffic.csv")
	out := mustRun(t, "bench", "traffic", "--model", "lenet", "--batch", "4", "--device", "cuda", "--layers",
		"--json-file", file, "--csv", table)
	text, err := os.ReadFile(file)
	var r bench.Traffic
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Computed || r.Bandwidth <= 0 || r.Step.Seconds <= 0 || r.Card == "" || r.RNA == nil || !strings.Contains(out,
		"nn_max_pool") {
		t.Errorf("%+v\n%s", r.Step, out)
	}
	lines, err := os.ReadFile(table)
	if n := strings.Count(string(lines), "\n"); err != nil || n != r.Step.Count+1 || len(r.Works) != r.Step.Count {
		t.Errorf("%d pieces of work, %d lines, %v", r.Step.Count, n, err)
	}
	// The libraries that this process has loaded cannot be unloaded.
	if status, _, stderr := runRNA(t, "bench", "traffic", "--model", "lenet"); status != 1 || !strings.Contains(stderr,
		"loaded already") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
