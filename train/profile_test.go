package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/profile"
	"onlinerna/train/ranks"
)

// TestProfileChangesNothing compares profiled with unprofiled runs: they leave the same files, on synchronous devices
// and on a pipeline.
func TestProfileChangesNothing(t *testing.T) {
	for name, dev := range map[string]func() device.Device{
		"cpu":       func() device.Device { return cpuDevice(t, 2) },
		"pipelined": func() device.Device { return lazyDevice(t) },
	} {
		t.Run(name, func(t *testing.T) {
			run := func(steps int) (string, *profile.Profile) {
				c := tiny(filepath.Join(t.TempDir(), "run"))
				c.StepsLimit, c.Accumulate, c.ClipValue, c.EMA, c.RNA.PerEpoch, c.CheckpointSteps = 8, 2, 0.05, []float64{12}, 2, 7
				r := newRun(t, c, dev())
				r.Profile = steps
				var p *profile.Profile
				r.Profiled = func(x *profile.Profile, _ string) { p = x }
				if err := r.Train(context.Background()); err != nil {
					t.Fatal(err)
				}
				return c.Out, p
			}
			plain, none := run(0)
			if none != nil {
				t.Error("a profile that nobody asked for")
			}
			profiled, p := run(6)
			if p == nil || p.Steps() != 6 {
				t.Fatalf("profile %+v, want one of 6 steps", p)
			}
			checkTrace(t, filepath.Join(profiled, profileName), p)
			if err := os.Remove(filepath.Join(profiled, profileName)); err != nil {
				t.Fatal(err)
			}
			sameFolders(t, profiled, plain)
			for _, want := range []string{profile.Wait, "forward", "backward", "accumulation", "update", "hook rna",
				"hook ema"} {
				if !slices.ContainsFunc(p.Phases(), func(x profile.Phase) bool { return x.Name == want && x.Calls >= 6 }) {
					t.Errorf("no phase %q in each of the steps: %+v", want, p.Phases())
				}
			}
		})
	}
}

// TestProfileOfShortRuns checks which steps of short runs are profiled.
func TestProfileOfShortRuns(t *testing.T) {
	for _, c := range []struct{ steps, profile, epochs, first, want int }{
		{4, 2, 8, 11, 2}, {4, 2, 2, 7, 2}, {4, 100, 2, 1, 8}, {1, 3, 2, 1, 2},
	} {
		o := tiny("")
		o.StepsLimit, o.Epochs, o.RNA.Mode = c.steps, c.epochs, average.Off
		r := newRun(t, o, cpuDevice(t, 1))
		r.Profile = c.profile
		shown := 0
		r.Profiled = func(p *profile.Profile, _ string) {
			shown++
			if p.First != c.first || p.Steps() != c.want || p.Plain > 0 != (c.first > 1) {
				t.Errorf("%+v: %d steps from %d on, plain %g", c, p.Steps(), p.First, p.Plain)
			}
		}
		if err := r.Train(context.Background()); err != nil || shown != 1 {
			t.Errorf("%+v: shown %d times, %v", c, shown, err)
		}
	}
}

