package train

import (
	"context"
	"fmt"

	"onlinerna/data"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// evaluate scores the network's present weights on the validation images. It is nil if there are none.
func (j *judge) evaluate(ctx context.Context) (*network.Score, error) {
	if j.in.val == nil {
		return nil, nil
	}
	return j.score(ctx, j.in.val)
}

// score scores the network's present weights on a loader's images, which the ranks share.
func (j *judge) score(ctx context.Context, l *data.Loader) (*network.Score, error) {
	g := j.Ranks
	g.At(ranks.At{Epoch: j.pos.Epoch, What: "evaluation"})
	p := j.newPulse(ctx, l)
	right := make([]bool, l.Set())
	t, err := j.net.Tally(j.host(ctx), l, func(b *data.Batch, logits []float32) error {
		network.MarkRight(right, b, logits)
		return nil
	}, p.before)
	if err == nil {
		err = p.rest()
	}
	if err != nil {
		return nil, err
	}
	if t, err = sumTally(g, t); err != nil {
		return nil, err
	}
	if err := j.checkBad(l.Images()-t.Images, l.Allowed(), l.Images()); err != nil {
		return nil, err
	}
	if t.Images == 0 {
		return nil, network.ErrNoImage
	}
	s := t.Score()
	s.Right, err = sumRight(g, right)
	return &s, err
}

// evaluateHeld scores the network's present weights on the held-out images. It is nil if there are none.
func (j *judge) evaluateHeld(ctx context.Context) (*network.Score, error) {
	if j.in.held == nil {
		return nil, nil
	}
	s, err := j.score(ctx, j.in.held)
	if err != nil {
		return nil, fmt.Errorf("held-out images: %w", err)
	}
	return s, nil
}

// heldLosses are the losses of the network's present weights on the held-out images, in the order of their set: those of all ranks.
func (j *judge) heldLosses(ctx context.Context) ([]float64, error) {
	if j.in.held == nil {
		return nil, nil
	}
	g := j.Ranks
	g.At(ranks.At{Epoch: j.pos.Epoch, What: "evaluation"})
	p := j.newPulse(ctx, j.in.held)
	own, images, err := j.net.Losses(j.host(ctx), j.in.held, p.before)
	if err == nil {
		err = p.rest()
	}
	if err != nil {
		return nil, fmt.Errorf("held-out images: %w", err)
	}
	sums := make([]float64, 2*j.in.heldSize) // losses, and which there are
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

// pulse has ranks that evaluate their batches ask each other now and then whether to stop: as often on all, whatever the number of their batches.
type pulse struct {
	g                   *ranks.Group
	stop                func() bool // this rank is to
	batches, beats, all int
}

// pulseEvery is how many batches are evaluated from one question to the next.
const pulseEvery = 16

func (j *judge) newPulse(ctx context.Context, l *data.Loader) *pulse {
	most := (l.Steps() + j.Ranks.Size() - 1) / j.Ranks.Size() // of a rank
	return &pulse{g: j.Ranks, stop: func() bool { return ctx.Err() != nil }, all: (most + pulseEvery - 1) / pulseEvery}
}

// before is called before each batch. It is errStop where a rank is to stop.
func (p *pulse) before() error {
	p.batches++
	if p.g.Single() || p.batches%pulseEvery != 1 {
		return nil
	}
	return p.beat()
}

// rest makes up for the batches that others have more.
func (p *pulse) rest() error {
	for !p.g.Single() && p.beats < p.all {
		if err := p.beat(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pulse) beat() error {
	p.beats++
	stop, err := p.g.Any(p.stop())
	if err == nil && stop {
		err = errStop
	}
	return err
}

// sumTally adds up the results of ranks.
func sumTally(g *ranks.Group, t network.Tally) (network.Tally, error) {
	if g.Single() {
		return t, nil
	}
	x := []float64{t.Loss, t.Top1, t.Top5, float64(t.Images)}
	err := g.Sum64(x).Wait()
	return network.Tally{Loss: x[0], Top1: x[1], Top5: x[2], Images: int(x[3])}, err
}

// sumRight is the outcomes of all ranks, each of which has those of its own images.
func sumRight(g *ranks.Group, right []bool) (network.Outcomes, error) {
	if !g.Single() {
		x := make([]float64, len(right))
		for i, r := range right {
			if r {
				x[i] = 1
			}
		}
		if err := g.Sum64(x).Wait(); err != nil {
			return "", err
		}
		for i, v := range x {
			right[i] = v > 0
		}
	}
	return network.NewOutcomes(right), nil
}
