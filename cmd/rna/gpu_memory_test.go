//go:build gpu

package main

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"onlinerna/cuda/check/sim"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
)

// needSim skips a test that requires the simulated GPU, and sets its memory to the given MiB.
func needSim(t *testing.T, mib int) {
	t.Helper()
	needGPU(t)
	if !sim.Active() {
		t.Skip("the stand-in's memory and faults are set, not a card's")
	}
	t.Setenv("RNA_SIM_MEMORY", strconv.Itoa(mib<<20))
	t.Setenv("RNA_CUDA_MEMORY", "exact") // a real card has memory to spare for rounding allocations up
}

// The largest batch that fits trains, and is recorded in the run's config; the error for a larger batch names one that
// fits.
func TestMemoryOnGPU(t *testing.T) {
	needSim(t, 8)
	dir := t.TempDir()
	short := []string{"train", "--device", "cuda", "--epochs", "1", "--limit-batches", "2", "--limit-val", "1", "--rna",
		"off", "--out"}
	out := mustRun(t, append(short, filepath.Join(dir, "auto"), "--batch", "auto")...)
	c, err := train.ReadSpec(filepath.Join(dir, "auto"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Batch < 8 || c.Batch%8 != 0 || !strings.Contains(out, "\nbatch "+strconv.Itoa(c.Batch)+": it takes ") {
		t.Errorf("batch %d:\n%s", c.Batch, out)
	}
	status, _, stderr := runRNA(t, append(short, filepath.Join(dir, "large"), "--batch", "4000")...)
	fits := regexp.MustCompile(`lenet at batch 4000 takes .* of the memory of device cuda, ` +
		`and .* are free: batch (\d+) fits`).FindStringSubmatch(stderr)
	if status != 1 || fits == nil {
		t.Fatalf("status %d, %s", status, stderr)
	}
	mustRun(t, append(short, filepath.Join(dir, "fits"), "--batch", fits[1])...)

	t.Setenv("RNA_SIM_MEMORY", strconv.Itoa(4<<20+790000)) // for cuBLAS, and the net without a batch
	status, _, stderr = runRNA(t, append(short, filepath.Join(dir, "none"), "--batch", "auto")...)
	if status != 1 || !strings.Contains(stderr, "no batch fits") {
		t.Errorf("a card without memory: status %d, %s", status, stderr)
	}
}

// another simulates a process that takes the card's memory when an epoch ends.
type another struct{ epoch int }

func (another) Name() string { return "another process" }

func (a another) AfterEpoch(_ context.Context, s *hook.State) error {
	if s.Epoch == a.epoch {
		return sim.Fault("cuMemAlloc_v2@0=2")
	}
	return nil
}

// Lack of memory in the middle of a run ends it: the error names the place, and the run resumes from its checkpoint.
func TestFaultOfMemoryWhileTraining(t *testing.T) {
	needSim(t, 1024)
	dir := filepath.Join(t.TempDir(), "run")
	dev, err := openDevice("cuda", deviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	r, err := train.New(train.Spec{Batch: 8, Epochs: 3, StepsLimit: 2, ValLimit: 1, Out: dir,
		RNA: average.Options{Start: 1, Window: 2}}, train.Deps{Device: dev, Hooks: []hook.Hook{another{1}}})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Train(t.Context())
	if e := sim.Fault(""); e != nil {
		t.Fatal(e)
	}
	var f *train.FailedError
	if !errors.As(err, &f) || !strings.HasPrefix(err.Error(), "epoch 2, step ") || !strings.Contains(err.Error(),
		"out of memory: asked for") || f.Checkpoint == "" {
		t.Fatalf("%v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	mustRun(t, "train", "--device", "cuda", "--resume", dir)
}