// TestProfileOfResumedRuns checks which steps are profiled in a run that resumes within an epoch: those after ten
// warm-up steps if there are enough, else the last.
func TestProfileOfResumedRuns(t *testing.T) {
	for _, c := range []struct{ profile, first, want int }{{2, 16, 2}, {8, 13, 8}, {100, 6, 15}} {
		o := tiny(filepath.Join(t.TempDir(), "run"))
		o.StepsLimit, o.Epochs, o.RNA.Mode = 10, 2, average.Off
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		r := newRun(t, o, cpuDevice(t, 1), watch{Step: func(s *hook.State) error {
			if s.Steps == 5 {
				cancel()
			}
			return nil
		}})
		if err := r.Train(ctx); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := Resume(o.Out, Deps{Device: cpuDevice(t, 1), Hooks: []hook.Hook{watch{}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		again.Profile = c.profile
		shown := 0
		again.Profiled = func(p *profile.Profile, _ string) {
			shown++
			if p.First != c.first || p.Steps() != c.want || p.Plain > 0 != (c.first > 6) {
				t.Errorf("%+v: %d steps from %d on, plain %g", c, p.Steps(), p.First, p.Plain)
			}
		}
		if err := again.Train(context.Background()); err != nil || shown != 1 {
			t.Errorf("%+v: shown %d times, %v", c, shown, err)
		}
	}
}

// TestProfileTooLong asks for too many profiled steps: nothing is trained or written.
func TestProfileTooLong(t *testing.T) {
	for _, n := range []int{-1, MaxProfile + 1} {
		o := tiny(filepath.Join(t.TempDir(), "run"))
		r := newRun(t, o, cpuDevice(t, 1))
		r.Profile = n
		if err := r.Train(context.Background()); err == nil || !strings.Contains(err.Error(), "profile of") {
			t.Errorf("%d: %v", n, err)
		}
		if _, err := os.Stat(o.Out); !os.IsNotExist(err) {
			t.Errorf("%d: a folder was made: %v", n, err)
		}
	}
}

// TestProfileOnRanks checks that ranks train the same when all of them, or one alone, are profiled.
func TestProfileOnRanks(t *testing.T) {
	o := tiny("")
	o.StepsLimit, o.Epochs, o.RNA.Mode = 16, 2, average.Off
	plain := together(t, 2, o, cpuOne, nil)
	for name, steps := range map[string][]int{"all": {5, 5}, "first": {5, 0}, "second": {0, 5}} {
		for i, got := range together(t, 2, o, cpuOne, func(g *ranks.Group, c Spec, dev device.Device) outcome {
			return runOn(context.Background(), c, dev, g, func(r *Run) {
				r.Profile = steps[g.Rank()]
				r.Profiled = func(p *profile.Profile, _ string) {
					if !slices.ContainsFunc(p.Phases(), func(x profile.Phase) bool {
						return x.Name == "communication" &&
							x.Calls > 5
					}) {
						t.Errorf("%s: no communication: %+v", name, p.Phases())
					}
				}
			})
		}) {
			if got.err != nil || !slices.Equal(got.params, plain[i].params) || !slices.Equal(got.losses, plain[i].losses) {
				t.Errorf("%s profiled: rank %d trains otherwise, or %v", name, i, got.err)
			}
		}
	}
}

// checkTrace checks a trace's format: complete events lie within their parents and within the steps, and their sums
// equal the tables'.
func checkTrace(t *testing.T, path string, p *profile.Profile) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Name, Cat, Ph string
			Ts, Dur       *float64
			Pid, Tid      *int
			Args          map[string]any
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&trace); err != nil {
		t.Fatal(err)
	}
	type part struct{ from, to float64 }
	var open []part
	sums, ops, steps := map[string]float64{}, 0.0, 0.0
	for i, e := range trace.TraceEvents {
		if e.Ph == "M" {
			continue
		}
		if e.Name == "" || e.Ph != "X" || e.Ts == nil || e.Dur == nil || e.Pid == nil || e.Tid == nil || *e.Ts < 0 ||
			*e.Dur < 0 {
			t.Fatalf("event %d: %+v", i, e)
		}
		const ns = 1e-3
		x := part{*e.Ts, *e.Ts + *e.Dur}
		for len(open) > 0 && open[len(open)-1].to <= x.from+ns/2 {
			open = open[:len(open)-1]
		}
		if k := len(open); k > 0 && (x.from < open[k-1].from-ns/2 || x.to > open[k-1].to+ns/2) {
			t.Fatalf("event %d, %s, leaves the one that it lies in by %g µs", i, e.Name, x.to-open[k-1].to)
		}
		want := map[string]int{"step": 0, "between steps": 0, "phase": 1}
		if depth, ok := want[e.Cat]; len(open) != depth && ok || !ok && len(open) != 2 {
			t.Fatalf("event %d, %s of %s, lies in %d others", i, e.Name, e.Cat, len(open))
		}
		open = append(open, x)
		switch e.Cat {
		case "step":
			steps += *e.Dur
		case "phase":
			if e.Name != "forward" && e.Name != "backward" {
				sums[e.Name] += *e.Dur
			}
		case "forward", "backward":
			sums[e.Cat] += *e.Dur
			ops += *e.Dur
		}
	}
	n := float64(p.Steps())
	all := 0.0
	for _, x := range p.Phases() {
		all += x.Seconds
		if want := sums[x.Name] / n / 1e6; x.Name != profile.Rest && math.Abs(x.Seconds-want) > 1e-8 {
			t.Errorf("%s takes %g s a step by the table, %g by the trace", x.Name, x.Seconds, want)
		}
		if x.Seconds < 0 {
			t.Errorf("%s takes %g s", x.Name, x.Seconds)
		}
	}
	if want := steps / n / 1e6; math.Abs(all-want) > 1e-7 || math.Abs(p.Seconds()-want) > 1e-7 {
		t.Errorf("the phases add up to %g s, a step takes %g by the tables and %g by the trace", all, p.Seconds(), want)
	}
	layers := 0.0
	for _, l := range p.Layers() {
		layers += l.Forward + l.Backward
	}
	if want := ops / n / 1e6; math.Abs(layers-want) > 1e-7 {
		t.Errorf("the layers take %g s by the table, their ops %g by the trace", layers, want)
	}
	var table strings.Builder
	if err := p.WriteTable(&table); err != nil ||
		!strings.Contains(table.String(), fmt.Sprintf("steps %d to %d", p.First, p.First+p.Steps()-1)) {
		t.Errorf("%v\n%s", err, table.String())
	}
}
