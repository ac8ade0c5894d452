package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"onlinerna/data"
	"onlinerna/nn/device"
)

// Evaluate scores the network's weights on the batches of a loader. each, if not nil, is called for every batch
// with its logits, row by row.
func Evaluate(ctx context.Context, n *Network, l *data.Loader, each func(b *data.Batch, logits []float32) error) (Score, error) {
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
			return Score{}, err
		}
		if each == nil {
			next, _, err := n.evaluate(b)
			if err == nil {
				err = settle()
			}
			if err != nil {
				return Score{}, err
			}
			last = next
			continue
		}
		logits = slices.Grow(logits[:0], b.N*n.model.Config.Classes)[:b.N*n.model.Config.Classes]
		t, err := n.Evaluate(b, logits)
		if err != nil {
			return Score{}, err
		}
		sum.Add(t)
		if err := each(b, logits); err != nil {
			return Score{}, err
		}
	}
	if err := settle(); err != nil {
		return Score{}, err
	}
	if err := ctx.Err(); err != nil {
		return Score{}, err
	}
	if sum.Images == 0 {
		return Score{}, errors.New("no image could be evaluated")
	}
	return sum.Score(), nil
}

// Evaluate scores the weights of the network, whatever they are at the moment, on the validation images. It
// is nil if there are none.
func (r *Run) Evaluate() (*Score, error) {
	if r.val == nil {
		return nil, nil
	}
	s, err := Evaluate(r.ctx, r.Net, r.val, nil)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// reestimate replaces the running statistics by their mean over training batches, in proportion to the
// batches' sizes. The batches are the same ones whenever it is called in an epoch.
func (r *Run) reestimate() error {
	if r.Net.Stats == nil {
		return nil
	}
	images := 0
	for b, err := range r.stats.Epoch(r.ctx, r.pos.Epoch, 0) {
		if err != nil {
			return err
		}
		images += b.N
		if err := r.Net.UpdateStats(b, float64(b.N)/float64(images)); err != nil {
			return err
		}
	}
	return r.ctx.Err()
}

// aside runs fn, which may change the network's weights and statistics, and puts them back.
func (r *Run) aside(fn func() error) (err error) {
	n := r.Net
	if r.spare.params == nil {
		if r.spare.params, err = n.NewParams(); err != nil {
			return err
		}
		if n.Stats != nil {
			if r.spare.stats, err = n.Device.NewVector(n.Stats.Len()); err != nil {
				return err
			}
		}
	}
	if err := copyWeights(r.spare, weights{n.Params, n.Stats}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copyWeights(weights{n.Params, n.Stats}, r.spare)) }()
	return fn()
}

func copyWeights(dst, src weights) error {
	if err := dst.params.Copy(src.params); err != nil || src.stats == nil {
		return err
	}
	return dst.stats.Copy(src.stats)
}

// copyOf allocates vectors and copies the network's weights into them.
func (w *weights) copyOf(n *Network) (err error) {
	if w.params, err = n.NewParams(); err != nil {
		return err
	}
	if n.Stats != nil {
		if w.stats, err = n.Device.NewVector(n.Stats.Len()); err != nil {
			return err
		}
	}
	return copyWeights(*w, weights{n.Params, n.Stats})
}

func (w *weights) free() {
	for _, v := range []device.Vector{w.params, w.stats} {
		if v != nil {
			v.Free()
		}
	}
	*w = weights{}
}

// finite says whether the network's present weights and statistics are numbers.
func (r *Run) finite() (bool, error) {
	ok, err := r.Net.Params.Finite()
	if err != nil || !ok || r.Net.Stats == nil {
		return ok, err
	}
	return r.Net.Stats.Finite()
}

// candidate keeps the network's present weights as best.safetensors if the loss that they are judged by is the lowest
// so far.
func (r *Run) candidate(kind string, score Score) error {
	if !score.finite() || r.best != nil && score.Loss >= r.best.Score.Loss {
		return nil
	}
	r.best = &bestRecord{Kind: kind, Epoch: r.pos.Epoch, Score: score}
	return r.keep("best", kind)
}

// keep writes the network's present weights to name.safetensors in the run's folder.
func (r *Run) keep(name, kind string) error {
	if r.Config.Out == "" {
		return nil
	}
	path := filepath.Join(r.Config.Out, name+".safetensors")
	if err := r.Net.SaveWeights(path, r.Net.Params, r.Net.Stats, r.Meta(kind)); err != nil {
		return fmt.Errorf("writing weights: %w", err)
	}
	return nil
}
