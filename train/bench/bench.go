// Package bench measures the speed of training and evaluation on a device by kind of op, and the cost of RNA beside it
// ([RunRNA]). A training step handles one batch: it copies pixels and labels to the device, runs the forward and
// backward pass, updates the running statistics and the parameters, and returns the loss; an evaluation step runs only
// the forward pass and returns the score. The input is one batch of noise, or images decoded in advance, or images
// decoded during the steps as in training. Every group of ops is timed, so that the times of kinds of ops add up to
// that of a step.
package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train/network"
	"onlinerna/train/profile"
)

// Options configure a measurement.
type Options struct {
	Model     string   // an architecture of package nn
	Batch     int      // images per step, or network.AutoBatch; default 16
	ImageSize int      // height and width of an image; default: the model's
	Eval      bool     // measure evaluation instead of training
	LowMemory bool     // for training: see network.Network
	Freeze    []string // for training: patterns of parameters, see nn.Config
	Optimizer string   // one of config.Optimizers, with its defaults; sgd by default
	Steps     int      // measured steps; default 10
	Warmup    int      // steps before them, which plan and allocate; default 3
	Seed      uint64   // of weights and images

	// Inputs lists the inputs to measure in turn, by name: Synthetic, InMemory, FromLoader. The default is the first, or
	// with Data all of them.
	Inputs  []string
	Data    string // a set of images, see data.Open, which determines the network's channels and classes
	Workers int    // that decode; default one per core
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
	case o.Batch == network.AutoBatch && o.Eval:
		return o, errors.New("the largest batch is that of training at --batch auto: evaluation takes a number")
	case o.Batch < 0 && o.Batch != network.AutoBatch:
		return o, fmt.Errorf("batch of %d images: must be at least 1", o.Batch)
	case o.Eval && len(o.Freeze) > 0:
		return o, errors.New("--freeze is of training: evaluation trains no parameter")
	case o.ImageSize < 0:
		return o, fmt.Errorf("image size %d: must be at least 1", o.ImageSize)
	case o.Steps < 0:
		return o, fmt.Errorf("%d steps: must be at least 1", o.Steps)
	case o.Warmup < 0:
		return o, fmt.Errorf("%d steps to warm up: must be at least 1", o.Warmup)
	}
	if len(o.Inputs) == 0 {
		o.Inputs = inputs[:1]
		if o.Data != "" {
			o.Inputs = inputs
		}
	}
	for i, name := range o.Inputs {
		switch {
		case !slices.Contains(inputs, name):
			return o, fmt.Errorf("unknown input %q: use %s", name, strings.Join(inputs, ", "))
		case slices.Contains(o.Inputs[:i], name):
			return o, fmt.Errorf("input %s twice", name)
		case name != Synthetic && o.Data == "":
			return o, fmt.Errorf("input %s is of images: name a set of them", name)
		}
	}
	return o, nil
}

const (
	// slower is the fraction of an optimiser's usual learning rate that steps use, so that the loss stays finite.
	slower = 0.1
	// statsMomentum is the momentum of the running statistics.
	statsMomentum = 0.1
)

// Run measures a network on dev. A failing step ends it, and so does ctx between steps.
func Run(ctx context.Context, dev device.Device, o Options) (result *Result, err error) {
	result, err = run(ctx, dev, o)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return result, err
}

func run(ctx context.Context, dev device.Device, o Options) (result *Result, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	in, err := openFeed(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	if _, err := nn.Build(o.Model, in.config(o)); err != nil { // report mistakes first
		return nil, err
	}
	var limits limits
	if err := limits.measure(dev); err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // otherwise the memory peak would count it twice
	b, err := open(dev, o, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r := &Result{}
	watch := device.NewWatch(dev, time.Second/4)
	defer watch.Close()
	for i, name := range o.Inputs {
		speed, err := b.measure(ctx, name, i == 0)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", name, err)
		}
		if i == 0 {
			r.Usage, r.Memory, r.CardState = b.used, peakMemory(), watch.Take()
		}
		r.Inputs = append(r.Inputs, *speed)
	}
	if err := limits.measure(dev); err != nil {
		return nil, err
	}
	r.set(b, limits)
	return r, nil
}

// measure measures steps with an input. kinds attributes time to kinds of ops: by the host's time in the same steps or,
// on a device with its own clock, in separate steps, since timing slows them down.
func (b *bench) measure(ctx context.Context, input string, kinds bool) (*InputSpeed, error) {
	next, stop, err := b.in.batches(ctx, input)
	if err != nil {
		return nil, err
	}
	defer stop()
	b.next = next
	_, apart := device.As[device.Clock](b.net.Device)
	b.trace(kinds && !apart)
	defer b.trace(false)
	if err := b.steps(ctx, b.Warmup); err != nil {
		return nil, err
	}
	b.profile.Forget()
	before := usageNow()
	if err := b.steps(ctx, b.Steps); err != nil {
		return nil, err
	}
	b.used = usageNow().since(before).per(b.Steps)
	speed := newInputSpeed(input, b.Batch, b.profile.Steps, b.profile.Waits)
	if kinds && apart {
		b.trace(true)
		if err := b.steps(ctx, 1); err != nil { // kernels are now launched differently
			return nil, err
		}
		b.profile.Forget()
		if err := b.steps(ctx, min(b.Steps, clockedSteps)); err != nil {
			return nil, err
		}
	}
	if kinds {
		b.main = b.profile
	}
	b.profile = profile.Kinds{}
	return speed, nil
}

// clockedSteps is the number of steps that attribute time to kinds of ops.
const clockedSteps = 5
