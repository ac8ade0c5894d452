package train

import (
	"fmt"
	"math"
	"slices"
	"time"

	"onlinerna/data"
	"onlinerna/internal/parallel"
	"onlinerna/nn"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/option"
	"onlinerna/train/schedule"
)

// Spec holds the user's choices for a run: data, model, optimiser, schedule, RNA and files. It is plain data;
// config.json in the run's folder records the resolved one. A field at its type's zero value is unset, and the run
// fills in the default: see [Resolved]. If zero is a valid non-default choice the field is a pointer, and an empty list
// that is not nil is a choice. [Options] describes every field.
//
// The zero Spec trains LeNet on generated glyphs and writes nothing. Defaults depend on the kind of data, see
// [data.Profile]; hold and linear end at a hundredth of the first learning rate:
//
//	data      model     batch   epochs  schedule      decay  window                     averages
//	glyphs    lenet     128     16      hold 0.05     5e-4   5                          5, 10
//	mnist     lenet     128     15      hold 0.05     5e-4   5                          5
//	cifar     resnet20  128     30      hold 0.1      1e-4   min(10, max(3, epochs/2))  5
//	imagenet  resnet50  32 × 8  90      linear 0.1    1e-4   min(10, max(3, epochs/2))  as the window
//
// mnist stands for all small grey images, cifar for small colour ones, imagenet for all others. Other schedules have
// their own defaults, see [schedule.Schedule], and so have optimisers other than SGD. With Init the batch, the epochs,
// the learning rates and the schedule are those of fine-tuning and depend on the number of images: see
// docs/fine-tuning.md.
type Spec struct {
	// Given are the names of the options that were set when the run was created; the others followed from them. nil:
	// unknown.
	Given []string

	Model    string  // a name in package nn's registry
	Data     string  // folder, or "glyphs"; a recorded name with Deps.Train
	ValData  string  // folder of validation images that are not beside the training set
	ValSplit float64 // share of each class to validate on, for data without validation images: see data.SplitByClass

	Batch      int // images per forward pass, or AutoBatch
	Accumulate int // batches per step; the data's default with the data's batch, else 1
	Epochs     int

	Schedule         schedule.Schedule
	Optimizer        string   // one of Optimizers
	Momentum         *float64 // this and the next five: only for optimisers that have them, see Hyperparameters
	Beta1, Beta2     *float64
	Eps              *float64
	TrustCoefficient *float64
	MaxGradNorm      *float64
	WeightDecay      *float64
	Nesterov         bool
	DecayWeightsOnly bool     // no weight decay of BatchNorm and biases
	NoDecay          []string // patterns of path.Match: parameters without weight decay
	LabelSmoothing   float64
	ClipGrad         float64 // maximum norm of the gradient of all parameters; longer ones are scaled down
	ClipValue        float64 // maximum absolute value of gradient elements; larger ones are clipped
	HeadRate         float64 // initial learning rate of the last layer, which falls in proportion to the others'
	LayerDecay       float64 // factor of the learning rate from a layer to the previous one: see network.LayerDepths
	Regularize

	BlurPool      bool     // see nn.Config
	StatsMomentum float64  // weight of a batch in BatchNorm's running statistics; nil: the net's
	ZeroInit      bool     // initialise the last BatchNorm scale of each block to 0
	Init          string   // file of initial weights
	InitKey       string   // state dict to take if that file has several: see network.LoadOptions
	Freeze        []string // patterns of parameters to freeze, with the statistics of their BatchNorm: see nn.Config
	Seed          uint64   // of initial weights, order and augmentation

	// Task is the kind of labels that the net learns; empty: that of the data. MultiLabel also takes images of one
	// class each.
	Task       data.Task
	NumClasses int       // outputs of the net
	Classes    []string  // names by index, as in the training set
	ImageSize  int       // height and width of the net's input, in pixels
	Mean, Std  []float64 // of pixels on the scale 0 to 1, one per channel
	Augment    string    // one of data.Augmentations
	Pictures
	Shuffle      *bool
	Sampler      SamplerKind  // of training images; empty: Uniform
	MaxBad       *data.MaxBad // unreadable images of an epoch to tolerate, data.UsualBad by default
	Holdout      float64      // share of the training set excluded from training, by which the best weights are chosen
	StepsLimit   int          // batches per epoch, 0 for all
	ValLimit     int          // batches per evaluation, 0 for all
	DecodeMemory int64        // bytes for decoding images in this process: see data.NewBudget
	Workers      int          // goroutines that decode images

	RNA average.Options
	// EMA are the γ of power averages of the iterates of all steps, x += (γ+1)/(t+γ)·(w − x) at step t. The last one is
	// scored. Several are kept every KeepEvery epochs.
	EMA      []float64
	EMADecay float64 // an average with a decay instead: x = d·x + (1−d)·w every EMAEvery steps
	EMAEvery int

	// Device, Winograd, Float32, Precision and Deterministic are requirements on Deps.Device; New rejects other devices.
	// Device is its kind, with a number or UUID after a colon for the program that opens it. A run records the device's
	// Winograd and Float32.
	Device        string
	Winograd      *bool
	Float32       string // how products of float32 run: bf16x6, bf16x3 or direct
	Precision     string
	Deterministic bool
	Threads       int    // threads for RNA on the host; the program sets the device's own
	LowMemory     bool   // recompute cheap values in the backward pass
	CommPrecision string // precision in which ranks send gradients

	Out         string // folder of the run; empty for no files; AutoOut
	TensorBoard bool   // also write files for TensorBoard: see package tensorboard
	Histograms  int    // epochs from one set of histograms of the weights there to the next; 0: none
	// The run writes a checkpoint at its end and after the given number of epochs, steps or minutes, one of the three.
	CheckpointEvery   int
	CheckpointSteps   int
	CheckpointMinutes float64
	CheckpointKeep    int // number of newest checkpoints to keep
	// KeepEvery and KeepBest keep iterates as kept/epoch-0001.safetensors and so on: every KeepEvery-th epoch's, and the
	// KeepBest best ones.
	KeepEvery, KeepBest int
	// BestBy is the measure that chooses best.safetensors and KeepBest: hook.ByError, the default, or hook.ByLoss. It is
	// computed on the held-out images, or on the validation images if there are none: see hook.EpochRecord.Ranking.
	BestBy string
	// Patience ends the run after that many epochs in a row without better weights by BestBy, of any kind; 0: never.
	Patience int
	// TimeBudget sets Epochs, by the time that epochs take, and stretches the schedule: until the first epoch is measured
	// they are as given. 0: no limit.
	TimeBudget time.Duration
}

