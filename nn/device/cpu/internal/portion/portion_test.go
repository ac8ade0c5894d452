package portion

import (
	"reflect"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

const samples = 8

// net is a program under construction.
type net struct {
	testing.TB
	device.Program
}

func (n *net) value(shape ...int) int {
	n.Values = append(n.Values, device.Value{Type: op.T(op.Float32, shape...)})
	return len(n.Values) - 1
}

func (n *net) apply(o op.Op, in ...int) int {
	types := make([]op.Type, len(in))
	for i, v := range in {
		types[i] = n.Values[v].Type
	}
	t, err := o.Infer(types...)
	if err != nil {
		n.Fatal(err)
	}
	out := n.value(t.Shape...)
	n.Steps = append(n.Steps, device.Step{Op: o, In: in, Out: out})
	return out
}

// conv is a convolution of 5×5 taps.
func (n *net) conv(x, filters, stride int) int { return n.square(x, filters, stride, 5) }

func (n *net) square(x, filters, stride, taps int) int {
	w := n.value(filters, n.Values[x].Type.Shape[1], taps, taps)
	return n.apply(op.Conv2D{Stride: [2]int{stride, stride}, Pad: [2]int{taps / 2, taps / 2}}, x, w)
}

// Steps are divided up to the first that mixes samples, or whose operand has samples of its own.
func TestDivisible(t *testing.T) {
	x0, x1 := expr.Arg(0), expr.Arg(1)
	for _, c := range []struct {
		name    string
		add     func(n *net, x int) int
		divided bool
	}{
		{"relu", func(n *net, x int) int { return n.apply(op.ReLU{}, x) }, true},
		{"concatenation of channels", func(n *net, x int) int { return n.apply(op.Concat{Axis: 1}, x, x) }, true},
		{"concatenation of samples", func(n *net, x int) int { return n.apply(op.Concat{}, x, x) }, false},
		{"statistics of the batch", func(n *net, x int) int {
			return n.apply(op.BatchNorm{}, x, n.value(2, 4), n.value(4), n.value(4))
		}, false},
		{"constant statistics", func(n *net, x int) int {
			return n.apply(op.BatchNorm{Fixed: true}, x, n.value(2, 4), n.value(4), n.value(4))
		}, true},
		{"rows in place of samples", func(n *net, x int) int {
			return n.apply(op.Reshape{Shape: op.Shape{2 * samples, 4, 8, 16}}, x)
		}, false},
		{"samples turned", func(n *net, x int) int { return n.apply(op.Permute{Axes: []int{1, 0, 2, 3}}, x) }, false},
		{"some samples", func(n *net, x int) int {
			return n.apply(op.SliceAxis(n.Values[x].Type.Shape, 0, 0, samples/2), x)
		}, false},
		{"an operand of its own samples", func(n *net, x int) int {
			return n.apply(op.Map{Expr: x0.Add(x1)}, x, n.value(samples, 4, 16, 16))
		}, false},
		{"a vector of the samples' means", func(n *net, x int) int { // which is one of channels to an image
			mean := n.apply(op.Reshape{Shape: op.Shape{samples}}, n.apply(op.GlobalAvgPool{}, n.conv(x, 1, 1)))
			return n.apply(op.Map{Expr: x0.Add(x1)}, n.conv(x, samples, 1), mean)
		}, false},
		{"random numbers", func(n *net, x int) int {
			n.Values = append(n.Values, device.Value{Type: op.T(op.Int32, 2)})
			return n.apply(op.Map{Expr: x0.Add(expr.Random(1, 1, false))}, x, len(n.Values)-1)
		}, false},
		{"an operand for all samples", func(n *net, x int) int {
			return n.apply(op.Map{Expr: x0.Add(x1)}, x, n.value(1, 4, 16, 16))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := &net{TB: t}
			x := n.conv(n.conv(n.value(samples, 3, 16, 16), 4, 1), 4, 1)
			n.Keep = []int{n.apply(op.ReLU{}, c.add(n, x))}
			want := []int{0, 1}
			if c.divided {
				want = []int{0, 1, 2, 3}
			}
			stages := Divide(&n.Program, 4*4*16*16)
			if len(stages) != 1 || !slices.Equal(stages[0].Steps, want) || stages[0].Samples > 2 ||
				!slices.Equal(stages[0].In, []int{0}) {
				t.Errorf("%+v, want steps %v for 2 samples at most", stages, want)
			}
		})
	}
}

// A stage has as many samples as fit, if they divide all; it ends where little is handed on.
func TestStages(t *testing.T) {
	build := func(samples int) *net {
		n := &net{TB: t}
		x := n.conv(n.value(samples, 3, 32, 32), 16, 1) // 16,384 elements a sample
		x = n.conv(n.apply(op.ReLU{}, x), 16, 2)
		for range 3 {
			x = n.apply(op.Add{}, x, n.conv(x, 16, 1)) // 4,096
		}
		x = n.conv(x, 2, 1)
		n.Keep = []int{n.conv(x, 16, 2)}
		return n
	}
	for _, c := range []struct {
		samples, elements int
		want              []int // samples of stages
	}{
		{12, 1 << 15, []int{1, 4}},
		{12, 1 << 16, []int{3}},
		{12, 1 << 19, nil}, // all fit
		{13, 1 << 16, nil}, // no divisor
	} {
		var got []int
		stages := Divide(&build(c.samples).Program, c.elements)
		for _, s := range stages {
			got = append(got, s.Samples)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d samples, %d elements: %+v, want %v", c.samples, c.elements, stages, c.want)
		}
	}
}

// The number of samples does not decide between Winograd's algorithm and others.
func TestSameBits(t *testing.T) {
	for elements, want := range map[int]int{3000: 0, 6000: 1} { // for 2 and 4 of 12 samples, of 16 tiles each
		n := &net{TB: t}
		x := n.square(n.value(12, 3, 16, 16), 2, 1, 3)
		n.Keep = []int{n.square(x, 2, 1, 3)}
		if got := Divide(&n.Program, elements); len(got) != want {
			t.Errorf("%d elements: %+v, want %d stages", elements, got, want)
		}
	}
}

// Layers whose results are all read again behind the net, as by its backward pass, are not divided.
func TestReadAgain(t *testing.T) {
	n := &net{TB: t}
	x := n.value(samples, 3, 16, 16)
	made := []int{x}
	for range 4 {
		x = n.apply(op.ReLU{}, n.conv(x, 4, 1))
		made = append(made, x)
	}
	mean := n.apply(op.GlobalAvgPool{}, x)
	loss := n.apply(op.Linear{}, mean, n.value(2, 4))
	for _, v := range made {
		n.Keep = append(n.Keep, n.apply(op.ChannelSum{}, v))
	}
	n.Keep = append(n.Keep, loss)
	if got := Divide(&n.Program, 1); got != nil {
		t.Errorf("divided: %+v", got)
	}
}

// A program that trains is not divided, and neither is one with a single layer.
func TestUndivided(t *testing.T) {
	n := &net{TB: t}
	x := n.conv(n.value(samples, 3, 16, 16), 4, 1)
	n.Keep = []int{x}
	if got := Divide(&n.Program, 1); got != nil {
		t.Errorf("a layer is divided: %+v", got)
	}
	update := n.apply(op.BatchNormUpdate{Count: samples}, n.value(2, 4), n.apply(op.BatchNormStats{}, x), n.value(1))
	n.Keep = []int{n.conv(x, 4, 1), update}
	if got := Divide(&n.Program, 1); got != nil {
		t.Errorf("training is divided: %+v", got)
	}
}
