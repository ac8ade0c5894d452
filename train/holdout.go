package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/data/random"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// split divides a training set into the images to train on and those held out, Config.Holdout of them, which the seed
// chooses. Without a share held is nil.
func split(c *Spec, set data.Dataset) (train, held data.Dataset, err error) {
	if c.Holdout == 0 {
		return set, nil, nil
	}
	n := set.Len()
	k := max(1, int(math.Round(c.Holdout*float64(n))))
	if k >= n {
		return nil, nil, fmt.Errorf("holdout %g of %d images leaves none to train on", c.Holdout, n)
	}
	order := make([]int32, n)
	r := random.New(c.Seed, heldStream)
	r.Perm(order)
	indices := make([]int, n)
	for i, j := range order {
		indices[i] = int(j)
	}
	// In the order of the set, which may be that of its files.
	slices.Sort(indices[:k])
	slices.Sort(indices[k:])
	if held, err = data.Subset(set, indices[:k]); err != nil {
		return nil, nil, err
	}
	train, err = data.Subset(set, indices[k:])
	return train, held, err
}

// Held are the images of a training set that a run with this Config.Holdout and Config.Seed holds out.
func Held(set data.Dataset, share float64, seed uint64) (data.Dataset, error) {
	_, held, err := split(&Spec{Holdout: share, Seed: seed}, set)
	return held, err
}

// splitOf tells the files of weights how their data are divided.
func splitOf(c *Spec, train, val data.Dataset) *network.Split {
	s := &network.Split{Data: c.Data, ValData: c.ValData, ValSplit: c.ValSplit, Holdout: c.Holdout}
	if c.Holdout > 0 {
		s.Seed = c.Seed
	}
	if c.ValSplit > 0 {
		s.Count(train, val)
	} else {
		s.Count(train)
	}
	return s
}

// evaluateHeld scores the network's present weights on the held-out images. It is nil if there are none.
func (r *Run) evaluateHeld(ctx context.Context) (*network.Score, error) {
	if r.in.held == nil {
		return nil, nil
	}
	s, err := r.score(ctx, r.in.held)
	if err != nil {
		return nil, fmt.Errorf("held-out images: %w", err)
	}
	return s, nil
}

// heldLosses are the losses of the network's present weights on the held-out images, in the order of their set: those of all ranks.
func (r *Run) heldLosses(ctx context.Context) ([]float64, error) {
	if r.in.held == nil {
		return nil, nil
	}
	g := r.Ranks
	g.At(ranks.At{Epoch: r.pos.Epoch, What: "evaluation"})
	p := r.newPulse(ctx, r.in.held)
	own, images, err := r.Net.Losses(r.host(ctx), r.in.held, p.before)
	if err == nil {
		err = p.rest()
	}
	if err != nil {
		return nil, fmt.Errorf("held-out images: %w", err)
	}
	sums := make([]float64, 2*r.in.heldSize) // losses, and which there are
	for i, image := range images {
		sums[2*image], sums[2*image+1] = own[i], 1
	}
	if !g.Single() {
		if err := g.Sum64(sums).Wait(); err != nil {
			return nil, err
		}
	}
	var losses []float64
	for i := 0; i < len(sums); i += 2 {
		if sums[i+1] > 0 {
			losses = append(losses, sums[i])
		}
	}
	if len(losses) == 0 {
		return nil, network.ErrNoImage
	}
	return losses, nil
}

// judge scores the network's present weights on the held-out images, notes it in the record and keeps them as
// best.safetensors if nothing was better so far. Without held-out images it goes by the
// validation score, val, unless that is nil.
func (r *Run) judge(ctx context.Context, rec *hook.EpochRecord, of hook.ScoreRecord, val *network.Score) error {
	switch {
	case r.in.held != nil:
		s, err := r.evaluateHeld(ctx)
		if err != nil {
			return err
		}
		of.Score = *s
		rec.Held = append(rec.Held, of)
	case val == nil:
		return nil
	default:
		of.Score = *val
	}
	if err := r.candidate(of); err != nil {
		return err
	}
	rec.Best = r.best
	return nil
}
