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

// With fusions chosen by measurement results are as exact as with none.
func TestFusionChoice(t *testing.T) {
	gputest.NeedDNN(t)
	exact, _ := results(t, Options{Precision: number.Float32, Deterministic: true})
	for _, p := range []number.Precision{number.BFloat16, number.Float16} {
		separate, _ := results(t, Options{Precision: p, Fuse: FuseNever})
		got, _ := results(t, Options{Precision: p, Fuse: FuseTimed})
		asExact(t, p.String(), got, separate, exact)
	}
	t.Setenv("RNA_CUDA_FUSE", "perhaps")
	if _, err := Open(0, Options{}); err == nil || !strings.Contains(err.Error(), "want timed, always or never") {
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
		places := alone.Graph().Places()
		m, err := d.c.Alloc(4 << 20)
		check(t, err)
		at, work := []driver.Span{m.Span(0, places[0]), m.Span(1<<10, places[1]), m.Span(2<<10, places[2])},
			m.Span(1<<20, 3<<20)
		check(t, sim.Fault(test.fused))
		check(t, plans.Settle(at, work))
		check(t, sim.Fault(test.alone))
		check(t, alone.Settle(at, work))
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

// A net's choices are kept unless memory was too short for a plan.
func TestFaultOfMemoryOfNet(t *testing.T) {
	gputest.NeedDNN(t)
	fault(t, "")
	own, notes := 0, 0
	for from := 61; from < 130; from += 12 {
		// an unused limit: no choice is known
		d, n := netOf(t, Options{Precision: number.Float16, Fuse: FuseTimed,
			Workspace: DefaultWorkspace - rand.Int64N(1<<20)}, bottlenecks)
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
			short := p.Short() || d.shortAlone(p.Graph())
			_, kept := d.dnn.Kept(d.noteOf(key))
			switch {
			case kept && short:
				t.Errorf("with fault %d the choice of %q is kept", from, p.Graph().Name)
			case kept:
				notes++
			case short:
				own++
			}
		}
		check(t, n.Close())
	}
	if notes == 0 || sim.Active() && own == 0 {
		t.Errorf("%d choices are kept, %d had too little memory", notes, own)
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
