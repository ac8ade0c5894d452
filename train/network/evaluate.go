package network

import (
	"context"
	"errors"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/op"
)

// ErrNoImage means that no image could be evaluated.
var ErrNoImage = errors.New("no image could be evaluated")

// Score evaluates the weights on the batches of a loader. each, if not nil, is called for every batch with its N×K
// logits, row by row. It returns ErrNoImage if the loader has no readable image.
func (n *Network) Score(ctx context.Context, l *data.Loader,
	each func(b *data.Batch, logits []float32) error) (Score, error) {
	var outputs *Collector
	user := each
	if !n.Meaning.Classifies() {
		outputs = n.NewCollector(l.Dataset())
		each = func(b *data.Batch, logits []float32) error {
			outputs.Add(b, logits)
			if user == nil {
				return nil
			}
			return user(b, logits)
		}
	}
	sum, err := n.Tally(ctx, l, each, nil)
	if err == nil && sum.Images == 0 {
		err = ErrNoImage
	}
	if err != nil {
		return Score{}, err
	}
	if outputs != nil {
		return outputs.Score(), nil
	}
	return sum.Score(), nil
}

// Tally is Score before the division by the number of images, which may be 0. before, if not nil, is called before
// every batch; its error ends the evaluation.
func (n *Network) Tally(ctx context.Context, l *data.Loader, each func(b *data.Batch, logits []float32) error,
	before func() error) (sum Tally, err error) {
	err = n.ranges.In("evaluation", func() error {
		sum, err = n.tally(ctx, l, each, before)
		return err
	})
	return sum, err
}

func (n *Network) tally(ctx context.Context, l *data.Loader, each func(b *data.Batch, logits []float32) error,
	before func() error) (Tally, error) {
	var sum Tally
	var logits []float32
	var last *Pending // runs while the next batch is made
	settle := func() error {
		if last == nil {
			return nil
		}
		_, t, err := last.Wait()
		sum.Add(t)
		last = nil
		return err
	}
	for b, err := range l.Epoch(ctx, 0, 0) {
		if err == nil && before != nil {
			err = before()
		}
		if err != nil {
			return Tally{}, err
		}
		if n.TestFlip {
			logits = slices.Grow(logits[:0], b.N*n.model.Config.Classes)[:b.N*n.model.Config.Classes]
			t, err := n.evaluateFlipped(b, logits)
			if err == nil && each != nil {
				err = each(b, logits)
			}
			if err != nil {
				return Tally{}, err
			}
			sum.Add(n.judged(t, b, logits))
			continue
		}
		if each == nil && n.Meaning.Classifies() {
			next, err := n.StartEvaluation(b)
			if err == nil {
				err = settle()
			}
			if err != nil {
				return Tally{}, err
			}
			last = next
			continue
		}
		logits = slices.Grow(logits[:0], b.N*n.model.Config.Classes)[:b.N*n.model.Config.Classes]
		t, err := n.Evaluate(b, logits)
		if err != nil {
			return Tally{}, err
		}
		sum.Add(n.judged(t, b, logits))
		if each == nil {
			continue
		}
		if err := each(b, logits); err != nil {
			return Tally{}, err
		}
	}
	if err := settle(); err != nil {
		return Tally{}, err
	}
	if err := ctx.Err(); err != nil {
		return Tally{}, err
	}
	return sum, nil
}

// judged is the tally of a batch with its loss by the task.
func (n *Network) judged(t Tally, b *data.Batch, logits []float32) Tally {
	if n.Meaning.Classifies() {
		return t
	}
	t = Tally{Images: b.N}
	for _, x := range n.BatchLosses(b, logits) {
		t.Loss += x
	}
	return t
}

// Losses returns the losses of a loader's images, without label smoothing, and the images' indices in the set.
// Unreadable images are left out. before is as for Tally.
func (n *Network) Losses(ctx context.Context, l *data.Loader,
	before func() error) (losses []float64, images []int, err error) {
	_, err = n.Tally(ctx, l, func(b *data.Batch, logits []float32) error {
		losses, images = append(losses, n.BatchLosses(b, logits)...), append(images, b.Index[:b.N]...)
		return nil
	}, before)
	return losses, images, err
}

func crossEntropy(logits []float32, label int) float64 {
	most := float64(slices.Max(logits))
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	return math.Log(sum) + most - float64(logits[label])
}

// HasStatistics reports whether batches change any statistics: not without BatchNorm, nor if all of it is frozen.
func (n *Network) HasStatistics() bool {
	return slices.ContainsFunc(n.model.Stats, func(s nn.Stat) bool { return !s.Frozen })
}

// Recalibrate replaces the running statistics that are not frozen by their mean over the batches of one epoch of a
// loader, weighted by the batch sizes.
func (n *Network) Recalibrate(ctx context.Context, l *data.Loader, epoch int) error {
	if !n.HasStatistics() {
		return nil
	}
	return n.ranges.In("BatchNorm recalibration", func() error { return n.recalibrate(ctx, l, epoch) })
}

func (n *Network) recalibrate(ctx context.Context, l *data.Loader, epoch int) error {
	images := 0
	for b, err := range l.Epoch(ctx, epoch, 0) {
		if err != nil {
			return err
		}
		images += b.N
		if err := n.UpdateStats(b, float64(b.N)/float64(images)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// evaluateFlipped sets logits to the mean of the images' and their mirror images' logits, and scores it.
func (n *Network) evaluateFlipped(b *data.Batch, logits []float32) (t Tally, err error) {
	if _, err = n.Evaluate(b, logits); err != nil {
		return t, err
	}
	flip := func() {
		for i := 2; i < len(b.Crops); i += 3 {
			b.Crops[i] ^= 1
		}
	}
	flip()
	defer flip()
	other := make([]float32, len(logits))
	if _, err = n.Evaluate(b, other); err != nil {
		return t, err
	}
	for i, v := range other {
		logits[i] = (logits[i] + v) / 2
	}
	score := op.New(op.T(op.Float32, 3))
	k := n.model.Config.Classes
	err = op.Score{}.Run(score, op.Tensor{Shape: op.Shape{b.N, k}, Data: logits},
		op.Tensor{Shape: op.Shape{b.N}, Data: b.Labels})
	x := score.Data.([]float32)
	return Tally{Loss: float64(x[0]), Top1: float64(x[1]), Top5: float64(x[2]), Images: b.N}, err
}