// Float32Way is how products of float32 ran in a recorded run: directly, if a processor's record does not say.
func (c *Spec) Float32Way() string {
	if c.Float32 == "" && c.Winograd != nil {
		return "direct"
	}
	return c.Float32
}

// SamplerKind is a way to choose the images of an epoch.
type SamplerKind string

// The samplers.
const (
	Uniform  SamplerKind = "uniform"  // each image once
	Balanced SamplerKind = "balanced" // as many images of each class: see data.LoaderOptions
)

// NoteGiven makes the options that are set Given, unless these are known. New calls it.
func (c *Spec) NoteGiven() {
	if c.Given != nil {
		return
	}
	c.Given = []string{}
	for _, o := range table.Settings(c) {
		c.Given = append(c.Given, o.Name)
	}
}

// AutoOut as Spec.Out stands for runs/<time>-<model>.
const AutoOut = "auto"

// AutoBatch as Spec.Batch stands for the largest batch that fits in device memory.
const AutoBatch = math.MinInt

// The groups of options.
const (
	dataGroup      = "Data"
	modelGroup     = "Model"
	optimiserGroup = "Optimiser"
	rnaGroup       = "RNA"
	runGroup       = "Run"
)

// Options lists all options of a Spec, as 'rna train' shows them.
func Options() option.Table[Spec] { return table }

var table = slices.Concat(dataOptions, modelOptions, optimiserOptions(), rnaOptions, runOptions)

type options = option.Table[Spec]

// cores rejects impossible numbers of goroutines or threads as typing errors.
func cores(x float64) error {
	if x > parallel.Most {
		return fmt.Errorf("at most %d, and no more than there are cores are of use", parallel.Most)
	}
	return option.NotNegative(x)
}

