package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// randomGraph is a graph of ops, views and updates of state, with the expected values of its nodes.
type randomGraph struct {
	graph  *G.ExprGraph
	nodes  G.Nodes
	states G.Nodes
	want   map[*G.Node][]float64
}

// add computes and remembers the result of apply for the nodes.
func (r *randomGraph) add(t *testing.T, o op.Op, in ...*G.Node) *G.Node {
	t.Helper()
	n := apply(t, fmt.Sprint("layer", len(r.want)), o, in...)
	var args []op.Tensor
	for _, x := range in {
		args = append(args, op.Tensor{Shape: op.Shape(x.Shape()), Data: r.want[x]})
	}
	out := op.New(op.T(op.Float64, n.Shape()...))
	if _, ok := o.(op.InPlace); ok {
		copy(out.Data.([]float64), r.want[in[0]])
		args[0] = out
	}
	if err := o.Run(out, args...); err != nil {
		t.Fatal(err)
	}
	r.want[n] = out.Data.([]float64)
	return n
}

func newRandomGraph(t *testing.T, rng *rand.Rand) *randomGraph {
	r := &randomGraph{graph: G.NewGraph(), want: make(map[*G.Node][]float64)}
	input := func(name string, n int) *G.Node {
		x := newInput(t, r.graph, name, rng, n)
		r.want[x] = slices.Clone(floats(t, x))
		return x
	}
	for i := range 3 {
		r.nodes = append(r.nodes, input(fmt.Sprint("x", i), 20+10*i))
	}
	// Recent nodes are picked more often: lives are short, as in nets.
	pick := func() *G.Node { return r.nodes[len(r.nodes)-1-min(int(rng.ExpFloat64()*4), len(r.nodes)-1)] }
	for i := range 60 {
		x := pick()
		size := x.Shape().TotalSize()
		var n *G.Node
		switch k := rng.IntN(11); {
		case k > 8 && size > 4:
			off := rng.IntN(size / 2)
			n = r.add(t, part{off, size - off - rng.IntN(size/4)}, x)
		case k < 3:
			n = r.add(t, op.ReLU{}, x)
		case k < 6:
			n = r.add(t, op.Add{}, x, r.add(t, mix{3 * i, size}, pick()))
		case k == 6:
			state := input(fmt.Sprint("state", i), size)
			r.states = append(r.states, state)
			n = r.add(t, accumulate{}, state, x)
		default:
			n = r.add(t, mix{i, 1 + rng.IntN(100)}, x, pick(), pick())
		}
		r.nodes = append(r.nodes, n)
	}
	return r
}

// TestRandomPrograms runs random graphs in random groups, with results kept, bound, or needed by others only, and made
// again where they can be.
func TestRandomPrograms(t *testing.T) {
	defer machine.RecomputeAll()()
	again := 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRandomGraph(t, rng)
		dev := &grouper{Device: device.NewReference(op.Float64), rng: rng, attempts: 20 * int(seed%4)}
		c := machine.Config{Device: dev, Bind: make(map[*G.Node]machine.Binding), LowMemory: seed%3 > 0}
		update := make(map[*G.Node]*G.Node)
		for _, n := range r.nodes {
			if in, ok := children(r.graph, n); ok && slices.Contains(r.states, in[0]) {
				update[in[0]] = n
				c.Keep = append(c.Keep, n)
				continue
			}
			switch k := rng.IntN(12); {
			case k == 0:
				c.Keep = append(c.Keep, n)
			case k == 1 && n.Op() != nil:
				v, err := dev.NewVector(3 + n.Shape().TotalSize())
				if err != nil {
					t.Fatal(err)
				}
				c.Bind[n] = machine.Binding{Region: v.Region(3, n.Shape().TotalSize())}
			}
		}
		c.Keep = append(c.Keep, r.nodes[len(r.nodes)-1])
		m, err := machine.New(r.graph, c)
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Stats(); s.Arena < s.LowerBound || s.Arena > s.Unshared+256*s.Groups || s.Groups > s.Steps {
			t.Errorf("seed %d: %+v", seed, s)
		}
		again += m.Stats().Again
		if err := m.RunAll(); err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, m)
		}
		for _, n := range c.Keep {
			near(t, fmt.Sprintf("seed %d: %v", seed, n), floats(t, n), r.want[n], 0)
		}
		for n := range c.Bind {
			y := op.New(op.T(op.Float64, n.Shape()...))
			if err := m.Read(y, n); err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("seed %d: bound %v", seed, n), y.Data.([]float64), r.want[n], 0)
		}
		for s, u := range update {
			near(t, fmt.Sprintf("seed %d: state %v", seed, s), floats(t, s), r.want[u], 0)
		}
		if t.Failed() {
			t.Fatalf("%v", m)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if again < 50 {
		t.Errorf("%d values were made again", again)
	}
}

func children(g *G.ExprGraph, n *G.Node) (G.Nodes, bool) {
	var r G.Nodes
	for it := g.From(n.ID()); it != nil && it.Next(); {
		r = append(r, it.Node().(*G.Node))
	}
	return r, len(r) > 0
}
