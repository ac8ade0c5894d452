package network

import (
	"math"

	"onlinerna/data"
	"onlinerna/train/evaluate/measure"
)

// Collector collects the outputs for the images of a set of another task than classification, whose scores are no sums
// over images.
type Collector struct {
	means Meaning
	set   data.Dataset
	width int       // classes of the set
	all   []float64 // by image: 1 if it was evaluated, and its outputs
}

// NewCollector prepares to collect the outputs for a set.
func (n *Network) NewCollector(set data.Dataset) *Collector {
	k := len(set.Classes())
	return &Collector{means: n.Meaning, set: set, width: k, all: make([]float64, set.Len()*(k+1))}
}

// Add takes a batch.
func (o *Collector) Add(b *data.Batch, outputs []float32) {
	k := len(outputs) / b.N
	for i, index := range b.Index[:b.N] {
		to := o.all[index*(o.width+1):][:o.width+1]
		to[0] = 1
		for j := range o.width {
			to[j+1] = float64(outputs[i*k+j])
		}
	}
}

// Vector is all that was collected: ranks replace it by the sum of theirs.
func (o *Collector) Vector() []float64 { return o.all }

// Values returns the Meaning.Values of the evaluated images, one image after the other, their targets, and the images'
// indices in the set.
func (o *Collector) Values() (values, targets []float64, images []int) {
	row, out := make([]float64, o.width), make([]float32, o.width)
	for i := range o.set.Len() {
		x := o.all[i*(o.width+1):][:o.width+1]
		if x[0] == 0 {
			continue
		}
		for k := range out {
			out[k] = float32(x[k+1])
		}
		data.Targets(o.set, i, row)
		values, targets, images = append(values, o.means.Values(out)...), append(targets, row...), append(images, i)
	}
	return values, targets, images
}

// Ranking orders the evaluated images by their output for a class; scores are the outputs.
func (o *Collector) Ranking(class int) (r *measure.Ranking, scores []float64) {
	var shown []bool
	row := make([]float64, o.width)
	for i := range o.set.Len() {
		x := o.all[i*(o.width+1):][:o.width+1]
		if x[0] == 0 {
			continue
		}
		data.Targets(o.set, i, row)
		scores, shown = append(scores, x[class+1]), append(shown, row[class] > 0)
	}
	return measure.Rank(scores, shown), scores
}

// Thresholds returns, for each class, the probability that divides the evaluated images with the highest F1; 0.5 for a
// class that none of them shows.
func (o *Collector) Thresholds() []float64 {
	list := make([]float64, o.width)
	for k := range list {
		list[k] = 0.5
		r, scores := o.Ranking(k)
		if z, _, ok := r.BestThreshold(scores); ok {
			list[k] = 1 / (1 + math.Exp(-z))
		}
	}
	return list
}

// Score is the score of the evaluated images.
func (o *Collector) Score() Score {
	s := Score{Task: o.means.Task}
	sum := 0.
	row, out := make([]float64, o.width), make([]float32, o.width)
	for i := range o.set.Len() {
		x := o.all[i*(o.width+1):][:o.width+1]
		if x[0] == 0 {
			continue
		}
		for k := range out {
			out[k] = float32(x[k+1])
		}
		data.Targets(o.set, i, row)
		sum += o.means.loss(out, func(k int) float64 { return row[k] }, o.width)
		s.Images++
	}
	if s.Images == 0 {
		return s
	}
	s.Loss = sum / float64(s.Images)
	if o.means.Task == data.MultiLabel {
		_, mean := measure.Classes(o.width, s.Images, func(k int) *measure.Ranking { r, _ := o.Ranking(k); return r },
			(*measure.Ranking).AveragePrecision)
		s.MAP, s.Deviation = 100*mean[0].Value, 100*mean[0].Error
		if !mean[0].Defined() { // no image shows a class
			s.MAP, s.Deviation = 0, 0
		}
		return s
	}
	values, targets, _ := o.Values()
	_, mean := measure.Fits(values, targets, o.width)
	s.RMSE, s.Deviation, s.MAE, s.R2 = mean.RMSE.Value, mean.RMSE.Error, mean.MAE.Value, mean.R2
	return s
}
