package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/rna"
	"onlinerna/train"
	"onlinerna/train/extrapolate"
	"onlinerna/train/hook"
	"onlinerna/train/merge"
	"onlinerna/train/network"
)

// Curves computes all curves, epoch by epoch. A curve begins once there are enough snapshots for it.
func (r *Replay) Curves(ctx context.Context, o Options) (_ *Result, err error) {
	if err := r.check(&o); err != nil {
		return nil, err
	}
	dir, remove, err := files.MkdirTemp("", "rna-replay-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if o.Keep != "" {
		if err := os.MkdirAll(o.Keep, 0o755); err != nil {
			return nil, err
		}
	}
	res := &Result{Run: r.Dir, Data: r.Config.Data, Epochs: r.epochs, Curves: r.curves(o)}
	if r.Run.Net.Stats != nil {
		res.Stats = o.Stats
	}
	for i, epoch := range r.epochs {
		if o.Progress != nil {
			o.Progress(epoch, i, len(r.epochs))
		}
		if err := r.epoch(ctx, o, res.Curves, dir, i); err != nil {
			return nil, fmt.Errorf("epoch %d: %w", epoch, err)
		}
	}
	return res, nil
}

// step computes the points of one epoch.
type step struct {
	*Replay
	opt   Options
	state *hook.State
	dir   string // for files of points
	at    int    // index of the snapshot
}

