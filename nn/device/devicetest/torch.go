package devicetest

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// torchSGD holds trajectories of torch.optim.SGD in float64 on f(x) = x'Ax/2 - b'x. The file says how they
// were made.
//
//go:embed testdata/sgd.json
var torchSGD []byte

// quadratic is a function with trajectories on it.
type quadratic struct {
	A     [][]float64
	B, X0 []float64
	Runs  []torchRun
}

// torchRun is a trajectory: X before the first step and after each.
type torchRun struct {
	Options struct {
		LR                  any // a number, or "0.1 in steps 0-4, 0.01 in 5-9"
		Momentum, Dampening float64
		WeightDecay         float64 `json:"weight_decay"`
		Nesterov, Maximize  bool
	}
	X      [][]float64
	Buffer [][]float64 `json:"momentum_buffer_after_step"`
}

// rate is the learning rate of a step, from 0.
func (r *torchRun) rate(step int) float64 {
	if lr, ok := r.Options.LR.(float64); ok {
		return lr
	}
	if step < 5 {
		return .1
	}
	return .01
}

// gradient is Ax - b.
func (q *quadratic) gradient(x []float64) []float64 {
	g := make([]float64, len(x))
	for i, row := range q.A {
		g[i] = -q.B[i]
		for j, a := range row {
			g[i] += a * x[j]
		}
	}
	return g
}

// torch repeats PyTorch's trajectories, except those with options that optim.SGD does not have.
func (s *suite) torch(t tester) {
	var q quadratic
	if err := json.Unmarshal(torchSGD, &q); err != nil {
		t.Fatalf("sgd.json: %v", err)
	}
	for _, r := range q.Runs {
		if r.Options.Dampening != 0 || r.Options.Maximize {
			continue
		}
		if err := s.follow(&q, &r); err != nil {
			t.Errorf("%+v: %v", r.Options, err)
		}
	}
}

// follow makes the steps of a trajectory.
func (s *suite) follow(q *quadratic, r *torchRun) error {
	tolerance := 1e-13
	if s.dtype == op.Float32 {
		tolerance = 2e-6
	}
	x, err := s.vector(q.X0)
	if err != nil {
		return err
	}
	defer x.Free()
	momentum, err := s.vector(make([]float64, len(q.X0)))
	if err != nil {
		return err
	}
	defer momentum.Free()
	grad, err := s.vector(make([]float64, len(q.X0)))
	if err != nil {
		return err
	}
	defer grad.Free()
	o := r.Options
	for step, want := range r.X[1:] {
		at, err := s.content(x)
		if err != nil {
			return err
		}
		if err := grad.WriteAt64(q.gradient(at), 0); err != nil {
			return err
		}
		u := device.Update{Optimizer: optim.SGD{Momentum: o.Momentum, Decay: o.WeightDecay, Nesterov: o.Nesterov},
			Grad:  grad,
			State: []device.Vector{momentum}, Numbers: device.Numbers{Rate: r.rate(step), Scale: 1,
				Step: float64(step + 1)}}
		if err := x.Update(u); err != nil {
			return err
		}
		if err := s.expect(fmt.Sprintf("x after step %d", step+1), x, want, tolerance); err != nil {
			return err
		}
		if o.Momentum == 0 || r.Buffer == nil {
			continue // PyTorch keeps none, or it was not recorded
		}
		if err := s.expect(fmt.Sprintf("momentum after step %d", step+1), momentum, r.Buffer[step],
			tolerance); err != nil {
			return err
		}
	}
	return nil
}
