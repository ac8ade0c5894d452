package network

import "onlinerna/data"

// objective defines the targets of an image for losses that take targets.
type objective struct {
	smoothing float64
	threshold float64 // if not 0, targets above it become 1 and others 0
	weights   []float64
	means     *Meaning // nil: classification
}

// Objective defines how labels become targets, for a network whose nn.Config.Loss takes them. Smoothing by ε gives 1−ε
// to the label and ε/K to every class; mixed images have their labels' targets in proportion to their shares. With a
// threshold above 0, targets above it become 1 and all others 0. Optional class weights multiply the targets, scaled so
// that the weights of the batch's labels are 1 on average.
func (n *Network) Objective(smoothing, threshold float64, weights []float64) {
	n.objective = objective{smoothing, threshold, weights, &n.Meaning}
}

// targets writes a batch's targets to t, which it grows. A label outside the classes has targets 0.
func (o *objective) targets(t []float32, b *data.Batch, classes int) []float32 {
	if cap(t) < b.N*classes {
		t = make([]float32, b.N*classes)
	}
	t = t[:b.N*classes]
	if len(b.Targets) > 0 {
		o.own(t, b, classes)
		return t
	}
	sum := 0.
	counts := make([]float64, b.N)
	for i := range b.N {
		row := t[i*classes:][:classes]
		for k := range row {
			row[k] = float32(o.smoothing / float64(classes))
		}
		own := 1.
		if len(b.Other) > 0 {
			own = b.Share
			add(row, b.Other[i], (1-own)*(1-o.smoothing))
		}
		add(row, b.Labels[i], own*(1-o.smoothing))
		counts[i] = o.weight(b.Labels[i])*own + (1-own)*o.weightOfOther(b, i)
		sum += counts[i]
		for k, v := range row {
			row[k] = o.cut(v)
		}
	}
	if len(o.weights) > 0 && sum > 0 {
		o.weigh(t, classes, float64(b.N)/sum)
	}
	return t
}

// own writes the targets that a batch has of its own.
func (o *objective) own(t []float32, b *data.Batch, classes int) {
	clear(t)
	width := len(b.Targets) / b.N
	for i, v := range b.Targets {
		x := o.cut(v)
		if o.means != nil {
			x = float32(o.means.normal(i%width, float64(x)))
		}
		t[i/width*classes+i%width] = x
	}
}

// cut applies the threshold to a target.
func (o *objective) cut(v float32) float32 {
	switch {
	case o.threshold == 0:
		return v
	case float64(v) > o.threshold:
		return 1
	}
	return 0
}

// weigh multiplies the targets by the class weights; scale makes the weights of a batch's labels 1 on average, like
// PyTorch's mean.
func (o *objective) weigh(t []float32, classes int, scale float64) {
	for i := range t {
		t[i] *= float32(o.weights[i%classes] * scale)
	}
}

func (o *objective) weightOfOther(b *data.Batch, i int) float64 {
	if len(b.Other) == 0 {
		return 0
	}
	return o.weight(b.Other[i])
}

func (o *objective) weight(label int32) float64 {
	if label < 0 || int(label) >= len(o.weights) {
		return 1
	}
	return o.weights[label]
}

func add(row []float32, label int32, v float64) {
	if label >= 0 && int(label) < len(row) {
		row[label] += float32(v)
	}
}
