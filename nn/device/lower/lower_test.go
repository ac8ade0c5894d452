package lower_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// names is a device whose kernels are the names of their ops.
func names() *lower.Table[string] {
	return &lower.Table[string]{
		Device: "names",
		Patterns: []lower.Pattern[string]{
			addReLU,
			lower.Alone(func(s lower.Step, _ op.Add) (*lower.Lowering[string],
				error) {
				return result(s, "add", s.In...), nil
			}),
			lower.Alone(func(s lower.Step, _ op.ReLU) (*lower.Lowering[string],
				error) {
				return result(s, "relu", s.In...), nil
			}),
			lower.Alone(func(s lower.Step, o op.Row) (*lower.Lowering[string], error) {
				l := result(s, "row")
				l.Results[0].View = &lower.View{Value: s.In[0], Offset: 4 * o.ViewOffset(s.InType(0))}
				return l, nil
			}),
		},
		Lacks: func(t op.Type) string {
			if t.DType == op.Float64 {
				return "no float64"
			}
			return ""
		},
	}
}

func result(s lower.Step, kernel string, over ...int) *lower.Lowering[string] {
	return &lower.Lowering[string]{
		Results: []lower.Result{{Value: s.Out, Bytes: s.OutType().Bytes(), Over: over}}, Workspace: 8, Kernel: kernel,
	}
}

// addReLU takes Add + ReLU, of operands with equal layouts.
func addReLU(f *lower.Flow, first int) []lower.Match[string] {
	add := f.Step(first)
	next, ok := lower.Next[op.ReLU](f, first)
	if !lower.Is[op.Add](add) || !ok {
		return nil
	}
	return []lower.Match[string]{{Steps: []int{first, next}, Lower: func() (*lower.Lowering[string], error) {
		if add.InValue(0).Layout != add.InValue(1).Layout {
			return nil, lower.Reason("different layouts")
		}
		return result(f.Step(next), "add relu", add.In[0], add.Out, -1, add.In[0]), nil
	}}}
}

type builder struct{ device.Program }

func (b *builder) value(t op.Type) int {
	b.Values = append(b.Values, device.Value{Name: string(rune('a' + len(b.Values))), Type: t, Bytes: t.Bytes()})
	return len(b.Values) - 1
}

func (b *builder) apply(t *testing.T, o op.Op, in ...int) int {
	t.Helper()
	var types []op.Type
	for _, v := range in {
		types = append(types, b.Values[v].Type)
	}
	out, err := o.Infer(types...)
	if err != nil {
		t.Fatal(err)
	}
	v := b.value(out)
	b.Steps = append(b.Steps, device.Step{Name: o.Kind(), Op: o, In: in, Out: v})
	return v
}

