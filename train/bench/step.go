package bench

import (
	"context"
	"errors"
	"time"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/network"
	"onlinerna/train/profile"
)

// config returns the network's configuration.
func (o Options) config() nn.Config {
	return nn.Config{Batch: max(o.Batch, 1), Mode: nn.Eval, Size: o.ImageSize, Mean: []float64{0.5}, Std: []float64{0.25},
		Freeze: o.Freeze}
}

// bench is a measurement in progress.
type bench struct {
	Options
	net       *network.Network
	optimizer device.Optimizer
	rate      float64
	state     []device.Vector // of the optimiser, none in evaluation
	matrices  []device.Matrix // that the optimiser requests
	factors   []device.Factor // 0 for frozen parameters
	found     *network.Fit    // how the batch was found, if it was
	in        *feed
	next      func() (*data.Batch, error)

	pending *network.Pending // the step issued last

	reducer device.Reducer // over ranks that train together
	ranks   int            // their number

	tracing bool // time is attributed to kinds of ops
	apart   bool // the optimiser's step is timed separately
	profile profile.Kinds
	main    profile.Kinds // times of the kinds of ops
	used    Usage         // per step of the last measurement
}

// open creates the network on the device.
func open(dev device.Device, o Options, in *feed) (*bench, error) {
	net, err := network.New(dev, o.Model, in.config(o), o.Seed)
	if err != nil {
		return nil, err
	}
	net.LowMemory, net.Fixed = o.LowMemory, o.Eval
	b := &bench{Options: o, net: net, in: in}
	if !o.Eval {
		if err = b.openOptimizer(); err == nil {
			err = b.fit()
		}
	}
	if err == nil {
		err = in.prepare(b.Options, net.Model())
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// openOptimizer allocates the optimiser's state.
func (b *bench) openOptimizer() (err error) {
	if b.optimizer, b.rate, err = train.DefaultOptimizer(b.Optimizer); err != nil {
		return err
	}
	for range b.optimizer.State() {
		v, err := b.net.NewParams()
		if err != nil {
			return err
		}
		b.state = append(b.state, v)
	}
	b.factors = b.net.Factors(network.Rates{})
	b.matrices, err = b.net.Matrices(b.optimizer)
	return err
}

// mostImages is the maximum for the search of the largest batch without a set of images.
const mostImages = 1 << 16

// fit finds the batch if the memory determines it, or reports that the memory is too small.
func (b *bench) fit() (err error) {
	if b.Batch != network.AutoBatch {
		return b.net.CheckBatch(b.Batch, 0)
	}
	if b.found, err = b.net.Fit(b.in.images(), 0); err == nil {
		b.Batch = b.found.Batch
	}
	return err
}

func (b *bench) close() error {
	for _, v := range b.state {
		v.Free()
	}
	return b.net.Close()
}

// trace sets whether later steps attribute time to kinds of ops.
func (b *bench) trace(on bool) {
	b.tracing = on
	if on {
		b.net.Trace(tracer{b})
	} else {
		b.net.Trace(nil)
	}
}

// tracer records the times of the parts of a step.
type tracer struct{ *bench }

func (t tracer) Group(_ network.Phase, g *device.Group, _ time.Time, took time.Duration) {
	t.profile.Group(g, took)
}

func (t tracer) Part(p network.Phase, _ time.Time, took time.Duration) {
	if p == network.Updating {
		t.profile.Update(t.optimizer, t.paramBytes(), took)
	}
}

func (b *bench) paramBytes() int { return b.net.Device.DType().Size() * b.net.Params.Len() }

// steps runs n steps and records their times. The last one ends when all work is done.
func (b *bench) steps(ctx context.Context, n int) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		batch, err := b.next()
		if err != nil {
			return err
		}
		waited := time.Since(start)
		err = b.run(batch)
		if err == nil && i == n-1 {
			err = b.settle()
		}
		if err != nil {
			return err
		}
		b.profile.Step(time.Since(start), waited)
	}
	return nil
}

// run runs a step. Like the training loop it fetches the results of a step while the next one runs, unless the parts of
// steps are timed.
func (b *bench) run(batch *data.Batch) error {
	u := device.Update{Optimizer: b.optimizer, Grad: b.net.Grads, State: b.state, Tensors: b.net.Tensors(),
		Matrices: b.matrices, Factors: b.factors,
		Numbers: device.Numbers{Rate: slower * b.rate, Scale: 1, Step: 1}}
	if b.reducer != nil {
		u.Numbers.Scale = 1 / float64(b.ranks)
	}
	switch {
	case b.Eval:
		return b.ahead(b.net.StartEvaluation(batch))
	case !b.apart:
		return b.ahead(b.net.Start(batch, network.StepOptions{StatsMomentum: statsMomentum, Update: u, Reducer: b.reducer,
			Weight: 1}))
	}
	if _, _, err := b.net.Gradient(batch, statsMomentum); err != nil {
		return err
	}
	took, err := device.Timed(b.net.Device, func() error { return b.net.Params.Update(u) })
	b.profile.Update(u.Optimizer, b.paramBytes(), took)
	return err
}

// ahead waits for the step before the one just issued; if parts are timed, for this one.
func (b *bench) ahead(p *network.Pending, err error) error {
	if err != nil {
		return err
	}
	before := b.pending
	if b.pending = p; before != nil {
		_, _, err = before.Wait()
	}
	if err == nil && b.tracing {
		b.pending = nil
		_, _, err = p.Wait()
	}
	return err
}

// settle waits for the issued work.
func (b *bench) settle() error {
	if p := b.pending; p != nil {
		b.pending = nil
		if _, _, err := p.Wait(); err != nil {
			return err
		}
	}
	return b.net.Device.Sync()
}
