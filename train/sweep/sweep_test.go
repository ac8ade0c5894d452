package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train"
	"onlinerna/train/internal/traintest"
	"onlinerna/train/option"
	"onlinerna/train/runs"
)

// tiny is a sweep of runs of nine epochs on a few glyphs, one of which diverges.
func tiny(dir string) *Sweep {
	return &Sweep{Dir: dir, Jobs: 1, Plan: Plan{Seeds: 1, Halving: 3, Width: 2, Set: []string{"lr=0.001,0.02,1e6,0.1,0.05"},
		Options: option.Settings("batch 8  epochs 9  limit-batches 3  limit-val 4  seed 3  averages 2")},
		Open: func(*train.Spec, int) (device.Device, error) { return cpu.New(cpu.Options{Threads: 1}) }}
}

func complete(t *testing.T, s *Sweep) Result {
	t.Helper()
	r, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents maps the runs of a sweep to their best and final weights and the number of their epochs.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, _, err := runs.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range list {
		text := fmt.Sprint(r.Epoch(), r.State)
		for _, name := range []string{"best.safetensors", "final.safetensors"} {
			b, err := os.ReadFile(filepath.Join(r.Dir, name))
			if err != nil {
				b = []byte("none")
			}
			text += string(b)
		}
		all[r.Name] = text
	}
	return all
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: %.15q, want %.15q, or other weights", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d runs, want %d", len(got), len(want))
	}
}

// A sweep that is interrupted again and again ends as one that is not, and so does one with two runs at a time.
func TestResume(t *testing.T) {
	whole, parts := t.TempDir(), t.TempDir()
	result := complete(t, tiny(whole))
	want := contents(t, whole)
	if result.Candidates != 5 || result.Stopped != 4 || result.Diverged != 1 || len(want) != 5 ||
		!strings.HasPrefix(want["003"], "0failed") {
		t.Fatalf("%+v, %d runs, %.9q", result, len(want), want["003"])
	}
	rng := rand.New(rand.NewPCG(1, 2))
	interruptions, recorded := 0, 0
	for done := false; !done; {
		s := tiny(parts)
		ctx, stop := context.WithCancel(context.Background())
		left := 1 + rng.IntN(2) // runs to open
		s.Open = func(c *train.Spec, _ int) (device.Device, error) {
			if c.Schedule.Final != nil { // as a run resolves it
				recorded++
			}
			if left--; left <= 0 {
				stop()
			}
			return cpu.New(cpu.Options{Threads: 1})
		}
		_, err := s.Run(ctx)
		stop()
		if done = err == nil; !done {
			if interruptions++; !errors.Is(err, train.ErrInterrupted) || interruptions > 100 {
				t.Fatal(err)
			}
		}
		if interruptions > 12 {
			complete(t, tiny(parts))
			done = true
		}
	}
	same(t, contents(t, parts), want)
	if interruptions < 5 {
		t.Errorf("%d interruptions", interruptions)
	}
	if recorded < 2 {
		t.Errorf("the device of a run that goes on is opened by its own options %d times", recorded)
	}
	// Two runs at a time, and again where nothing is left to do.
	parallel := t.TempDir()
	s := tiny(parallel)
	s.Jobs = 2
	complete(t, s)
	same(t, contents(t, parallel), want)
	known := 0
	s.Open = func(c *train.Spec, _ int) (device.Device, error) { return cpu.New(cpu.Options{Threads: 1}) }
	s.Arrived = func(e Event) {
		if e.Known {
			known++
		}
	}
	if again := complete(t, s); again != result || known < 7 {
		t.Errorf("%+v, %d known", again, known)
	}
	same(t, contents(t, parallel), want)
}

