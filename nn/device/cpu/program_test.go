package cpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// bound is a program with storage of its own: every value has a memory.
type bound struct {
	kernels []device.Kernel
	regions []device.Region
}

// bind describes and binds a program group by group. It fills values that no step writes with numbers in [-1, 1), or
// with small integers for int32. weights lists the values that are weights.
func bind(tb testing.TB, d *Device, p *device.Program, weights []int, groups [][]int) *bound {
	tb.Helper()
	b := &bound{regions: make([]device.Region, len(p.Values))}
	region := func(bytes int) device.Region {
		m, err := d.NewMemory(bytes)
		if err != nil {
			tb.Fatal(err)
		}
		return device.Region{Memory: m, Bytes: bytes}
	}
	made := make(map[int]bool)
	for _, s := range p.Steps {
		made[s.Out] = true
	}
	r := rand.New(rand.NewPCG(1, 2))
	for v := range p.Values {
		x := &p.Values[v]
		if made[v] {
			continue
		}
		role := device.Data
		if slices.Contains(weights, v) {
			role = device.Weight
		}
		x.Layout, x.Bytes = d.Layout(x.Type, role), x.Type.Bytes()
		b.regions[v] = region(x.Bytes)
		t := op.New(x.Type)
		switch e := t.Data.(type) {
		case []float32:
			for i := range e {
				e[i] = 2*r.Float32() - 1
			}
		case []int32:
			for i := range e {
				e[i] = r.Int32N(5)
			}
		case []uint8:
			for i := range e {
				e[i] = uint8(r.Uint32())
			}
		}
		if err := d.Upload(b.regions[v], x.Layout, t); err != nil {
			tb.Fatal(err)
		}
	}
	for _, steps := range groups {
		g, values := p.Group(steps...)
		plan, err := d.Describe(g)
		if err != nil {
			tb.Fatal(err)
		}
		var a device.Args
		for _, v := range g.Inputs {
			a.In = append(a.In, b.regions[values[v]])
		}
		for i, v := range g.Outputs {
			o := plan.Outputs[i]
			p.Values[values[v]].Layout, p.Values[values[v]].Bytes = o.Layout, o.Bytes
			b.regions[values[v]] = region(o.Bytes)
			a.Out = append(a.Out, b.regions[values[v]])
		}
		a.Workspace = region(plan.Workspace)
		scratch, err := device.HostSlice[uint8](a.Workspace)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range scratch { // other kernels leave theirs: here NaN
			scratch[i] = 0xff
		}
		k, err := d.Bind(g, plan, a)
		if err != nil {
			tb.Fatal(err)
		}
		b.kernels = append(b.kernels, k)
	}
	return b
}

// run runs all kernels.
func (b *bound) run(tb testing.TB) {
	for _, k := range b.kernels {
		if err := k(); err != nil {
			tb.Fatal(err)
		}
	}
}

// floats is the storage of a value.
func (b *bound) floats(tb testing.TB, v int) []float32 {
	tb.Helper()
	x, err := device.HostSlice[float32](b.regions[v])
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// numbers is a value as float32, for any storage type.
func (b *bound) numbers(tb testing.TB, d *Device, x device.Value, v int) []float32 {
	tb.Helper()
	t := op.New(x.Type)
	if err := d.Download(t, b.regions[v], x.Layout); err != nil {
		tb.Fatal(err)
	}
	return t.Data.([]float32)
}

// builder writes a program down.
type builder struct {
	tb testing.TB
	device.Program
	weights []int
}

func (b *builder) value(t op.Type) int {
	b.Values = append(b.Values, device.Value{Type: t})
	return len(b.Values) - 1
}

func (b *builder) data(shape ...int) int { return b.value(op.T(op.Float32, shape...)) }

func (b *builder) weight(shape ...int) int {
	v := b.data(shape...)
	b.weights = append(b.weights, v)
	return v
}

func (b *builder) apply(o op.Op, in ...int) int {
	b.tb.Helper()
	types := make([]op.Type, len(in))
	for i, v := range in {
		types[i] = b.Values[v].Type
	}
	t, err := o.Infer(types...)
	if err != nil {
		b.tb.Fatal(err)
	}
	out := b.value(t)
	b.Steps = append(b.Steps, device.Step{Op: o, In: in, Out: out})
	return out
}

// alone groups each step by itself.
func (b *builder) alone() [][]int {
	var groups [][]int
	for i := range b.Steps {
		groups = append(groups, []int{i})
	}
	return groups
}

// grouped is the grouping that d proposes, in executable order.
func (b *builder) grouped(d *Device) [][]int {
	groups := d.Group(&b.Program)
	for i := range b.Steps {
		if !slices.ContainsFunc(groups, func(g []int) bool { return slices.Contains(g, i) }) {
			groups = append(groups, []int{i})
		}
	}
	slices.SortFunc(groups, func(x, y []int) int { return x[len(x)-1] - y[len(y)-1] })
	return groups
}

// everywhere makes devices run all suitable convolutions by Winograd's algorithm, inParts all suitable products in so
// many parts.
var (
	everywhere bool
	inParts    int
)

// open starts a device that is closed when the test ends.
func open(tb testing.TB, threads int) *Device {
	tb.Helper()
	d, err := New(Options{Threads: threads, Level: at.String()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Close() })
	if everywhere {
		AlwaysWinograd(d)
	}
	if inParts > 0 {
		InParts(d, inParts)
	}
	return d
}
