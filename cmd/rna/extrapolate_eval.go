package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"

	"onlinerna/cuda"
	"onlinerna/data"
	"onlinerna/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/extrapolate"
	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// evaluatorFlags say how candidates are run as nets.
type evaluatorFlags struct {
	eval, data, augment string
	bnBatches, limit    int
	net                 evalFlags
	own                 cli.Group
}

func (f *evaluatorFlags) group() cli.Group {
	g := cli.NewGroup("Evaluation (--auto) and re-estimation (--bn reestimate)")
	g.StringVar(&f.eval, "eval", "", "`folder` of held-out images that --auto chooses by, as of rna eval")
	g.StringVar(&f.data, "data", "", "`folder` of the training images to re-estimate BatchNorm statistics on, as of rna train")
	g.StringVar(&f.net.model, "model", "", "model (default: what the last file says)")
	g.Values("model", modelNames()...)
	g.IntVar(&f.net.numClasses, "num-classes", 0, "outputs of the net (default: what the files say)")
	g.StringVar(&f.net.classesFile, "classes", "", "`file` with the names of the classes by index, one a line (default: what the last file says, or the data's)")
	g.IntVar(&f.net.imageSize, "image-size", 0, "height and width of the net's input (default: what the last file says, or the data's)")
	g.Floats(&f.net.mean, "mean", "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: as above)")
	g.Floats(&f.net.std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	g.StringVar(&f.augment, "augment", "auto", "augmentation of the training images, as of rna train")
	g.Values("augment", data.Augmentations()...)
	g.IntVar(&f.net.batch, "batch", 64, "images a forward pass")
	g.IntVar(&f.bnBatches, "bn-batches", 20, "batches to re-estimate on")
	g.IntVar(&f.limit, "limit-batches", 0, "batches an evaluation (default: all)")
	g.MaxBad(&f.net.maxBad, "max-bad", optionHelp("max-bad"))
	g.StringVar(&f.net.device, "device", "auto", deviceHelp)
	g.Values("device", deviceValues...)
	f.own = g
	return g
}

// of takes the images of a run, nil for none, where they are needed and not named.
func (f *evaluatorFlags) of(run *runFolder, auto, reestimate bool) {
	if run == nil {
		return
	}
	s := run.located(*run.split())
	if auto && f.eval == "" {
		f.eval = cmp.Or(s.ValData, s.Data)
	}
	if reestimate && f.data == "" {
		f.data = s.Data
	}
}

// names lists the options of the group but those that are checked by themselves.
func (f *evaluatorFlags) names() []string {
	return []string{"model", "num-classes", "classes", "image-size", "mean", "std", "augment", "batch", "bn-batches", "limit-batches", "max-bad", "device"}
}

// evaluator runs weights that are in files.
type evaluator struct {
	net   *network.Network
	dev   device.Device
	sets  []io.Closer
	held  *data.Loader // to score on, or nil
	train *data.Loader // to re-estimate on, or nil
}

// newEvaluator opens data and a net for the weights in a file.
func (f *evaluatorFlags) newEvaluator(weights string, threads int, log io.Writer) (_ *evaluator, err error) {
	e := &evaluator{}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	f.net.weights, f.net.workers = weights, threads
	file, err := statedict.Open(weights, "")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	meta, err := network.MetaOf(file)
	if err != nil {
		return nil, err
	}
	if err := f.net.resolve(&meta); err != nil {
		return nil, err
	}
	opt := data.LoaderOptions{
		Batch: f.net.batch, Workers: threads, MaxBad: f.net.maxBad, Limit: f.limit,
		Log: func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) },
	}
	var of data.Dataset // that says what the net is like
	if f.eval != "" {
		f.net.data = f.eval
		if of, err = f.net.openPart(&meta, meta.Classes); err != nil {
			return nil, err
		}
		if f.net.note != "" {
			fmt.Fprintln(log, f.net.note)
		}
		p, err := e.take(of, &meta)
		if err != nil {
			return nil, err
		}
		if e.held, err = data.NewLoader(of, p.Eval(meta.ImageSize), opt); err != nil {
			return nil, err
		}
	}
	if f.data != "" {
		options := data.Options{Classes: meta.Classes}
		set, val, err := data.Open(f.data, options)
		if s := meta.Split; err != nil && s != nil && s.ValSplit > 0 {
			options.ValSplit = s.ValSplit
			if again, held, err2 := data.Open(f.data, options); err2 == nil {
				set, val, err = again, held, nil
			}
		}
		if err != nil {
			return nil, err
		}
		if c, ok := val.(io.Closer); ok {
			e.sets = append(e.sets, c)
		}
		p, err := e.take(set, &meta)
		if err != nil {
			return nil, err
		}
		tr, err := p.Train(f.augment, meta.ImageSize)
		if err != nil {
			return nil, err
		}
		opt.Shuffle, opt.Substitute, opt.Limit = true, true, f.bnBatches
		if e.train, err = data.NewLoader(set, tr, opt); err != nil {
			return nil, err
		}
		if of == nil {
			of = set
		}
	}
	options := deviceOptions{threads: threads}
	f.net.device = chosenDevice(f.net.device, log)
	if options.resolved(f.net.device) != "" {
		options.precision = cuda.Float32.String() // candidates differ by little
	}
	if e.dev, err = openDevice(f.net.device, options); err != nil {
		return nil, err
	}
	e.net, err = f.net.network(e.dev, file, &meta, of)
	return e, err
}

// take keeps a set to close and lets its profile fill what is not known.
func (e *evaluator) take(set data.Dataset, meta *network.Meta) (data.Profile, error) {
	if c, ok := set.(io.Closer); ok {
		e.sets = append(e.sets, c)
	}
	p, err := data.ProfileOf(set)
	if err == nil {
		fill(meta, p)
	}
	return p, err
}

