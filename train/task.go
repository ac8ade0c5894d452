package train

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"onlinerna/data"
	"onlinerna/train/network"
)

// meaning returns that of the net's outputs.
func (r *Run) meaning() (network.Meaning, error) {
	c := &r.Resolved
	if c.Task == data.Classification {
		return network.Meaning{}, nil
	}
	m := network.Meaning{Task: c.Task}
	if c.Task != data.Regression {
		return m, nil
	}
	train, _, err := split(&c.Spec, r.in.set)
	if err != nil {
		return m, err
	}
	m.Offset, m.Scale, err = scaleOf(train)
	return m, err
}

// scaleOf returns the mean and the standard deviation of each number of a regression's set.
func scaleOf(set data.Dataset) (mean, deviation []float64, err error) {
	k, n := len(set.Classes()), float64(set.Len())
	mean, deviation = make([]float64, k), make([]float64, k)
	row := make([]float64, k)
	sum := func(to []float64, of func(i int) float64) {
		for j := range to {
			to[j] += of(j) / n
		}
	}
	for i := range set.Len() {
		data.Targets(set, i, row)
		sum(mean, func(j int) float64 { return row[j] })
	}
	for i := range set.Len() {
		data.Targets(set, i, row)
		sum(deviation, func(j int) float64 { return (row[j] - mean[j]) * (row[j] - mean[j]) })
	}
	for j, x := range deviation {
		if deviation[j] = math.Sqrt(x); deviation[j] == 0 || math.IsInf(deviation[j], 0) {
			return nil, nil, fmt.Errorf("the numbers %s of the training images have the standard deviation %g: there is "+
				"nothing to learn; leave the column out", set.Classes()[j], deviation[j])
		}
	}
	return mean, deviation, nil
}

// thresholds are those of a multi-label net with certain weights.
type thresholds struct {
	list    []float64
	weights string // their hashes
}

// ranking is the loader of the images on which weights are compared, nil for none.
func (j *judge) ranking() *data.Loader { return cmp.Or(j.in.held, j.in.val) }

// scoreOutputs is score for other tasks than classification. It chooses the thresholds of a multi-label net.
func (j *judge) scoreOutputs(ctx context.Context, l *data.Loader) (*network.Score, error) {
	m := j.meet(ctx, l)
	outputs := j.net.NewCollector(l.Dataset())
	_, err := j.net.Tally(j.host(ctx), l, func(b *data.Batch, logits []float32) error {
		outputs.Add(b, logits)
		return nil
	}, m.before)
	if err = m.sum(outputs.Vector(), err); err != nil {
		return nil, err
	}
	s := outputs.Score()
	if err := j.checkBad(l.Images()-s.Images, l.Allowed(), l.Images()); err != nil {
		return nil, err
	}
	if s.Images == 0 {
		return nil, network.ErrNoImage
	}
	if j.c.Task == data.MultiLabel && l == j.ranking() {
		j.chosen.list = outputs.Thresholds()
		j.chosen.weights, err = j.hash()
	}
	return &s, err
}

// thresholds returns those of the network's current weights, nil if there are no images to choose them on.
func (j *judge) thresholds() ([]float64, error) {
	l := j.ranking()
	if j.c.Task != data.MultiLabel || l == nil {
		return nil, nil
	}
	now, err := j.hash()
	if err == nil && now != j.chosen.weights {
		_, err = j.scoreOutputs(context.Background(), l)
	}
	if err != nil {
		return nil, fmt.Errorf("choosing thresholds: %w", err)
	}
	return j.chosen.list, nil
}

// hash identifies the network's weights and statistics.
func (j *judge) hash() (string, error) {
	s, err := network.Hash(j.net.Params)
	if err == nil && j.net.Stats != nil {
		var stats string
		stats, err = network.Hash(j.net.Stats)
		s += stats
	}
	return s, err
}
