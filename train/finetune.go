package train

import (
	"math"

	"onlinerna/data"
	"onlinerna/nn/optim"
	"onlinerna/train/option"
	"onlinerna/train/schedule"
)

// Defaults of a run that starts from trained weights, as measured in docs/fine-tuning.md.
const (
	tuneSteps    = 10   // minimum per epoch
	tuneBatch    = 32   // maximum images per step
	tuneRate     = 0.02 // for SGD with steps of tuneBatch images; proportional to the batch otherwise
	tuneFraction = 0.1  // of the usual rate, for other optimisers
	tuneHead     = 5    // ratio of the new head's rate to that of the other layers
)

// fineTune replaces the defaults of training from scratch by those of fine-tuning a net on set: short epochs of at
// least ten steps, a cosine over 10 to 30 epochs depending on the number of images, and a low learning rate, five times
// as high for the head. Options set by the user stay.
func (c *Spec) fineTune(pre *preset, set data.Dataset, ranks int) {
	images := set.Len() - int(math.Round(c.Holdout*float64(set.Len())))
	images = max(1, images/max(1, c.RepeatAugment))
	together := max(1, c.Accumulate) * ranks
	pre.batch = min(max(2, images/(tuneSteps*together)), max(1, tuneBatch/together))
	pre.accumulate = 1
	pre.epochs = int(math.Round(min(30, max(10, 30-10*math.Log10(float64(images)/100)))))
}

// fineTuneRate replaces the defaults of the learning rate and its schedule, once the batch and the optimiser are known.
func (c *Resolved) fineTuneRate(pre *preset, ranks int) {
	if c.Optimizer == optim.All()[0].Name {
		batch := c.Batch
		if batch < 1 { // as many as fit
			batch = pre.batch
		}
		pre.rate = tuneRate / tuneBatch * float64(batch*c.Accumulate*ranks)
	} else {
		pre.rate *= tuneFraction
	}
	if c.Schedule.Rate == 0 && c.HeadRate == 0 {
		c.HeadRate, c.headByDefault = tuneHead*pre.rate, true
	}
	if c.Schedule.Kind == "" {
		c.Schedule.Kind = schedule.Cosine
		option.Default(&c.Schedule.By, schedule.ByStep)
	}
}
