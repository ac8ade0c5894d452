package train

import (
	"context"
	"errors"

	"onlinerna/nn/device"
	"onlinerna/train/network"
)

// averaging supports averaging optimisers: gradients are taken at the parameters, and the iterate is an average kept
// beside them.
type averaging struct {
	rule    device.Averaging // nil for an optimiser whose iterate is the parameters
	iterate device.Vector    // memory for the average
	working network.Point    // training parameters and statistics while the network holds the iterate
	inside  bool             // the network holds the iterate
}

// shares sums the weights of the steps in the average so far. Checkpoints store it.
type shares struct {
	Most float64 `json:"most"` // largest learning rate
	Sum  float64 `json:"sum"`  // sum of the weights
}

// share adds the weight of a step at a learning rate, and returns its fraction of the total weight.
func (s *shares) share(o device.Averaging, rate float64) float64 {
	s.Most = max(s.Most, rate)
	w := o.Weight(s.Most)
	s.Sum += w
	if s.Sum == 0 { // the learning rate warms up from 0
		return 0
	}
	return w / s.Sum
}

// openAveraged allocates the vectors of an averaging optimiser.
func (e *engine) openAveraged() (err error) {
	a := &e.averaged
	o, ok := e.update.Optimizer.(device.Averaging)
	if !ok {
		return nil
	}
	a.rule = o
	if a.iterate, err = e.net.NewParams(); err == nil {
		a.working, err = e.net.NewPoint()
	}
	return err
}

func (a *averaging) free() {
	if a.iterate != nil {
		a.iterate.Free()
	}
	a.working.Free()
}

// iterate returns the current iterate: see [Run.Iterate].
func (e *engine) iterate() (device.Vector, error) {
	a := &e.averaged
	if a.rule == nil || a.inside {
		return e.net.Params, nil
	}
	if err := a.iterate.Copy(e.net.Params); err != nil {
		return nil, err
	}
	return a.iterate, a.iterate.AddScaled(a.rule.Offset(), e.update.State[0])
}

// atIterate runs fn with the recalibrated iterate in the network. If fn leaves other weights there, they become the
// iterate; otherwise training continues from its previous state, bit for bit.
func (e *engine) atIterate(ctx context.Context, fn func() error) (err error) {
	a := &e.averaged
	if a.rule == nil {
		return fn()
	}
	x, err := e.iterate()
	if err == nil {
		err = a.working.Copy(e.net.Point())
	}
	if err == nil {
		err = e.net.Params.Copy(x)
	}
	if err != nil {
		return err
	}
	a.inside = true
	defer func() {
		a.inside = false
		err = errors.Join(err, e.backFrom(x))
	}()
	epoch := e.pos.Epoch
	e.pos.Epoch = min(epoch, e.c.Epochs) // the last epoch's images also serve after it
	err = e.recalibrate(ctx)
	e.pos.Epoch = epoch
	if err != nil {
		return err
	}
	return fn()
}

// backFrom restores the training parameters if the network still holds the iterate x; otherwise it sets parameters that
// have the new iterate.
func (e *engine) backFrom(x device.Vector) error {
	a := &e.averaged
	if err := x.AddScaled(-1, e.net.Params); err != nil {
		return err
	}
	switch moved, err := x.Norm(); {
	case err != nil:
		return err
	case moved == 0:
		return e.net.Point().Copy(a.working)
	}
	return e.net.Params.AddScaled(-a.rule.Offset(), e.update.State[0])
}
