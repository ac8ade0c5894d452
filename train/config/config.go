// Package config says what to train on what and how: a [Config] is what a user chooses, and, resolved, the record of a run.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"

	"onlinerna/data"
	"onlinerna/internal/files"
	"onlinerna/internal/parallel"
	"onlinerna/nn"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// Config says what to train on what and how. It is stored as config.json in the folder of the run. Fields that
// are left out are filled in by the kind of the data, see [data.Profile]; the zero Config trains LeNet on
// the generated glyphs and writes nothing. A field is left out by its type's zero value; where a number's zero is a choice of its own
// the field is a pointer, and an empty list that is not nil is a choice. Hold and linear end at a hundredth of the first rate:
//
//	data      model     batch   epochs  schedule      decay  window                     averages
//	glyphs    lenet     128     16      hold 0.05     5e-4   5                          5, 10
//	mnist     lenet     128     15      hold 0.05     5e-4   5                          5
//	cifar     resnet20  128     30      hold 0.1      1e-4   min(10, max(3, epochs/2))  5
//	imagenet  resnet50  32 × 8  90      linear 0.1    1e-4   min(10, max(3, epochs/2))  as the window
//
// mnist stands for all small gray images, cifar for small colour ones, imagenet for all others. A schedule of
// another kind has defaults of its own: see [Schedule]. Rates and decays are those of SGD; other optimisers have their own. With Init the
// batch, the epochs, the rates and the schedule are those of fine-tuning, by the number of images: see docs/fine-tuning.md.
type Config struct {
	Model   string `json:"model"`    // one of nn's architectures
	Data    string `json:"data"`     // folder, or "glyphs"; a name for the record where Train is given
	ValData string `json:"val_data"` // where the validation images are not beside the training set
	// ValSplit is the share of each class that is validated on and not trained on, where there are no validation images: see data.SplitByClass.
	ValSplit float64 `json:"val_split,omitempty"`
	Device   string  `json:"device"` // for the record: the device is given to train.New
	// Winograd says that the CPU may run 3×3 convolutions by Winograd's algorithm. For the record, too: train.New takes it from a device.Processor. It
	// changes results, so a run should be resumed on such a device.
	Winograd bool `json:"winograd"`
	// Precision is what nets store and multiply on a device that has several, and Deterministic says that it gives equal bits in
	// each run. For the record, as the device.
	Precision     string `json:"precision,omitempty"`
	Deterministic bool   `json:"deterministic,omitempty"`

	Batch      int `json:"batch"`      // images a forward pass, or network.AutoBatch
	Accumulate int `json:"accumulate"` // batches a step of the optimiser; the data's only where Batch is the data's, else 1
	Epochs     int `json:"epochs"`

	Schedule Schedule `json:"schedule"`
	// Optimizer is one of Optimizers; sgd where it is left empty. With an optimiser go the hyperparameters that it takes; others are nil.
	Optimizer        string   `json:"optimizer"`
	Momentum         *float64 `json:"momentum,omitempty"`
	Nesterov         bool     `json:"nesterov"`
	Beta1            *float64 `json:"beta1,omitempty"`
	Beta2            *float64 `json:"beta2,omitempty"`
	Eps              *float64 `json:"eps,omitempty"`
	TrustCoefficient *float64 `json:"trust_coefficient,omitempty"`
	MaxGradNorm      *float64 `json:"max_grad_norm,omitempty"`
	WeightDecay      *float64 `json:"weight_decay"`
	// DecayWeightsOnly exempts BatchNorm's scale and bias and all other biases from weight decay.
	DecayWeightsOnly bool     `json:"decay_weights_only"`
	NoDecay          []string `json:"no_decay,omitempty"` // patterns of path.Match: parameters of these names do not decay either
	LabelSmoothing   float64  `json:"label_smoothing"`
	// ClipGrad is the norm to which the gradient of all parameters is scaled down where it is larger, ClipValue the size to which each
	// of its elements is cut; 0 for none.
	ClipGrad  float64 `json:"clip_grad,omitempty"`
	ClipValue float64 `json:"clip_value,omitempty"`
	BlurPool  bool    `json:"blurpool,omitempty"` // see nn.Config
	Regularize
	ZeroInit bool `json:"zero_init"` // start with the last BatchNorm scale of each block at 0

	NumClasses int       `json:"num_classes"`
	Classes    []string  `json:"classes,omitempty"` // names by index, as the training set has them
	ImageSize  int       `json:"image_size"`
	Mean       []float64 `json:"mean"` // of pixels on the scale 0 to 1, a channel each
	Std        []float64 `json:"std"`
	Augment    string    `json:"augment"` // one of data.Augmentations
	Pictures
	NoShuffle bool         `json:"no_shuffle"`
	Seed      uint64       `json:"seed"`
	MaxBad    *data.MaxBad `json:"max_bad"` // images of an epoch that may be unreadable, data.UsualBad by default
	// Holdout is the share of the training set that is not trained on: what chooses among weights judges them by it.
	Holdout    float64 `json:"holdout,omitempty"`
	StepsLimit int     `json:"steps_limit,omitempty"` // batches an epoch, 0 for all
	ValLimit   int     `json:"val_limit,omitempty"`   // batches an evaluation, 0 for all

	// DecodeMemory is how many bytes the workers of each process take to decode images at most: one that declares a size for which it is too little is
	// unreadable. 0 for a share of what is free, see data.NewBudget.
	DecodeMemory int64 `json:"decode_memory,omitempty"`

	Workers int `json:"workers"` // that decode, 0 for one a core
	Threads int `json:"threads"` // that compute, 0 for one a core: RNA's here, the device has been told its own
	// LowMemory has training make again what the backward pass needs, where that is cheap: results keep their bits on the CPU, and on CUDA with
	// Deterministic.
	LowMemory bool `json:"low_memory,omitempty"`

	Init    string `json:"init,omitempty"`     // weights to start from
	InitKey string `json:"init_key,omitempty"` // chooses among the state dicts in them: see network.LoadOptions

	// Freeze has patterns for the names of parameters that are not trained, with the statistics of their BatchNorm: see nn.Config.
	Freeze []string `json:"freeze,omitempty"`
	// HeadRate is the first learning rate of the last layer, 0 for that of the others; it falls as theirs. With Init, and a rate that is left out,
	// it is higher by default where the last layer starts fresh or is of other classes.
	HeadRate float64 `json:"head_lr,omitempty"`
	// LayerDecay multiplies the learning rate of each layer, from the last one back, by a factor more, 0 for 1: see network.LayerDepths.
	LayerDecay float64 `json:"layer_decay,omitempty"`
	RNA        RNA     `json:"rna"`

	// EMA keeps a power average of the iterates of all steps beside training, x += (γ+1)/(t+γ)·(w − x) at step
	// t, for a γ > 0.
	EMA float64 `json:"ema,omitempty"`
	// EMADecay keeps an average with a decay instead, x = d·x + (1−d)·w every EMAEvery steps, 1 by default.
	EMADecay float64 `json:"ema_decay,omitempty"`
	EMAEvery int     `json:"ema_every,omitempty"`

	// Train and Val, where Train is given, are the images in place of Data and ValData: sets of data, or one's own. They stay the caller's
	// to close, and a resumed run is given them again. Val may be nil. Val's classes are Train's.
	Train data.Dataset `json:"-"`
	Val   data.Dataset `json:"-"`

	// Ranks are the processes that train together, each with a device and a run of its own; nil for one. A step then has Accumulate batches of each
	// rank, rank 0 alone writes files, and an error that is not train.Common leaves the other ranks waiting.
	Ranks *ranks.Group `json:"-"`

	// CommPrecision is what gradients are sent as between the GPUs of ranks: float32, the default, or bfloat16. Sums are float32 in both.
	CommPrecision string `json:"comm_precision,omitempty"`

	// TensorBoard writes the measurements into the folder of the run for TensorBoard, too: see package tensorboard.
	TensorBoard bool `json:"tensorboard,omitempty"`

	// Out is the folder of the run. Nothing is written if it is empty; AutoOut names one by time and model.
	Out string `json:"out"`
	// A checkpoint is written after every CheckpointEvery epochs, 1 by default, or after every CheckpointSteps steps or CheckpointMinutes minutes in
	// their place; and at the end. The newest CheckpointKeep, 2 by default, stay.
	CheckpointEvery   int     `json:"checkpoint_every,omitempty"`
	CheckpointSteps   int     `json:"checkpoint_steps,omitempty"`
	CheckpointMinutes float64 `json:"checkpoint_minutes,omitempty"`
	CheckpointKeep    int     `json:"checkpoint_keep"`
	// BestBy is the measure by which best.safetensors and KeepBest choose: ByError, the default, or ByLoss, on the held-out images where there are
	// any, else on the validation images. See hook.EpochRecord.Ranking.
	BestBy string `json:"best_by"`
	// KeepEvery and KeepBest keep iterates as files of their own, kept/epoch-0001.safetensors and so on: those of every so many epochs, and the
	// so many best. 0 for none.
	KeepEvery int `json:"keep_every,omitempty"`
	KeepBest  int `json:"keep_best,omitempty"`
}

