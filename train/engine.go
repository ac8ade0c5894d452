package train

import (
	"context"

	"onlinerna/nn/device"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/reduce"
)

// engine performs the steps: it holds the optimiser with its state, sums gradients over batches and ranks, and scales
// the loss.
type engine struct {
	*Deps
	c   *Resolved
	net *network.Network
	in  *input
	pos *position

	update   device.Update  // the part common to all steps
	sum      device.Vector  // sum of gradients over the batches of a step, nil for one batch
	spare    network.Point  // memory for the iterate while the network holds other weights
	averaged averaging      // for an averaging optimiser
	scaled   bool           // the device scales the loss
	reducer  device.Reducer // sums over ranks, nil for one process

	differ bool // the running statistics differ between ranks
	idle   bool // this rank has had no batch since they were last equal
}

// open creates the optimiser for a network, and allocates its state.
func (e *engine) open(net *network.Network) error {
	e.net = net
	if !e.Ranks.Single() {
		e.reducer = reduce.New(e.Ranks, e.Device)
		if err := reduce.Takes(e.Device, net.Params); err != nil {
			return err
		}
	}
	o, err := e.c.newOptimizer()
	if err != nil {
		return err
	}
	e.update = device.Update{Optimizer: o, Tensors: net.Tensors(), Clip: device.Clip{Norm: e.c.ClipGrad,
		Value: e.c.ClipValue}}
	if e.update.Matrices, err = net.Matrices(o); err != nil {
		return err
	}
	if e.update.NoDecay, err = net.Exempt(e.c.DecayWeightsOnly, e.c.NoDecay...); err != nil {
		return err
	}
	e.setRates()
	return noRoom(e.c, e.allocate())
}

// allocate allocates the vectors of the optimiser, and the sum of gradients.
func (e *engine) allocate() error {
	for range e.update.Optimizer.State() {
		v, err := e.net.NewParams()
		if err != nil {
			return err
		}
		e.update.State = append(e.update.State, v)
	}
	if err := e.openAveraged(); err != nil || e.c.Accumulate <= 1 {
		return err
	}
	var err error
	e.sum, err = e.net.NewParams()
	return err
}

// close releases the vectors.
func (e *engine) close() {
	for _, v := range append([]device.Vector{e.sum}, e.update.State...) {
		if v != nil {
			v.Free()
		}
	}
	e.spare.Free()
	e.averaged.free()
}

// setRates sets the learning rate of each layer.
func (e *engine) setRates() {
	c := e.c
	e.update.Factors = e.net.Factors(network.Rates{Head: c.HeadRate / c.Schedule.Rate, LayerDecay: c.LayerDecay})
}

// resetOptimizer sets the optimiser's state to zero. Bias corrections count non-skipped steps from here.
func (e *engine) resetOptimizer() error {
	for _, v := range e.update.State {
		if err := v.Fill(0); err != nil {
			return err
		}
	}
	s, err := e.lossScale()
	if err != nil {
		return err
	}
	e.pos.Origin, e.pos.Shares = e.pos.Steps, shares{}
	if s != nil {
		e.pos.Origin -= s.Skipped
	}
	return nil
}

// learningRate returns the learning rate of a step of the current epoch. Steps count from 1 through the run.
func (e *engine) learningRate(step int) float64 {
	each := e.epochSteps()
	before := (e.pos.Epoch - 1) * each
	return e.c.Schedule.AtStep(min(max(step-1, before), before+each-1), each)
}

// epochSteps returns the number of optimiser steps in an epoch.
func (e *engine) epochSteps() int {
	each := e.c.Accumulate * e.Ranks.Size()
	return (e.in.train.Steps() + each - 1) / each
}

// gradScale returns the factor that turns the accumulated gradient of that many images into the gradient of their mean
// loss.
func (e *engine) gradScale(images int) float64 {
	switch {
	case e.sum != nil: // the sum over images
		return 1 / float64(images)
	case e.reducer != nil: // the sum over ranks, where a full batch has weight 1
		return float64(e.c.Batch) / float64(images)
	}
	return 1
}

// step returns the network's options for the gradient of a batch of the given size. first and last mark the first and
// last batch of the step with that number; images counts the step's images so far on all ranks.
func (e *engine) step(number, batch, images int, first, last bool) network.StepOptions {
	s := network.StepOptions{StatsMomentum: e.c.StatsMomentum, Sum: e.sum, First: first, Reducer: e.reducer}
	if e.reducer != nil {
		s.Weight = float64(batch) / float64(e.c.Batch)
	}
	if last {
		s.Update = e.update
		s.Update.Numbers = device.Numbers{Rate: e.learningRate(number), Scale: e.gradScale(images),
			Step: float64(number - e.pos.Origin)}
		if o := e.averaged.rule; o != nil {
			s.Update.Numbers.Share = e.pos.Shares.share(o, s.Update.Numbers.Rate)
		}
	}
	return s
}

// lossScale returns the device's loss scale, nil for a device without one.
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

// resumeScale sets the device's loss scale from a checkpoint. For nil the device keeps its own.
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

// stepped reports whether the optimiser applied a gradient: with a scaled loss it skips non-finite gradients.
func (e *engine) stepped(grad device.Vector) (bool, error) {
	if !e.scaled {
		return true, nil
	}
	return grad.Finite()
}

// recalibrate replaces the running statistics by their mean over training batches, the same batches at each call in an
// epoch.
func (e *engine) recalibrate(ctx context.Context) error {
	err := e.net.Recalibrate(e.host(ctx), e.in.stats, e.pos.Epoch)
	if !e.net.HasStatistics() {
		return err
	}
	if err = e.share(err); err != nil || e.Ranks.Single() {
		return err
	}
	return e.weighStats(float64(e.in.stats.Own(0)))
}

// averageStats sets the running statistics to their mean over the ranks, for evaluation and checkpoints. It counts only
// ranks that had a batch since the last call, so that the mean follows from the previous mean.
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

// weighStats sets the running statistics to their weighted mean over the ranks.
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

// sameBits returns an error that names a rank whose parameters or optimiser state differ from the others'.
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
