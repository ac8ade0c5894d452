//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
	"onlinerna/nn/op"
)

// The choice between a fusion and separate kernels is measured once and kept; a fusion whose plans fail is not chosen.
func TestFusionChoice(t *testing.T) {
	gputest.NeedDNN(t)
	if !sim.Active() {
		t.Skip("the faults are the stand-in's")
	}
	exact, _ := results(t, Options{Precision: number.Float32, Deterministic: true})
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		separate, _ := results(t, Options{Precision: p, Fuse: FuseNever})
		for _, plan := range []string{"", "cudnnBackendExecute@0=5000", "cudnnBackendCreateDescriptor@0=3000"} {
			check(t, sim.Fault(plan))
			got, _ := results(t, Options{Precision: p})
			check(t, sim.Fault(""))
			asExact(t, fmt.Sprintf("%v with faults %q", p, plan), got, separate, exact)
		}
	}
	t.Setenv("RNA_CUDA_FUSE", "perhaps")
	if _, err := Open(0, Options{}); err == nil || !strings.Contains(err.Error(), "want always or never") {
		t.Errorf("RNA_CUDA_FUSE=perhaps: %v", err)
	}
}

// The choice is not kept if memory was too short for the best plan of either, or for making plans.
func TestFaultOfMemoryOfFusion(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	s := dnn.Shape{N: 1, C: 8, H: 4, W: 4, O: 8, KH: 1, KW: 1, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	for _, test := range []struct {
		fused, alone string // faults
		kept         bool
	}{{"", "", true}, {"cudnnBackendExecute@1=4004", "", false}, {"", "cudnnBackendExecute@1=4004", false}} {
		d, err := Open(0, Options{Precision: number.BFloat16,
			Context: driver.Options{KernelCache: t.TempDir(), ExactMemory: true}})
		check(t, err)
		defer func() { check(t, d.Close()) }()
		g := &dnn.Graph{Name: "forward + relu"}
		xd, wd, yd := s.Dims()
		in, w, between, y := g.Tensor(d.elements(), xd), g.Tensor(d.elements(), wd), g.Between(dnn.Float32, yd),
			g.Tensor(d.elements(), yd)
		g.Convolve(dnn.Forward, s, in, w, between)
		g.ReLU(between, y)
		check(t, sim.Fault("cudnnBackendCreateDescriptor@1=4003"))
		if d.plansOf(g) != nil {
			t.Fatal("plans without memory")
		}
		check(t, sim.Fault(""))
		plans := d.plansOf(g)
		if plans == nil {
			t.Fatal("a graph that ran out of memory once has no plans")
		}
		alone, err := d.convolution(dnn.Forward, op.Conv2D{}, op.T(op.Float32, s.N, s.C, s.H, s.W),
			op.T(op.Float32, s.O, s.C, 1, 1))
		check(t, err)
		places := alone.Operands()
		m, err := d.c.Alloc(4 << 20)
		check(t, err)
		at, work := []driver.Span{m.Span(0, places[0]), m.Span(1<<10, places[1]), m.Span(2<<10, places[2])},
			m.Span(1<<20, 3<<20)
		check(t, sim.Fault(test.fused))
		check(t, plans.Settle(at, work))
		check(t, sim.Fault(test.alone))
		check(t, alone.Settle(at[0], at[1], at[2], work))
		check(t, sim.Fault(""))
		run := []func() error{func() error { return plans.Run(at, work) }}
		better, err := d.faster(g.Name, &choice{key: g.String(), short: plans.Short() || d.shortAlone(g), fused: run,
			separate: run})
		check(t, err)
		if again, ok := d.dnn.Kept(d.noteOf(g.String())); ok != test.kept || ok && (again == "fused") != better {
			t.Errorf("%+v: %q is kept, %v", test, again, ok)
		}
		d.opts.Workspace--
		if _, ok := d.dnn.Kept(d.noteOf(g.String())); ok {
			t.Error("the kept choice applies with another limit of scratch, too")
		}
		broken := []func() error{func() error { return errors.New("broken") }}
		better, err = d.faster("broken", &choice{key: "broken", fused: broken, separate: run})
		check(t, err)
		if _, ok := d.dnn.Kept(d.noteOf("broken")); ok || better {
			t.Errorf("a fusion that fails: better %v, kept %v", better, ok)
		}
		check(t, m.Close())
	}
}

// A net's choices are kept unless memory was too short for a plan, also one of a fusion among the separate calls.
func TestFaultOfMemoryOfNet(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	own, parts, notes := 0, 0, 0
	for from := 61; from < 130; from += 12 {
		// an unused limit: no choice is known
		d, n := netOf(t, Options{Precision: number.Float16, Workspace: DefaultWorkspace - rand.Int64N(1<<20)},
			bottlenecks)
		check(t, sim.Fault(fmt.Sprintf("cudnnBackendExecute@%d=4004", from)))
		_, err := lossGradient(t, n, 8)
		check(t, sim.Fault(""))
		if !errors.Is(err, driver.ErrOutOfMemory) { // the separate calls may fail, too
			check(t, err)
		}
		for key, p := range d.graphs {
			if p == nil || !p.Made() {
				continue
			}
			short, part := p.Short() || d.shortAlone(p.Graph()), false
			for _, q := range d.graphs {
				part = part || q != nil && q != p && q.Graph().Name == "forward + sums" && q.Short() &&
					p.Graph().Kind() == dnn.Forward && p.Shape() == q.Shape()
			}
			_, kept := d.dnn.Kept(d.noteOf(key))
			for taker := range d.graphs { // the pair is one choice
				_, both := d.dnn.Kept(d.noteOf(key + "; " + taker))
				kept = kept || both
			}
			switch {
			case kept && (short || part):
				t.Errorf("with fault %d the choice of %q is kept", from, p.Graph().Name)
			case kept:
				notes++
			case short:
				own++
			case part:
				parts++
			}
		}
		check(t, n.Close())
	}
	if notes == 0 || sim.Active() && (own == 0 || parts == 0) {
		t.Errorf("%d choices are kept, %d had too little memory, %d in parts", notes, own, parts)
	}
}

// A pair whose second half was never bound does not affect later values at the same place.
func TestPairs(t *testing.T) {
	gputest.NeedDNN(t)
	d, err := Open(0, Options{Precision: number.Float16, Fuse: FuseAlways})
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	var ran []string
	calls := func(name string) []func() error {
		return []func() error{func() error { ran = append(ran, name); return nil }}
	}
	m, err := d.c.Alloc(1)
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	b, at, g := &binding{d: d, spans: []driver.Span{m.All()}}, 0, &dnn.Graph{}
	bind := func(leaver choice) {
		first := d.chosen(b, fusion{graph: g, leaves: &at}, leaver, nil)
		if leaver.key == "" { // leave the second half unbound
			return
		}
		second := d.chosen(b, fusion{graph: g, takes: &at},
			choice{fused: calls("fused taker"), separate: calls("taker")}, d.pairs[m.All()])
		check(t, errors.Join(b.err, call(first), call(second)))
	}
	for _, x := range []struct {
		leaver choice
		want   string
	}{
		{choice{key: "both", fused: calls("fused"), separate: calls("separate")}, "fused, fused taker"},
		{choice{fused: calls("fused"), separate: calls("separate")}, ""},
		{choice{key: "alone", separate: calls("separate")}, "separate, taker"},
	} {
		ran = nil
		bind(x.leaver)
		if got := strings.Join(ran, ", "); got != x.want {
			t.Errorf("%q ran, want %q", got, x.want)
		}
	}
}

// The state is restored after timing, also if that fails; without memory for a copy nothing is timed.
func TestPreserving(t *testing.T) {
	dev := opened(t, Options{Context: driver.Options{ExactMemory: true}})
	d := dev.(*Device)
	state, err := d.c.Alloc(8)
	check(t, err)
	defer func() { check(t, state.Close()) }()
	want := [2]float32{3, 5}
	check(t, d.stream.CopyIn(state.All(), driver.Bytes(want[:])))
	broken := errors.New("broken")
	for _, fails := range []error{nil, broken} {
		err := d.preserving([]driver.Span{state.All()}, func() error {
			other := [2]float32{7, 7}
			return errors.Join(d.stream.CopyIn(state.All(), driver.Bytes(other[:])), fails)
		})
		if !errors.Is(err, fails) {
			t.Errorf("%v, want %v", err, fails)
		}
		var got [2]float32
		check(t, d.stream.CopyOut(driver.Bytes(got[:]), state.All()))
		check(t, d.stream.Synchronize())
		if got != want {
			t.Errorf("left %v, want %v", got, want)
		}
	}
	free, _, err := d.Room()
	check(t, err)
	large, err := d.c.Alloc(free / 3 * 2)
	check(t, err)
	defer func() { check(t, large.Close()) }()
	if err := d.preserving([]driver.Span{large.All()}, func() error { return broken }); !errors.Is(err, errUnsaved) ||
		errors.Is(err, broken) {
		t.Errorf("%v, want errUnsaved", err)
	}
}
