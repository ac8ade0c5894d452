package device

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/op"
)

// scaled is an op that multiplies by a factor.
type scaled struct{ by float32 }

func (o scaled) Kind() string   { return "scaled" }
func (o scaled) String() string { return fmt.Sprintf("scaled{%v}", o.by) }
func (o scaled) Infer(in ...op.Type) (op.Type, error) {
	if len(in) != 1 {
		return op.Type{}, fmt.Errorf("%v of %d operands", o, len(in))
	}
	return in[0], nil
}
func (o scaled) Run(out op.Tensor, in ...op.Tensor) error {
	for i, a := range in[0].Data.([]float32) {
		out.Data.([]float32)[i] = o.by * a
	}
	return nil
}

// tail is a view of the second half of a vector.
type tail struct{ scaled }

func (tail) ViewOffset(in op.Type) int { return in.Shape[0] / 2 }
func (tail) Infer(in ...op.Type) (op.Type, error) {
	return op.T(in[0].DType, in[0].Shape[0]/2), nil
}
func (tail) Run(out op.Tensor, in ...op.Tensor) error {
	x := in[0].Data.([]float32)
	copy(out.Data.([]float32), x[len(x)/2:])
	return nil
}

// grown adds its second operand to the first, in place.
type grown struct{ scaled }

func (grown) OverwritesFirst()                     {}
func (grown) Infer(in ...op.Type) (op.Type, error) { return in[0], nil }
func (grown) Run(out op.Tensor, in ...op.Tensor) error {
	for i, a := range in[1].Data.([]float32) {
		out.Data.([]float32)[i] += a
	}
	return nil
}

// failing fails when it runs.
type failing struct{ scaled }

func (failing) Run(op.Tensor, ...op.Tensor) error { return errors.New("out of order") }

// line is a program on vectors of 4: value 0 comes from outside, and step i makes value i+1 from value in[i][0].
func line(ops []op.Op, in [][]int, keep ...int) *Program {
	p := &Program{Keep: keep, Values: []Value{{Name: "x", Type: op.T(op.Float32, 4), Bytes: 16}}}
	for i, o := range ops {
		p.Steps = append(p.Steps, Step{Name: fmt.Sprint("step", i), Op: o, In: in[i], Out: i + 1})
		t, _ := o.Infer(p.Values[in[i][0]].Type)
		p.Values = append(p.Values, Value{Name: fmt.Sprint("y", i), Type: t})
	}
	return p
}

func TestProgramGroup(t *testing.T) {
	// x -> a -> b -> c, with a also read by d
	p := line([]op.Op{scaled{2}, scaled{3}, scaled{5}, scaled{7}}, [][]int{{0}, {1}, {2}, {1}}, 3, 4)
	for _, c := range []struct {
		steps                   []int
		values, inputs, outputs []int // of the program
	}{
		{[]int{0}, []int{0, 1}, []int{0}, []int{1}},
		{[]int{1, 2}, []int{1, 2, 3}, []int{1}, []int{3}},
		{[]int{0, 1}, []int{0, 1, 2}, []int{0}, []int{1, 2}},
		{[]int{0, 1, 2, 3}, []int{0, 1, 2, 3, 4}, []int{0}, []int{3, 4}},
		{[]int{3}, []int{1, 4}, []int{1}, []int{4}},
	} {
		g, values := p.Group(c.steps...)
		global := func(local []int) []int {
			out := make([]int, len(local))
			for i, v := range local {
				out[i] = values[v]
			}
			return out
		}
		if !slices.Equal(values, c.values) || !slices.Equal(global(g.Inputs), c.inputs) ||
			!slices.Equal(global(g.Outputs), c.outputs) {
			t.Errorf("group of steps %v: values %v, inputs %v, outputs %v; want %v, %v, %v",
				c.steps, values, global(g.Inputs), global(g.Outputs), c.values, c.inputs, c.outputs)
		}
		if err := g.Check(); err != nil {
			t.Errorf("group of steps %v: %v", c.steps, err)
		}
	}
}

func TestGroupCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(g *Group)
		want  string
	}{
		{"input", func(g *Group) { g.Inputs[0] = 9 }, "input 9 is none of 3 values"},
		{"order", func(g *Group) { slices.Reverse(g.Steps) }, "reads value 1, which is no input"},
		{"operand", func(g *Group) { g.Steps[0].In[0] = -1 }, "reads value -1"},
		{"arity", func(g *Group) { g.Steps[1].In = nil }, "step1: scaled{3} of 0 operands"},
		{"twice", func(g *Group) { g.Steps[1].Out = 1 }, "writes value 1"},
		{"type", func(g *Group) { g.Values[2].Type = op.T(op.Float32, 5) }, "gives float32[4], not float32[5]"},
		{"output", func(g *Group) { g.Outputs[0] = 0 }, "output 0 is made by none"},
	} {
		g, _ := line([]op.Op{scaled{2}, scaled{3}}, [][]int{{0}, {1}}).Group(0, 1)
		c.spoil(g)
		err := g.Check()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		_, err = NewReference(op.Float32).Describe(g)
		if u := new(UnsupportedError); !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: describe: error %v, want an UnsupportedError with %q", c.name, err, c.want)
		}
	}
}

