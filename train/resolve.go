package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/nn"
	_ "onlinerna/nn/zoo" // registers nets
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/option"
	"onlinerna/train/schedule"
)

// preset holds the defaults for a kind of data, keyed by its profile's name.
type preset struct {
	model                     string
	batch, accumulate, epochs int
	schedule                  schedule.Kind
	rate, decay               float64
	window                    int // 0: by the number of epochs
	averages                  []int
}

var presets = map[string]preset{
	"glyphs": {model: "lenet", batch: 128, epochs: 16, schedule: schedule.Hold, rate: 0.05, decay: 5e-4, window: 5,
		averages: []int{5, 10}},
	"mnist": {model: "lenet", batch: 128, epochs: 15, schedule: schedule.Hold, rate: 0.05, decay: 5e-4, window: 5,
		averages: []int{5}},
	"cifar": {model: "resnet20", batch: 128, epochs: 30, schedule: schedule.Hold, rate: 0.1, decay: 1e-4,
		averages: []int{5}},
	"imagenet": {model: "resnet50", batch: 32, accumulate: 8, epochs: 90, schedule: schedule.Linear, rate: 0.1,
		decay: 1e-4},
}

// Resolved is the record of a run's Spec with all defaults filled in: from the data and their kind, the optimiser, the
// initial weights, the device and its memory. config.json stores it.
type Resolved struct {
	Spec

	// Fit describes how the batch was found if the Spec had AutoBatch, else nil.
	Fit *network.Fit
	// Notes has a line for each noteworthy fact about the data and the initial weights.
	Notes []string

	headByDefault bool // HeadRate is the default of fine-tuning
}

// note adds a line to the notes.
func (c *Resolved) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// resolve fills in zero fields from the training set and its profile, for a number of ranks, and checks everything.
func (c *Resolved) resolve(set data.Dataset, p data.Profile, ranks int) error {
	if err := table.Check(&c.Spec); err != nil {
		return err
	}
	if slices.Equal(c.EMA, []float64{0}) {
		c.EMA = nil
	}
	pre, ok := presets[p.Name]
	if !ok {
		return fmt.Errorf("no defaults for images of kind %q", p.Name)
	}
	if data.TaskOf(set) == data.Regression {
		pre.rate /= 10 // the gradient of a square has no bound
	}
	option.Default(&c.Model, pre.model)
	arch, err := nn.Lookup(c.Model)
	if err != nil {
		return err
	}
	c.Model = arch.Name // not an alias
	option.DefaultPointer(&c.Dropout, arch.Dropout)
	option.DefaultPointer(&c.DropPath, arch.DropPath)
	option.Default(&c.StatsMomentum, arch.BatchNormMomentum)
	if c.Init != "" {
		c.fineTune(&pre, set, ranks)
	}
	if c.Batch == 0 && c.Accumulate == 0 {
		c.Accumulate = pre.accumulate
	}
	option.Default(&c.Batch, pre.batch)
	option.Default(&c.Accumulate, 1)
	option.Default(&c.Epochs, pre.epochs)
	if err := c.resolveOptimizer(&pre); err != nil {
		return err
	}
	if c.Init != "" {
		c.fineTuneRate(&pre, ranks)
	}
	if o, err := c.rule(); err == nil && o.Constant {
		option.Default(&c.Schedule.Kind, schedule.Constant)
	}
	c.Schedule.Resolve(c.Epochs, pre.schedule, pre.rate)
	option.DefaultPointer(&c.MaxBad, data.UsualBad)
	if len(c.Classes) == 0 {
		c.Classes = slices.Clone(set.Classes())
	}
	option.Default(&c.NumClasses, len(set.Classes()))
	c.Pictures.resolve(&c.ImageSize)
	if p.Name == "imagenet" && arch.Mean != nil { // photos, for a net of photos
		p.Size = arch.Size
		option.Default(&c.Interpolation, arch.Interpolation)
		option.Default(&c.TrainInterpolation, arch.Interpolation)
	}
	option.Default(&c.ImageSize, p.Size)
	if c.Init != "" && p.Name == "imagenet" {
		option.Default(&c.ValResize, arch.ResizeFor(c.ImageSize))
	}
	if c.Init != "" && len(arch.Mean) == set.Channels() { // in the normalisation of the weights
		p.Mean, p.Std = arch.Mean, arch.Std
	}
	if len(c.Mean) == 0 {
		c.Mean = p.Mean
	}
	if len(c.Std) == 0 {
		c.Std = p.Std
	}
	option.Default(&c.Augment, "auto")
	option.DefaultPointer(&c.Shuffle, true)
	if c.CheckpointSteps == 0 && c.CheckpointMinutes == 0 {
		option.Default(&c.CheckpointEvery, 1)
	}
	option.Default(&c.CheckpointKeep, 2)
	option.Default(&c.BestBy, hook.ByError)
	if c.EMADecay != 0 {
		option.Default(&c.EMAEvery, 1)
	}
	c.Task = data.TaskOf(set)
	c.resolveLoss(c.Task)
	c.RNA.Resolve(c.Epochs, pre.window, pre.averages)
	if err := c.check(set); err != nil {
		return err
	}
	return c.RNA.Check(c.Holdout > 0)
}

