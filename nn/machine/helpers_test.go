package machine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// mix is an op of any number of operands whose result shows each element that was wrong.
type mix struct{ id, n int }

func (m mix) Kind() string   { return "mix" }
func (m mix) String() string { return fmt.Sprintf("mix{%d %d}", m.id, m.n) }

func (m mix) Infer(in ...op.Type) (op.Type, error) { return op.T(op.Float64, m.n), nil }

func (m mix) Run(out op.Tensor, in ...op.Tensor) error {
	y := out.Data.([]float64)
	for i := range y {
		s := float64(m.id)
		for j, x := range in {
			x := x.Data.([]float64)
			s = 0.3*s + float64(j+1)*x[(7*i+m.id)%len(x)]
		}
		y[i] = s - math.Floor(s)
	}
	return nil
}

// part is a view.
type part struct{ off, n int }

func (p part) Kind() string                         { return "part" }
func (p part) String() string                       { return fmt.Sprintf("part{%d %d}", p.off, p.n) }
func (p part) Infer(in ...op.Type) (op.Type, error) { return op.T(op.Float64, p.n), nil }
func (p part) ViewOffset(op.Type) int               { return p.off }
func (p part) Run(out op.Tensor, in ...op.Tensor) error {
	copy(out.Data.([]float64), in[0].Data.([]float64)[p.off:])
	return nil
}

// accumulate is an in-place op: x ← x/2 + y.
type accumulate struct{}

func (accumulate) Kind() string                         { return "accumulate" }
func (accumulate) String() string                       { return "accumulate" }
func (accumulate) OverwritesFirst()                     {}
func (accumulate) Infer(in ...op.Type) (op.Type, error) { return in[0], nil }
func (accumulate) Run(out op.Tensor, in ...op.Tensor) error {
	x, y := out.Data.([]float64), in[1].Data.([]float64)
	for i := range x {
		x[i] = x[i]/2 + y[i]
	}
	return nil
}

// grouper is the reference device with random groups, and memory full of NaN.
type grouper struct {
	device.Device
	rng      *rand.Rand
	attempts int
	propose  func(p *device.Program) [][]int // instead of random ones
}

func (d *grouper) Group(p *device.Program) [][]int {
	if d.propose != nil {
		return d.propose(p)
	}
	var groups [][]int
	for i := range p.Steps {
		groups = append(groups, []int{i})
	}
	for range d.attempts {
		i, j := d.rng.IntN(len(groups)), d.rng.IntN(len(groups))
		if i == j {
			continue
		}
		var merged [][]int
		for k, g := range groups {
			if k != i && k != j {
				merged = append(merged, g)
			}
		}
		both := slices.Concat(groups[i], groups[j])
		slices.Sort(both)
		if merged = append(merged, both); runnable(p, merged) {
			groups = merged
		}
	}
	return slices.DeleteFunc(groups, func(g []int) bool { return len(g) == 1 })
}

// runnable simulates a run: each group must find its operands at the place of its last step.
func runnable(p *device.Program, groups [][]int) bool {
	groups = slices.Clone(groups)
	slices.SortFunc(groups, func(a, b []int) int { return a[len(a)-1] - b[len(b)-1] })
	missing := make(map[int]bool)
	for _, s := range p.Steps {
		missing[s.Out] = true
	}
	for _, g := range groups {
		for _, i := range g {
			for _, v := range p.Steps[i].In {
				if missing[v] {
					return false
				}
			}
			delete(missing, p.Steps[i].Out)
		}
	}
	return true
}

func (d *grouper) NewMemory(n int) (device.Memory, error) {
	m, err := d.Device.NewMemory(n)
	if err == nil {
		b, _ := device.HostSlice[uint8](device.Region{Memory: m, Bytes: n})
		for i := range b {
			b[i] = 0xff
		}
	}
	return m, err
}

// newInput adds an input with random content as its Value.
func newInput(t testing.TB, g *G.ExprGraph, name string, rng *rand.Rand, shape ...int) *G.Node {
	t.Helper()
	x := make([]float64, op.Shape(shape).Size())
	for i := range x {
		x[i] = rng.Float64()
	}
	return G.NewTensor(g, tensor.Float64, len(shape), G.WithName(name), G.WithShape(shape...),
		G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x))))
}

func apply(t testing.TB, layer string, o op.Op, in ...*G.Node) *G.Node {
	t.Helper()
	n, err := nn.Apply(layer, o, in...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// floats is a node's Value.
func floats(t testing.TB, n *G.Node) []float64 {
	t.Helper()
	switch v := n.Value().(type) {
	case *G.F64:
		return []float64{float64(*v)}
	case *tensor.Dense:
		switch d := v.Data().(type) {
		case []float64:
			return d
		case float64:
			return []float64{d}
		}
	}
	t.Fatalf("%v has the value %T", n, n.Value())
	return nil
}

// near asks that x and y agree within tol relative to y's largest element.
func near(t testing.TB, what string, x, y []float64, tol float64) {
	t.Helper()
	if len(x) != len(y) {
		t.Fatalf("%s: %d elements, want %d", what, len(x), len(y))
	}
	most := 0.0
	for _, v := range y {
		most = max(most, math.Abs(v))
	}
	for i := range x {
		if d := math.Abs(x[i] - y[i]); !(d <= tol*most) {
			t.Errorf("%s: element %d is %g, want %g", what, i, x[i], y[i])
			return
		}
	}
}
