package machine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/machine"
	"onlinerna/nn/machine/machinetest"
	"onlinerna/nn/op"
)

// model builds a network with values for all its inputs.
func model(t testing.TB, arch string, c nn.Config) *nn.Model {
	t.Helper()
	m, err := nn.Build(arch, c)
	if err != nil {
		t.Fatal(err)
	}
	let := func(n *G.Node, x op.Tensor) {
		if n == nil {
			return
		}
		if err := G.Let(n, tensor.New(tensor.WithShape(n.Shape()...), tensor.WithBacking(x.Data))); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range m.Params {
		x := op.New(op.T(c.DType, m.Params[i].Shape...))
		if err := m.Params[i].Fill(x, 3); err != nil {
			t.Fatal(err)
		}
		let(m.Params[i].Node, x)
	}
	for i := range m.Stats {
		x := op.New(op.T(c.DType, 2, m.Stats[i].Channels))
		if err := m.Stats[i].Fill(x); err != nil {
			t.Fatal(err)
		}
		let(m.Stats[i].Node, x)
	}
	let(m.BatchNormMomentum, op.Tensor{Data: []float64{0.1}})
	labels := make([]int32, c.Batch)
	for i := range labels {
		labels[i] = int32(i)
	}
	let(m.Labels, op.Tensor{Data: labels})
	if c.FloatInput {
		x := make([]float64, m.Input.Shape().TotalSize())
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		let(m.Input, op.Tensor{Data: x})
		return m
	}
	pixels := make([]uint8, m.Images.Shape().TotalSize())
	for i := range pixels {
		pixels[i] = uint8(rng.IntN(256))
	}
	let(m.Images, op.Tensor{Data: pixels})
	crops := make([]int32, 3*c.Batch)
	for i := range crops {
		crops[i] = int32(rng.IntN(2))
	}
	let(m.Crops, op.Tensor{Data: crops})
	return m
}

// TestTapeMachine compares with Gorgonia's own machine: results, gradients and the state that is left.
func TestTapeMachine(t *testing.T) {
	for _, test := range []struct {
		arch string
		c    nn.Config
	}{
		{"lenet", nn.Config{Batch: 3, Size: 16, ImageHeight: 17, ImageWidth: 18, DType: op.Float64}},
		{"lenet", nn.Config{Batch: 2, Size: 12, Mode: nn.Eval, FloatInput: true, DType: op.Float64}},
		{"resnet20", nn.Config{Batch: 2, Size: 8, FloatInput: true, Smoothing: 0.1, DType: op.Float64}},
		{"resnet20", nn.Config{Batch: 2, Size: 8, Mode: nn.Eval, FloatInput: true, DType: op.Float64}},
	} {
		t.Run(fmt.Sprint(test.arch, "/", test.c.Mode), func(t *testing.T) {
			want := model(t, test.arch, test.c)
			tape := G.NewTapeMachine(want.Graph)
			defer tape.Close()
			if err := tape.RunAll(); err != nil {
				t.Fatal(err)
			}
			got := model(t, test.arch, test.c)
			m, err := machine.New(got.Graph, machine.Config{Device: device.NewReference(op.Float64),
				Keep: results(got)})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
			a, b := results(got), results(want)
			for i := range a {
				near(t, a[i].String(), floats(t, a[i]), floats(t, b[i]), 1e-12)
			}
			for i, s := range got.Stats {
				near(t, s.Name, floats(t, s.Node), floats(t, want.Stats[i].Node), 1e-12)
			}
		})
	}
}

func results(m *nn.Model) G.Nodes {
	ns := append(G.Nodes{m.Loss, m.Score, m.Logits}, m.Updates...)
	for _, p := range m.Params {
		if p.Grad != nil {
			ns = append(ns, p.Grad)
		}
	}
	if m.InputGrad != nil {
		ns = append(ns, m.InputGrad)
	}
	return ns
}

// TestGroupsChangeNothing trains a step with random groups and without.
func TestGroupsChangeNothing(t *testing.T) {
	c := nn.Config{Batch: 2, Size: 8, FloatInput: true, DType: op.Float64}
	run := func(dev device.Device, ungrouped bool) (*nn.Model, machine.Stats) {
		n := model(t, "resnet20", c)
		m, err := machine.New(n.Graph, machine.Config{Device: dev, Keep: results(n), Ungrouped: ungrouped})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for range 2 { // the second run must not see anything of the first
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
		}
		return n, m.Stats()
	}
	for seed := range uint64(3) {
		dev := &grouper{Device: device.NewReference(op.Float64), rng: rand.New(rand.NewPCG(seed, 0)), attempts: 500}
		want, s := run(dev, true)
		if s.Groups != s.Steps {
			t.Errorf("ungrouped: %+v", s)
		}
		got, s := run(dev, false)
		if s.Groups > s.Steps-20 {
			t.Errorf("grouped: %+v", s)
		}
		a, b := results(got), results(want)
		for i := range a {
			near(t, a[i].String(), floats(t, a[i]), floats(t, b[i]), 0)
		}
	}
}

// TestForeignAddition checks Gorgonia's own addition, also of scalars, and a constant.
func TestForeignAddition(t *testing.T) {
	g := G.NewGraph()
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := newInput(t, g, "x", rng, 2, 3), newInput(t, g, "y", rng, 2, 3)
	sum := G.Must(G.Add(x, y))
	twice := G.Must(G.Add(sum, sum))
	one := G.NewConstant(1.0)
	s := G.NewScalar(g, tensor.Float64, G.WithName("s"), G.WithValue(2.5))
	two := G.Must(G.Add(s, one))
	m, err := machine.New(g, machine.Config{Device: device.NewReference(op.Float64), Keep: G.Nodes{twice, two}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	var want []float64
	for i, v := range floats(t, x) {
		want = append(want, 2*(v+floats(t, y)[i]))
	}
	near(t, "2(x+y)", floats(t, twice), want, 1e-15)
	near(t, "s+1", floats(t, two), []float64{3.5}, 0)
}

// TestSharedArena lets machines of two batch sizes take turns on one arena that has to grow, with
// parameters in common.
func TestSharedArena(t *testing.T) {
	dev := &grouper{Device: device.NewReference(op.Float64)}
	arena := machine.NewArena(dev)
	defer arena.Close()
	type run struct {
		m *machine.Machine
		n *nn.Model
	}
	add := func(batch int) run {
		n := model(t, "lenet", nn.Config{Batch: batch, Size: 12, FloatInput: true, DType: op.Float64})
		m, err := machine.New(n.Graph, machine.Config{Device: dev, Keep: G.Nodes{n.Loss, n.Logits}, Arena: arena,
			Ungrouped: true})
		if err != nil {
			t.Fatal(err)
		}
		return run{m, n}
	}
	logits := func(r run) []float64 {
		t.Helper()
		if err := r.m.RunAll(); err != nil {
			t.Fatal(err)
		}
		return floats(t, r.n.Logits)
	}
	small := add(2)
	first := logits(small)
	large := add(5)
	if arena.Bytes() != large.m.Stats().Arena || arena.Bytes() <= small.m.Stats().Arena {
		t.Errorf("arena of %d bytes for %d and %d", arena.Bytes(), small.m.Stats().Arena, large.m.Stats().Arena)
	}
	logits(large)
	y := op.New(op.T(op.Float64, 2, 10))
	if err := small.m.Read(y, small.n.Logits); err == nil {
		t.Error("results of a machine are readable after another one ran on its arena")
	}
	near(t, "after the arena grew", logits(small), first, 0)
	if err := small.m.Close(); err != nil {
		t.Fatal(err)
	}
	logits(large)
}

// idle is a device whose kernels do nothing.
type idle struct{ device.Device }

func (idle) Bind(*device.Group, *device.Plan, device.Args) (device.Kernel, error) {
	return func() error { return nil }, nil
}

// TestRunAllocatesNothing measures a steady step, on devices whose kernels allocate nothing.
func TestRunAllocatesNothing(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	fast, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	for _, dev := range []device.Device{idle{device.NewReference(op.Float32)}, fast} {
		n, err := machinetest.NewNet("resnet20", nn.Config{Batch: 2, Size: 8}, machine.Config{Device: dev}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		const steps = 50
		least := uint64(1 << 62)
		for range 4 { // the first makes the kernels, and others may allocate behind our back
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range steps {
				if err := n.Machine.Run(); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			least = min(least, after.Mallocs-before.Mallocs)
		}
		if least >= steps {
			t.Errorf("device %s: %d allocations in %d steps", dev.Name(), least, steps)
		}
	}
}

// TestListing checks that the listing has every op with its operands and the places of values.
func TestListing(t *testing.T) {
	f := newFixture(t)
	f.dev.propose = func(*device.Program) [][]int { return [][]int{{0, 1}} }
	m, err := machine.New(f.g, machine.Config{
		Device: f.dev, Keep: G.Nodes{f.z}, Bind: map[*G.Node]machine.Binding{f.b: {Region: f.region(4)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := m.String()
	for _, want := range []string{
		"3 ops in 2 kernels on device reference, arena of ",
		"a float64[4] at 0 of the inputs",
		"b float64[4] at 0 of bound memory",
		"= join add(", "float64[4] within the kernel", "= relu relu(", "= last mix{1 6}(", "float64[6] at ", ", kept",
		"workspace of ",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
}