func (r *Replay) epoch(ctx context.Context, o Options, curves []*Curve, dir string, i int) error {
	s := &step{r, o, r.Run.At(r.epochs[i]), dir, i}
	var rows []*Curve // curves of RNA
	for _, c := range curves {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch c.Kind {
		case network.SGD:
			err = s.score(ctx, c, Point{}, r.files[i], false)
		case network.SGDStats:
			err = s.score(ctx, c, Point{}, r.files[i], true)
		case network.RNA:
			if i >= c.Window {
				rows = append(rows, c)
			}
		case network.Average:
			err = s.average(ctx, c)
		case network.EMA:
			if c.profile != nil {
				err = s.rebuild(ctx, c)
			} else {
				err = s.moving(ctx, c)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return s.extrapolate(ctx, rows)
}

// score adds a point for the weights in a file.
func (s *step) score(ctx context.Context, c *Curve, p Point, file string, restate bool) error {
	if err := s.load(ctx, file, restate); err != nil {
		return err
	}
	p.Epoch = s.state.Epoch
	var err error
	if p.Val, err = s.state.Evaluate(ctx); err != nil {
		return err
	}
	if p.Held, err = s.state.EvaluateHeld(ctx); err != nil {
		return err
	}
	if p.Val != nil && !p.Val.Finite() || p.Held != nil && !p.Held.Finite() {
		p.Val, p.Held, p.Status = nil, nil, "the weights give no finite loss"
	}
	c.Points = append(c.Points, p)
	if s.opt.Keep == "" || s.at != len(s.files)-1 {
		return nil
	}
	c.File = filepath.Join(s.opt.Keep, c.fileName())
	n := s.Run.Net
	return n.SaveWeights(c.File, n.Params, n.Stats, s.Run.Meta(c.Kind))
}

// fileName returns the file name of the curve's weights.
func (c *Curve) fileName() string {
	name := string(c.Kind)
	switch c.Kind {
	case network.RNA:
		name = fmt.Sprintf("rna-window%d-lambda%s-beta%g", c.Window, c.Lambda, *c.Beta)
	case network.Average:
		name = fmt.Sprintf("average%d", c.Last)
	case network.EMA:
		switch {
		case c.Gamma > 0:
			name = fmt.Sprintf("power-ema%g", c.Gamma)
		case c.WSM != "":
			name = "wsm-" + strings.ReplaceAll(c.WSM, ":", "")
		default:
			name = fmt.Sprintf("ema%g", c.Decay)
		}
	}
	return name + ".safetensors"
}

func (s *step) load(ctx context.Context, file string, restate bool) error {
	if _, err := s.Run.Net.LoadWeights(file); err != nil {
		return err
	}
	if !restate {
		return nil
	}
	return s.state.Recalibrate(ctx)
}

// combine writes a combination of files and loads it, with the statistics that points get.
func (s *step) combine(ctx context.Context, series *extrapolate.Series, weights []float64) (file string, err error) {
	file = filepath.Join(s.dir, "point.safetensors")
	return file, series.Write(ctx, file, weights, s.write())
}

func (s *step) write() extrapolate.WriteOptions {
	if s.opt.Stats == Combine {
		return extrapolate.WriteOptions{Stats: extrapolate.CombineStats}
	}
	return extrapolate.WriteOptions{}
}

func (s *step) restates() bool { return s.opt.Stats == Reestimate }

// with calls f with a series of files.
func (s *step) with(paths []string, f func(*extrapolate.Series) error) error {
	var files []*extrapolate.Checkpoint
	defer func() {
		for _, c := range files {
			c.Close()
		}
	}()
	for _, path := range paths {
		c, err := extrapolate.Open(path, "")
		if err != nil {
			return err
		}
		files = append(files, c)
	}
	series, err := extrapolate.NewSeries(files, extrapolate.Options{Workers: s.Config.Threads})
	if err != nil {
		return err
	}
	return f(series)
}

// average adds the point of the uniform average of the newest snapshots, if there are enough.
func (s *step) average(ctx context.Context, c *Curve) error {
	if s.at+1 < c.Last {
		return nil
	}
	return s.with(s.files[s.at+1-c.Last:s.at+1], func(series *extrapolate.Series) error {
		file, err := s.combine(ctx, series, series.Average())
		if err != nil {
			return err
		}
		return s.score(ctx, c, Point{}, file, s.restates())
	})
}

// moving adds the snapshot to the moving average, which is stored in a file.
func (s *step) moving(ctx context.Context, c *Curve) error {
	file, next := filepath.Join(s.dir, c.fileName()), filepath.Join(s.dir, "next.safetensors")
	paths, weights := []string{file, s.files[s.at]}, []float64{c.Decay, 1 - c.Decay}
	if s.at == 0 {
		paths, weights = paths[1:], []float64{1}
	}
	err := s.with(paths, func(series *extrapolate.Series) error {
		return series.Write(ctx, next, weights, s.write())
	})
	if err != nil {
		return err
	}
	if err := os.Rename(next, file); err != nil {
		return err
	}
	return s.score(ctx, c, Point{}, file, s.restates())
}

// rebuild adds the point of a profile, from the power EMAs that the run has kept so far, if it has had the epochs of it.
func (s *step) rebuild(ctx context.Context, c *Curve) error {
	epoch := s.epochs[s.at]
	if c.profile.Epochs > float64(epoch) {
		return nil
	}
	paths, err := train.KeptEMAs(s.Dir, s.Config, epoch)
	if err != nil {
		return err
	}
	return s.with(paths, func(series *extrapolate.Series) error {
		weights, fit, err := merge.Rebuild(series.Files(), *c.profile, epoch)
		if err != nil {
			return err
		}
		file, err := s.combine(ctx, series, weights)
		if err != nil {
			return err
		}
		return s.score(ctx, c, Point{Fit: &fit}, file, s.restates())
	})
}

// extrapolate adds the points of RNA, all from one Gram matrix.
func (s *step) extrapolate(ctx context.Context, curves []*Curve) error {
	most := 0
	for _, c := range curves {
		most = max(most, c.Window)
	}
	if most == 0 {
		return nil
	}
	return s.with(s.files[s.at-most:s.at+1], func(series *extrapolate.Series) error {
		if err := series.Measure(ctx); err != nil {
			return err
		}
		for _, c := range curves {
			if err := s.rna(ctx, series, c); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		return nil
	})
}

// rna adds the point of RNA with a curve's parameters, from the newest residuals of a series.
func (s *step) rna(ctx context.Context, series *extrapolate.Series, c *Curve) error {
	weights := func(coef []float64) []float64 {
		all := make([]float64, len(series.Pairs()))
		copy(all[len(all)-len(coef):], coef)
		return series.Weights(all, *c.Beta)
	}
	var p Point
	w := series.Last()
	var res rna.Result
	if c.Rule.Auto {
		choice, err := s.search(ctx, series, c, weights)
		if err != nil {
			return err
		}
		res, p.Choice = choice.Result, choice.Kind.String()
		if choice.Kind != rna.Kept {
			w = weights(res.C)
		}
	} else {
		var err error
		if res, err = series.Solve(rna.Options{Lambda: rna.Set(c.Rule.Value), Beta: rna.Set(*c.Beta),
			Newest: c.Window}); err != nil {
			return err
		}
		if res.Status != rna.OK {
			c.Points = append(c.Points, Point{Epoch: s.state.Epoch, Status: res.Status.String()})
			return nil
		}
		w = weights(res.C)
	}
	p.C, p.NormC = slices.Clone(res.C), res.NormC
	if l := res.Lambda; res.C != nil && !math.IsInf(l, 0) {
		p.Lambda = &l
	}
	file, err := s.combine(ctx, series, w)
	if err != nil {
		return err
	}
	return s.score(ctx, c, p, file, s.restates())
}

// search chooses λ by the losses of the held-out images, as in training.
func (s *step) search(ctx context.Context, series *extrapolate.Series, c *Curve,
	weights func([]float64) []float64) (rna.Choice, error) {
	list, err := series.Candidates(rna.SearchOptions{Beta: rna.Set(*c.Beta), Newest: c.Window})
	if err != nil {
		return rna.Choice{}, err
	}
	return rna.Choose(list, func(x *rna.Candidate) ([]float64, error) {
		w := series.Last()
		if x.Kind != rna.Kept {
			w = weights(x.Result.C)
		}
		file, err := s.combine(ctx, series, w)
		if err == nil {
			err = s.load(ctx, file, s.restates())
		}
		if err != nil {
			return nil, err
		}
		return s.state.HeldLosses(ctx)
	})
}
