package train

import (
	"context"
	"errors"
	"fmt"

	"onlinerna/data"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// evaluate scores the network's current weights on the validation images. It returns nil if there are none.
func (j *judge) evaluate(ctx context.Context) (*network.Score, error) {
	if j.in.val == nil {
		return nil, nil
	}
	return j.score(ctx, j.in.val)
}

// score scores the network's current weights on a loader's images, which the ranks share.
func (j *judge) score(ctx context.Context, l *data.Loader) (*network.Score, error) {
	if !j.net.Meaning.Classifies() {
		return j.scoreOutputs(ctx, l)
	}
	m := j.meet(ctx, l)
	right := make([]bool, l.Set())
	t, err := j.net.Tally(j.host(ctx), l, func(b *data.Batch, logits []float32) error {
		network.MarkRight(right, b, logits)
		return nil
	}, m.before)
	if t, err = m.tally(t, err); err != nil {
		return nil, err
	}
	if err := j.checkBad(l.Images()-t.Images, l.Allowed(), l.Images()); err != nil {
		return nil, err
	}
	if t.Images == 0 {
		return nil, network.ErrNoImage
	}
	s := t.Score()
	s.Right, err = m.outcomes(right)
	return &s, err
}

// evaluateHeld scores the network's current weights on the held-out images. It returns nil if there are none.
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

// heldLosses returns the losses of the network's current weights on the held-out images of all ranks, in the order of
// the set.
func (j *judge) heldLosses(ctx context.Context) ([]float64, error) {
	if j.in.held == nil {
		return nil, nil
	}
	m := j.meet(ctx, j.in.held)
	own, images, err := j.net.Losses(j.host(ctx), j.in.held, m.before)
	sums := make([]float64, 2*j.in.heldSize) // losses, and flags that mark those present
	if err == nil {
		for i, image := range images {
			sums[2*image], sums[2*image+1] = own[i], 1
		}
	}
	if err = m.sum(sums, err); err != nil {
		return nil, fmt.Errorf("held-out images: %w", err)
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

// meeting synchronises ranks during an evaluation: every few batches they ask each other whether to stop, and at the
// end they sum their results.
type meeting struct {
	*Deps
	stop func() bool // reports whether this rank must stop
	// batches of this rank; questions so far, and of the whole evaluation, the same on all ranks
	batches, asked, total int
}

// questionEvery is the number of batches that a rank evaluates between two questions.
const questionEvery = 16

func (j *judge) meet(ctx context.Context, l *data.Loader) *meeting {
	j.Ranks.At(ranks.At{Epoch: j.pos.Epoch, What: "evaluation"})
	most := (l.Steps() + j.Ranks.Size() - 1) / j.Ranks.Size() // batches of a rank
	return &meeting{Deps: j.Deps, stop: func() bool { return ctx.Err() != nil },
		total: (most + questionEvery - 1) / questionEvery}
}

// before is called before each batch. It returns errStop if a rank must stop.
func (m *meeting) before() error {
	m.batches++
	if m.Ranks.Single() || m.batches%questionEvery != 1 {
		return nil
	}
	return m.ask()
}

func (m *meeting) ask() error {
	m.asked++
	stop, err := m.Ranks.Any(m.stop())
	if err == nil && stop {
		err = errStop
	}
	return err
}

// sum sums x over the ranks after this rank's last batch, or after its failure, which all ranks return. Ranks with fewer
// batches first ask the remaining questions.
func (m *meeting) sum(x []float64, failed error) error {
	if m.Ranks.Single() || errors.Is(failed, errStop) {
		return failed
	}
	for m.asked < m.total {
		if err := m.ask(); err != nil {
			return err
		}
	}
	if err := m.share(failed); err != nil {
		return err
	}
	return m.Ranks.Sum64(x).Wait()
}

// tally sums the tallies of the ranks.
func (m *meeting) tally(t network.Tally, failed error) (network.Tally, error) {
	x := []float64{t.Loss, t.Top1, t.Top5, float64(t.Images)}
	err := m.sum(x, failed)
	return network.Tally{Loss: x[0], Top1: x[1], Top5: x[2], Images: int(x[3])}, err
}

// outcomes collects the outcomes of all ranks; each rank has those of its own images.
func (m *meeting) outcomes(right []bool) (network.Outcomes, error) {
	x := make([]float64, len(right))
	for i, r := range right {
		if r {
			x[i] = 1
		}
	}
	if err := m.sum(x, nil); err != nil {
		return "", err
	}
	for i, v := range x {
		right[i] = v > 0
	}
	return network.NewOutcomes(right), nil
}