var dataOptions = slices.Concat(options{
	{Name: "data", Group: dataGroup, Default: "glyphs", Field: func(c *Spec) any { return &c.Data }, Resumable: true,
		Local:  true,
		Clears: []string{"classes", "num-classes"},
		Help: "`folder` with train/ and val/ (or test/), train-*.tar and val-*.tar, or CIFAR's or MNIST's files; or a " +
			"name of \"rna get\"; " +
			"glyphs: generated"},
	{Name: "val-data", Group: dataGroup, Field: func(c *Spec) any { return &c.ValData }, Resumable: true, Local: true,
		Help: "`folder` of the validation images, if not beside the training set"},
	{Name: "val-split", Group: dataGroup, Field: func(c *Spec) any { return (*option.Share)(&c.ValSplit) },
		Check: option.Inside(0, 1),
		Help:  "share of each class to validate on and not to train on, where there are no validation images"},
	{Name: "task", Group: dataGroup, Default: "by the data", Field: func(c *Spec) any { return &c.Task },
		Values: data.Tasks,
		Help: "classification: an image shows one class; multi-label: any number of classes, as a table file,class;class " +
			"says, or folders that have the same image; regression: numbers, the columns of a table beside the file's"},
	{Name: "classes", Group: dataGroup, Default: "those of the training set, sorted",
		Field: func(c *Spec) any { return classesValue{c} },
		Help:  "`file` with the names of the classes by index, one a line; a config file may list the names"},
	{Name: "num-classes", Group: dataGroup, Default: "the data's classes",
		Field: func(c *Spec) any { return &c.NumClasses }, Check: option.Positive,
		Help: "outputs of the net"},
	{Name: "image-size", Group: dataGroup, Default: "the data's; for photographs the net's, 224 as a rule",
		Field: func(c *Spec) any { return &c.ImageSize },
		Check: option.Positive, Help: "height and width of the net's input"},
	{Name: "mean", Group: dataGroup, Default: "the usual ones for the data", Field: func(c *Spec) any { return &c.Mean },
		Help: "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1"},
	{Name: "std", Group: dataGroup, Default: "the usual ones for the data", Field: func(c *Spec) any { return &c.Std },
		Check: option.Positive,
		Help:  "standard deviation of each channel, as comma-separated `numbers`"},
	{Name: "augment", Group: dataGroup, Default: "auto", Field: func(c *Spec) any { return &c.Augment },
		Values: data.Augmentations,
		Help:   "augmentation of training images; none: as in evaluation"},
}, option.In(pictureOptions.Under(dataGroup), func(c *Spec) *Pictures { return &c.Pictures }), options{
	{Name: "shuffle", Group: dataGroup, Default: "true", Field: func(c *Spec) any { return &c.Shuffle },
		Help: "a new order of the images in each epoch"},
	{Name: "sampler", Group: dataGroup, Default: "uniform", Field: func(c *Spec) any { return &c.Sampler },
		Values: option.OneOf(Uniform, Balanced),
		Help: "uniform: each image once an epoch; balanced: as many images of each class, those of small classes several " +
			"times"},
	{Name: "workers", Group: dataGroup, Default: "0, one a core", Field: func(c *Spec) any { return &c.Workers },
		Check: cores, Resumable: true,
		Local: true, Help: "goroutines that decode images"},
	{Name: "decode-memory", Group: dataGroup, Field: func(c *Spec) any { return (*option.Bytes)(&c.DecodeMemory) },
		Resumable: true, Local: true,
		Default: "a quarter of the free memory, shared by the processes of a machine, and 320 MiB at least; of 2 GiB " +
			"if the free memory is unknown",
		Help: "memory that decoding takes in each process at most, by the sizes that images declare, as 2GB: one that " +
			"needs more is unreadable"},
	{Name: "holdout", Group: dataGroup, Field: func(c *Spec) any { return (*option.Share)(&c.Holdout) },
		Check: option.Below(1),
		Help: "share of the training set kept from training, by which the best weights are chosen; without it the " +
			"validation images choose"},
	{Name: "max-bad", Group: dataGroup, Default: "auto: 1 %, at least 10, but no more than a tenth",
		Field:     func(c *Spec) any { return maxBadValue{c} },
		Resumable: true, Help: "unreadable images that are skipped before it is an error: a `number`, as 20, or a share, " +
			"as 5% or 0.05; all"},
})

