package train

import (
	"context"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// lossScale is the device's scale of the loss, nil where there is none.
func (e *engine) lossScale() (*device.LossScale, error) {
	d, ok := device.As[device.LossScaler](e.Device)
	if !ok {
		return nil, nil
	}
	s, err := d.LossScale()
	if err != nil || s.Scale == 0 {
		return nil, err
	}
	return &s, nil
}

// resumeScale goes on from a state, or, where the device scales and there is none, from the device's.
func (e *engine) resumeScale(s *device.LossScale) error {
	now, err := e.lossScale()
	e.scaled = now != nil
	if err != nil || now == nil {
		return err
	}
	if s == nil {
		e.pos.Skipped = now.Skipped
		return nil
	}
	d, _ := device.As[device.LossScaler](e.Device)
	return d.SetLossScale(*s)
}

// stepped says whether the optimiser made a step on a gradient: where the loss is scaled it passes over those that are not finite.
func (e *engine) stepped(grad device.Vector) (bool, error) {
	if !e.scaled {
		return true, nil
	}
	return grad.Finite()
}

// recalibrate replaces the running statistics by their mean over training batches. The batches are the same ones whenever it is called in
// an epoch.
func (e *engine) recalibrate(ctx context.Context) error {
	if err := e.net.Recalibrate(e.host(ctx), e.in.stats, e.pos.Epoch); err != nil || e.Ranks.Single() || !e.net.HasStatistics() {
		return err
	}
	return e.weighStats(float64(e.in.stats.Own(0)))
}

// averageStats sets the running statistics to their mean over the ranks, as evaluation and checkpoints need them, once after each step: over those that had a batch
// of it, so that the mean follows from the mean before, whatever the ranks' own were.
func (e *engine) averageStats() error {
	g := e.Ranks
	if g.Single() || e.net.Stats == nil || !e.differ {
		return nil
	}
	weight := 1.
	if e.idle {
		weight = 0
	}
	e.differ, e.idle = false, false
	return e.weighStats(weight)
}

// weighStats sets the running statistics to their mean over the ranks, each with a weight.
func (e *engine) weighStats(weight float64) error {
	n := e.net.Stats.Len()
	x := make([]float64, n+1)
	if err := e.net.Stats.ReadAt64(x[:n], 0); err != nil {
		return err
	}
	for i := range n {
		x[i] *= weight
	}
	x[n] = weight
	if err := e.Ranks.Sum64(x).Wait(); err != nil || x[n] == 0 {
		return err
	}
	for i := range n {
		x[i] /= x[n]
	}
	return e.net.Stats.WriteAt64(x[:n], 0)
}

// sameBits is an error that names the rank whose parameters or state of the optimiser are not those of the others.
func (e *engine) sameBits() error {
	g := e.Ranks
	if g.Single() {
		return nil
	}
	params, err := network.Hash(e.net.Params)
	if err != nil {
		return err
	}
	facts := []ranks.Fact{{Name: "hash of the parameters", Value: params}}
	for i, name := range e.update.Optimizer.State() {
		x, err := network.Hash(e.update.State[i])
		if err != nil {
			return err
		}
		facts = append(facts, ranks.Fact{Name: "hash of the " + name, Value: x})
	}
	return g.Compare(facts...)
}

func (e *engine) statistics() ([]float64, error) {
	if e.net.Stats == nil {
		return nil, nil
	}
	if err := e.averageStats(); err != nil {
		return nil, err
	}
	v := make([]float64, e.net.Stats.Len())
	return v, e.net.Stats.ReadAt64(v, 0)
}

func (e *engine) gradient(step *hook.StepRecord) (grad device.Vector, scale float64, err error) {
	grad, scale = e.net.Grads, e.gradScale(step.Images)
	if e.sum != nil {
		grad = e.sum
	}
	if ok, err := e.stepped(grad); err != nil || !ok {
		return nil, 0, err
	}
	return grad, scale, nil
}

func (e *engine) temporarily(fn func() error) (err error) {
	if e.spare.Params == nil {
		if e.spare, err = e.net.NewPoint(); err != nil {
			return err
		}
	}
	return e.net.Temporarily(e.spare, fn)
}
