//go:build gpu

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

// Plans are made for a card that is described, and files written for them.
func TestPlansOnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "plans.json")
	out := mustRun(t, "plans", "--card", "h200", "--model", "resnet20", "--batch", "4", "-o", filepath.Join(dir, "plans"),
		"--json-file", file)
	text, err := os.ReadFile(file)
	var r cuda.PlansReport
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	made, _ := filepath.Glob(filepath.Join(dir, "plans", "ahead-*"))
	if err != nil || r.Card != "NVIDIA H200" || len(made) < 20 || r.Graphs < len(made) || r.Plans <= len(made) ||
		!strings.Contains(out, "for NVIDIA H200 and cuDNN ") {
		t.Errorf("%d files, %s, %v\n%s", len(made), text, err, out)
	}
	if status, _, stderr := runRNA(t, "plans", "--card", "h300"); status == 0 || !strings.Contains(stderr, "use one of a100, b200") {
		t.Errorf("an unknown card: status %d, %s", status, stderr)
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
