package train

import (
	"context"
	"errors"

	"onlinerna/nn/device"
	"onlinerna/train/network"
)

// averaging is what an averaging optimiser takes of a run: its iterate is an average beside the parameters, where
// gradients are taken.
type averaging struct {
	rule    device.Averaging // nil where the iterate is the parameters
	iterate device.Vector    // room for the average
	working network.Point    // parameters and statistics of training while the iterate is in the network
	inside  bool             // it is
}

// shares is the weights of steps in the average so far. It belongs to checkpoints.
type shares struct {
	Most float64 `json:"most"` // largest learning rate
	Sum  float64 `json:"sum"`  // of weights
}

// share takes a step at a learning rate into s and is its part of all.
func (s *shares) share(o device.Averaging, rate float64) float64 {
	s.Most = max(s.Most, rate)
	w := o.Weight(s.Most)
	s.Sum += w
	if s.Sum == 0 { // the rate warms up from 0
		return 0
	}
	return w / s.Sum
}

// openAveraged allocates what the optimiser of the run needs.
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

// atIterate runs fn with the iterate in the network, with BatchNorm statistics of its own. Where fn leaves other
// weights there, training goes on from these as the iterate, else from where it was, bit for bit.
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
	e.pos.Epoch = min(epoch, e.c.Epochs) // behind the last epoch the images are still its
	err = e.recalibrate(ctx)
	e.pos.Epoch = epoch
	if err != nil {
		return err
	}
	return fn()
}

// backFrom puts the parameters of training back, where the network still has the iterate x.
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
