package train

import (
	"context"
	"errors"

	"onlinerna/nn/device"
	"onlinerna/train/network"
)

// averaging serves an averaging optimiser: it takes gradients at the parameters, and its iterate is an average beside
// them.
type averaging struct {
	rule    device.Averaging // nil for an optimiser whose iterate is the parameters
	iterate device.Vector    // room for the average
	working network.Point    // parameters and statistics of training while the iterate is in the network
	inside  bool             // the iterate is in the network
}

// shares sums up the weights of the steps in the average so far. Checkpoints have it.
type shares struct {
	Most float64 `json:"most"` // largest learning rate
	Sum  float64 `json:"sum"`  // of weights
}

// share adds the weight of a step at a learning rate, and returns its share of all.
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

// iterate is the present iterate: see [Run.Iterate].
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

// atIterate runs fn with the iterate in the network, recalibrated. If fn leaves other weights there, training goes on
// with these as the iterate, else from where it was, bit for bit.
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
	e.pos.Epoch = min(epoch, e.c.Epochs) // after the last epoch its images still serve
	err = e.recalibrate(ctx)
	e.pos.Epoch = epoch
	if err != nil {
		return err
	}
	return fn()
}

// backFrom puts the parameters of training back if the network still has the iterate x, else parameters that have the
// new iterate.
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
