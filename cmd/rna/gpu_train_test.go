//go:build gpu

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"onlinerna/cuda"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/lazy"
)

// kernelsVar passes kernelCache to processes that a test starts.
const kernelsVar = "RNA_TEST_KERNELS"

// kernelCache is the kernel cache shared by all tests on GPUs: kernels compiled by one test serve the others.
var kernelCache = sync.OnceValue(func() string {
	dir := os.Getenv(kernelsVar)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "rna-kernels-"); err != nil {
			panic(err)
		}
		os.Setenv(kernelsVar, dir)
		atEnd = func() { os.RemoveAll(dir) }
	}
	return dir
})

// needGPU skips a test without a real or simulated GPU, or fails it if ONLINERNA_GPU=require is in the environment.
func needGPU(t *testing.T) {
	t.Helper()
	if os.Getenv(lazy.SearchVariable) == "" && lazy.Driver.Load() != nil {
		standIn, err := filepath.Abs("../../bin/sim")
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(lazy.SearchVariable, standIn)
	}
	for _, l := range lazy.Libraries {
		if err := l.Load(); err != nil {
			if os.Getenv("ONLINERNA_GPU") == "require" {
				t.Fatal(err)
			}
			t.Skipf("no GPU and no stand-in for one; \"make sim\" builds it: %v", err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", kernelCache())
}

// The same run has the same losses on GPU and CPU, and so has an evaluation.
func TestTrainOnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	products := func() uint64 { return sim.Calls("rna_products") }
	before := products()
	runs := map[string][]float64{}
	outputs := map[string]string{}
	for _, dev := range []string{"cpu", "cuda"} {
		out := filepath.Join(dir, dev)
		args := []string{"--precision", "float32"}
		if dev == "cuda" {
			args = append(args, "--deterministic")
		}
		said := mustRun(t, append([]string{"train", "--device", dev, "--epochs", "4", "--limit-batches", "5", "--limit-val",
			"2", "--batch", "16",
			"--rna-start", "1", "--rna-window", "2", "--out", out}, args...)...)
		if !strings.Contains(said, "device "+dev) || !strings.Contains(said, "RNA of the last") {
			t.Errorf("%s: %s", dev, said)
		}
		runs[dev] = losses(t, out)
		outputs[dev] = mustRun(t, "eval", "--device", dev, "--precision", "float32", "--batch", "500", "--weights",
			filepath.Join(out, "rna.safetensors"), "--data", "glyphs")
	}
	if sim.Active() && products() == before {
		t.Error("the GPU's snapshots are not multiplied there")
	}
	if len(runs["cpu"]) != 24 || len(runs["cuda"]) != 24 {
		t.Fatalf("%d and %d losses, want those of 20 steps and 4 epochs", len(runs["cpu"]), len(runs["cuda"]))
	}
	for i, want := range runs["cpu"] {
		if got := runs["cuda"][i]; !(math.Abs(got-want) <= 1e-4) {
			t.Errorf("loss %d is %v on the GPU, %v on the CPU", i, got, want)
		}
	}
	// "… on 4000 images: loss 2.3, top-1 …": numbers may differ in their last digit.
	if loss := func(s string) string {
		return strings.Fields(s[strings.Index(s,
			"loss"):])[1][:5]
	}; loss(outputs["cpu"]) != loss(outputs["cuda"]) {
		t.Errorf("evaluations differ:\n%s%s", outputs["cpu"], outputs["cuda"])
	}
	if status, _, stderr := runRNA(t, "eval", "--device", "cuda:99", "--weights", filepath.Join(dir, "cpu",
		"rna.safetensors"), "--data", "glyphs"); status != 1 || !strings.Contains(stderr, "no GPU 99") {
		t.Errorf("GPU 99: status %d, %s", status, stderr)
	}
}

func TestAutoOnGPU(t *testing.T) {
	needGPU(t)
	for name, want := range map[string]string{"auto": "cuda", "cpu": "cpu", "cuda:1": "cuda:1"} {
		var said strings.Builder
		if got := chosenDevice(name, &said); got != want || said.Len() > 0 {
			t.Errorf("%s is %s, want %s; %q", name, got, want, said.String())
		}
	}
	dev, err := openDevice("cuda", deviceOptions{direct: true}) // as on the CPU
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// Another process uses the first GPU: auto takes the second one and prints that; a UUID selects one.
func TestFaultOfBusyOnGPU(t *testing.T) {
	needGPU(t)
	if !sim.Active() {
		t.Skip("the stand-in's memory is set, not a card's")
	}
	t.Setenv("RNA_SIM_DEVICES", "2")
	t.Setenv("RNA_SIM_USED", "0:1000000000")
	var said strings.Builder
	if got := chosenDevice("auto", &said); got != "cuda:1" || !strings.Contains(said.String(), "GPU 0 is in use, with "+
		"0.1 of 1.1 GB free: device cuda:1 is taken") {
		t.Errorf("auto is %s, %q", got, said.String())
	}
	all, err := cuda.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"0": 0, "1": 1, all[1].UUID: 1} {
		if got, err := cuda.Ordinal(name); got != want || err != nil {
			t.Errorf("%s is GPU %d, %v", name, got, err)
		}
	}
	if _, err := cuda.Ordinal("GPU-0000"); err == nil || !strings.Contains(err.Error(), "rna devices") {
		t.Errorf("%v", err)
	}
}

// The GPU fails in some op of a step: with --debug-sync the error names the layer.
func TestFaultOfTraining(t *testing.T) {
	needGPU(t)
	if !sim.Active() {
		t.Skip("faults need the stand-in")
	}
	dir := t.TempDir()
	sim.Alone(t, dir, func(dir string) {
		if err := sim.Fault("cudnnBackendExecute@6=719,later"); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := runRNA(t, "train", "--device", "cuda", "--debug-sync", "--deterministic", "--epochs", "1",
			"--limit-batches", "2", "--limit-val", "1",
			"--batch", "8", "--out", filepath.Join(dir, "run"))
		if status != 1 || !strings.Contains(stderr, "conv1 conv2d: ") || !strings.Contains(stderr,
			"CUDA_ERROR_LAUNCH_FAILED") || strings.Contains(stderr, "run again") {
			t.Errorf("status %d, %s", status, stderr)
		}
	})
}

// The card is lost in a replayed step: the error says so once, with the step and a remedy, and the run resumes from its
// files.
func TestFaultOfReplayedStep(t *testing.T) {
	needGPU(t)
	if !sim.Active() {
		t.Skip("faults need the stand-in")
	}
	dir := t.TempDir()
	run := func(out string) []string {
		return []string{"train", "--device", "cuda", "--epochs", "2", "--limit-batches", "8", "--limit-val", "1", "--batch",
			"8", "--rna", "off", "--deterministic", "--out", out}
	}
	whole, lost := filepath.Join(dir, "whole"), filepath.Join(dir, "lost")
	sim.Alone(t, lost, func(lost string) {
		// that of step 11: the first two steps and the evaluation are not replayed
		if err := sim.Fault("cuGraphLaunch@9=719,later"); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := runRNA(t, run(lost)...)
		for _, want := range []string{"epoch 2, step 10:", "lenet, training at batch 8", "--debug-sync",
			filepath.Join(lost, "checkpoint")} {
			if status != 1 || !strings.Contains(stderr, want) {
				t.Errorf("status %d, want 1 and %q in: %s", status, want, stderr)
			}
		}
		if n := strings.Count(stderr, "this process cannot use GPUs any more"); n != 1 {
			t.Errorf("said %d times that the GPU is lost: %s", n, stderr)
		}
	})
	mustRun(t, run(whole)...)
	mustRun(t, "train", "--resume", lost)
	a, err := os.ReadFile(filepath.Join(whole, "final.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(lost, "final.safetensors"))
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("the resumed run ends with other weights, %v", err)
	}
}

// Steps of a run on a GPU are profiled by its clock, and leave the same weights.
func TestProfileOnGPU(t *testing.T) {
	needGPU(t)
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		return mustRun(t, append([]string{"train", "--device", "cuda", "--deterministic", "--epochs", "2", "--limit-batches",
			"9", "--limit-val", "1", "--batch", "16",
			"--rna", "off", "--ema", "12", "--out", filepath.Join(dir, name)}, args...)...)
	}
	run("plain")
	said := run("profiled", "--profile", "5")
	for _, want := range []string{"Profile of steps 11 to 15: lenet with sgd, batch 16 of 28×28, on cuda", "\nforward ",
		"\nbackward ", "\nhook ema ", "\nsgd ", "\nconv1 "} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	var trace struct{ TraceEvents []json.RawMessage }
	if b, err := os.ReadFile(filepath.Join(dir, "profiled", "profile.json")); err != nil ||
		json.Unmarshal(b, &trace) != nil || len(trace.TraceEvents) < 100 {
		t.Errorf("%d events, %v", len(trace.TraceEvents), err)
	}
	for _, name := range []string{"final.safetensors", "ema.safetensors"} {
		a, err := os.ReadFile(filepath.Join(dir, "plain", name))
		b, err2 := os.ReadFile(filepath.Join(dir, "profiled", name))
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not what it is without a profile: %v, %v", name, err, err2)
		}
	}
}
