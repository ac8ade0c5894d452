package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// JudgeOptions configure a [Judge] in addition to the Options of its net.
type JudgeOptions struct {
	Name    string // of the weights in messages; empty: their path
	Eval    string // held-out images to score on; empty: Options.Images, or none
	Data    string // training images to recalibrate BatchNorm on; empty: Training, or none
	Augment string // of the training images
	// Training are a program's images, in place of Data. The caller closes them.
	Training  data.Dataset
	BNBatches int
	Limit     int // batches per evaluation; 0: all
}

// Judge runs weights from files, one after the other, in one net.
type Judge struct {
	net   *network.Network
	dev   device.Device
	sets  []io.Closer
	held  *data.Loader // to score on, or nil
	train *data.Loader // to recalibrate on, or nil
}

// NewJudge opens images, and a net for the weights in a file. It writes notes and warnings to log.
func (o *Options) NewJudge(weights string, j JudgeOptions, log io.Writer) (_ *Judge, err error) {
	e := &Judge{}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	o.Weights = cmp.Or(j.Name, weights)
	file, err := statedict.Open(weights, "")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	meta, err := network.MetaOf(file)
	if err != nil {
		return nil, err
	}
	if err := o.resolve(file, &meta); err != nil {
		return nil, err
	}
	opt := data.LoaderOptions{
		Batch: o.Batch, Workers: o.Workers, MaxBad: o.MaxBad, Limit: j.Limit,
		Log: func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) },
	}
	var of data.Dataset // determines the net's classes and channels
	if j.Eval != "" || o.Images != nil {
		o.Data = j.Eval
		if err := o.place(&meta); err != nil {
			return nil, err
		}
		if of, err = o.openSet(file, &meta); err != nil {
			return nil, err
		}
		if o.note != "" {
			fmt.Fprintln(log, o.note)
		}
		p, err := e.take(of, &meta, o.Images == nil)
		if err != nil {
			return nil, err
		}
		if e.held, err = data.NewLoader(of, p.Eval(meta.ImageSize), opt); err != nil {
			return nil, err
		}
	}
	if j.Data != "" || j.Training != nil {
		set := j.Training
		if set == nil {
			if set, err = e.open(j.Data, &meta); err != nil {
				return nil, err
			}
		}
		p, err := e.take(set, &meta, j.Training == nil)
		if err != nil {
			return nil, err
		}
		tr, err := p.Train(j.Augment, meta.ImageSize)
		if err != nil {
			return nil, err
		}
		opt.Shuffle, opt.Substitute, opt.Limit = true, true, j.BNBatches
		if e.train, err = data.NewLoader(set, tr, opt); err != nil {
			return nil, err
		}
		if of == nil {
			of = set
		}
	}
	if e.dev, err = o.Open(nil, o.Threads); err != nil {
		return nil, err
	}
	if e.net, err = o.network(e.dev, file, &meta, of); err == nil && e.train != nil {
		err = e.net.CheckInputs(e.train.Dataset())
	}
	return e, err
}

// open opens training images; the run of the weights may have held out some.
func (e *Judge) open(place string, meta *network.Meta) (data.Dataset, error) {
	options := data.Options{Classes: meta.Classes, Task: meta.Task}
	set, val, err := data.Open(place, options)
	if s := meta.Split; err != nil && s != nil && s.ValSplit > 0 {
		options.ValSplit = s.ValSplit
		if again, held, err2 := data.Open(place, options); err2 == nil {
			set, val, err = again, held, nil
		}
	}
	if c, ok := val.(io.Closer); ok && err == nil {
		e.sets = append(e.sets, c)
	}
	return set, err
}

// take registers a set to close, if it was opened here, and fills in unknown values of meta from its profile.
func (e *Judge) take(set data.Dataset, meta *network.Meta, opened bool) (data.Profile, error) {
	if c, ok := set.(io.Closer); ok && opened {
		e.sets = append(e.sets, c)
	}
	p, err := data.ProfileOf(set)
	if err == nil {
		Fill(meta, p)
	}
	return p, err
}

// Close closes net, device and images.
func (e *Judge) Close() error {
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

// Load reads weights, and recalibrates their BatchNorm statistics if there are training images.
func (e *Judge) Load(ctx context.Context, path string) error {
	if _, err := e.net.LoadWeights(path); err != nil || e.train == nil {
		return err
	}
	return e.net.Recalibrate(ctx, e.train, 0)
}

// Save writes the current weights and statistics.
func (e *Judge) Save(path string) error {
	return e.net.SaveWeights(path, e.net.Params, e.net.Stats, network.Meta{})
}

// Losses returns the losses of the weights that Load read, one per held-out image.
func (e *Judge) Losses(ctx context.Context) ([]float64, error) {
	losses, _, err := e.net.Losses(ctx, e.held, nil)
	return losses, err
}