func TestGroup(t *testing.T) {
	table := names()
	for name, c := range map[string]struct {
		build func(b *builder, x, y int)
		want  [][]int
	}{
		"together": {func(b *builder, x, y int) { b.apply(t, op.ReLU{}, b.apply(t, op.Add{}, x, y)) }, [][]int{{0, 1}}},
		"kept": {func(b *builder, x, y int) {
			s := b.apply(t, op.Add{}, x, y)
			b.apply(t, op.ReLU{}, s)
			b.Keep = []int{s}
		}, nil},
		"read twice": {func(b *builder, x, y int) {
			s := b.apply(t, op.Add{}, x, y)
			b.apply(t, op.Add{}, b.apply(t, op.ReLU{}, s), s)
		}, nil},
		"others in between": {func(b *builder, x, y int) {
			s := b.apply(t, op.Add{}, x, y)
			b.apply(t, op.ReLU{}, x)
			b.apply(t, op.ReLU{}, s)
		}, [][]int{{0, 2}}},
		"two": {func(b *builder, x, y int) {
			z := b.apply(t, op.ReLU{}, b.apply(t, op.Add{}, x, y))
			b.apply(t, op.ReLU{}, b.apply(t, op.Add{}, z, z))
		}, [][]int{{0, 1}, {2, 3}}},
	} {
		b := new(builder)
		x, y := b.value(op.T(op.Float32, 2, 3)), b.value(op.T(op.Float32, 2, 3))
		c.build(b, x, y)
		if got := table.Group(&b.Program); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Steps cannot run at the place of the last one of their group if a step in between overwrites their operands.
func TestMovable(t *testing.T) {
	b := new(builder)
	state, stats, rate := b.value(op.T(op.Float32, 2, 3)), b.value(op.T(op.Float32, 2, 3)), b.value(op.T(op.Float32, 1))
	sum := b.apply(t, op.Add{}, state, stats)
	b.apply(t, op.BatchNormUpdate{Count: 9}, state, stats, rate)
	b.apply(t, op.ReLU{}, sum)
	if got := names().Group(&b.Program); got != nil {
		t.Errorf("groups %v around what overwrites an operand", got)
	}
}

func TestDescribe(t *testing.T) {
	b := new(builder)
	x, y := b.value(op.T(op.Float32, 2, 3)), b.value(op.T(op.Float32, 2, 3))
	z := b.apply(t, op.ReLU{}, b.apply(t, op.Add{}, x, y))
	b.apply(t, op.Row{Index: 1}, z)
	table := names()

	g, _ := b.Group(0, 1)
	p, err := table.Describe(g)
	if err != nil {
		t.Fatal(err)
	}
	if o := p.Outputs[0]; len(p.Outputs) != 1 || o.Bytes != 24 || !slices.Equal(o.Over, []int{0}) || p.Workspace != 8 {
		t.Errorf("plan %+v", p)
	}
	in, out, scratch := make([]device.Region, 2), make([]device.Region, 1), device.Region{Bytes: 8}
	in[1].Offset, out[0].Offset = 64, 128
	for range 2 { // a plan may be bound again
		bound, err := table.Bind(g, p, device.Args{In: in, Out: out, Workspace: scratch})
		if err != nil {
			t.Fatal(err)
		}
		if bound.Kernel != "add relu" || bound.Regions[1].Offset != 64 || bound.Regions[3].Offset != 128 ||
			bound.Regions[2] != (device.Region{}) {
			t.Errorf("bound %q at %v", bound.Kernel, bound.Regions)
		}
	}
	for what, a := range map[string]device.Args{
		"inputs": {In: in[:1], Out: out, Workspace: scratch}, "outputs": {In: in, Workspace: scratch},
		"workspace": {In: in, Out: out},
	} {
		if _, err := table.Bind(g, p, a); err == nil {
			t.Errorf("bound with too few of %s", what)
		}
	}
	if _, err := table.Bind(g, new(device.Plan), device.Args{In: in, Out: out, Workspace: scratch}); err == nil {
		t.Error("bound by a plan that Describe did not make")
	}

	g, _ = b.Group(2)
	if p, err = table.Describe(g); err != nil {
		t.Fatal(err)
	}
	if v := p.Outputs[0].View; v == nil || v.Input != 0 || v.Offset != 12 {
		t.Errorf("view %+v", v)
	}
}

func TestReasons(t *testing.T) {
	of := func(build func(b *builder, x, y int), steps ...int) *device.Group {
		b := new(builder)
		build(b, b.value(op.T(op.Float32, 2, 3)), b.value(op.T(op.Float32, 2, 3)))
		g, _ := b.Group(steps...)
		return g
	}
	layouts := of(func(b *builder, x, y int) {
		b.Values[y].Layout = "other"
		b.apply(t, op.ReLU{}, b.apply(t, op.Add{}, x, y))
	}, 0, 1)
	table := names()
	for want, g := range map[string]*device.Group{
		"empty group":                    {},
		"there is no kernel for this op": of(func(b *builder, x, y int) { b.apply(t, op.ReLUGrad{}, x, y) }, 0),
		"these ops are not run as a group": of(func(b *builder, x,
			y int) {
			b.apply(t, op.ReLU{}, b.apply(t, op.ReLU{}, x))
		}, 0, 1),
		"no float64":        of(func(b *builder, x, y int) { b.apply(t, op.ReLU{}, b.value(op.T(op.Float64, 2))) }, 0),
		"different layouts": layouts,
	} {
		_, err := table.Describe(g)
		var u *device.UnsupportedError
		if !errors.As(err, &u) || u.Reason != want || u.Device != "names" {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	failed := errors.New("the driver is gone")
	table.Finish = func(*device.Group, *lower.Lowering[string]) error { return failed }
	_, err := table.Describe(of(func(b *builder, x, y int) { b.apply(t, op.ReLU{}, x) }, 0))
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "names: describe") {
		t.Errorf("error %v, want %v", err, failed)
	}
}

// Elementwise ops in sequence become one expression, if no other step reads the values in between and these are not
// repeated.
func TestMapsFrom(t *testing.T) {
	x0, x1 := expr.Arg(0), expr.Arg(1)
	f := op.T(op.Float32, 2, 3)
	b := &builder{}
	x, y, c := b.value(f), b.value(f), b.value(op.T(op.Float32, 3))
	p := b.apply(t, op.Map{Expr: x0.Mul(x1)}, x, c) // step 0
	q := b.apply(t, op.Add{}, p, y)
	r := b.apply(t, op.ReLU{}, q)
	s := b.apply(t, op.Map{Expr: x0.Exp()}, r)  // step 3, kept
	u := b.apply(t, op.ReLU{}, s)               // step 4, no expression
	v := b.apply(t, op.ReLU{}, u)               //
	w := b.apply(t, op.Map{Expr: x0.Neg()}, c)  // step 6
	b.apply(t, op.Map{Expr: x0.Sub(x1)}, v, w)  // step 7: repeats w
	z := b.apply(t, op.Map{Expr: x0.Tanh()}, y) // step 8: read twice
	b.apply(t, op.Add{}, z, z)                  //
	b.Keep = []int{s}
	flow := lower.NewFlow(&b.Program)
	for first, want := range map[int][]string{
		0: {
			"[0 1 2 3] map{exp(max((x0 + (x1 * x2)), 0))} of [1 0 2]",
			"[0 1 2] map{max((x0 + (x1 * x2)), 0)} of [1 0 2]",
			"[0 1] map{(x2 + (x0 * x1))} of [0 2 1]", "[0] map{(x0 * x1)} of [0 2]",
		},
		2: {"[2 3] map{exp(max(x0, 0))} of [4]"},
		4: {"[4 5 7] map{(max(x0, 0) - x1)} of [6 9]"},
		5: {"[5 7] map{(max(x0, 0) - x1)} of [7 9]"},
		6: {"[6] map{-x0} of [2]"},
		8: {"[8] map{tanh(x0)} of [1]"},
		9: nil,
	} {
		var got []string
		for _, m := range lower.MapsFrom(flow, first) {
			got = append(got, fmt.Sprintf("%v %v of %v", m.Steps, m.Map, m.In))
			if m.Out != b.Steps[m.Steps[len(m.Steps)-1]].Out {
				t.Errorf("steps %v make value %d", m.Steps, m.Out)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("from step %d: %q, want %q", first, got, want)
		}
	}
}
