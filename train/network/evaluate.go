package network

import (
	"context"
	"errors"
	"slices"

	"onlinerna/data"
)

// ErrNoImage says that there was none to evaluate.
var ErrNoImage = errors.New("no image could be evaluated")

// Score scores the weights on the batches of a loader. each, if not nil, is called for every batch with its logits, row by row.
func (n *Network) Score(ctx context.Context, l *data.Loader, each func(b *data.Batch, logits []float32) error) (Score, error) {
	sum, err := n.Tally(ctx, l, each)
	if err == nil && sum.Images == 0 {
		err = ErrNoImage
	}
	if err != nil {
		return Score{}, err
	}
	return sum.Score(), nil
}

// Tally is Score before the division by the number of images, which may be 0.
func (n *Network) Tally(ctx context.Context, l *data.Loader, each func(b *data.Batch, logits []float32) error) (Tally, error) {
	var sum Tally
	var logits []float32
	var last *Pending // under way while the next batch is made
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
		if err != nil {
			return Tally{}, err
		}
		if each == nil {
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
		sum.Add(t)
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

// Restate replaces the running statistics by their mean over the batches of an epoch of a loader, in proportion to the batches' sizes.
func (n *Network) Restate(ctx context.Context, l *data.Loader, epoch int) error {
	if n.Stats == nil {
		return nil
	}
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