func (e *evaluator) Close() error {
	var errs []error
	if e.net != nil {
		errs = append(errs, e.net.Close())
	}
	if e.dev != nil {
		errs = append(errs, e.dev.Close())
	}
	for _, c := range e.sets {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// load reads weights, and estimates their statistics anew where there is data for it.
func (e *evaluator) load(ctx context.Context, path string) error {
	if _, err := e.net.LoadWeights(path); err != nil {
		return err
	}
	if e.train == nil {
		return nil
	}
	return e.net.Recalibrate(ctx, e.train, 0)
}

// autoCandidate is a point that --auto considered.
type autoCandidate struct {
	Kind   string  `json:"kind"` // last, average or rna
	Lambda *number `json:"lambda,omitempty"`
	NormC  float64 `json:"norm_c,omitempty"`
	Loss   number  `json:"loss"`
	// ToLast is the loss less that of the last file, and Error the standard error of this over the images.
	ToLast *number `json:"to_last,omitempty"`
	Error  *number `json:"error,omitempty"`
	Status string  `json:"status,omitempty"` // why it was not evaluated
	Chosen bool    `json:"chosen,omitempty"`
}

// evaluated writes the output where the weights have to be run as a net.
func (f *extrapolateFlags) evaluated(ctx context.Context, s *extrapolate.Series, rep *extrapolation, bar *terminal.Bar, log io.Writer) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(f.out), ".rna-extrapolate-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "candidate.safetensors")
	bar.Finish()
	write := func(weights []float64) error {
		return s.Write(ctx, file, weights, extrapolate.WriteOptions{Stats: f.stats()})
	}
	if err := write(s.Last()); err != nil {
		return err
	}
	e, err := f.eval.newEvaluator(file, f.workers, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if f.auto {
		err = f.search(ctx, s, e, rep, file, write)
	} else {
		_, err = f.weights(s, rep)
	}
	if err != nil {
		return err
	}
	opt := extrapolate.WriteOptions{Stats: f.stats(), Metadata: rep.metadata(s), Sync: f.sync}
	if f.bn == bnReestimate {
		if err := write(rep.weights); err != nil {
			return err
		}
		if err := e.load(ctx, file); err != nil {
			return err
		}
		estimated := filepath.Join(dir, "statistics.safetensors")
		if err := e.net.SaveWeights(estimated, e.net.Params, e.net.Stats, network.Meta{}); err != nil {
			return err
		}
		if opt.From, err = extrapolate.Open(estimated, ""); err != nil {
			return err
		}
		defer opt.From.Close()
	}
	bar.Start("writing", s.Bytes(nonzero(rep.weights), f.stats()), terminal.CountBytes)
	return s.Write(ctx, f.out, rep.weights, opt)
}

// search evaluates the last file, the average and a grid of λ, and chooses as [rna.Choose] does.
func (f *extrapolateFlags) search(ctx context.Context, s *extrapolate.Series, e *evaluator, rep *extrapolation, file string, write func([]float64) error) error {
	list, err := s.Candidates(rna.SearchOptions{Beta: rna.Set(f.beta)})
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
		return s.Weights(c.Result.C, f.beta)
	}
	choice, err := rna.Choose(list, func(c *rna.Candidate) ([]float64, error) {
		if err := write(weights(c)); err != nil {
			return nil, err
		}
		if err := e.load(ctx, file); err != nil {
			return nil, err
		}
		losses, _, err := e.net.Losses(ctx, e.held, nil)
		return losses, err
	})
	if err != nil {
		return err
	}
	if v := choice.Value; math.IsNaN(v) || math.IsInf(v, 0) {
		return errors.New("no candidate has a finite loss, the last file included")
	}
	kinds := map[rna.Kind]string{rna.Kept: "last", rna.Averaged: "average", rna.Extrapolated: "rna"}
	for _, c := range list {
		a := autoCandidate{Kind: kinds[c.Kind], Loss: number(c.Value), Chosen: c.Kind == choice.Kind && c.Result.Lambda == choice.Result.Lambda}
		if c.Result.Status != rna.OK {
			a.Status = c.Result.Status.String()
		} else if c.Kind != rna.Kept {
			d, e := number(c.Difference), number(c.Error)
			a.ToLast, a.Error = &d, &e
		}
		if c.Kind == rna.Extrapolated {
			l := number(c.Result.Lambda)
			a.Lambda, a.NormC = &l, c.Result.NormC
		}
		rep.Auto = append(rep.Auto, a)
	}
	rep.Method, rep.NoDifference = kinds[choice.Kind], choice.NoDifference
	if choice.Kind == rna.Extrapolated {
		rep.setResult(s, choice.Result, f.beta)
	} else {
		rep.setWeights(weights(&choice.Candidate))
	}
	return nil
}

func (r *extrapolation) printCandidates(w io.Writer) error {
	if r.Auto == nil {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ncandidate\tlambda\t‖c‖\tloss\tto the last\t\t")
	for _, c := range r.Auto {
		lambda, norm, difference, note := "", "", "", c.Status
		if c.Lambda != nil {
			lambda, norm = fmt.Sprintf("%.0e", float64(*c.Lambda)), fmt.Sprintf("%.3g", c.NormC)
		}
		if c.ToLast != nil {
			difference = fmt.Sprintf("%+.4f ± %.4f", float64(*c.ToLast), float64(*c.Error))
		}
		if c.Chosen {
			note = "chosen"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4f\t%s\t%s\t\n", c.Kind, lambda, norm, float64(c.Loss), difference, note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.NoDifference {
		_, err := fmt.Fprintln(w, "no difference: other candidates have a lower loss than the chosen one, but not by a t test at 5 %")
		return err
	}
	return nil
}
