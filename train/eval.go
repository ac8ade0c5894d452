package train

import (
	"fmt"
	"path/filepath"

	"onlinerna/data"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// Evaluate scores the weights of the network, whatever they are at the moment, on the validation images. It
// is nil if there are none.
func (r *Run) Evaluate() (*network.Score, error) {
	if r.val == nil {
		return nil, nil
	}
	return r.score(r.val)
}

// score scores the network's present weights on a loader's images, which the ranks share.
func (r *Run) score(l *data.Loader) (*network.Score, error) {
	g := r.Config.Ranks
	g.At(ranks.At{Epoch: r.pos.Epoch, What: "evaluation"})
	p := r.newPulse(l)
	t, err := r.Net.Tally(r.ctx, l, nil, p.before)
	if err == nil {
		err = p.rest()
	}
	if err != nil {
		return nil, err
	}
	if t, err = sumTally(g, t); err != nil {
		return nil, err
	}
	if err := r.checkBad(l.Images()-t.Images, l.Allowed(), l.Images()); err != nil {
		return nil, err
	}
	if t.Images == 0 {
		return nil, network.ErrNoImage
	}
	s := t.Score()
	return &s, nil
}

// reestimate replaces the running statistics by their mean over training batches. The batches are the same ones whenever it is called in
// an epoch.
func (r *Run) reestimate() error {
	if err := r.Net.Restate(r.ctx, r.stats, r.pos.Epoch); err != nil || r.Config.Ranks.Single() || !r.Net.Restated() {
		return err
	}
	return r.weighStats(float64(r.stats.Own(0)))
}

// candidate keeps the network's present weights as best.safetensors if the loss that they are judged by is the lowest
// so far.
func (r *Run) candidate(x ScoreRecord) error {
	if !x.Score.Finite() || r.best != nil && x.Score.Loss >= r.best.Score.Loss {
		return nil
	}
	r.best = &BestRecord{ScoreRecord: x, Epoch: r.pos.Epoch}
	return r.keep("best", x.Kind)
}

// keep writes the network's present weights to name.safetensors in the run's folder.
func (r *Run) keep(name string, kind network.Kind) error {
	if r.Config.Out == "" {
		return nil
	}
	return r.first(func() error {
		path := filepath.Join(r.Config.Out, name+".safetensors")
		if err := r.Net.SaveWeights(path, r.Net.Params, r.Net.Stats, r.Meta(kind)); err != nil {
			return fmt.Errorf("writing weights: %w", err)
		}
		return nil
	})
}
