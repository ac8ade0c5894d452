package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"onlinerna/data"
	"onlinerna/internal/files"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
)

// Evaluate scores the weights of the network, whatever they are at the moment, on the validation images. It
// is nil if there are none.
func (r *Run) Evaluate(ctx context.Context) (*network.Score, error) {
	if r.in.val == nil {
		return nil, nil
	}
	return r.score(ctx, r.in.val)
}

// score scores the network's present weights on a loader's images, which the ranks share.
func (r *Run) score(ctx context.Context, l *data.Loader) (*network.Score, error) {
	g := r.Ranks
	g.At(ranks.At{Epoch: r.pos.Epoch, What: "evaluation"})
	p := r.newPulse(ctx, l)
	right := make([]bool, l.Set())
	t, err := r.Net.Tally(r.host(ctx), l, func(b *data.Batch, logits []float32) error {
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
	if err := r.checkBad(l.Images()-t.Images, l.Allowed(), l.Images()); err != nil {
		return nil, err
	}
	if t.Images == 0 {
		return nil, network.ErrNoImage
	}
	s := t.Score()
	s.Right, err = sumRight(g, right)
	return &s, err
}

// recalibrate replaces the running statistics by their mean over training batches. The batches are the same ones whenever it is called in
// an epoch.
func (r *Run) recalibrate(ctx context.Context) error {
	if err := r.Net.Recalibrate(r.host(ctx), r.in.stats, r.pos.Epoch); err != nil || r.Ranks.Single() || !r.Net.HasStatistics() {
		return err
	}
	return r.weighStats(float64(r.in.stats.Own(0)))
}

// bestFile are the best weights so far, in the folder of a run and in those of its checkpoints.
const bestFile = "best.safetensors"

// candidate keeps the network's present weights as best.safetensors if the score that they are judged by is the best so far.
func (r *Run) candidate(x hook.ScoreRecord) error {
	if !x.Score.Finite() || r.best != nil && hook.Compare(x.Score, r.best.Score, r.Resolved.BestBy) >= 0 {
		return nil
	}
	if err := r.keep("best", x); err != nil {
		return err
	}
	r.best = &hook.BestRecord{ScoreRecord: x, Epoch: r.pos.Epoch}
	return nil
}

// saveBest copies the best weights into a checkpoint: a run that goes on from it has them again, whatever came later.
func (r *Run) saveBest(dir string) error {
	if r.best == nil {
		return nil
	}
	return copyThere(filepath.Join(dir, bestFile), filepath.Join(r.Resolved.Out, bestFile))
}

// copyThere copies a file unless a user has taken it away, or an older program did not write it.
func copyThere(to, from string) error {
	if err := files.Copy(to, from); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// loadBest puts back the best weights of a checkpoint.
func (r *Run) loadBest(dir string) error {
	return r.first(func() error {
		path := filepath.Join(r.Resolved.Out, bestFile)
		if r.best == nil {
			if err := files.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
			return nil
		}
		return copyThere(path, filepath.Join(dir, bestFile))
	})
}

// keep writes the network's present weights to name.safetensors in the run's folder.
func (r *Run) keep(name string, of hook.ScoreRecord) error {
	if r.Resolved.Out == "" {
		return nil
	}
	return r.first(func() error {
		path := filepath.Join(r.Resolved.Out, name+".safetensors")
		meta := r.Meta(of.Kind)
		meta.Snapshots = of.Snapshots
		if filepath.Base(path) == bestFile {
			meta.BestBy = map[bool]string{true: "held-out ", false: "validation "}[r.in.held != nil] + r.Resolved.BestBy
		}
		if err := r.Net.SaveWeights(path, r.Net.Params, r.Net.Stats, meta); err != nil {
			return fmt.Errorf("writing weights: %w", err)
		}
		return nil
	})
}