// outputNames returns the names of the net's outputs; those beyond the classes have none.
func (c *Spec) outputNames() []string {
	names := slices.Clone(c.Classes)
	for len(names) < c.NumClasses {
		names = append(names, "")
	}
	return names
}

// check finds mistakes that involve several options.
func (c *Spec) check(set data.Dataset) error {
	channels := set.Channels()
	switch {
	case c.Task == data.Classification && len(set.Classes()) == 1:
		return fmt.Errorf("the training set has one class, %s: a net tells two or more apart, whose images lie "+
			"in a folder each", set.Classes()[0])
	case c.NumClasses < len(set.Classes()):
		return fmt.Errorf("num-classes %d: the training set has %d classes", c.NumClasses, len(set.Classes()))
	case c.Task != data.Classification && c.Sampler == Balanced:
		return fmt.Errorf("sampler balanced is for images of one class each, not for the task %s", c.Task)
	case c.Task != data.Classification && c.LabelSmoothing != 0:
		return fmt.Errorf("label-smoothing is for images of one class each, not for the task %s", c.Task)
	case c.Sampler == Balanced && !*c.Shuffle:
		return errors.New("sampler balanced draws the order of the images: leave shuffle on")
	case len(c.Mean) != channels || len(c.Std) != channels:
		return fmt.Errorf("mean %v and std %v: the images have %d channels, give a number for each", c.Mean, c.Std, channels)
	case c.EMA != nil && c.EMADecay > 0:
		return fmt.Errorf("ema %s and ema-decay %g: choose one", commas(c.EMA), c.EMADecay)
	case slices.Contains(c.EMA, 0) || len(c.EMA) != len(slices.Compact(slices.Sorted(slices.Values(c.EMA)))):
		return fmt.Errorf("ema %s: want different numbers above 0", commas(c.EMA))
	case c.EMAEvery > 0 && c.EMADecay == 0:
		return fmt.Errorf("ema-every %d: goes with ema-decay", c.EMAEvery)
	case c.ClipGrad > 0 && c.ClipValue > 0:
		return errors.New("clip-grad and clip-value both limit the gradient: choose one")
	case c.Histograms > 0 && !c.TensorBoard:
		return fmt.Errorf("histograms %d: they are for TensorBoard, give tensorboard, too", c.Histograms)
	case c.TimeBudget > 0 && c.TrainFrom > 0:
		return errors.New("train-crop-from goes by epochs, whose number a time budget sets: give epochs instead")
	case c.CheckpointEvery > 0 && (c.CheckpointSteps > 0 || c.CheckpointMinutes > 0) || c.CheckpointSteps > 0 &&
		c.CheckpointMinutes > 0:
		return errors.New("checkpoints go by epochs, by steps or by minutes: give one of them")
	case c.CheckpointSteps < 0 || !(c.CheckpointMinutes >= 0) || math.IsInf(c.CheckpointMinutes, 0):
		return fmt.Errorf("checkpoint-every %d steps, %g minutes: must be above 0", c.CheckpointSteps, c.CheckpointMinutes)
	}
	if err := c.Regularize.check(c.outputNames(), c.Task); err != nil {
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