var modelOptions = options{
	{Name: "model", Group: modelGroup, Default: "that of --init, or by the data",
		Field: func(c *Spec) any { return &c.Model }, Values: modelNames, Open: true,
		Help: "model, as listed by 'rna models'"},
	{Name: "init", Group: modelGroup, Field: func(c *Spec) any { return &c.Init }, Local: true,
		Help: "`file` with the weights to start from: safetensors, a file of torch.save, the folder of a run, or a name " +
			"of \"rna get\", as " +
			"resnet18; a last layer of another size, or for another task, starts fresh. " +
			"Batch, epochs, rates and schedule are then by default those of fine-tuning"},
	{Name: "key", Group: modelGroup, Default: "it is found", Field: func(c *Spec) any { return &c.InitKey },
		Help: "of a file with several state dicts the `name` of one, as model_ema; of Orbax and Keras the first part " +
			"of the names, as params"},
	{Name: "freeze", Group: modelGroup, Field: func(c *Spec) any { return &c.Freeze },
		Help: "leave the parameters of these names, and the statistics of their BatchNorm, as they are: " +
			"comma-separated `patterns`, " +
			"as layer[12].*; !fc.* is all but fc.*"},
	{Name: "zero-init", Group: modelGroup, Field: func(c *Spec) any { return &c.ZeroInit },
		Help: "start residual blocks as the identity: their last BatchNorm scale is 0"},
	{Name: "blurpool", Group: modelGroup, Field: func(c *Spec) any { return &c.BlurPool },
		Help: "blur the inputs of convolutions of a stride above 1, against aliasing"},
	{Name: "bn-momentum", Group: modelGroup, Default: "the net's, 0.1 as a rule",
		Field: func(c *Spec) any { return &c.StatsMomentum }, Check: option.UpTo(1),
		Help: "weight of a batch in the running statistics of BatchNorm"},
	{Name: "seed", Group: modelGroup, Default: "0", Field: func(c *Spec) any { return &c.Seed },
		Help: "seed of initial weights, order and augmentation"},
}

func optimiserOptions() options {
	list := slices.Concat(options{
		{Name: "batch", Group: optimiserGroup, Default: "by the data", Field: func(c *Spec) any { return batchValue{c} },
			Values: option.OneOf("auto"), Open: true, Clears: []string{"accumulate"},
			Help: "`images` a forward pass; auto: as many as fit in the memory that is free"},
		{Name: "accumulate", Group: optimiserGroup, Default: "by the data, 1 with --batch",
			Field: func(c *Spec) any { return &c.Accumulate },
			Check: option.AtLeast(1), Help: "batches a step, for a larger effective batch"},
		{Name: "epochs", Group: optimiserGroup, Default: "by the data", Field: func(c *Spec) any { return &c.Epochs },
			Check:     option.AtLeast(1),
			Resumable: true, Clears: []string{"time-budget"}, Help: "epochs"},
	}, option.In(schedule.Options("by the data; "+RateDefaults()).Under(optimiserGroup),
		func(c *Spec) *schedule.Schedule { return &c.Schedule }), options{
		{Name: "head-lr", Group: optimiserGroup, Default: "--lr; five times the default rate where --init leaves " +
			"it to be learnt",
			Field: func(c *Spec) any { return &c.HeadRate }, Check: option.Positive,
			Help: "learning rate of the last layer at the start"},
		{Name: "layer-decay", Group: optimiserGroup, Default: "1", Field: func(c *Spec) any { return &c.LayerDecay },
			Check: option.UpTo(1),
			Help:  "factor of the learning rate from each layer or block to the one before it"},
		{Name: "optimizer", Group: optimiserGroup, Default: "sgd", Field: func(c *Spec) any { return &c.Optimizer },
			Values: Optimizers,
			Help:   "rule of the steps"},
	})
	for _, h := range Hyperparameters() {
		list = append(list, option.Option[Spec]{Name: h.Name, Group: optimiserGroup, Help: h.Help,
			Field: func(c *Spec) any { return h.Field(c) }})
	}
	return slices.Concat(list, options{
		{Name: "nesterov", Group: optimiserGroup, Field: func(c *Spec) any { return &c.Nesterov },
			Help: "Nesterov's form of momentum, with sgd and lars"},
		{Name: "weight-decay", Group: optimiserGroup, Default: "1e-4, 5e-4 for LeNet's data; " + DecayDefaults(),
			Check: option.NotNegative,
			Field: func(c *Spec) any { return &c.WeightDecay }, Help: "weight decay"},
		{Name: "decay-weights-only", Group: optimiserGroup, Field: func(c *Spec) any { return &c.DecayWeightsOnly },
			Help: "exempt BatchNorm and biases from weight decay"},
		{Name: "no-decay", Group: optimiserGroup, Field: func(c *Spec) any { return &c.NoDecay }, CheckText: pattern,
			Help: "exempt the parameters of these names from weight decay: comma-separated `patterns`, as *.bias,fc.*"},
		{Name: "clip-grad", Group: optimiserGroup, Default: "never", Field: func(c *Spec) any { return &c.ClipGrad },
			Check: option.Positive,
			Help:  "scale the gradient down to this norm where it is longer"},
		{Name: "clip-value", Group: optimiserGroup, Default: "never", Field: func(c *Spec) any { return &c.ClipValue },
			Check: option.Positive,
			Help:  "cut each element of the gradient to this size"},
		{Name: "label-smoothing", Group: optimiserGroup, Field: func(c *Spec) any { return &c.LabelSmoothing },
			Check: option.Below(1),
			Help:  "label smoothing"},
	}, option.In(regularizeOptions.Under(optimiserGroup), func(c *Spec) *Regularize { return &c.Regularize }), options{
		{Name: "ema", Group: optimiserGroup, Default: "none", Field: func(c *Spec) any { return &c.EMA },
			Check: option.NotNegative,
			Help: "power average beside training: x += (γ+1)/(t+γ)·(w − x) at step t, for this γ; 12 is a good one; of " +
				"several `numbers` the last is scored, and --keep-every keeps all, for rna replay --power-ema and --wsm"},
		{Name: "ema-decay", Group: optimiserGroup, Default: "none", Field: func(c *Spec) any { return &c.EMADecay },
			Check: option.Inside(0, 1),
			Help:  "average with this decay beside training, x = d·x + (1−d)·w, as 0.9999"},
		{Name: "ema-every", Group: optimiserGroup, Default: "1", Field: func(c *Spec) any { return &c.EMAEvery },
			Check: option.AtLeast(1),
			Help:  "steps from one such average to the next"},
	})
}

