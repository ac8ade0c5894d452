package device_test

import (
	"fmt"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// TestFactors compares steps with factors of the learning rate with steps on vectors of their own, at the rates that
// result.
func TestFactors(t *testing.T) {
	spans := []device.Span{{Off: 0, Len: 3}, {Off: 3, Len: 4}, {Off: 7, Len: 2}, {Off: 9, Len: 1}}
	factors := []device.Factor{{Span: spans[0], Rate: .5}, {Span: spans[2], Rate: 0}, {Span: spans[3], Rate: 10}}
	rates := []float64{.05, .1, 0, 1}
	for _, o := range []device.Optimizer{
		optim.SGD{Momentum: .9, Decay: .1}, optim.AdamW{Beta1: .9, Beta2: .99, Eps: 1e-8, Decay: .1},
		optim.LARS{Momentum: .9, Decay: .1, Trust: .1}, optim.LAMB{Beta1: .9, Beta2: .99, Eps: 1e-6, Decay: .1},
	} {
		all := newParams(t, o, 0, 10)
		for i, s := range spans {
			own := newParams(t, o, s.Off, s.Len)
			for step := 1; step <= 3; step++ {
				n := device.Numbers{Rate: rates[i], Step: float64(step)}
				if rates[i] > 0 {
					own.step(t, device.Update{Optimizer: o, Tensors: []device.Span{{Len: s.Len}}, Numbers: n})
				}
				if i == 0 {
					n.Rate = .1
					all.step(t, device.Update{Optimizer: o, Tensors: spans, Factors: factors, Numbers: n})
				}
			}
			got, want := read(t, all.w)[s.Off:s.Off+s.Len], read(t, own.w)
			if !slices.Equal(got, want) {
				t.Errorf("%s, span %d: %v, want %v", o.Name(), i, got, want)
			}
		}
		frozen := read(t, all.state[0])[7:9]
		if !slices.Equal(frozen, []float64{0, 0}) {
			t.Errorf("%s: the state of what is left alone is %v", o.Name(), frozen)
		}
	}
}

// params are parameters off, off+1, …, with a gradient and the state of an optimiser.
type params struct {
	w, grad device.Vector
	state   []device.Vector
}

func newParams(t *testing.T, o device.Optimizer, off, n int) *params {
	d := device.NewReference(op.Float64)
	p := &params{}
	var err error
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(off+i) - 4.5
	}
	vector := func() device.Vector {
		v, e := d.NewVector(n)
		if e != nil {
			t.Fatal(e)
		}
		return v
	}
	p.w, p.grad = vector(), vector()
	if err = p.w.WriteAt64(x, 0); err == nil {
		err = p.grad.WriteAt64(x, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range o.State() {
		p.state = append(p.state, vector())
	}
	return p
}

func (p *params) step(t *testing.T, u device.Update) {
	u.Grad, u.State = p.grad, p.state
	if err := p.w.Update(u); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", u.Optimizer.Name(), err))
	}
}

func read(t *testing.T, v device.Vector) []float64 {
	x := make([]float64, v.Len())
	if err := v.ReadAt64(x, 0); err != nil {
		t.Fatal(err)
	}
	return x
}
