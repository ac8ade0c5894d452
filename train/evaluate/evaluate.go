// Package evaluate evaluates weights on images: the scores of one file, with its predictions, confusion matrix and
// worst images, and the choice among candidates.
package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"onlinerna/data"
	"onlinerna/data/gallery"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/statedict"
)

// Options say which weights are evaluated on which images.
type Options struct {
	Weights       string // a file, or the folder of a run; after OpenWeights the file
	Key           string // the state dict in the file
	Model         string // empty: as the file says
	Classes       string // a file with one name per line; empty: from the weights file, or the data
	NumClasses    int    // outputs of the net; 0: as the file says
	ImageSize     int    // height and width of the net's input; 0: from the file, or the data
	ValResize     int    // shorter side before the crop; 0: from the file, or in proportion
	Interpolation string
	Mean, Std     []float64 // of each channel, for pixels from 0 to 1

	Data string // empty: the images of the weights' run
	// Images are a program's, in place of Data: all are evaluated. Their classes are those of the weights. The
	// caller closes them.
	Images       data.Dataset
	ValSplit     float64
	AllImages    bool // include the images that the weights were trained on
	MaxBad       data.MaxBad
	FastDecode   bool
	DecodeMemory int64 // bytes
	TestFlip     bool

	Batch, Workers, Threads int
	Limit                   int    // batches to evaluate; 0: all
	Precision               string // the device's precision, which ranks compare
	// Open opens a rank's device with the given number of threads.
	Open func(g *ranks.Group, threads int) (device.Device, error)

	// Ranking also computes the measures of how classes rank images: ROC-AUC and average precision. It keeps a number for
	// each image and class.
	Ranking     bool
	Predictions string // a CSV file; empty: none
	Confusion   string // a CSV file or a figure; empty: none
	Sheet       gallery.Options

	extremes int    // images with the highest and with the lowest losses to list
	note     string // about the choice of the images
	report   *Report
}

// Run evaluates on all ranks, and writes the files of the options on the first, whose report it returns. It writes a
// few lines about weights and images to told, and warnings to log.
func (o *Options) Run(ctx context.Context, g *ranks.Group, told, log io.Writer) (_ *Report, err error) {
	e := &evaluation{}
	defer func() { err = e.close(err) }()
	if err := g.Together(o.open(e, g, told, log)); err != nil {
		return nil, err
	}
	if err := e.compare(g, o); err != nil {
		return nil, err
	}
	o.report = newReport(e.set.Classes(), e.net.Model().Config.Classes)
	o.report.ranking = o.Ranking
	if !e.net.Meaning.Classifies() {
		o.report.outputs, o.report.ranking = e.net.NewCollector(e.set), false
		o.report.names = o.report.names[:len(e.set.Classes())]
	}
	score, err := o.score(ctx, g, e)
	if err != nil || !g.First() {
		return nil, err
	}
	if !score.Finite() {
		left := ""
		if e.net.Meaning.Classifies() {
			left = ": the measures of each class leave these images out"
		}
		fmt.Fprintln(log, terminal.Wrap(log, "warning: the loss is not finite, as the net's outputs for some images are NaN "+
			"or infinite"+left, "  "))
	}
	if o.report.outputs != nil {
		o.report.finishTargets(e.meta.Model, score, &e.net.Meaning)
	} else {
		o.report.finish(e.meta.Model, score)
	}
	o.report.name(e.set, o.Data)
	return o.report, o.writePictures(ctx, e, told)
}

// evaluation holds the open weights, images and device.
type evaluation struct {
	meta   network.Meta
	set    data.Dataset
	loader *data.Loader
	net    *network.Network
	closers
}

// closers are called in reverse order.
type closers []func() error

func (c closers) close(err error) error {
	for _, f := range slices.Backward(c) {
		err = device.Closed(err, f())
	}
	return err
}

