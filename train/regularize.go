package train

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/data"
	"onlinerna/data/augment"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/option"
)

// Regularize holds the options that make the task harder than the images: loss, mixing and dropout.
type Regularize struct {
	Loss LossKind // empty: CrossEntropy
	// TargetThreshold sets targets of BCE above it to 1 and all others to 0, as timm's bce_target_thresh; 0 disables it.
	TargetThreshold float64
	FocalGamma      *float64 // exponent of Focal: see op.FocalLoss; nil is 2
	// ASLGamma are the exponents of Asymmetric for shown and other classes, nil is 0, 4; ASLMargin is subtracted from
	// probabilities of the latter, nil is 0.05: see op.AsymmetricLoss.
	ASLGamma     []float64
	ASLMargin    *float64
	HuberDelta   *float64     // error from which Huber grows linearly, in deviations of the target; nil is 1
	ClassWeights ClassWeights // of cross-entropy and Focal, normalised as PyTorch's
	// Teacher is a file of weights whose logits are learnt, too (Hinton et al. 2015): the loss is (1 − TeacherAlpha) times
	// that by labels, and TeacherAlpha times op.DistillLoss at TeacherTemperature. 0: 0.5 and 2.
	Teacher                          string
	TeacherAlpha, TeacherTemperature float64
	Mixup                            float64 // see augment.Mix
	Cutmix                           float64
	// Dropout and DropPath are those of nn.Config; nil takes the net's defaults.
	Dropout, DropPath *float64
}

// LossKind is a kind of loss.
type LossKind string

// The kinds of loss.
const (
	CrossEntropy LossKind = "ce"  // softmax cross-entropy
	BCE          LossKind = "bce" // binary cross-entropy of each class, averaged over images and classes, as timm's
	Focal        LossKind = "focal"
	Asymmetric   LossKind = "asl" // asymmetric loss of each class, averaged as BCE
	// Of regression, on targets of mean 0 and deviation 1:
	MSE   LossKind = "mse"
	Huber LossKind = "huber"
)

// lossesOf lists the losses of a task, the default first.
func lossesOf(t data.Task) []LossKind {
	switch t {
	case data.MultiLabel:
		return []LossKind{BCE, Asymmetric}
	case data.Regression:
		return []LossKind{MSE, Huber}
	}
	return []LossKind{CrossEntropy, BCE, Focal, Asymmetric}
}

// Network returns the loss that the net is built with. Plain labels have their own loss.
func (r *Regularize) Network() nn.Loss {
	switch {
	case r.Loss == BCE:
		return nn.BinaryTargets
	case r.Loss == Focal:
		return nn.FocalTargets
	case r.Loss == Asymmetric:
		return nn.AsymmetricTargets
	case r.Loss == MSE || r.Loss == Huber:
		return nn.NumberTargets
	case r.Mixup > 0 || r.Cutmix > 0 || len(r.ClassWeights) > 0:
		return nn.SoftTargets
	}
	return nn.CrossEntropy
}

// byClass reports whether each class has a loss of its own.
func (r *Regularize) byClass() bool { return r.Loss == BCE || r.Loss == Asymmetric }

// resolveLoss fills in the loss and its parameters.
func (r *Regularize) resolveLoss(t data.Task) {
	if t != data.Classification {
		option.Default(&r.Loss, lossesOf(t)[0])
	}
	switch r.Loss {
	case Focal:
		option.DefaultPointer(&r.FocalGamma, 2)
	case Asymmetric:
		if r.ASLGamma == nil {
			r.ASLGamma = []float64{0, 4}
		}
		option.DefaultPointer(&r.ASLMargin, 0.05)
	case Huber:
		option.DefaultPointer(&r.HuberDelta, 1)
	}
	if r.Teacher != "" {
		option.Default(&r.TeacherAlpha, 0.5)
		option.Default(&r.TeacherTemperature, 2)
	}
}

// asymmetric returns the asymmetric loss of a resolved config; the zero value for another loss.
func (r *Regularize) asymmetric() op.AsymmetricLoss {
	if r.Loss != Asymmetric {
		return op.AsymmetricLoss{}
	}
	return op.AsymmetricLoss{Positive: r.ASLGamma[0], Negative: r.ASLGamma[1], Margin: *r.ASLMargin}
}