// place gives every value its own part of one memory, views as the plan says, and runs the group.
func place(t *testing.T, g *Group, content []float32, adjust func(p *Plan, a *Args)) (in []float32, out [][]float32) {
	t.Helper()
	d := NewReference(op.Float32)
	p, err := d.Describe(g)
	if err != nil {
		t.Fatal(err)
	}
	m := hostMemory(t, 4096)
	a := Args{In: []Region{{m, 0, 16}}, Workspace: Region{m, 2048, p.Workspace}}
	for i, o := range p.Outputs {
		a.Out = append(a.Out, Region{m, 64 * (i + 1), o.Bytes})
	}
	if adjust != nil {
		adjust(p, &a)
	}
	if err := d.Upload(a.In[0], "", op.Tensor{Shape: op.Shape{4}, Data: content}); err != nil {
		t.Fatal(err)
	}
	k, err := d.Bind(g, p, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := k(); err != nil {
		t.Fatal(err)
	}
	for _, r := range append(a.In, a.Out...) {
		x, err := HostSlice[float32](r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out[0], out[1:]
}

func TestReferenceRunsGroups(t *testing.T) {
	x := []float32{1, 2, 3, 4}
	chain, _ := line([]op.Op{scaled{2}, scaled{3}, scaled{5}}, [][]int{{0}, {1}, {1}}, 3).Group(0, 1, 2)
	if _, out := place(t, chain, x, nil); len(out) != 2 || !slices.Equal(out[0], []float32{6, 12, 18, 24}) ||
		!slices.Equal(out[1], []float32{10, 20, 30, 40}) {
		t.Errorf("6x and 10x of %v: %v", x, out)
	}

	view, _ := line([]op.Op{tail{}}, [][]int{{0}}).Group(0)
	if _, out := place(t, view, x, nil); !slices.Equal(out[0], x[2:]) {
		t.Errorf("copied view of %v: %v", x, out)
	}
	in, out := place(t, view, x, func(p *Plan, a *Args) {
		w := p.Outputs[0].View
		if w == nil || w.Input != 0 || w.Offset != 8 {
			t.Fatalf("view %+v, want byte 8 of input 0", w)
		}
		a.Out[0] = a.In[0].Part(w.Offset, 8)
	})
	if !slices.Equal(in, x) || &out[0][0] != &in[2] {
		t.Errorf("view of %v: %v", in, out)
	}

	inner, _ := line([]op.Op{scaled{2}, tail{}}, [][]int{{0}, {1}}).Group(0, 1)
	if _, out := place(t, inner, x, func(p *Plan, _ *Args) {
		if p.Outputs[0].View != nil {
			t.Error("a view of a value inside the group needs storage")
		}
	}); !slices.Equal(out[0], []float32{6, 8}) {
		t.Errorf("view of 2x of %v: %v", x, out)
	}
}

func TestReferenceInPlace(t *testing.T) {
	x := []float32{1, 2, 3, 4}
	g, _ := line([]op.Op{scaled{10}, grown{}}, [][]int{{0}, {0, 1}}).Group(0, 1)
	in, out := place(t, g, x, nil)
	if !slices.Equal(in, x) || !slices.Equal(out[0], []float32{11, 22, 33, 44}) {
		t.Errorf("elsewhere: %v, %v", in, out)
	}
	in, _ = place(t, g, x, func(p *Plan, a *Args) {
		if !slices.Equal(p.Outputs[0].Over, []int{0}) {
			t.Errorf("an in-place result may go over inputs %v, want 0", p.Outputs[0].Over)
		}
		a.Out[0] = a.In[0]
	})
	if !slices.Equal(in, []float32{11, 22, 33, 44}) {
		t.Errorf("in place: %v", in)
	}
}

func TestReferenceErrors(t *testing.T) {
	d := NewReference(op.Float32)
	g, _ := line([]op.Op{failing{}}, [][]int{{0}}).Group(0)
	p, err := d.Describe(g)
	if err != nil {
		t.Fatal(err)
	}
	m := hostMemory(t, 64)
	a := Args{In: []Region{{m, 0, 16}}, Out: []Region{{m, 16, 16}}}
	k, err := d.Bind(g, p, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := k(); err == nil || !strings.Contains(err.Error(), "step0: scaled{0}: out of order") {
		t.Errorf("a failing op: %v", err)
	}
	a.Out[0].Bytes = 12
	if _, err := d.Bind(g, p, a); err == nil || !strings.Contains(err.Error(), "12 bytes") {
		t.Errorf("too little storage: %v", err)
	}
	if _, err := d.Bind(g, p, Args{}); err == nil {
		t.Error("no storage must be an error")
	}
	if err := d.Upload(a.In[0], "blocked", op.New(op.T(op.Float32, 4))); err == nil {
		t.Error("a foreign layout must be an error")
	}
	if _, err := NewReference(op.Int32).NewVector(1); err == nil {
		t.Error("a vector of integers must be an error")
	}
}
