package devicetest

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// optimizerSteps are steps of optimisers in float64, made by testdata/optimizers.py.
//
//go:embed testdata/optimizers.json
var optimizerSteps []byte

type goldenOptimizers struct {
	Lengths       []int
	NoDecay       int `json:"no_decay"` // tensor
	Rates, Scales []float64
	W             []float64
	Gradients     [][]float64
	Runs          []goldenRun
}

type goldenRun struct {
	Optimizer string
	Options   map[string]any // hyperparameters by name; decay, nesterov; clip, by torch.nn.utils.clip_grad_norm_
	Steps     []struct {
		W       []float64
		State   [][]float64
		Average []float64 // the iterate of an averaging optimiser
	}
}

// number is an option, 0 if it is missing.
func (r *goldenRun) number(name string) float64 {
	x, _ := r.Options[name].(float64)
	return x
}

// optimizer returns the optimiser of a run.
func (r *goldenRun) optimizer() (device.Optimizer, error) {
	for _, d := range optim.All() {
		if d.Name != r.Optimizer {
			continue
		}
		h := optim.Hyper{Of: map[string]float64{}, Decay: r.number("decay")}
		h.Nesterov, _ = r.Options["nesterov"].(bool)
		for name := range d.Takes {
			if _, ok := r.Options[name]; !ok {
				return nil, fmt.Errorf("%s: no %s", r.Optimizer, name)
			}
			h.Of[name] = r.number(name)
		}
		return d.Make(h), nil
	}
	return nil, fmt.Errorf("no optimiser %q", r.Optimizer)
}

// golden repeats the steps of PyTorch's optimisers, and timm's.
func (s *suite) golden(t tester) {
	var g goldenOptimizers
	if err := json.Unmarshal(optimizerSteps, &g); err != nil {
		t.Fatalf("optimizers.json: %v", err)
	}
	left := map[string]bool{}
	for _, d := range optim.All() {
		left[d.Name] = true
	}
	for i := range g.Runs {
		r := &g.Runs[i]
		delete(left, r.Optimizer)
		if err := s.repeat(&g, r); err != nil {
			t.Errorf("%s %+v: %v", r.Optimizer, r.Options, err)
		}
	}
	if len(left) > 0 {
		t.Errorf("optimizers.json has no run of %v", left)
	}
}

// share is the weight of the last of some steps in the average of an averaging optimiser.
func share(o device.Optimizer, rates []float64) float64 {
	a, ok := o.(device.Averaging)
	if !ok {
		return 0
	}
	most, sum, last := 0., 0., 0.
	for _, r := range rates {
		most = max(most, r)
		last = a.Weight(most)
		sum += last
	}
	return last / sum
}

// repeat makes the steps of a run.
func (s *suite) repeat(g *goldenOptimizers, r *goldenRun) error {
	tolerance := 1e-13
	if s.dtype == op.Float32 {
		tolerance = 2e-6
	}
	o, err := r.optimizer()
	if err != nil || s.round != nil && loose(o) > 1 { // products of 16 bits are too inaccurate for orthogonal steps
		return err
	}
	v, err := updatedOn(s.dev, o, g.W)
	if err != nil {
		return err
	}
	defer v.free()
	u := device.Update{Optimizer: o, Grad: v.grad, State: v.state, Clip: device.Clip{Norm: r.number("clip")}}
	at := 0
	for i, n := range g.Lengths {
		span := device.Span{Off: at, Len: n}
		u.Tensors = append(u.Tensors, span)
		if i == g.NoDecay {
			u.NoDecay = append(u.NoDecay, span)
		}
		at += n
	}
	if loose(o) > 1 {
		u.Matrices = []device.Matrix{{Tensor: 0, Rows: 2, Columns: 3}, {Tensor: 5, Rows: 5, Columns: 4, Transposed: true}}
	}
	if k := loose(o); k > 1 && s.dtype == op.Float32 {
		tolerance *= k
	} else if k > 1 {
		tolerance = 1e-12
	}
	for step, want := range r.Steps {
		if err := v.grad.WriteAt64(g.Gradients[step], 0); err != nil {
			return err
		}
		u.Numbers = device.Numbers{Rate: g.Rates[step], Scale: g.Scales[step], Step: float64(step + 1),
			Share: share(o, g.Rates[:step+1])}
		if err := v.w.Update(u); err != nil {
			return err
		}
		if err := s.expect(fmt.Sprintf("parameters after step %d", step+1), v.w, want.W, tolerance); err != nil {
			return err
		}
		if a, ok := o.(device.Averaging); ok {
			if err := s.average(v, a, want.Average, tolerance); err != nil {
				return fmt.Errorf("step %d: %w", step+1, err)
			}
		}
		for i, name := range o.State() {
			if err := s.expect(fmt.Sprintf("%s after step %d", name, step+1), v.state[i], want.State[i],
				tolerance); err != nil {
				return err
			}
		}
	}
	return nil
}

// average compares the iterate of an averaging optimiser.
func (s *suite) average(v *updated, o device.Averaging, want []float64, tolerance float64) error {
	x, err := s.dev.NewVector(v.w.Len())
	if err != nil {
		return err
	}
	defer x.Free()
	if err := errors.Join(x.Copy(v.w), x.AddScaled(o.Offset(), v.state[0])); err != nil {
		return err
	}
	return s.expect("average", x, want, 4*tolerance)
}
