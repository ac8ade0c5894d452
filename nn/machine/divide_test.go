package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// divider is a device that divides programs, and groups their steps at random.
type divider struct {
	*grouper
	divide func(p *device.Program) []device.Stage
	kept   map[*device.Group][]*device.Kept // of the bindings
}

// Group proposes random groups that can run whichever others do.
func (d divider) Group(p *device.Program) [][]int {
	return slices.DeleteFunc(d.grouper.Group(p), func(g []int) bool {
		all := [][]int{g}
		for i := range p.Steps {
			if !slices.Contains(g, i) {
				all = append(all, []int{i})
			}
		}
		return !runnable(p, all)
	})
}

func (d divider) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	if d.kept != nil {
		d.kept[g] = append(d.kept[g], a.Kept)
	}
	return d.grouper.Bind(g, p, a)
}

func (d divider) Divide(p *device.Program) []device.Stage { return d.divide(p) }

// widened makes rows of n elements, in the operand's storage if they are as long.
type widened struct{ n int }

func (widened) Kind() string     { return "widened" }
func (o widened) String() string { return fmt.Sprintf("widened{%d}", o.n) }
func (o widened) Infer(in ...op.Type) (op.Type, error) {
	return op.T(op.Float64, in[0].Shape[0], o.n), nil
}
func (widened) Overwrites(...op.Type) []int { return []int{0} }
func (o widened) Run(out op.Tensor, in ...op.Tensor) error {
	n := in[0].Shape[1]
	y, x := out.Data.([]float64), slices.Clone(in[0].Data.([]float64))
	for i := range y {
		y[i] = 2*x[i/o.n*n+i%o.n%n] + 1
	}
	return nil
}

const samples = 12

// rows is a random graph of ops on the rows of [samples, 4], some of whose results are views, with its inputs.
func rows(t *testing.T, r *rand.Rand) (g *G.ExprGraph, inputs, results G.Nodes) {
	g = G.NewGraph()
	input := func(name string, shape ...int) *G.Node {
		x := op.New(op.T(op.Float64, shape...)).Data.([]float64)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return G.NewTensor(g, tensor.Float64, len(shape), G.WithName(name), G.WithShape(shape...),
			G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x))))
	}
	inputs = G.Nodes{input("x", samples, 4), input("y", samples, 4), input("weight", 4, 4), input("bias", 4)}
	weight := inputs[2]
	list := slices.Clone(inputs[:2])
	pick := func() *G.Node { return list[max(0, len(list)-1-r.IntN(5))] }
	for i := range 14 {
		name := fmt.Sprintf("n%d", i)
		switch r.IntN(7) {
		case 0:
			list = append(list, apply(t, name, op.ReLU{}, pick()))
		case 1:
			list = append(list, apply(t, name, op.Add{}, pick(), pick()))
		case 2:
			wide := apply(t, name, op.Reshape{Shape: op.Shape{samples, 2, 2}}, pick())
			if r.IntN(2) == 0 {
				wide = apply(t, name, op.ReLU{}, wide)
			}
			list = append(list, apply(t, name, op.Reshape{Shape: op.Shape{samples, 4}}, wide))
		case 3:
			list = append(list, apply(t, name, widened{4}, pick()))
		case 4:
			list = append(list, apply(t, name, widened{4}, apply(t, name, widened{[]int{8, 12, 24}[r.IntN(3)]}, pick())))
		case 5:
			list = append(list, apply(t, name, op.Linear{}, pick(), weight, inputs[3]))
		case 6:
			weight = apply(t, name, op.ReLU{}, inputs[2])
		}
	}
	return g, inputs, list[2:]
}