// What Config.BestBy takes. Of equal errors the lower loss is better.
const (
	ByError = "error"
	ByLoss  = "loss"
)

// AutoOut as Config.Out stands for runs/<time>-<model>.
const AutoOut = "auto"

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

// Resolve fills in what is left zero, from the training set and its profile, and checks everything.
func (c *Config) Resolve(set data.Dataset, p data.Profile) error {
	pre, ok := presets[p.Name]
	if !ok {
		return fmt.Errorf("no defaults for images of kind %q", p.Name)
	}
	def(&c.Model, pre.model)
	if _, err := nn.Lookup(c.Model); err != nil {
		return err
	}
	if c.Init != "" {
		c.fineTune(&pre, set)
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
		c.fineTuneRate(&pre)
	}
	if o, err := c.rule(); err == nil && o.Constant {
		def(&c.Schedule.Kind, Constant)
	}
	c.Schedule.resolve(c.Epochs, pre)
	if c.MaxBad == nil {
		usual := data.UsualBad
		c.MaxBad = &usual
	}
	if len(c.Classes) == 0 {
		c.Classes = slices.Clone(set.Classes())
	}
	def(&c.NumClasses, len(set.Classes()))
	def(&c.ImageSize, p.Size)
	if len(c.Mean) == 0 {
		c.Mean = p.Mean
	}
	if len(c.Std) == 0 {
		c.Std = p.Std
	}
	def(&c.Augment, "auto")
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

func (c *Config) check(set data.Dataset) error {
	channels := set.Channels()
	switch {
	case c.Epochs < 1:
		return fmt.Errorf("epochs %d: must be at least 1", c.Epochs)
	case c.Batch < 1 && c.Batch != network.AutoBatch:
		return fmt.Errorf("batch %d: must be at least 1", c.Batch)
	case c.Accumulate < 1:
		return fmt.Errorf("accumulate %d: must be at least 1", c.Accumulate)
	case len(set.Classes()) == 1:
		return fmt.Errorf("the training set has one class, %s: a net tells two or more apart, whose images lie in a folder each", set.Classes()[0])
	case c.NumClasses < len(set.Classes()):
		return fmt.Errorf("num-classes %d: the training set has %d classes", c.NumClasses, len(set.Classes()))
	case c.ImageSize < 1:
		return fmt.Errorf("image size %d: at least 1", c.ImageSize)
	case len(c.Mean) != channels || len(c.Std) != channels:
		return fmt.Errorf("mean %v and std %v: the images have %d channels, give a number for each", c.Mean, c.Std, channels)
	case !(*c.WeightDecay >= 0) || math.IsInf(*c.WeightDecay, 0):
		return fmt.Errorf("weight decay %g: must be finite and not negative", *c.WeightDecay)
	case !(c.LabelSmoothing >= 0 && c.LabelSmoothing < 1):
		return fmt.Errorf("label smoothing %g: must lie in [0, 1)", c.LabelSmoothing)
	case c.MaxBad.Check() != nil:
		return c.MaxBad.Check()
	case !(c.Holdout >= 0 && c.Holdout < 1):
		return fmt.Errorf("holdout %g: must lie in [0, 1)", c.Holdout)
	case !(c.EMA >= 0) || math.IsInf(c.EMA, 0):
		return fmt.Errorf("ema %g: must be finite and not negative", c.EMA)
	case c.EMADecay != 0 && !(c.EMADecay > 0 && c.EMADecay < 1):
		return fmt.Errorf("ema decay %g: must lie between 0 and 1", c.EMADecay)
	case c.EMA > 0 && c.EMADecay > 0:
		return fmt.Errorf("ema %g and ema decay %g: choose one", c.EMA, c.EMADecay)
	case c.EMAEvery < 0 || c.EMAEvery > 0 && c.EMADecay == 0:
		return fmt.Errorf("ema every %d steps: goes with an ema decay", c.EMAEvery)
	case !(c.ClipGrad >= 0) || math.IsInf(c.ClipGrad, 0) || !(c.ClipValue >= 0) || math.IsInf(c.ClipValue, 0):
		return fmt.Errorf("clip grad %g and clip value %g: must be finite and not negative", c.ClipGrad, c.ClipValue)
	case c.ClipGrad > 0 && c.ClipValue > 0:
		return errors.New("clip grad and clip value both limit the gradient: choose one")
	case !(c.HeadRate >= 0) || math.IsInf(c.HeadRate, 0):
		return fmt.Errorf("head-lr %g: must be finite and not negative", c.HeadRate)
	case !(c.LayerDecay >= 0 && c.LayerDecay <= 1):
		return fmt.Errorf("layer-decay %g: must lie above 0 and up to 1", c.LayerDecay)
	case c.BestBy != ByError && c.BestBy != ByLoss:
		return fmt.Errorf("best-by %q: %s or %s", c.BestBy, ByError, ByLoss)
	case c.KeepEvery < 0 || c.KeepBest < 0:
		return fmt.Errorf("keep every %d epochs, and the %d best: must not be negative", c.KeepEvery, c.KeepBest)
	case c.CheckpointEvery < 0:
		return fmt.Errorf("checkpoint every %d epochs: at least 1", c.CheckpointEvery)
	case c.CheckpointEvery > 0 && (c.CheckpointSteps > 0 || c.CheckpointMinutes > 0) || c.CheckpointSteps > 0 && c.CheckpointMinutes > 0:
		return errors.New("checkpoints go by epochs, by steps or by minutes: give one of them")
	case c.CheckpointSteps < 0 || !(c.CheckpointMinutes >= 0) || math.IsInf(c.CheckpointMinutes, 0):
		return fmt.Errorf("checkpoint every %d steps, %g minutes: more than 0", c.CheckpointSteps, c.CheckpointMinutes)
	case c.CheckpointKeep < 1:
		return fmt.Errorf("keep %d checkpoints: at least 1", c.CheckpointKeep)
	case c.StepsLimit < 0 || c.ValLimit < 0 || c.Workers < 0 || c.Threads < 0:
		return fmt.Errorf("limits, workers and threads must not be negative")
	case c.DecodeMemory < 0:
		return fmt.Errorf("decode memory of %d bytes: must not be negative", c.DecodeMemory)
	case c.Workers > parallel.Most || c.Threads > parallel.Most:
		return fmt.Errorf("%d workers, %d threads: at most %d, and no more than there are cores are of use", c.Workers, c.Threads, parallel.Most)
	case !slices.Contains(data.Augmentations(), c.Augment):
		return fmt.Errorf("unknown augmentation %q: use one of %v", c.Augment, data.Augmentations())
	}
	for i, s := range c.Std {
		if !(s > 0) || math.IsInf(s, 0) || math.IsNaN(c.Mean[i]) || math.IsInf(c.Mean[i], 0) {
			return fmt.Errorf("mean %v, std %v: must be finite, and std positive", c.Mean, c.Std)
		}
	}
	for _, p := range c.NoDecay {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("no-decay pattern %q: %w", p, err)
		}
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

// Read reads the config.json in a folder, the record of a run. A key that a Config does not have is an error.
func Read(dir string) (Config, error) { return read(filepath.Join(dir, "config.json"), Config{}) }

// Write writes config.json into the folder of a run.
func (c Config) Write(dir string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, "config.json"), append(b, '\n'))
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func defPtr(v **float64, to float64) {
	if *v == nil {
		*v = &to
	}
}