var rnaOptions = option.In(average.Table.Under(rnaGroup), func(c *Spec) *average.Options { return &c.RNA })

var runOptions = options{
	{Name: "device", Group: runGroup, Default: "auto", Field: func(c *Spec) any { return &c.Device }, Resumable: true,
		Local: true, Open: true,
		Values: option.OneOf("auto", "cpu", "cuda", "reference", "reference64", "cuda:0", "cuda:all"),
		Help: "auto (the GPU with the most free memory, else the CPU), cpu, cuda: an NVIDIA GPU (cuda:1: the second one; " +
			"cuda:GPU-…, cuda:MIG-…: " +
			"that of a UUID; cuda:all, cuda:0,2: a process for each of several), or reference: the slow definition that the " +
			"others are checked " +
			"against (reference64: in float64)"},
	{Name: "threads", Group: runGroup, Default: "0, one a fast core", Field: func(c *Spec) any { return &c.Threads },
		Check: cores, Resumable: true,
		Local: true, Help: "threads that compute; results do not depend on it"},
	{Name: "winograd", Group: runGroup, Default: "true", Field: func(c *Spec) any { return &c.Winograd },
		Help: "3×3 convolutions by Winograd's algorithm where it is faster, with errors of up to 1.5e-6 of the largest " +
			"element; false: directly, 9e-7 " +
			"(device cpu; others choose themselves)"},
	{Name: "float32", Group: runGroup, Default: "direct", Field: func(c *Spec) any { return &c.Float32 },
		Resumable: true, Values: option.OneOf("bf16x6", "bf16x3", "direct"),
		Help: "how products of float32 run on AMX: direct; bf16x6, six products of bfloat16, where counts favour it, with " +
			"errors of direct sums at most; bf16x3, three of them, with errors of up to 2e-5 of the largest element (device " +
			"cpu; without AMX bf16x6 runs directly, and bf16x3 is an error)"},
	{Name: "low-memory", Group: runGroup, Field: func(c *Spec) any { return &c.LowMemory }, Resumable: true,
		Help: "training makes again values that its backward pass needs, where that is cheap: ResNet-50's images take 45 " +
			"% less memory, for a few " +
			"percent of the time; results keep their bits in float32, on CUDA with --deterministic"},
	{Name: "precision", Group: runGroup, Default: "bfloat16 on cuda, float16 before sm_80; float64 on reference64; else float32",
		Field:     func(c *Spec) any { return &c.Precision },
		Resumable: true, Values: option.OneOf("float32", "bfloat16", "float16", "tf32", "float64"),
		Help: "precision in which nets store and multiply on device cuda: bfloat16, float16 with a scaled loss, tf32, or " +
			"float32; on device cpu float32, or bfloat16, which takes less memory and is for processors with AMX or fast " +
			"AVX512_BF16; weights, sums and the loss are float32 in all"},
	{Name: "deterministic", Group: runGroup, Field: func(c *Spec) any { return &c.Deterministic },
		Help: "only algorithms that give equal bits in each run, also where others are faster (device cuda; the " +
			"others do so anyway)"},
	{Name: "out", Short: "o", Group: runGroup, Default: "runs/<time>-<model>", Field: func(c *Spec) any { return &c.Out },
		Local: true,
		Help:  "`folder` of the run"},
	{Name: "tensorboard", Group: runGroup, Field: func(c *Spec) any { return &c.TensorBoard },
		Help: "write losses, errors, rates, coefficients, options and augmented images for TensorBoard, too, into the run's " +
			"folder: tensorboard --logdir runs"},
	{Name: "histograms", Group: runGroup, Default: "0, none", Field: func(c *Spec) any { return &c.Histograms },
		Check: option.NotNegative,
		Help:  "with --tensorboard, write histograms of the weights every so many `epochs`"},
	{Name: "checkpoint-every", Group: runGroup, Default: "1", Field: func(c *Spec) any { return interval{c} },
		Resumable: true,
		Help: "`interval` from one checkpoint to the next: epochs, as 2, or steps, as 500steps, or time, as 10m; an " +
			"interrupted run writes one too"},
	{Name: "checkpoint-keep", Group: runGroup, Default: "2", Field: func(c *Spec) any { return &c.CheckpointKeep },
		Check:     option.AtLeast(1),
		Resumable: true, Help: "newest checkpoints to keep, so that there is another where one is damaged"},
	{Name: "keep-every", Group: runGroup, Field: func(c *Spec) any { return &c.KeepEvery }, Check: option.NotNegative,
		Help: "keep the weights of every so many epochs, complete, in the folder kept of the run"},
	{Name: "keep-best", Group: runGroup, Field: func(c *Spec) any { return &c.KeepBest }, Check: option.NotNegative,
		Help: "keep those of the so many best epochs there, by --best-by"},
	{Name: "best-by", Group: runGroup, Default: "error", Field: func(c *Spec) any { return &c.BestBy },
		Values: option.OneOf(hook.ByError, hook.ByLoss),
		Help: "the `measure`, on held-out images, else on validation images, by which best.safetensors is chosen among " +
			"all weights of the table and " +
			"all epochs"},
	{Name: "patience", Group: runGroup, Field: func(c *Spec) any { return &c.Patience }, Check: option.Positive,
		Resumable: true,
		Help:      "end the run after so many `epochs` in a row without better weights, of any kind, by --best-by"},
	{Name: "time-budget", Group: runGroup, Field: func(c *Spec) any { return &c.TimeBudget }, Check: option.Positive,
		Resumable: true,
		Help: "train for this `time`, as 2h or 90m: the speed of the first epochs sets the number of epochs, and the " +
			"learning rate falls over them"},
	{Name: "limit-batches", Group: runGroup, Default: "0, all", Field: func(c *Spec) any { return &c.StepsLimit },
		Check: option.NotNegative,
		Help:  "batches an epoch, for a quick look"},
	{Name: "limit-val", Group: runGroup, Default: "0, all", Field: func(c *Spec) any { return &c.ValLimit },
		Check: option.NotNegative,
		Help:  "batches an evaluation"},
	{Name: "comm-precision", Group: runGroup, Default: "float32", Field: func(c *Spec) any { return &c.CommPrecision },
		Values: option.OneOf("float32", "bfloat16"), Help: "precision in which gradients are sent between GPUs; sums are " +
			"float32 in both"},
}

// modelNames lists the architectures.
func modelNames() (names []string) {
	for _, a := range nn.Architectures() {
		names = append(names, a.Name)
	}
	return names
}
