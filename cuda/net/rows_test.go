//go:build gpu && cgo

package net

import (
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/number"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// rowProgram is a program of one layer normalisation's gradients, of softmax's or of attention's ops.
func rowProgram(t *testing.T, d *Device, types []op.Type, steps ...device.Step) *device.Program {
	t.Helper()
	p := &device.Program{}
	for _, x := range types {
		p.Values = append(p.Values, device.Value{Name: "operand", Type: x, Layout: d.Layout(x, device.Data)})
	}
	for _, s := range steps {
		var in []op.Type
		for _, v := range s.In {
			in = append(in, p.Values[v].Type)
		}
		y, err := s.Op.Infer(in...)
		check(t, err)
		s.Out = len(p.Values)
		p.Values = append(p.Values, device.Value{Name: "result", Type: y})
		p.Steps, p.Keep = append(p.Steps, s), append(p.Keep, s.Out)
	}
	return p
}

// All gradients of a layer normalisation share one pass, whichever of them are there, and those of other rows do not
// join.
func TestLayerNormGradientGroups(t *testing.T) {
	d := opened(t, Options{Precision: number.BFloat16}).(*Device)
	x, c := op.T(op.Float32, 60, 48), op.T(op.Float32, 48)
	input := device.Step{Op: op.LayerNormGradInput{Eps: 1e-6}, In: []int{0, 1, 2}}
	scale := device.Step{Op: op.LayerNormGradScale{Eps: 1e-6}, In: []int{0, 2}}
	bias := device.Step{Op: op.ChannelSum{}, In: []int{2}}
	other := device.Step{Op: op.LayerNormGradScale{Eps: 1e-5}, In: []int{0, 2}}
	for _, test := range []struct {
		steps []device.Step
		want  int // steps of the first group
	}{
		{[]device.Step{input, scale, bias}, 3}, {[]device.Step{bias, scale, input}, 3}, {[]device.Step{input, bias}, 2},
		{[]device.Step{scale, input}, 2}, {[]device.Step{input, other}, 0}, {[]device.Step{scale, bias}, 2},
	} {
		p := rowProgram(t, d, []op.Type{x, c, x}, test.steps...)
		got := d.Group(p)
		if test.want == 0 && len(got) != 0 || test.want > 0 && (len(got) != 1 || len(got[0]) != test.want) {
			t.Errorf("%v: groups %v, want one of %d steps", p.Steps, got, test.want)
		}
	}
}

// A layer normalisation and a softmax read each element once and write it once; the gradient of the normalisation reads
// two, and leaves a sum for each of few blocks.
func TestRowBytes(t *testing.T) {
	gputest.NeedDNN(t)
	d := opened(t, Options{Precision: number.BFloat16}).(*Device)
	const rows, width = 4096, 96
	x, c := op.T(op.Float32, rows, width), op.T(op.Float32, width)
	const all, vector = 2 * rows * width, 4 * width
	for _, test := range []struct {
		steps       []device.Step
		read, write int64
		rest        int64 // bytes for all blocks' sums, at most
	}{
		{[]device.Step{{Op: op.LayerNorm{Eps: 1e-6}, In: []int{0, 1, 1}}}, all + 2*vector, all, 0},
		{[]device.Step{{Op: op.Softmax{}, In: []int{0}}}, all, all, 0},
		{[]device.Step{{Op: op.SoftmaxGrad{}, In: []int{0, 2}}}, 2 * all, all, 0},
		{[]device.Step{{Op: op.LayerNormGradInput{Eps: 1e-6}, In: []int{0, 1, 2}},
			{Op: op.LayerNormGradScale{Eps: 1e-6}, In: []int{0, 2}}, {Op: op.ChannelSum{}, In: []int{2}}},
			2*all + vector, all + 2*vector, all / 8},
	} {
		p := rowProgram(t, d, []op.Type{x, c, x}, test.steps...)
		for _, v := range []int{0, 2} { // as a step leaves them
			p.Values[v].Layout, p.Values[v].Bytes = d.layout(form{narrow: true}), all
		}
		steps := make([]int, len(p.Steps))
		for i := range steps {
			steps[i] = i
		}
		g, _ := p.Group(steps...)
		for i, v := range g.Values {
			g.Values[i].Bytes = d.Bytes(v.Type, v.Layout)
		}
		plan, err := d.Describe(g)
		check(t, err)
		var a device.Args
		memory := func(n int) device.Region {
			m, err := d.NewMemory(n)
			check(t, err)
			t.Cleanup(m.Free)
			return device.Region{Memory: m, Bytes: n}
		}
		for _, v := range g.Inputs {
			a.In = append(a.In, memory(g.Values[v].Bytes))
		}
		for _, o := range plan.Outputs {
			a.Out = append(a.Out, memory(o.Bytes))
		}
		a.Workspace = memory(plan.Workspace)
		k, err := d.Bind(g, plan, a)
		check(t, err)
		var read, write int64
		check(t, d.Observe(func(_ *device.Group, w device.Work, give func() error) error {
			read, write = read+w.Read, write+w.Write
			return give()
		}))
		check(t, k())
		check(t, d.Observe(nil))
		check(t, d.Sync())
		if read < test.read || read > test.read+test.rest || write < test.write || write > test.write+test.rest {
			t.Errorf("%v reads %d bytes and writes %d, want %d and %d, and %d more at most", p.Steps[0].Op, read, write,
				test.read, test.write, test.rest)
		}
	}
}

// Attention runs as a graph of cuDNN in 16 bits if cuDNN has plans, and with a bias by attention.cu in every precision if
// its heads and tokens are few; else as its formula.
func TestAttentionWhole(t *testing.T) {
	gputest.NeedDNN(t)
	rows := func(heads, width int) (op.SelfAttention, []op.Type) {
		return op.SelfAttention{Tokens: 9, Heads: heads, Scale: .5}, []op.Type{op.T(op.Float32, 18, 3*heads*width)}
	}
	for _, test := range []struct {
		o            Options
		heads, width int
		want         bool
	}{
		{Options{Precision: number.BFloat16}, 2, 16, true}, {Options{Precision: number.Float16}, 3, 8, true},
		{Options{Precision: number.BFloat16}, 2, 12, false}, {Options{Precision: number.Float16}, 1, 36, false},
		{Options{Precision: number.BFloat16, Formulas: true}, 2, 16, false}, {Options{}, 2, 16, false},
	} {
		d := opened(t, test.o).(*Device)
		o, in := rows(test.heads, test.width)
		y, err := o.Infer(in...)
		check(t, err)
		if got := d.Whole(o, in); got != test.want {
			t.Errorf("%+v, %v: whole %v", test.o.Precision, o, got)
		}
		if got := d.Whole(op.SelfAttentionGrad(o), append(in, y)); got != test.want {
			t.Errorf("%+v, gradient of %v: whole %v", test.o.Precision, o, got)
		}
		bias := op.T(op.Float32, 1, 9, 9)
		want := !test.o.Formulas && test.width <= windowWidth
		for _, c := range []op.Composite{op.SelfAttentionGrad(o), op.SelfAttentionGradBias(o)} {
			if whole, grad := d.Whole(o, append(in, bias)), d.Whole(c, append(in, bias, y)); whole != want || grad != want {
				t.Errorf("%+v, %v with a bias: whole %v, %v %v", test.o, o, whole, c, grad)
			}
		}
		many := []op.Type{op.T(op.Float32, 2*(windowTokens+1), 3*test.heads*test.width),
			op.T(op.Float32, 1, windowTokens+1, windowTokens+1)}
		if d.Whole(op.SelfAttention{Tokens: windowTokens + 1, Heads: test.heads}, many) {
			t.Errorf("%+v: %d tokens with a bias run as a whole", test.o, windowTokens+1)
		}
	}
	t.Setenv("RNA_CUDA_ATTENTION", "sometimes")
	if _, err := Open(0, Options{}); err == nil {
		t.Error("opened with RNA_CUDA_ATTENTION=sometimes")
	}
}
