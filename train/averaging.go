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
func (r *Run) openAveraged() (err error) {
	a := &r.averaged
	o, ok := r.update.Optimizer.(device.Averaging)
	if !ok {
		return nil
	}
	a.rule = o
	if a.iterate, err = r.Net.NewParams(); err == nil {
		a.working, err = r.Net.NewPoint()
	}
	return err
}

func (a *averaging) free() {
	if a.iterate != nil {
		a.iterate.Free()
	}
	a.working.Free()
}

// Iterate is the present iterate: the network's parameters or, while an averaging optimiser trains, a copy of the
// average.
func (r *Run) Iterate() (device.Vector, error) {
	a := &r.averaged
	if a.rule == nil || a.inside {
		return r.Net.Params, nil
	}
	if err := a.iterate.Copy(r.Net.Params); err != nil {
		return nil, err
	}
	return a.iterate, a.iterate.AddScaled(a.rule.Offset(), r.update.State[0])
}

// atIterate runs fn with the iterate in the network, with BatchNorm statistics of its own. Where fn leaves other
// weights there, training goes on from these as the iterate, else from where it was, bit for bit.
func (r *Run) atIterate(ctx context.Context, fn func() error) (err error) {
	a := &r.averaged
	if a.rule == nil {
		return fn()
	}
	x, err := r.Iterate()
	if err == nil {
		err = a.working.Copy(r.Net.Point())
	}
	if err == nil {
		err = r.Net.Params.Copy(x)
	}
	if err != nil {
		return err
	}
	a.inside = true
	defer func() {
		a.inside = false
		err = errors.Join(err, r.backFrom(x))
	}()
	epoch := r.pos.Epoch
	r.pos.Epoch = min(epoch, r.Resolved.Epochs) // behind the last epoch the images are still its
	err = r.recalibrate(ctx)
	r.pos.Epoch = epoch
	if err != nil {
		return err
	}
	return fn()
}

// backFrom puts the parameters of training back, where the network still has the iterate x.
func (r *Run) backFrom(x device.Vector) error {
	a := &r.averaged
	if err := x.AddScaled(-1, r.Net.Params); err != nil {
		return err
	}
	switch moved, err := x.Norm(); {
	case err != nil:
		return err
	case moved == 0:
		return r.Net.Point().Copy(a.working)
	}
	return r.Net.Params.AddScaled(-a.rule.Offset(), r.update.State[0])
}
