package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/data"
	"onlinerna/data/format"
	"onlinerna/data/imaging"
	"onlinerna/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/train/network"
	"onlinerna/train/option"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
	"onlinerna/train/statedict"
)

type evalFlags struct {
	weights, key, model, data, classesFile, predictions, device string
	decoding                                                    int64
	batch, workers, threads, numClasses, imageSize              int
	mean, std                                                   []float64
	maxBad                                                      data.MaxBad
	valSplit                                                    float64
	valResize                                                   int
	interpolation                                               string
	testFlip                                                    bool
	winograd, debugSync, fastDecode                             bool
	precision                                                   string
	ranks                                                       launch.Options

	allImages bool
	note      string // which images are evaluated, where that is worth a line

	json      cli.JSON
	perClass  bool
	confusion string
	report    *evalReport

	sheet sheetFlags // of the worst images
}

func newEval() *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use:   "eval WEIGHTS [options]",
		Short: "Evaluate weights on labelled images",
		Long: `Evaluate weights on labelled images: loss, top-1, top-5. WEIGHTS is a file, safetensors or what torch.save wrote, or the
folder of a run: its best weights.

Weights of rna say on which images they were trained. Of these images only those that the run left out, by --val-split or
--holdout, are evaluated, unless --all-images is given. Without --data the images are those of the run.

Weights that rna wrote carry the model, the classes and the normalisation with them. For others, as
torchvision's, name the model; the classes are then those of the data, sorted, or those of --classes.

Ranks, which mpirun, srun, torchrun or --device cuda:all starts, have a share of the images each: every image
is one rank's, and what is printed and written is as of one process.`,
		Example: `  rna eval runs/20260102-150405-lenet
  rna eval runs/fine/best.safetensors --data photos
  rna eval --weights resnet50.safetensors --model resnet50 --data imagenet/val \
    --classes wnids.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.named(args); err != nil {
				return cli.Usage(cmd, err)
			}
			if err := f.checkPictures(); err != nil {
				return cli.Usage(cmd, err)
			}
			ctx := cmd.Context()
			return f.ranks.Run(ctx, f.device, func(g *ranks.Group) error { return f.run(ctx, g, cmd.OutOrStdout(), cmd.ErrOrStderr()) })
		},
	}
	w := cli.NewGroup("Weights")
	w.StringVar(&f.weights, "weights", "", "the same as WEIGHTS: `file`, or folder of a run")
	w.StringVar(&f.key, "key", "", keyHelp)
	w.StringVar(&f.model, "model", "", "model (default: what the file says)")
	w.Values("model", modelNames()...)
	w.IntVar(&f.numClasses, "num-classes", 0, "outputs of the net (default: what the file says)")
	d := cli.NewGroup("Data")
	d.StringVar(&f.data, "data", "", "`folder` of class folders, or one with val/ or test/, shards or MNIST's files in it; glyphs: generated (default: the data of the weights' run)")
	d.Var((*option.Share)(&f.valSplit), "val-split", "the images alone that rna train --val-split leaves out of training, for the same share")
	d.BoolVar(&f.allImages, "all-images", false, "also images that the weights were trained on")
	d.StringVar(&f.classesFile, "classes", "", "`file` with the names of the classes by index, one a line (default: what the weights say)")
	d.IntVar(&f.imageSize, "image-size", 0, "height and width of the net's input (default: what the weights say, or the data's)")
	d.IntVar(&f.valResize, "val-resize", 0, "shorter side to which images are resized before the crop (default: what the weights say, or 256 for a crop of 224)")
	d.BoolVar(&f.fastDecode, "fast-decode", false, fastDecodeHelp)
	d.StringVar(&f.interpolation, "interpolation", "", "how they are resized: "+strings.Join(imaging.Interpolations(), ", ")+" (default: what the weights say, or bilinear)")
	d.Values("interpolation", imaging.Interpolations()...)
	d.BoolVar(&f.testFlip, "test-flip", false, "go by the mean of the logits of an image and of its mirror image")
	d.Floats(&f.mean, "mean", "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: as above)")
	d.Floats(&f.std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	d.MaxBad(&f.maxBad, "max-bad", optionHelp("max-bad"))
	r := cli.NewGroup("Run")
	r.StringVar(&f.predictions, "predictions", "", "write path, label, names of the label and of the predicted class, and logits of each image to this CSV `file`")
	r.BoolVar(&f.perClass, "per-class", false, "print the accuracy of each class")
	r.StringVar(&f.confusion, "confusion", "", "write the confusion matrix, a row a label, to this `file`: CSV, or a figure as .svg, .png or .pdf")
	r.StringVar(&f.sheet.path, "worst", "", "draw the images with the highest loss, the highest first, with captions on a sheet: `file`, .png or .jpg")
	f.sheet.add(r, "worst-count", 64, byClass, byPrediction)
	f.json.Add(r)
	r.IntVar(&f.batch, "batch", 64, "images a forward pass")
	r.Cores(&f.workers, "workers", "goroutines that decode images (default: one a core)")
	r.Bytes(&f.decoding, "decode-memory", optionHelp("decode-memory"))
	r.StringVar(&f.device, "device", "auto", deviceHelp)
	r.Values("device", deviceValues...)
	r.Cores(&f.threads, "threads", "threads that compute (default: one a fast core)")
	r.BoolVar(&f.winograd, "winograd", true, winogradHelp)
	r.StringVar(&f.precision, "precision", "", precisionHelp)
	r.Values("precision", precisionValues...)
	r.BoolVar(&f.debugSync, "debug-sync", false, debugSyncHelp)
	addRanks(r, &f.ranks)
	cli.AddGroups(cmd, w, d, r)
	return cmd
}

// named takes the weights that the arguments name.
func (f *evalFlags) named(args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("%d files: want one file of weights, or the folder of a run; images are named by --data", len(args))
	case len(args) == 1 && f.weights != "":
		return fmt.Errorf("%s and --weights %s: name the weights once", args[0], f.weights)
	case len(args) == 1:
		f.weights = args[0]
	case f.weights == "":
		return errors.New("--weights is missing: the file to evaluate, or the folder of a run")
	}
	if f.allImages && f.valSplit > 0 {
		return errors.New("--all-images and --val-split exclude each other")
	}
	return nil
}

// evaluation is what is open while images are evaluated.
type evaluation struct {
	meta   network.Meta
	set    data.Dataset
	loader *data.Loader
	net    *network.Network
	closers
}

// closers is what to close, the last first.
type closers []func() error

func (c closers) close(err error) error {
	for _, f := range slices.Backward(c) {
		err = device.Closed(err, f())
	}
	return err
}

func (f *evalFlags) run(ctx context.Context, g *ranks.Group, out, log io.Writer) (err error) {
	if !g.First() {
		out = io.Discard
	}
	told := out
	if f.json.Print && g.First() {
		told = log
	}
	e := &evaluation{}
	defer func() { err = e.close(err) }()
	if err := g.Together(f.open(e, g, told, log)); err != nil {
		return err
	}
	if err := e.compare(g, f); err != nil {
		return err
	}
	f.report = newEvalReport(e.set.Classes(), e.net.Model().Config.Classes)
	score, err := f.score(ctx, g, e)
	if err != nil && ctx.Err() != nil || errors.Is(err, ranks.ErrStop) {
		return cli.Stopped("interrupted, nothing was written")
	}
	if err != nil || !g.First() {
		return err
	}
	f.report.finish(e.meta.Model, score)
	if err := f.writePictures(ctx, e, told); err != nil {
		return err
	}
	return f.json.Write(out, f.report, func(w io.Writer) error { return f.report.print(w, f.perClass) })
}

// open opens weights, images and device.
func (f *evalFlags) open(e *evaluation, g *ranks.Group, told, log io.Writer) error {
	file, meta, err := f.openWeights(told)
	if err != nil {
		return err
	}
	e.meta, e.closers = meta, append(e.closers, file.Close)
	if err := f.place(&e.meta); err != nil {
		return err
	}
	if e.set, err = f.openSet(file, &e.meta); err != nil {
		return err
	}
	if f.note != "" {
		fmt.Fprintln(told, terminal.Wrap(told, f.note, "  "))
	}
	e.closers = append(e.closers, func() error { return closeData(e.set) })
	profile, err := data.ProfileOf(e.set)
	if err != nil {
		return err
	}
	fill(&e.meta, profile)
	transform, err := profile.Evaluation(data.EvalOptions{Size: e.meta.ImageSize, Resize: e.meta.ValResize, Interpolation: e.meta.Interpolation})
	if err != nil {
		return err
	}
	fmt.Fprintln(told, terminal.Wrap(told, fmt.Sprintf("%s: %d images of %d classes; %v, mean %.4g, std %.4g", f.data, e.set.Len(), len(e.set.Classes()), transform, e.meta.Mean, e.meta.Std), "  "))
	threads, workers := f.threads, f.workers
	if !g.Single() {
		fmt.Fprintln(told, g)
		threads, workers = cmp.Or(threads, g.Threads()), cmp.Or(workers, g.Workers())
	}
	e.loader, err = data.NewLoader(e.set, transform, data.LoaderOptions{
		Batch: f.batch, Workers: workers, MaxBad: f.maxBad, FastDecode: f.fastDecode, Rank: g.Rank(), Ranks: g.Size(), Budget: data.NewBudget(f.decoding, g.Locals()),
		Log: func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) },
	})
	if err != nil {
		return err
	}
	options := deviceOptions{threads: threads, direct: !f.winograd, debugSync: f.debugSync, precision: f.precision, log: log}
	own, err := launch.OwnDevice(f.device, g)
	if err != nil {
		return err
	}
	dev, err := openDevice(chosenDevice(own, log), options)
	if err != nil {
		return err
	}
	e.closers = append(e.closers, dev.Close)
	if e.net, err = f.network(dev, file, &e.meta, e.set); err != nil {
		return err
	}
	e.closers = append(e.closers, e.net.Close)
	e.net.TestFlip = f.testFlip
	_, err = e.net.Load(f.weights, network.LoadOptions{Key: f.key})
	return err
}

// network is a net for weights that meta describes and for images as those of set.
func (f *evalFlags) network(dev device.Device, file *statedict.File, meta *network.Meta, set data.Dataset) (*network.Network, error) {
	classes, err := f.outputs(file, meta.Model, len(set.Classes()))
	if err != nil {
		return nil, err
	}
	return network.New(dev, meta.Model, meta.Config(classes, set.Channels()), 0)
}

// openSet opens the images. Weights with 1,000 outputs that do not name them have those of ImageNet, if the data's classes are among these; else
// labels mean outputs only where there are as many of both.
func (f *evalFlags) openSet(file *statedict.File, meta *network.Meta) (data.Dataset, error) {
	set, err := f.openPart(meta, meta.Classes)
	if err != nil || meta.Classes != nil || f.numClasses > 0 {
		return set, err
	}
	m, err := nn.Build(meta.Model, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return nil, errors.Join(err, closeData(set))
	}
	outputs, classes := network.Outputs(file, m), len(set.Classes())
	known := data.AsImageNet(set.Classes())
	switch {
	case outputs == len(known) && known != nil && outputs != classes:
		if err := closeData(set); err != nil {
			return nil, err
		}
		meta.Classes = known
		return f.openPart(meta, known)
	case outputs != 0 && outputs != classes:
		return nil, errors.Join(fmt.Errorf("%s has %d outputs without names, and the data %d classes: name those of the weights by --classes, a file with a name a line",
			f.weights, outputs, classes), closeData(set))
	}
	return set, nil
}

// closeData closes a set that keeps files open.
func closeData(set data.Dataset) error {
	if c, ok := set.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// outputs is the number of classes of the net: what the command line says, or the size of the last layer in the
// file, or else the number of classes of the data.
func (f *evalFlags) outputs(file *statedict.File, model string, classes int) (int, error) {
	if f.numClasses > 0 {
		return f.numClasses, nil
	}
	m, err := nn.Build(model, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return 0, err
	}
	n := network.Outputs(file, m)
	switch {
	case n == 0:
		return classes, nil // loading says what does not fit
	case n >= classes:
		return n, nil
	}
	return 0, fmt.Errorf("%s has %d outputs, the data %d classes: evaluate on data of the classes it was trained on, or name them by --classes", f.weights, n, classes)
}

// resolve lets the command line overrule what the file says.
func (f *evalFlags) resolve(m *network.Meta) error {
	if f.model != "" {
		m.Model = f.model
	}
	if m.Model == "" {
		return fmt.Errorf("%s does not say what model it is for: name it by --model", f.weights)
	}
	if f.classesFile != "" {
		names, err := format.ReadClasses(f.classesFile)
		if err != nil {
			return err
		}
		m.Classes = names
	}
	if f.imageSize > 0 && f.imageSize != m.ImageSize {
		m.ImageSize, m.ValResize = f.imageSize, 0 // in proportion
	}
	if f.valResize > 0 {
		m.ValResize = f.valResize
	}
	if f.interpolation != "" {
		m.Interpolation = f.interpolation
	}
	if f.mean != nil {
		m.Mean = f.mean
	}
	if f.std != nil {
		m.Std = f.std
	}
	return nil
}

// fill takes from the data's profile what neither the file nor the command line says. Photos are normalised as the net's
// published weights take them.
func fill(m *network.Meta, p data.Profile) {
	if photos, err := photoProfile(); err == nil && slices.Equal(p.Mean, photos.Mean) {
		if a, err := nn.Lookup(m.Model); err == nil && a.Mean != nil {
			p.Mean, p.Std = a.Mean, a.Std
		}
	}
	if m.ImageSize == 0 {
		m.ImageSize = p.Size
	}
	if m.Mean == nil {
		m.Mean = p.Mean
	}
	if m.Std == nil {
		m.Std = p.Std
	}
}