// open opens weights, images and device.
func (o *Options) open(e *evaluation, g *ranks.Group, told, log io.Writer) error {
	file, meta, err := o.OpenWeights(told)
	if err != nil {
		return err
	}
	e.meta, e.closers = meta, append(e.closers, file.Close)
	if err := o.place(&e.meta); err != nil {
		return err
	}
	if e.set, err = o.openSet(file, &e.meta); err != nil {
		return err
	}
	if o.note != "" {
		fmt.Fprintln(told, terminal.Wrap(told, o.note, "  "))
	}
	e.closers = append(e.closers, func() error { return o.closeData(e.set) })
	if !e.meta.Classifies() && o.Confusion != "" {
		return fmt.Errorf("a confusion matrix is for images of one class each, and %s are for the task %s", o.Weights,
			e.meta.Task)
	}
	profile, err := data.ProfileOf(e.set)
	if err != nil {
		return err
	}
	Fill(&e.meta, profile)
	transform, err := profile.Evaluation(data.EvalOptions{Size: e.meta.ImageSize, Resize: e.meta.ValResize,
		Interpolation: e.meta.Interpolation})
	if err != nil {
		return err
	}
	of := fmt.Sprintf("%d classes", len(e.set.Classes()))
	if data.TaskOf(e.set) == data.Regression {
		of = text.Count(len(e.set.Classes()), "number") + " each"
	}
	fmt.Fprintln(told, terminal.Wrap(told, fmt.Sprintf("%s: %d images of %s; %v, mean %.4g, std %.4g", o.Data, e.set.Len(),
		of, transform, e.meta.Mean, e.meta.Std), "  "))
	threads, workers := o.Threads, o.Workers
	if !g.Single() {
		fmt.Fprintln(told, g)
		threads, workers = cmp.Or(threads, g.Threads()), cmp.Or(workers, g.Workers())
	}
	e.loader, err = data.NewLoader(e.set, transform, data.LoaderOptions{
		Batch: o.Batch, Workers: workers, Limit: o.Limit, MaxBad: o.MaxBad, FastDecode: o.FastDecode, Rank: g.Rank(), Ranks: g.Size(),
		Budget: data.NewBudget(o.DecodeMemory, g.Locals()),
		Log:    func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) },
	})
	if err != nil {
		return err
	}
	dev, err := o.Open(g, threads)
	if err != nil {
		return err
	}
	e.closers = append(e.closers, dev.Close)
	if e.net, err = o.network(dev, file, &e.meta, e.set); err != nil {
		return err
	}
	e.closers = append(e.closers, e.net.Close)
	e.net.TestFlip = o.TestFlip
	return o.load(e.net, file, told)
}

// load reads the weights of a file, which must be finite, and tells doubts about them.
func (o *Options) load(net *network.Network, file *statedict.File, told io.Writer) error {
	l, err := net.Load(o.Weights, network.LoadOptions{Key: o.Key})
	if err == nil {
		err = net.CheckFinite(o.Weights, o.Key)
	}
	if l.Doubt != "" && err == nil {
		fmt.Fprintln(told, terminal.Wrap(told, o.Weights+" is "+l.Doubt, "  "))
	}
	if crop := l.Uncropped(); crop != "" && err == nil {
		fmt.Fprintln(told, terminal.Wrap(told, "warning: "+o.Weights+": "+crop, "  "))
	}
	return err
}

// network builds a net for the weights described by meta and for images like those of set.
func (o *Options) network(dev device.Device, file *statedict.File, meta *network.Meta,
	set data.Dataset) (*network.Network, error) {
	classes, err := o.outputs(file, meta.Model, len(set.Classes()))
	if err != nil {
		return nil, err
	}
	net, err := network.Blank(dev, meta.Model, meta.Config(classes, set.Channels()))
	if err != nil {
		return nil, err
	}
	net.Meaning = meta.Meaning
	if err := net.CheckInputs(set); err != nil {
		return nil, errors.Join(err, net.Close())
	}
	return net, nil
}

// openSet opens the images. Weights with 1,000 unnamed outputs take the classes of ImageNet, if these include the
// data's classes; otherwise labels are outputs only if their numbers agree.
func (o *Options) openSet(file *statedict.File, meta *network.Meta) (data.Dataset, error) {
	set, err := o.openPart(meta, meta.Classes)
	if err != nil || meta.Classes != nil || o.NumClasses > 0 {
		return set, err
	}
	m, err := nn.Build(meta.Model, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return nil, errors.Join(err, o.closeData(set))
	}
	outputs, classes := network.Outputs(file, m), len(set.Classes())
	known := data.AsImageNet(set.Classes())
	switch {
	case outputs == len(known) && known != nil && outputs != classes && o.Images == nil:
		if err := closeData(set); err != nil {
			return nil, err
		}
		meta.Classes = known
		return o.openPart(meta, known)
	case outputs != 0 && outputs != classes:
		return nil, errors.Join(fmt.Errorf("%s has %d outputs without names, and the data %d classes: name those of the "+
			"weights by --classes, a file with a name a line",
			o.Weights, outputs, classes), o.closeData(set))
	}
	return set, nil
}

// closeData closes a set that the options opened.
func (o *Options) closeData(set data.Dataset) error {
	if o.Images != nil {
		return nil
	}
	return closeData(set)
}

// closeData closes a set that keeps files open.
func closeData(set data.Dataset) error {
	if c, ok := set.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
