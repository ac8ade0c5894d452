package nn

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/op"
)

// Mode is the purpose of a model: training or evaluation.
type Mode uint8

const (
	// Train normalises with the statistics of the batch, updates the running ones and has gradients.
	Train Mode = iota
	// Eval normalises with the running statistics and has no gradients.
	Eval
)

func (m Mode) String() string {
	switch m {
	case Train:
		return "train"
	case Eval:
		return "eval"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Loss is a kind of loss.
type Loss uint8

// The kinds of loss.
const (
	CrossEntropy      Loss = iota // by labels
	SoftTargets                   // cross-entropy by Model.Targets; see op.TargetLoss
	BinaryTargets                 // binary cross-entropy by Model.Targets
	FocalTargets                  // focal loss by Model.Targets; see op.FocalLoss
	AsymmetricTargets             // asymmetric loss of each class by Model.Targets; see op.AsymmetricLoss
	NumberTargets                 // of numbers, Model.Targets; see op.RegressionLoss
)

// Config are the parameters of a model. The zero value of each field but Batch is a usable default.
type Config struct {
	Batch int // images a batch, N
	Mode  Mode

	Classes  int // K; default: the architecture's
	Channels int // of an image, C; default: the architecture's
	Size     int // height and width of the network's input; default: the architecture's

	// ImageHeight and ImageWidth are the extent of the pixels the batch holds, from which a window of
	// Size×Size is cut; outside of them pixels are 0. Default: Size.
	ImageHeight, ImageWidth int

	// Mean and Std normalise a channel of pixels in [0,1]: (p − Mean)/Std. They have one value a channel, or one
	// for all of them. Default: 0 and 1.
	Mean, Std []float64

	// FloatInput makes the network's input an input of the graph: already normalised, of type DType, [N,C,Size,Size].
	// Then Model.Images and Model.Crops are nil.
	FloatInput bool

	DType op.DType // of parameters and activations: op.Float32 (default) or op.Float64

	// Smoothing is the label smoothing ε of the loss, in [0,1): the target distribution is
	// 1−ε at the label plus ε/K everywhere.
	Smoothing float64

	// Loss selects Model.Loss. Smoothing belongs to CrossEntropy alone: others take targets as they are.
	Loss Loss

	// FocalGamma is the exponent of FocalTargets: see op.FocalLoss.
	FocalGamma float64

	// Asymmetric are the exponents and the margin of AsymmetricTargets.
	Asymmetric op.AsymmetricLoss

	// HuberDelta is the Delta of NumberTargets: see op.RegressionLoss.
	HuberDelta float64

	// Teacher is the weight in the loss, in [0,1], of op.DistillLoss with this Temperature, by Model.Teacher; the loss by
	// labels has the rest. 0: there is no teacher.
	Teacher, Temperature float64

	// Dropout is the probability with which the last layer's inputs are dropped in Train, and DropPath that of dropping
	// the last residual branch; branches before it are dropped less, in proportion to their number (timm's
	// drop_path_rate). Architectures without residual blocks ignore the latter.
	Dropout, DropPath float64

	// Seed seeds random layers in Train, such as dropout.
	Seed uint64

	// BlurPool blurs, by 1 2 1 down and across, the input that convolutions of a stride above 1 and at least 16
	// channels take (Zhang 2019, as FFCV's).
	BlurPool bool

	// ZeroInitResidual starts the scale of the last batch normalisation of each residual block at 0 instead of 1,
	// so that blocks start as the identity. Architectures without such blocks ignore it.
	ZeroInitResidual bool

	// Freeze has patterns of path.Match for the names of parameters that are not trained: they have no gradient. Batch
	// normalisation whose scale and bias are frozen uses its running statistics in Train, too, and leaves them alone. A
	// pattern that starts with ! is for the names that do not match the rest of it.
	Freeze []string
}

// mostSize bounds an input's height and width, and so the lists of a plan's blocks, which grow with the pixels.
const mostSize = 1 << 14

// resolve fills in the defaults for a and checks the result.
func (c Config) resolve(a Architecture) (Config, error) {
	fill := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&c.Classes, a.Classes)
	fill(&c.Channels, a.Channels)
	fill(&c.Size, a.Size)
	fill(&c.ImageHeight, c.Size)
	fill(&c.ImageWidth, c.Size)
	if c.DType == 0 {
		c.DType = op.Float32
	}
	var err error
	switch {
	case c.Batch < 1:
		err = fmt.Errorf("batch size %d: must be at least 1", c.Batch)
	case c.Mode != Train && c.Mode != Eval:
		err = fmt.Errorf("unknown mode %v", c.Mode)
	case c.Classes < 1:
		err = fmt.Errorf("%d classes: must be at least 1", c.Classes)
	case c.Channels < 1:
		err = fmt.Errorf("%d channels: must be at least 1", c.Channels)
	case c.Size < 1:
		err = fmt.Errorf("input size %d: must be at least 1", c.Size)
	case c.Size < a.MinSize:
		err = fmt.Errorf("input size %d is too small: must be at least %d", c.Size, a.MinSize)
	case c.Size > mostSize:
		err = fmt.Errorf("input size %d is too large: must be at most %d", c.Size, mostSize)
	case c.ImageHeight < 1 || c.ImageWidth < 1:
		err = fmt.Errorf("images of %d×%d pixels: must be at least 1×1", c.ImageHeight, c.ImageWidth)
	case !c.DType.Float():
		err = fmt.Errorf("element type %v: must be float32 or float64", c.DType)
	case c.Loss > NumberTargets:
		err = fmt.Errorf("unknown loss %d", c.Loss)
	case c.Loss != CrossEntropy && c.Smoothing != 0:
		err = fmt.Errorf("label smoothing %g: targets have their own", c.Smoothing)
	case !(c.Teacher >= 0 && c.Teacher <= 1):
		err = fmt.Errorf("weight %g of the teacher: must be in [0,1]", c.Teacher)
	case !(c.Dropout >= 0 && c.Dropout < 1) || !(c.DropPath >= 0 && c.DropPath < 1):
		err = fmt.Errorf("dropout %g and drop path %g: must be in [0,1)", c.Dropout, c.DropPath)
	case !(c.Smoothing >= 0 && c.Smoothing < 1):
		err = fmt.Errorf("label smoothing %g: must be in [0,1)", c.Smoothing)
	}
	if err != nil {
		return c, err
	}
	if c.Mean, err = perChannel("mean", c.Mean, 0, c.Channels); err != nil {
		return c, err
	}
	if c.Std, err = perChannel("std", c.Std, 1, c.Channels); err != nil {
		return c, err
	}
	for i, m := range c.Mean {
		if math.IsNaN(m) || math.IsInf(m, 0) {
			return c, fmt.Errorf("mean of channel %d is %g: must be finite", i, m)
		}
		if s := c.Std[i]; !(s > 0) || math.IsInf(s, 1) {
			return c, fmt.Errorf("std of channel %d is %g: must be positive and finite", i, s)
		}
	}
	return c, nil
}

// DropPathAt is the probability of dropping residual branch i of n, which grows from 0 to DropPath.
func (c Config) DropPathAt(i, n int) float64 { return c.DropPath * float64(i) / float64(max(n-1, 1)) }

// targetLoss is the op of a loss that takes targets.
func (c *Config) targetLoss() op.Op {
	switch c.Loss {
	case FocalTargets:
		return op.FocalLoss{Gamma: c.FocalGamma}
	case AsymmetricTargets:
		return c.Asymmetric
	case NumberTargets:
		return op.RegressionLoss{Delta: c.HuberDelta}
	}
	return op.TargetLoss{Binary: c.Loss == BinaryTargets}
}

// perChannel repeats a single value, or def for none, to one value a channel.
func perChannel(what string, v []float64, def float64, channels int) ([]float64, error) {
	switch len(v) {
	case channels:
		return slices.Clone(v), nil
	case 0:
		return slices.Repeat([]float64{def}, channels), nil
	case 1:
		return slices.Repeat(v, channels), nil
	}
	return nil, fmt.Errorf("%s has %d values for %d channels", what, len(v), channels)
}
