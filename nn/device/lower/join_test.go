package lower_test

import (
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// padded makes a program of pads and sums of values of shape [2,6,3].
type padded struct{ device.Program }

// part pads a new input of n rows: they are the result's from row at on.
func (p *padded) part(at, n int) int {
	p.Values = append(p.Values, device.Value{Type: op.T(op.Float64, 2, n, 3)})
	return p.step(op.Pad{Before: []int{0, at, 0}, After: []int{0, 6 - at - n, 0}}, len(p.Values)-1)
}

// whole is a new input of 6 rows.
func (p *padded) whole() int {
	p.Values = append(p.Values, device.Value{Type: op.T(op.Float64, 2, 6, 3)})
	return len(p.Values) - 1
}

func (p *padded) add(a, b int) int { return p.step(op.Add{}, a, b) }

func (p *padded) step(o op.Op, in ...int) int {
	out := len(p.Values)
	p.Values = append(p.Values, device.Value{Type: op.T(op.Float64, 2, 6, 3)})
	p.Steps = append(p.Steps, device.Step{Op: o, In: in, Out: out})
	return out
}

// run returns the kept values, from inputs that differ in each element.
func (p *padded) run(t *testing.T) (kept []float64) {
	t.Helper()
	made, next := map[int]op.Tensor{}, 0.
	for _, s := range p.Steps {
		made[s.Out] = op.New(p.Values[s.Out].Type)
	}
	for v := range p.Values {
		if _, ok := made[v]; ok || p.read(v) == 0 {
			continue
		}
		made[v] = op.New(p.Values[v].Type)
		for i := range made[v].Data.([]float64) {
			next++
			made[v].Data.([]float64)[i] = next
		}
	}
	for _, s := range p.Steps {
		in := make([]op.Tensor, len(s.In))
		for i, v := range s.In {
			in[i] = made[v]
		}
		if _, err := s.Op.Infer(types(in)...); err != nil {
			t.Fatal(err)
		}
		if err := s.Op.Run(made[s.Out], in...); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range p.Keep {
		kept = append(kept, made[v].Data.([]float64)...)
	}
	return kept
}

func types(in []op.Tensor) (t []op.Type) {
	for _, x := range in {
		t = append(t, x.Type())
	}
	return t
}

func (p *padded) read(v int) (n int) {
	for _, s := range p.Steps {
		for _, in := range s.In {
			if in == v {
				n++
			}
		}
	}
	return n
}

func TestJoinPads(t *testing.T) {
	for name, c := range map[string]struct {
		build func(p *padded) int
		want  []string // kinds of the steps that are left
	}{
		"two": {func(p *padded) int { return p.add(p.part(0, 4), p.part(4, 2)) }, []string{"concat"}},
		"three, not in order": {func(p *padded) int {
			return p.add(p.part(3, 3), p.add(p.part(1, 2), p.part(0, 1)))
		}, []string{"concat"}},
		"another term in between": {func(p *padded) int {
			a := p.add(p.part(0, 4), p.whole())
			return p.add(a, p.part(4, 2))
		}, []string{"concat", "add"}},
		"another term behind a pad": {func(p *padded) int {
			a := p.part(0, 4)
			return p.add(a, p.add(p.part(4, 2), p.whole()))
		}, []string{"concat", "add"}},
		"two other terms": {func(p *padded) int {
			a := p.add(p.part(0, 4), p.whole())
			return p.add(a, p.add(p.part(4, 2), p.whole()))
		}, []string{"pad", "add", "pad", "add", "add"}},
		"a gap":   {func(p *padded) int { return p.add(p.part(0, 3), p.part(4, 2)) }, []string{"pad", "pad", "add"}},
		"overlap": {func(p *padded) int { return p.add(p.part(0, 5), p.part(4, 2)) }, []string{"pad", "pad", "add"}},
		"short":   {func(p *padded) int { return p.add(p.part(0, 2), p.part(2, 2)) }, []string{"pad", "pad", "add"}},
		"whole":   {func(p *padded) int { return p.add(p.part(0, 6), p.part(0, 6)) }, []string{"pad", "pad", "add"}},
		"twice":   {func(p *padded) int { a := p.part(0, 3); return p.add(a, a) }, []string{"pad", "add"}},
		"a pad with another reader": {func(p *padded) int {
			a := p.part(0, 4)
			return p.add(p.add(a, p.part(4, 2)), p.add(a, p.whole()))
		}, []string{"pad", "pad", "add", "add", "add"}},
		"a kept sum": {func(p *padded) int {
			a := p.add(p.part(0, 4), p.part(4, 2))
			p.Keep = append(p.Keep, a)
			return p.add(a, p.whole())
		}, []string{"concat", "add"}},
		"two sums": {func(p *padded) int {
			a := p.add(p.part(0, 4), p.part(4, 2))
			b := p.add(p.part(0, 2), p.part(2, 4))
			return p.step(op.ReLUGrad{}, a, b)
		}, []string{"concat", "concat", "relu_grad"}},
	} {
		p := &padded{}
		p.Keep = append(p.Keep, c.build(p))
		want := p.run(t)
		lower.JoinPads(&p.Program)
		var kinds []string
		for _, s := range p.Steps {
			kinds = append(kinds, s.Op.Kind())
		}
		if !slices.Equal(kinds, c.want) || !slices.Equal(p.run(t), want) {
			t.Errorf("%s: %v of %v", name, kinds, c.want)
		}
	}
}