// or0 is a number, 0 for nil.
func or0(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// Mix returns the mixing options.
func (r *Regularize) Mix() augment.Mix { return augment.Mix{Mixup: r.Mixup, Cutmix: r.Cutmix} }

func (r *Regularize) check(classes []string, t data.Task) error {
	switch list := lossesOf(t); {
	case r.Loss != "" && !slices.Contains(list, r.Loss):
		return fmt.Errorf("loss %s is not for the task %s: use one of %v", r.Loss, t, list)
	case t != data.Classification && len(r.ClassWeights) > 0:
		return fmt.Errorf("class weights are for images of one class each, not for the task %s", t)
	case r.TargetThreshold != 0 && !r.byClass():
		return fmt.Errorf("bce-threshold goes with loss %s and %s", BCE, Asymmetric)
	case (r.ASLGamma != nil || r.ASLMargin != nil) && r.Loss != Asymmetric:
		return fmt.Errorf("asl-gamma and asl-margin go with loss %s", Asymmetric)
	case r.ASLGamma != nil && len(r.ASLGamma) != 2:
		return fmt.Errorf("asl-gamma %v: give two exponents, for the image's class and for others, as 0,4", r.ASLGamma)
	case len(r.ClassWeights) > 0 && r.byClass():
		return fmt.Errorf("class weights go with the losses %s and %s: with %s each image has a loss for every class, "+
			"also for those that it does not show, and no weight is the image's", CrossEntropy, Focal, r.Loss)
	case r.HuberDelta != nil && r.Loss != Huber:
		return fmt.Errorf("huber-delta goes with loss %s", Huber)
	case r.FocalGamma != nil && r.Loss != Focal:
		return fmt.Errorf("focal-gamma goes with loss %s", Focal)
	case r.Teacher == "" && (r.TeacherAlpha != 0 || r.TeacherTemperature != 0):
		return errors.New("teacher-alpha and teacher-temperature go with a teacher: name its weights")
	case r.Teacher != "" && t != data.Classification:
		return fmt.Errorf("a teacher is for images of one class each, not for the task %s", t)
	}
	if err := r.ClassWeights.check(classes); err != nil {
		return err
	}
	return r.Mix().Check()
}

var regularizeOptions = option.Table[Regularize]{
	{Name: "loss", Default: "ce; bce for the task multi-label, mse for regression", Field: func(r *Regularize) any { return &r.Loss }, Values: option.OneOf(CrossEntropy,
		BCE, Focal, Asymmetric, MSE, Huber),
		Help: "ce: softmax cross-entropy, bce: binary cross-entropy of each class, focal: cross-entropy in which images " +
			"count less the surer the net is of their class, asl: bce in which classes that are surely not shown count less, " +
			"mse: squared error, huber: squared error that grows linearly where it is large"},
	{Name: "huber-delta", Default: "1", Field: func(r *Regularize) any { return &r.HuberDelta }, Check: option.Positive,
		Help: "error from which the Huber loss grows linearly, in standard deviations of the number"},
	{Name: "asl-gamma", Default: "0,4", Field: func(r *Regularize) any { return &r.ASLGamma },
		Check: option.Between(0, 20), Help: "exponents of the asymmetric loss, for the image's class and for others, as two " +
			"`numbers`"},
	{Name: "asl-margin", Default: "0.05", Field: func(r *Regularize) any { return &r.ASLMargin }, Check: option.Below(1),
		Help: "taken off the probabilities of other classes in the asymmetric loss"},
	{Name: "focal-gamma", Default: "2", Field: func(r *Regularize) any { return &r.FocalGamma },
		Check: option.Between(0, 20), Help: "exponent of the focal loss; 0 is cross-entropy"},
	{Name: "bce-threshold", Field: func(r *Regularize) any { return &r.TargetThreshold }, Check: option.Below(1),
		Help: "with bce and asl, targets above this are 1 and others 0"},
	{Name: "class-weights", Field: func(r *Regularize) any { return weightsValue{&r.ClassWeights} },
		CheckText: checkWeight,
		Help: "weights of the classes in the loss: auto (by inverse frequency), effective (by the effective number of " +
			"samples; effective:0.999 for another β than 0.9999), comma-separated `numbers`, or a file with a class and its " +
			"number a line"},
	{Name: "teacher", Field: func(r *Regularize) any { return &r.Teacher }, Local: true, Resumable: true,
		Help: "`file` with the weights of a net, of any kind and for the same classes, whose probabilities are learnt beside " +
			"the labels: safetensors, a file of torch.save, the folder of a run, or a name of \"rna get\""},
	{Name: "teacher-alpha", Default: "0.5", Field: func(r *Regularize) any { return &r.TeacherAlpha },
		Check: option.UpTo(1), Help: "weight of the teacher in the loss; the labels have the rest"},
	{Name: "teacher-temperature", Default: "2", Field: func(r *Regularize) any { return &r.TeacherTemperature },
		Check: temperature, Help: "by which the logits of both nets are divided, so that small probabilities count"},
	{Name: "mixup", Field: func(r *Regularize) any { return &r.Mixup }, Check: option.NotNegative,
		Help: "mix images in shares from a beta distribution with this parameter"},
	{Name: "cutmix", Field: func(r *Regularize) any { return &r.Cutmix }, Check: option.NotNegative,
		Help: "put a box of one image into another, with this parameter; with --mixup a batch has either"},
	{Name: "dropout", Field: func(r *Regularize) any { return &r.Dropout }, Check: option.Below(1),
		Default: "the net's", Help: "probability with which the last layer's inputs are dropped"},
	{Name: "drop-path", Field: func(r *Regularize) any { return &r.DropPath }, Check: option.Below(1),
		Default: "the net's", Help: "stochastic depth: probability of dropping the last residual branch, less for " +
			"those before it"},
}

// temperature is a range in which the probabilities of classes still differ.
func temperature(x float64) error {
	if !(x > 0 && x <= op.MaxTemperature) {
		return fmt.Errorf("must lie above 0 and up to %d", op.MaxTemperature)
	}
	return nil
}
