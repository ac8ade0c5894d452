// Package bench measures how fast a device trains and evaluates a network, and where the time goes; and what RNA costs
// beside that ([RunRNA]).
//
// A step is what one batch costs: pixels and labels go to the device, forward and backward pass, the running
// statistics, a step of SGD, and the loss comes back; in evaluation the forward pass alone, and the score. The batch is
// synthetic and the same in each step. Every group of ops is timed in every step, so the times of
// kinds of ops add up to that of the steps.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train"
)

// Options say what to measure.
type Options struct {
	Model     string // an architecture of package nn
	Batch     int    // images a step, or train.AutoBatch; default 16
	ImageSize int    // height and width of an image; default: the model's
	Eval      bool   // measure evaluation instead of training
	Steps     int    // that are measured; default 10
	Warmup    int    // steps before them, which plan and allocate; default 3
	Seed      uint64 // of weights and images
}

func (o Options) withDefaults() (Options, error) {
	fill := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&o.Batch, 16)
	fill(&o.Steps, 10)
	fill(&o.Warmup, 3)
	switch {
	case o.Batch == train.AutoBatch && o.Eval:
		return o, errors.New("the largest batch is that of training at --batch auto: evaluation takes a number")
	case o.Batch < 0 && o.Batch != train.AutoBatch:
		return o, fmt.Errorf("batch of %d images: must be at least 1", o.Batch)
	case o.ImageSize < 0:
		return o, fmt.Errorf("image size %d: must be at least 1", o.ImageSize)
	case o.Steps < 0:
		return o, fmt.Errorf("%d steps: must be at least 1", o.Steps)
	case o.Warmup < 0:
		return o, fmt.Errorf("%d steps to warm up: must be at least 1", o.Warmup)
	}
	return o, nil
}

// The optimiser's settings: PyTorch's usual ones for ResNets. The rate is low, so that the loss stays finite.
const (
	rate     = 0.01
	momentum = 0.9
	decay    = 1e-4
	// statsMomentum is that of the running statistics.
	statsMomentum = 0.1
	// sgdStreams are weight, gradient and momentum, which are read, weight and momentum, which are written.
	sgdStreams = 5
)

// Run measures a network on dev. A step that fails ends it, and so does ctx between steps.
func Run(ctx context.Context, dev device.Device, o Options) (result *Result, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if _, err := nn.Build(o.Model, o.config()); err != nil { // mistakes first
		return nil, fmt.Errorf("bench: %w", err)
	}
	var limits limits
	if err := limits.measure(dev); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	debug.FreeOSMemory() // or the peak of memory would have it twice
	b, err := open(dev, o)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.net.Trace(b.profile.group)
	if err := b.steps(ctx, o.Warmup); err != nil {
		return nil, err
	}
	b.profile.forget()
	before := usageNow()
	if err := b.steps(ctx, o.Steps); err != nil {
		return nil, err
	}
	used, memory := usageNow().since(before), peakMemory()
	if err := limits.measure(dev); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	r := b.result(limits)
	r.Usage, r.Memory = used.per(o.Steps), memory
	return r, nil
}

// config is that of the network.
func (o Options) config() nn.Config {
	return nn.Config{Batch: max(o.Batch, 1), Mode: nn.Eval, Size: o.ImageSize, Mean: []float64{0.5}, Std: []float64{0.25}}
}

// bench is a measurement under way.
type bench struct {
	Options
	net      *train.Network
	momentum device.Vector // nil in evaluation
	batch    *data.Batch
	profile  profile
	found    *train.Fit // how the batch was found, if it was
}

// open puts the network on the device.
func open(dev device.Device, o Options) (*bench, error) {
	net, err := train.NewNetwork(dev, o.Model, o.config(), o.Seed)
	if err != nil {
		return nil, err
	}
	b := &bench{Options: o, net: net}
	if !o.Eval {
		if b.momentum, err = net.NewParams(); err != nil {
			return nil, errors.Join(err, b.close())
		}
		if err := b.fit(); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	b.batch = synthetic(net.Model().Config, b.Batch, o.Seed)
	return b, nil
}

// mostImages are looked at for the largest batch: a thousand steps of it are the images of ImageNet many times over.
const mostImages = 1 << 16

// fit finds the batch, where that is left to the memory, or says that the memory is too small for it.
func (b *bench) fit() (err error) {
	if b.Batch != train.AutoBatch {
		return b.net.CheckBatch(b.Batch, 0)
	}
	if b.found, err = b.net.Fit(mostImages, 0); err == nil {
		b.Batch = b.found.Batch
	}
	return err
}

func (b *bench) close() error {
	if b.momentum != nil {
		b.momentum.Free()
	}
	return b.net.Close()
}

// steps runs the batch n times and enters the times.
func (b *bench) steps(ctx context.Context, n int) error {
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		if err := b.run(); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		b.profile.step(time.Since(start))
	}
	return nil
}

func (b *bench) run() error {
	if b.Eval {
		_, err := b.net.Evaluate(b.batch, nil)
		return err
	}
	if _, _, err := b.net.Gradient(b.batch, statsMomentum); err != nil {
		return err
	}
	start := time.Now()
	err := b.net.Params.SGD(b.net.Grads, b.momentum, device.SGD{Rate: rate, Momentum: momentum, Decay: decay, Scale: 1})
	if err == nil {
		err = b.net.Device.Sync()
	}
	b.profile.add("sgd", time.Since(start), 0, int64(sgdStreams*b.net.Device.DType().Size()*b.net.Params.Len()))
	return err
}

// synthetic is a batch of noise.
func synthetic(c nn.Config, n int, seed uint64) *data.Batch {
	r := data.NewRand(seed)
	b := &data.Batch{
		N: n, Height: c.Size, Width: c.Size, Channels: c.Channels,
		Images: make([]uint8, n*c.Size*c.Size*c.Channels),
		Crops:  make([]int32, 3*n),
		Labels: make([]int32, n),
	}
	for i := range b.Images {
		b.Images[i] = uint8(r.Uint64())
	}
	for i := range b.Labels {
		b.Labels[i] = int32(r.Uint64() % uint64(c.Classes))
	}
	return b
}