// A candidate that stopped early goes on to the weights of a run that never stopped.
func TestStoppedGoesOn(t *testing.T) {
	s := tiny(t.TempDir())
	complete(t, s)
	dir := filepath.Join(s.Dir, "002")
	r, err := runs.Read(dir)
	if err != nil || r.Epoch() >= 9 || r.State != train.Stopped {
		t.Fatalf("epoch %d, %s, %v", r.Epoch(), r.State, err)
	}
	never, err := s.spec(Candidate{Settings: option.Settings("lr 0.02")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	never.Out = filepath.Join(t.TempDir(), "never")
	one, err := train.New(never, train.Deps{Device: traintest.CPU(t, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	other, err := train.Resume(dir, train.Deps{Device: traintest.CPU(t, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := errors.Join(one.Train(context.Background()), other.Train(context.Background())); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"final.safetensors", "best.safetensors"} {
		a, err := os.ReadFile(filepath.Join(never.Out, name))
		b, err2 := os.ReadFile(filepath.Join(dir, name))
		if errors.Join(err, err2) != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs, %v %v", name, err, err2)
		}
	}
}

// Each candidate of a grid trains with each seed, in the parts of one folder.
func TestSeedsAndShards(t *testing.T) {
	dir := t.TempDir()
	for shard := range 2 {
		s := tiny(dir)
		s.Plan.Halving, s.Plan.Seeds, s.Plan.Shards, s.Shard = 0, 2, 2, shard+1
		s.Plan.Set, s.Plan.Options = []string{"lr=0.02,0.05,0.1"}, option.Settings("batch 8  epochs 1  limit-batches 3  seed 3")
		if err := s.Plan.Write(dir, true); err != nil {
			t.Fatal(err)
		}
		if r := complete(t, s); r.Candidates != 2-shard || r.Stopped != 0 {
			t.Errorf("%+v", r)
		}
	}
	list, _, err := runs.Find(dir)
	var got []string
	for _, r := range list {
		got = append(got, fmt.Sprintf("%s: %g %d", r.Name, r.Config.Schedule.Rate, r.Config.Seed))
	}
	if want := "001-seed1: 0.02 3, 001-seed2: 0.02 4, 002-seed1: 0.05 3, 002-seed2: 0.05 4, 003-seed1: 0.1 3, " +
		"003-seed2: 0.1 4"; err != nil || strings.Join(got, ", ") != want {
		t.Errorf("%s, %v", strings.Join(got, ", "), err)
	}
}

// A run that ends early by its patience is a result.
func TestPatience(t *testing.T) {
	s := tiny(t.TempDir())
	s.Plan.Halving, s.Plan.Set = 2, []string{"lr=1e-9,1e-8"}
	s.Plan.Options = append(s.Plan.Options, option.Settings("patience 1  rna off")...)
	complete(t, s)
	list, _, err := runs.Find(s.Dir)
	if err != nil || !slices.ContainsFunc(list, func(r runs.Run) bool { return r.State == train.Done && r.Epoch() < 9 }) {
		t.Errorf("%v, %+v", err, list)
	}
	complete(t, s)
}

func TestPlanFile(t *testing.T) {
	dir := t.TempDir()
	p := tiny(dir).Plan
	if err := p.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(dir, false); err == nil || !strings.Contains(err.Error(), "--resume "+dir) {
		t.Error(err)
	}
	read, err := ReadPlan(dir)
	if err != nil || p.Write(dir, true) != nil || read.Write(dir, true) != nil {
		t.Errorf("%+v, %v", read, err)
	}
	p.Seeds++
	if err := p.Write(dir, true); err == nil || !strings.Contains(err.Error(), "another sweep") {
		t.Error(err)
	}
	for text, want := range map[string]string{`{"version": 9}`: "version 9", `{`: planName} {
		traintest.Put(t, filepath.Join(dir, planName), []byte(text))
		if _, err := ReadPlan(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if err := p.Write(dir, true); err == nil {
			t.Errorf("written over %s", text)
		}
	}
	run := t.TempDir()
	traintest.Put(t, filepath.Join(run, "config.json"), nil)
	if err := p.Write(run, false); err == nil || !strings.Contains(err.Error(), "holds a run") {
		t.Error(err)
	}
}

// Mistakes show before the first run, which leaves no folder. An error of a run stops the sweep, and names it.
func TestSweepFails(t *testing.T) {
	for want, change := range map[string]func(*Sweep){
		"equal length":    func(s *Sweep) { s.Plan.Options, s.Plan.Set = s.Plan.Options[:1], []string{"epochs=2,3"} },
		"time-budget":     func(s *Sweep) { s.Plan.Options = option.Settings("time-budget 1m") },
		"dropout 0.5":     func(s *Sweep) { s.Plan.Set = []string{"dropout=0,0.5"} },
		"unknown model":   func(s *Sweep) { s.Plan.Set = []string{"model=lenet,lenett"} },
		"no validation":   func(s *Sweep) { s.Plan.Options = option.Settings("model conv6  data " + pictures(t)) },
		"has no candidat": func(s *Sweep) { s.Shard, s.Plan.Shards = 6, 6 },
	} {
		s := tiny(filepath.Join(t.TempDir(), "sweep"))
		change(s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(s.Dir); err == nil {
			t.Errorf("%s: a folder is left", want)
		}
	}
	s := tiny(t.TempDir())
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	broken, opened := errors.New("the device is gone"), 0
	s.Open = func(*train.Spec, int) (device.Device, error) {
		if opened++; opened == 4 {
			return nil, broken
		}
		return cpu.New(cpu.Options{Threads: 1})
	}
	if _, err := s.Run(context.Background()); !errors.Is(err, broken) || !strings.Contains(err.Error(), filepath.Join(s.Dir,
		"003")) {
		t.Error(err)
	}
}

// pictures are a training set without validation images.
func pictures(t *testing.T) string { return traintest.Pictures(t, 20, 0, 16) }
