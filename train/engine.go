package train

import (
	"onlinerna/nn/device"
	"onlinerna/train/network"
	"onlinerna/train/ranks/reduce"
)

// engine makes the steps: it knows the optimiser and its state, how gradients add up over batches and ranks, and the scale of the loss.
type engine struct {
	*Deps
	c   *Resolved
	net *network.Network
	in  *input
	pos *position

	update   device.Update  // the part that all steps share
	sum      device.Vector  // of gradients over the batches of a step, nil for one batch
	spare    network.Point  // room for the iterate while the network has other weights
	averaged averaging      // of an averaging optimiser
	scaled   bool           // the device scales the loss
	reducer  device.Reducer // of ranks, nil for one process

	differ bool // the running statistics differ among the ranks
	idle   bool // this rank had no batch since they did not
}

// open makes the optimiser for a network, and allocates its state.
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
	e.update = device.Update{Optimizer: o, Tensors: net.Tensors(), Clip: device.Clip{Norm: e.c.ClipGrad, Value: e.c.ClipValue}}
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

// setRates gives each layer its learning rate.
func (e *engine) setRates() {
	c := e.c
	e.update.Factors = e.net.Factors(network.Rates{Head: c.HeadRate / c.Schedule.Rate, LayerDecay: c.LayerDecay})
}

// resetOptimizer begins anew with the optimiser's state. Bias corrections count steps from here, without those that
// were skipped.
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

// rate is the learning rate of a step of the epoch in progress, by its number from 1 on through the run.
func (e *engine) rate(step int) float64 {
	each := e.epochSteps()
	before := (e.pos.Epoch - 1) * each
	return e.c.Schedule.AtStep(min(max(step-1, before), before+each-1), each)
}

// epochSteps is the number of steps of the optimiser in an epoch.
func (e *engine) epochSteps() int {
	each := e.c.Accumulate * e.Ranks.Size()
	return (e.in.train.Steps() + each - 1) / each
}

// gradScale makes what a step of so many images goes by the gradient of their mean loss.
func (e *engine) gradScale(images int) float64 {
	switch {
	case e.sum != nil: // of each image's
		return 1 / float64(images)
	case e.reducer != nil: // of each rank's, that of a whole batch as it is
		return float64(e.c.Batch) / float64(images)
	}
	return 1
}

// step is what follows the gradient of a batch, with which the step of that number has so many images.
func (e *engine) step(number, batch, images int, first, last bool) network.StepOptions {
	s := network.StepOptions{StatsMomentum: e.c.StatsMomentum, Sum: e.sum, First: first, Reducer: e.reducer}
	if e.reducer != nil {
		s.Weight = float64(batch) / float64(e.c.Batch)
	}
	if last {
		s.Update = e.update
		s.Update.Numbers = device.Numbers{Rate: e.rate(number), Scale: e.gradScale(images), Step: float64(number - e.pos.Origin)}
		if o := e.averaged.rule; o != nil {
			s.Update.Numbers.Share = e.pos.Shares.share(o, s.Update.Numbers.Rate)
		}
	}
	return s
}