// divided proposes stages of random lengths, side by side, for random numbers of samples.
func divided(r *rand.Rand) func(p *device.Program) []device.Stage {
	return func(p *device.Program) (stages []device.Stage) {
		for from := r.IntN(4); from < len(p.Steps); {
			to := min(from+1+r.IntN(6), len(p.Steps))
			g := device.Stage{Samples: []int{1, 2, 3, 4, 6, 12}[r.IntN(6)]}
			made := map[int]bool{}
			for i := from; i < to; i++ {
				s := p.Steps[i]
				if p.Values[s.Out].Type.Shape[0] != samples { // a weight
					continue
				}
				o := s.Op
				if t, ok := o.(op.Reshape); ok {
					o = op.Reshape{Shape: append(op.Shape{g.Samples}, t.Shape[1:]...)}
				}
				g.Steps, g.Ops = append(g.Steps, i), append(g.Ops, o)
				for _, v := range s.In {
					if p.Values[v].Type.Shape[0] == samples && !made[v] {
						g.In = append(g.In, v)
					}
				}
				made[s.Out] = true
			}
			if len(g.Steps) > 0 {
				stages = append(stages, g)
			}
			from = to
			if r.IntN(4) == 0 {
				break
			}
		}
		return stages
	}
}

// Programs whose steps run for a portion of the samples at a time have the results of whole ones, in memory that holds
// the results of the last run, whatever is kept, bound or grouped.
func TestDivide(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		g, _, list := rows(t, r)
		keep := G.Nodes{list[len(list)-1]}
		for _, n := range list {
			if r.IntN(4) == 0 && !slices.Contains(keep, n) {
				keep = append(keep, n)
			}
		}
		values := func(dev device.Device, bind map[*G.Node]machine.Binding) [][]float64 {
			m, err := machine.New(g, machine.Config{Device: dev, Keep: keep, Bind: bind})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			defer m.Close()
			var all [][]float64
			for range 2 {
				if err := m.RunAll(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			for _, n := range keep {
				x := op.New(op.T(op.Float64, n.Shape()...))
				if err := m.Read(x, n); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				all = append(all, x.Data.([]float64))
			}
			return all
		}
		plain := &grouper{Device: device.NewReference(op.Float64)}
		want := values(plain, nil)
		dev := divider{grouper: &grouper{Device: device.NewReference(op.Float64), rng: r, attempts: int(seed % 3 * 10)},
			divide: divided(r), kept: map[*device.Group][]*device.Kept{}}
		bind, at := map[*G.Node]machine.Binding{}, r.IntN(len(keep))
		var bound []float64
		if n := keep[at]; r.IntN(2) == 0 {
			m, err := plain.NewMemory(8 * n.Shape().TotalSize())
			if err != nil {
				t.Fatal(err)
			}
			bind[n] = machine.Binding{Region: device.Region{Memory: m, Bytes: m.Bytes()}}
			if bound, err = device.HostSlice[float64](bind[n].Region); err != nil {
				t.Fatal(err)
			}
		}
		if got := values(dev, bind); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		if bound != nil && !slices.Equal(bound, want[at]) {
			t.Fatalf("seed %d: bound memory has %v, want %v", seed, bound, want[at])
		}
		for g, list := range dev.kept {
			for _, k := range list {
				if k == nil || k != list[0] {
					t.Fatalf("seed %d: %v: bindings do not share what they keep", seed, g)
				}
			}
		}
	}
}

// inThrees makes a stage of each step, for three samples.
func inThrees(p *device.Program) (stages []device.Stage) {
	for i, s := range p.Steps {
		stages = append(stages, device.Stage{Steps: []int{i}, Ops: []op.Op{s.Op}, In: s.In, Samples: 3})
	}
	return stages
}

// A mark comes behind the last portion of its results.
func TestMarksOfPortions(t *testing.T) {
	g := G.NewGraph()
	x := newInput(t, g, "x", rand.New(rand.NewPCG(1, 1)), samples, 4)
	y := apply(t, "y", op.ReLU{}, x)
	z := apply(t, "z", op.ReLU{}, y)
	dev := divider{grouper: &grouper{Device: device.NewReference(op.Float64)}, divide: inThrees}
	m, err := machine.New(g, machine.Config{Device: dev, Keep: G.Nodes{y, z}})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := m.Makes(y); err != nil || at != 3 {
		t.Errorf("y is made by kernel %d, %v; want 3", at, err)
	}
	if at, err := m.Makes(z); err != nil || at != 7 {
		t.Errorf("z is made by kernel %d, %v; want 7", at, err)
	}
	got := op.New(op.T(op.Float64, samples, 4))
	r, err := m.NewReplay(nil, machine.Mark{Nodes: G.Nodes{y}, Do: func() error { return m.Read(got, y) }})
	if err != nil {
		t.Fatal(err)
	}
	all := op.New(op.T(op.Float64, samples, 4))
	for i := range all.Data.([]float64) {
		all.Data.([]float64)[i] = float64(i + 1)
	}
	if err := m.Write(x, all); err != nil {
		t.Fatal(err)
	}
	if err = r.Run(); err != nil || !slices.Equal(got.Data.([]float64), all.Data.([]float64)) {
		t.Errorf("the mark reads %v, %v; want %v", got.Data, err, all.Data)
	}
}

// Storage of a stage's operands and results is free for others once no stage reads it.
func TestDividedMemory(t *testing.T) {
	g := G.NewGraph()
	x := newInput(t, g, "x", rand.New(rand.NewPCG(1, 1)), samples, 8)
	for i := range 5 {
		x = apply(t, fmt.Sprint("n", i), op.ReLU{}, x)
	}
	dev := divider{grouper: &grouper{Device: device.NewReference(op.Float64)}, divide: inThrees}
	m, err := machine.New(g, machine.Config{Device: dev, Keep: G.Nodes{x}})
	if err != nil {
		t.Fatal(err)
	}
	if s := m.String(); !strings.Contains(s, "kernels 4 to 4 run 4 times") {
		t.Errorf("the listing does not tell of portions:\n%s", s)
	}
	const value = samples * 8 * 8 // bytes
	if s := m.Stats(); s.Arena != 2*value || s.Groups != 5 || s.Runs != 20 {
		t.Errorf("%+v; want 5 kernels that run 20 times with two values of %d bytes", s, value)
	}
}

// padded stores inputs with a byte behind them.
type padded struct{ divider }

func (padded) Bytes(t op.Type, _ device.Layout) int { return t.Bytes() + 1 }

// A value that does not consist of equal portions is an error.
func TestUnequalPortions(t *testing.T) {
	g := G.NewGraph()
	y := apply(t, "y", op.ReLU{}, newInput(t, g, "x", rand.New(rand.NewPCG(1, 1)), samples, 4))
	dev := padded{divider{grouper: &grouper{Device: device.NewReference(op.Float64)}, divide: inThrees}}
	_, err := machine.New(g, machine.Config{Device: dev, Keep: G.Nodes{y}})
	if want := "x takes 385 bytes, which are not 4 equal portions"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// Errors name the fault of a device's stages.
func TestBadStages(t *testing.T) {
	g := G.NewGraph()
	x := newInput(t, g, "x", rand.New(rand.NewPCG(1, 1)), samples, 4)
	a := apply(t, "a", op.ReLU{}, x)
	b := apply(t, "b", op.Linear{}, a, newInput(t, g, "weight", rand.New(rand.NewPCG(1, 2)), 4, 4))
	c := apply(t, "c", op.Add{}, b, b)
	for _, test := range []struct {
		change func(s *device.Stage, p *device.Program)
		want   string
	}{
		{func(s *device.Stage, p *device.Program) { s.Samples = 5 }, "divides a relu, float64[12 4], into portions of 5 samples"},
		{func(s *device.Stage, p *device.Program) { s.Ops = s.Ops[1:] }, "divides 3 steps for 4 samples, with 2 ops"},
		{func(s *device.Stage, p *device.Program) { s.In = nil }, "relu gives float64[12 4], not float64[4 4]"},
		{func(s *device.Stage, p *device.Program) { s.In = append(s.In, p.Steps[1].In[1]) }, "float64[4 4], into portions of 4 samples"},
		{func(s *device.Stage, p *device.Program) {
			s.Steps, s.Ops = []int{0, 2}, []op.Op{s.Ops[0], s.Ops[2]}
		}, "divides a, whose result is read by b between stages"},
	} {
		divide := func(p *device.Program) []device.Stage {
			s := device.Stage{Samples: 4, In: p.Steps[0].In}
			for i, step := range p.Steps {
				s.Steps, s.Ops = append(s.Steps, i), append(s.Ops, step.Op)
			}
			test.change(&s, p)
			return []device.Stage{s}
		}
		dev := divider{grouper: &grouper{Device: device.NewReference(op.Float64)}, divide: divide}
		_, err := machine.New(g, machine.Config{Device: dev, Keep: G.Nodes{c}})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
