package extrapolate

import (
	"context"
	"errors"
	"math"
	"path/filepath"

	"onlinerna/internal/files"
	"onlinerna/rna"
)

// Treatments of BatchNorm statistics in an output.
const (
	LastStats  = "last" // those of the last file
	Combine    = "combine"
	Reestimate = "reestimate"
)

// Output describes the combined point of a series, and its file.
type Output struct {
	Path      string // .safetensors, or .pt or .pth for torch.load
	BatchNorm string // treatment of BatchNorm statistics
	Lambda    rna.Value
	Tau       rna.Value // in place of Lambda
	Beta      float64
	Average   bool // the uniform average of all files
	Auto      bool // let Judge choose
	// Rebuild, if set, returns the weights of files that are power EMAs, and the distance of the fit.
	Rebuild func(s *Series) (weights []float64, fit float64, err error)
	Sync    bool // wait until the output is on the disk

	// Judge opens the net for --auto and for re-estimated statistics, with weights like those in the file.
	Judge func(weights string) (Judge, error)
	// Start receives the next part of the work, and its bytes; 0 for a part that shows its own progress.
	Start func(part string, bytes int64)
}

// Judge runs weights in files as a net.
type Judge interface {
	// Load reads weights, and recalibrates their BatchNorm statistics if there are images for it.
	Load(ctx context.Context, path string) error
	// Save writes the current weights and statistics.
	Save(path string) error
	// Losses returns the losses of held-out images.
	Losses(ctx context.Context) ([]float64, error)
	Close() error
}

// Make computes and writes the output.
func (o *Output) Make(ctx context.Context, s *Series) (*Report, error) {
	if err := s.CheckOutput(o.Path); err != nil {
		return nil, err
	}
	rep := newReport(s, o)
	o.Start("reading", s.Bytes(len(s.Files()), KeepStats))
	if !o.Average && o.Rebuild == nil {
		if err := s.Measure(ctx); err != nil {
			return nil, err
		}
	}
	if o.Auto || o.BatchNorm == Reestimate {
		return rep, o.judged(ctx, s, rep)
	}
	weights, err := o.weights(s, rep)
	if err != nil {
		return nil, err
	}
	return rep, o.write(ctx, s, weights, WriteOptions{Stats: o.stats(), Metadata: rep.metadata(s), Sync: o.Sync})
}

// write writes the output in the format given by its name.
func (o *Output) write(ctx context.Context, s *Series, weights []float64, opt WriteOptions) error {
	o.Start("writing", s.Bytes(nonzero(weights), opt.Stats))
	return s.Write(ctx, o.Path, weights, opt)
}

// beside calls f with a temporary folder on the output's disk.
func (o *Output) beside(f func(dir string) error) error {
	dir, unlock, err := files.Beside(o.Path, "extrapolate")
	if err != nil {
		return err
	}
	defer unlock()
	if err := files.RemoveAll(dir); err != nil { // of a killed process
		return err
	}
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	return errors.Join(f(dir), files.RemoveAll(dir))
}

func (o *Output) stats() Stats {
	if o.BatchNorm == Combine {
		return CombineStats
	}
	return KeepStats
}

// weights solves for the weights of the files.
func (o *Output) weights(s *Series, rep *Report) ([]float64, error) {
	if o.Average {
		rep.Method = "average"
		rep.setWeights(s.Average())
		return rep.weights, nil
	}
	if o.Rebuild != nil {
		weights, fit, err := o.Rebuild(s)
		if err != nil {
			return nil, err
		}
		rep.Method, rep.Fit = "ema", &fit
		rep.setWeights(weights)
		return weights, nil
	}
	res, err := s.Solve(rna.Options{Beta: rna.Set(o.Beta), Lambda: o.Lambda, Tau: o.Tau})
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return nil, err
	}
	rep.Method = "rna"
	rep.setResult(s, res, o.Beta)
	rep.Warnings = Far(res.NormC, s.Distances(rep.weights), false, "a larger lambda or a tau brings it nearer")
	return rep.weights, nil
}

func nonzero(v []float64) int {
	n := 0
	for _, x := range v {
		if x != 0 {
			n++
		}
	}
	return n
}

// judged produces an output that requires running weights in a net.
func (o *Output) judged(ctx context.Context, s *Series, rep *Report) error {
	return o.beside(func(dir string) (err error) {
		file := filepath.Join(dir, "candidate.safetensors")
		o.Start("evaluating", 0)
		write := func(weights []float64) error { return s.Write(ctx, file, weights, WriteOptions{Stats: o.stats()}) }
		if err := write(s.Last()); err != nil {
			return err
		}
		e, err := o.Judge(file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.Close()) }()
		if o.Auto {
			err = o.search(ctx, s, e, rep, file, write)
		} else {
			_, err = o.weights(s, rep)
		}
		if err != nil {
			return err
		}
		opt := WriteOptions{Stats: o.stats(), Metadata: rep.metadata(s), Sync: o.Sync}
		if o.BatchNorm == Reestimate {
			if err := write(rep.weights); err != nil {
				return err
			}
			if err := e.Load(ctx, file); err != nil {
				return err
			}
			estimated := filepath.Join(dir, "statistics.safetensors")
			if err := e.Save(estimated); err != nil {
				return err
			}
			if opt.From, err = Open(estimated, ""); err != nil {
				return err
			}
			defer opt.From.Close()
		}
		return o.write(ctx, s, rep.weights, opt)
	})
}

// search evaluates the last file, the average and a grid of λ, and chooses as [rna.Choose] does.
func (o *Output) search(ctx context.Context, s *Series, e Judge, rep *Report, file string,
	write func([]float64) error) error {
	list, err := s.Candidates(rna.SearchOptions{Beta: rna.Set(o.Beta)})
	if err != nil {
		return err
	}
	weights := func(c *rna.Candidate) []float64 {
		switch c.Kind {
		case rna.Kept:
			return s.Last()
		case rna.Averaged:
			return s.Average()
		}
		return s.Weights(c.Result.C, o.Beta)
	}
	choice, err := rna.Choose(list, func(c *rna.Candidate) ([]float64, error) {
		if err := write(weights(c)); err != nil {
			return nil, err
		}
		if err := e.Load(ctx, file); err != nil {
			return nil, err
		}
		return e.Losses(ctx)
	})
	if err != nil {
		return err
	}
	if v := choice.Value; math.IsNaN(v) || math.IsInf(v, 0) {
		return errors.New("no candidate has a finite loss, the last file included")
	}
	kinds := map[rna.Kind]string{rna.Kept: "last", rna.Averaged: "average", rna.Extrapolated: "rna"}
	for _, c := range list {
		a := Candidate{Kind: kinds[c.Kind], Loss: Number(c.Value), Chosen: c.Kind == choice.Kind &&
			c.Result.Lambda == choice.Result.Lambda}
		if c.Result.Status != rna.OK {
			a.Status = c.Result.Status.String()
		} else if c.Kind != rna.Kept {
			d, e := Number(c.Difference), Number(c.Error)
			a.ToLast, a.Error = &d, &e
		}
		if c.Kind == rna.Extrapolated {
			l := Number(c.Result.Lambda)
			a.Lambda, a.NormC = &l, c.Result.NormC
		}
		rep.Auto = append(rep.Auto, a)
	}
	rep.Method, rep.NoDifference = kinds[choice.Kind], choice.NoDifference
	if choice.Kind == rna.Extrapolated {
		rep.setResult(s, choice.Result, o.Beta)
	} else {
		rep.setWeights(weights(&choice.Candidate))
	}
	return nil
}
