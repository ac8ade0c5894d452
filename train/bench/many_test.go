package bench

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

// Ranks are measured together, and all get rank 0's results.
func TestRunMany(t *testing.T) {
	tables := make([]string, 2)
	rankstest.Run(t, 2, time.Minute, func(g *ranks.Group) error {
		dev, err := cpu.New(cpu.Options{Threads: 1})
		if err != nil {
			return err
		}
		defer dev.Close()
		o := ManyOptions{Options: Options{Model: "lenet", Batch: 4, Steps: 3, Warmup: 1, Seed: 1}, Ranks: g, Rounds: 2,
			Whole: func(threads int) (device.Device, error) { return cpu.New(cpu.Options{Threads: threads}) }}
		r, err := RunMany(t.Context(), dev, o)
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := r.WriteTable(&b); err != nil {
			return err
		}
		tables[g.Rank()] = b.String()
		for name, s := range map[string]Spread{"alone": r.Alone, "all": r.All, "apart": r.Apart, "sums": r.Sums,
			"whole": r.Whole} {
			if !(0 < s.Min && s.Min <= s.Median && s.Median <= s.Max) {
				return fmt.Errorf("%s: %+v", name, s)
			}
		}
		if r.Ranks != 2 || r.Threads != 2 || r.Bytes != 4*61706 || r.Buckets != 1 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	if tables[0] != tables[1] || !strings.Contains(tables[0], "one process, 2 threads, batch 8") {
		t.Errorf("%s\n%s", tables[0], tables[1])
	}
	errs := rankstest.Errors(t, 2, time.Minute, func(g *ranks.Group) error {
		o := Options{Model: "lenet", Batch: 4, Steps: 1, Freeze: []string{fmt.Sprintf("conv%d.*", 1+g.Rank())}}
		_, err := RunMany(t.Context(), device.NewReference(op.Float32), ManyOptions{Options: o, Ranks: g, Rounds: 1})
		return err
	})
	for _, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "freeze") {
			t.Errorf("ranks that freeze others: %v", err)
		}
	}
	o := ManyOptions{Options: Options{Model: "lenet", Eval: true}}
	if _, err := RunMany(t.Context(), nil, o); err == nil || !strings.Contains(err.Error(), "in training") {
		t.Errorf("evaluation of ranks: %v", err)
	}
}

// The numbers of steps depend on the time of one.
func TestManyWithin(t *testing.T) {
	for step, want := range map[float64][3]int{0.001: {3, 3, 10}, 0.25: {3, 3, 10}, 0.5: {3, 1, 5}, 2.5: {3, 0, 1},
		5: {2, 0, 1}, 60: {1, 0, 1}} {
		o := ManyOptions{Options: Options{Steps: 10, Warmup: 3}, Rounds: 3, Within: 40 * time.Second}
		if o.within(step); [3]int{o.Rounds, o.Warmup, o.Steps} != want {
			t.Errorf("%g s: %d rounds, %d steps to warm up, %d steps; want %v", step, o.Rounds, o.Warmup, o.Steps, want)
		}
	}
	rankstest.Run(t, 2, time.Minute, func(g *ranks.Group) error {
		dev, err := cpu.New(cpu.Options{Threads: 1})
		if err != nil {
			return err
		}
		defer dev.Close()
		r, err := RunMany(t.Context(), dev, ManyOptions{Options: Options{Model: "lenet", Batch: 4, Seed: 1}, Ranks: g,
			Within: time.Nanosecond})
		if err == nil && (r.Rounds != 1 || r.Steps != 1) {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
}

func TestManyResult(t *testing.T) {
	s := func(x float64) Spread { return spread([]float64{x}) }
	r := ManyResult{Batch: 10, Ranks: 4, Alone: s(1), All: s(1.25), Apart: s(1.2), Whole: s(1), Sums: s(.2)}
	for name, x := range map[string][2]float64{"images": {r.Images(), 32}, "efficiency": {r.Efficiency(), .8},
		"of whole": {r.OfWhole(), .8}, "hidden": {r.Hidden(), .75}} {
		if math.Abs(x[0]-x[1]) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, x[0], x[1])
		}
	}
}

// Sums over ranks are measured and correct; a wrong sum is detected.
func TestRunComm(t *testing.T) {
	rankstest.Run(t, 3, time.Minute, func(g *ranks.Group) error {
		r, err := RunComm(t.Context(), CommOptions{Ranks: g, Min: 8, Max: 1 << 14, Rounds: 2})
		if err != nil {
			return err
		}
		if len(r.Sizes) != 6 || r.Sizes[5].Bytes != 1<<13 || r.Ranks != 3 {
			return fmt.Errorf("%+v", r)
		}
		for _, s := range r.Sizes {
			if s.Wrong != 0 || s.Sum.Median <= 0 || s.Plain.Median != 0 {
				return fmt.Errorf("%+v", s)
			}
		}
		if bus := r.Bus(300, 2); math.Abs(bus-200) > 1e-9 {
			return fmt.Errorf("300 bytes in 2 s over 3 ranks are %g bytes/s of the bus", bus)
		}
		_, wrong, err := sums(g, make([]float32, 5), func(x []float32) error { x[3]++; return nil })
		if err != nil || wrong == 0 {
			return fmt.Errorf("no sum at all: %d elements wrong, %v", wrong, err)
		}
		return nil
	})
	if _, err := RunComm(t.Context(), CommOptions{Min: 8, Max: 8}); err == nil {
		t.Error("sums of one process were measured")
	}
}

// RNA is measured on rank 0 and on all ranks, with the same Gram matrix and parts of the vectors.
func TestRNAOfRanks(t *testing.T) {
	const dim = 10_001
	rankstest.Run(t, 2, time.Minute, func(g *ranks.Group) error {
		d, err := cpu.New(cpu.Options{Threads: 1})
		if err != nil {
			return err
		}
		defer d.Close()
		o := RNAOptions{Windows: []int{2, 3}, Repeats: 2, Seed: 1}
		if g.First() {
			one, err := HostPlace(d, dim, 1)
			if err != nil {
				return err
			}
			o.Places = append(o.Places, one)
		}
		all, err := RanksPlace(g, d, dim, 1)
		if err != nil {
			return err
		}
		o.Places = append(o.Places, all)
		r, err := RunRNA(t.Context(), o)
		if err != nil {
			return err
		}
		held := map[string]int64{"cpu": 4 * 4 * dim, "2 ranks": 4 * 4 * (dim + 1) / 2}
		for _, p := range r.Passes {
			if p.N == 3 && p.Held != held[p.Place] {
				return fmt.Errorf("%s holds %d bytes, want %d", p.Place, p.Held, held[p.Place])
			}
		}
		if want := 4 * len(o.Places); len(r.Passes) != want {
			return fmt.Errorf("%d passes, want %d", len(r.Passes), want)
		}
		return nil
	})
}
