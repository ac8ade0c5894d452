package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// judge scores weights and keeps the best.
type judge struct {
	*Deps
	c   *Resolved
	net *network.Network
	in  *input
	pos *position

	best   *hook.BestRecord // record of the weights in best.safetensors
	chosen thresholds
}

// enter scores the network's current weights on the held-out images, writes the score into the record and keeps the
// weights as best.safetensors if they are the best so far. Without held-out images it takes val, the score on the
// validation images, and does nothing if that is nil.
func (j *judge) enter(ctx context.Context, rec *hook.EpochRecord, of hook.ScoreRecord, val *network.Score) error {
	switch {
	case j.in.held != nil:
		s, err := j.evaluateHeld(ctx)
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
	if err := j.candidate(of); err != nil {
		return err
	}
	rec.Best = j.best
	return nil
}

// bestFile stores the best weights so far, in the run's folder and in its checkpoints.
const bestFile = "best.safetensors"

// candidate keeps the network's current weights as best.safetensors if their score is the best so far.
func (j *judge) candidate(x hook.ScoreRecord) error {
	if !x.Score.Finite() || j.best != nil && hook.Compare(x.Score, j.best.Score, j.c.BestBy) >= 0 {
		return nil
	}
	if err := j.keep("best", x); err != nil {
		return err
	}
	j.best = &hook.BestRecord{ScoreRecord: x, Epoch: j.pos.Epoch}
	return nil
}

// bestPart stores a share of the best weights in a checkpoint, a range of the file's bytes.
const bestPart = "best.part"

// saveBest copies a share of the best weights into a checkpoint: a run resumed from it restores them, whatever came
// later. All ranks call it.
func (j *judge) saveBest(dir string, share network.Share) error {
	if j.best == nil {
		return nil
	}
	from := filepath.Join(j.c.Out, bestFile)
	split := share.Of > 1
	if split {
		same, err := j.sameFile(from)
		if err != nil {
			return err
		}
		split = same
	}
	var err error
	if split {
		err = files.CopyPart(filepath.Join(dir, share.File(bestPart)), from, share.Index, share.Of)
	} else {
		err = j.first(func() error { return copyIfThere(filepath.Join(dir, bestFile), from) })
	}
	return j.Ranks.Together(err)
}

// sameFile reports whether all ranks see the same file: caches of network file systems may be late.
func (j *judge) sameFile(path string) (bool, error) {
	var is struct {
		Size int64
		Time time.Time
	}
	st, err := os.Stat(path)
	if err == nil {
		is.Size, is.Time = st.Size(), st.ModTime()
	}
	first := is
	if err := j.Ranks.Share(&first); err != nil {
		return false, err
	}
	differ, e := j.Ranks.Any(err != nil || is.Size != first.Size || !is.Time.Equal(first.Time))
	return !differ, e
}

// copyIfThere copies a file unless it is missing: a user removed it, or an older program did not write it.
func copyIfThere(to, from string) error {
	if err := files.Copy(to, from); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// loadBest restores the best weights of a checkpoint.
func (j *judge) loadBest(dir string) error {
	return j.first(func() error {
		path := filepath.Join(j.c.Out, bestFile)
		if j.best == nil {
			if err := files.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
			return nil
		}
		parts, err := network.Shares(filepath.Join(dir, bestPart))
		if err != nil {
			return err
		} else if len(parts) > 0 {
			return files.Copy(path, parts...)
		}
		return copyIfThere(path, filepath.Join(dir, bestFile))
	})
}

// keep writes the network's current weights to name.safetensors in the run's folder.
func (j *judge) keep(name string, of hook.ScoreRecord) error {
	if j.c.Out == "" {
		return nil
	}
	meta := j.meta(of.Kind)
	var err error
	if meta.Thresholds, err = j.thresholds(); err != nil {
		return err
	}
	return j.first(func() error {
		path := filepath.Join(j.c.Out, name+".safetensors")
		if meta.Snapshots = of.Snapshots; of.Gamma > 0 {
			meta.Gamma, meta.Step = of.Gamma, j.pos.Steps
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
		}
		if filepath.Base(path) == bestFile {
			meta.BestBy = map[bool]string{true: "held-out ", false: "validation "}[j.in.held != nil] + j.c.BestBy
		}
		if err := j.net.SaveWeights(path, j.net.Params, j.net.Stats, meta); err != nil {
			return fmt.Errorf("writing weights: %w", err)
		}
		return nil
	})
}

// meta describes the network's current weights.
func (j *judge) meta(kind network.Kind) network.Meta {
	c, epoch := j.c, j.pos.Epoch
	if j.pos.Batch == 0 { // the epoch has not begun
		epoch--
	}
	return network.Meta{Model: c.Model, Classes: c.Classes, ImageSize: c.ImageSize, BlurPool: c.BlurPool,
		ValResize:     c.ValResize,
		Interpolation: c.Interpolation, Mean: c.Mean, Std: c.Std, Epoch: epoch, Kind: kind, Split: j.in.split,
		Meaning: j.net.Meaning}
}
