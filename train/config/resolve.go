package config

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/nn"
	_ "onlinerna/nn/zoo" // registers nets
)

// preset holds the defaults for a kind of data, by its profile's name.
type preset struct {
	model                     string
	batch, accumulate, epochs int
	schedule                  ScheduleKind
	rate, decay               float64
	window                    int // 0: by the number of epochs
	averages                  []int
}

var presets = map[string]preset{
	"glyphs":   {model: "lenet", batch: 128, epochs: 16, schedule: Hold, rate: 0.05, decay: 5e-4, window: 5, averages: []int{5, 10}},
	"mnist":    {model: "lenet", batch: 128, epochs: 15, schedule: Hold, rate: 0.05, decay: 5e-4, window: 5, averages: []int{5}},
	"cifar":    {model: "resnet20", batch: 128, epochs: 30, schedule: Hold, rate: 0.1, decay: 1e-4, averages: []int{5}},
	"imagenet": {model: "resnet50", batch: 32, accumulate: 8, epochs: 90, schedule: Linear, rate: 0.1, decay: 1e-4},
}

// Resolve fills in what is left zero, from the training set and its profile, for a number of ranks, and checks everything.
func (c *Config) Resolve(set data.Dataset, p data.Profile, ranks int) error {
	if err := table.Check(c); err != nil {
		return err
	}
	pre, ok := presets[p.Name]
	if !ok {
		return fmt.Errorf("no defaults for images of kind %q", p.Name)
	}
	def(&c.Model, pre.model)
	arch, err := nn.Lookup(c.Model)
	if err != nil {
		return err
	}
	defPtr(&c.Dropout, arch.Dropout)
	defPtr(&c.DropPath, arch.DropPath)
	def(&c.StatsMomentum, arch.BatchNormMomentum)
	if c.Init != "" {
		c.fineTune(&pre, set, ranks)
	}
	if c.Batch == 0 && c.Accumulate == 0 {
		c.Accumulate = pre.accumulate
	}
	def(&c.Batch, pre.batch)
	def(&c.Accumulate, 1)
	def(&c.Epochs, pre.epochs)
	if err := c.resolveOptimizer(&pre); err != nil {
		return err
	}
	if c.Init != "" {
		c.fineTuneRate(&pre, ranks)
	}
	if o, err := c.rule(); err == nil && o.Constant {
		def(&c.Schedule.Kind, Constant)
	}
	c.Schedule.resolve(c.Epochs, pre)
	defPtr(&c.MaxBad, data.UsualBad)
	if len(c.Classes) == 0 {
		c.Classes = slices.Clone(set.Classes())
	}
	def(&c.NumClasses, len(set.Classes()))
	c.Pictures.resolve(&c.ImageSize)
	def(&c.ImageSize, p.Size)
	if c.Init != "" && len(arch.Mean) == set.Channels() { // as the weights take them
		p.Mean, p.Std = arch.Mean, arch.Std
	}
	if len(c.Mean) == 0 {
		c.Mean = p.Mean
	}
	if len(c.Std) == 0 {
		c.Std = p.Std
	}
	def(&c.Augment, "auto")
	defPtr(&c.Shuffle, true)
	if c.CheckpointSteps == 0 && c.CheckpointMinutes == 0 {
		def(&c.CheckpointEvery, 1)
	}
	def(&c.CheckpointKeep, 2)
	def(&c.BestBy, ByError)
	if c.EMADecay != 0 {
		def(&c.EMAEvery, 1)
	}
	c.RNA.resolve(c.Epochs, pre)
	if err := c.check(set); err != nil {
		return err
	}
	return c.RNA.check(c.Holdout > 0)
}

// check finds mistakes that no option shows by itself.
func (c *Config) check(set data.Dataset) error {
	channels := set.Channels()
	switch {
	case len(set.Classes()) == 1:
		return fmt.Errorf("the training set has one class, %s: a net tells two or more apart, whose images lie in a folder each", set.Classes()[0])
	case c.NumClasses < len(set.Classes()):
		return fmt.Errorf("num-classes %d: the training set has %d classes", c.NumClasses, len(set.Classes()))
	case len(c.Mean) != channels || len(c.Std) != channels:
		return fmt.Errorf("mean %v and std %v: the images have %d channels, give a number for each", c.Mean, c.Std, channels)
	case c.EMA > 0 && c.EMADecay > 0:
		return fmt.Errorf("ema %g and ema-decay %g: choose one", c.EMA, c.EMADecay)
	case c.EMAEvery > 0 && c.EMADecay == 0:
		return fmt.Errorf("ema-every %d: goes with ema-decay", c.EMAEvery)
	case c.ClipGrad > 0 && c.ClipValue > 0:
		return errors.New("clip-grad and clip-value both limit the gradient: choose one")
	case c.CheckpointEvery > 0 && (c.CheckpointSteps > 0 || c.CheckpointMinutes > 0) || c.CheckpointSteps > 0 && c.CheckpointMinutes > 0:
		return errors.New("checkpoints go by epochs, by steps or by minutes: give one of them")
	case c.CheckpointSteps < 0 || !(c.CheckpointMinutes >= 0) || math.IsInf(c.CheckpointMinutes, 0):
		return fmt.Errorf("checkpoint-every %d steps, %g minutes: must be above 0", c.CheckpointSteps, c.CheckpointMinutes)
	}
	if err := c.Regularize.check(c.NumClasses); err != nil {
		return err
	}
	if err := c.Pictures.check(c.ImageSize); err != nil {
		return err
	}
	if err := c.checkOptimizer(); err != nil {
		return err
	}
	return c.Schedule.Validate()
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func defPtr[T any](v **T, to T) {
	if *v == nil {
		*v = &to
	}
}
