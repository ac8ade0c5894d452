package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data/gallery"
	"onlinerna/data/imaging"
	"onlinerna/nn/device"
	"onlinerna/train/evaluate"
	"onlinerna/train/option"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
)

type evalFlags struct {
	evaluate.Options
	device, float32     string
	winograd, debugSync bool
	ranks               launch.Options
	json                cli.JSON
	perClass            bool
}

func newEval() *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use:   "eval WEIGHTS [options]",
		Short: "Evaluate weights on labelled images",
		Long: `Evaluate weights on labelled images: loss, top-1, top-5. WEIGHTS is a file, in safetensors or written by
torch.save, or the folder of a run, which stands for its best weights.

Weights of rna record their training images. Of these, rna eval takes only the images that the run left out by
--val-split or --holdout, unless --all-images is given. Without --data it takes the images of the run.

Weights of rna also record the model, the classes and the normalisation. For others, such as torchvision's, name the
model; their classes are those of the data, sorted, or those of --classes.

Under mpirun, srun, torchrun or --device cuda:all each rank evaluates a share of the images. The output is the same as
that of one process.`,
		Example: `  rna eval runs/20260102-150405-lenet
  rna eval runs/fine/best.safetensors --data photos
  rna eval --weights resnet50.safetensors --model resnet50 --data imagenet/val \
    --classes wnids.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.named(args); err != nil {
				return cli.Usage(cmd, err)
			}
			if err := f.CheckPictures(); err != nil {
				return cli.Usage(cmd, err)
			}
			ctx := cmd.Context()
			return f.ranks.Run(ctx, f.device, func(g *ranks.Group) error {
				return f.run(ctx, g, cmd.OutOrStdout(),
					cmd.ErrOrStderr())
			})
		},
	}
	w := cli.NewGroup("Weights")
	w.StringVar(&f.Weights, "weights", "", "`file` or folder of a run, in place of WEIGHTS")
	w.StringVar(&f.Key, "key", "", keyHelp)
	w.StringVar(&f.Model, "model", "", "model (default: that of the file)")
	w.Values("model", modelNames()...)
	w.IntVar(&f.NumClasses, "num-classes", 0, "outputs of the net (default: that of the file)")
	d := cli.NewGroup("Data")
	d.StringVar(&f.Data, "data", "", "`folder` of class folders, or one with val/ or test/, shards or MNIST's files in "+
		"it; glyphs: generated (default: the data of the weights' run)")
	d.Var((*option.Share)(&f.ValSplit), "val-split", "evaluate the images that rna train --val-split leaves out, for "+
		"the same share")
	d.BoolVar(&f.AllImages, "all-images", false, "evaluate training images, too")
	d.StringVar(&f.Classes, "classes", "", "`file` with the names of the classes by index, one a line (default: those "+
		"of the weights)")
	d.IntVar(&f.ImageSize, "image-size", 0, "height and width of the net's input (default: that of the weights, or of "+
		"the data)")
	d.IntVar(&f.ValResize, "val-resize", 0, "shorter side of images before the crop (default: that of the weights, or "+
		"256 for a crop of 224)")
	d.BoolVar(&f.FastDecode, "fast-decode", false, fastDecodeHelp)
	d.StringVar(&f.Interpolation, "interpolation", "", "resampling: "+strings.Join(imaging.Interpolations(),
		", ")+" (default: that of the weights, or bilinear)")
	d.Values("interpolation", imaging.Interpolations()...)
	d.BoolVar(&f.TestFlip, "test-flip", false, "average the logits of each image and its mirror image")
	d.Floats(&f.Mean, "mean",
		"mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: as above)")
	d.Floats(&f.Std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	d.MaxBad(&f.MaxBad, "max-bad", optionHelp("max-bad"))
	r := cli.NewGroup("Run")
	r.StringVar(&f.Predictions, "predictions", "", "write path, label, names of the label and of the predicted class, "+
		"and logits of each image to this CSV `file`")
	r.BoolVar(&f.perClass, "per-class", false, "print recall, precision, F1, ROC-AUC and average precision of each "+
		"class, with standard errors")
	r.StringVar(&f.Confusion, "confusion", "", "write the confusion matrix, a row a label, to this `file`: CSV, or a "+
		"figure as .svg, .png or .pdf")
	r.StringVar(&f.Sheet.Path, "worst", "", "draw the images with the highest loss, the highest first, with captions "+
		"on a sheet: `file`, .png or .jpg")
	addSheet(r, &f.Sheet, "worst-count", 64, gallery.ByClass, gallery.ByPrediction)
	f.json.Add(r)
	r.IntVar(&f.Batch, "batch", 64, "images a forward pass")
	r.Cores(&f.Workers, "workers", "goroutines that decode images (default: one a core)")
	r.Bytes(&f.DecodeMemory, "decode-memory", optionHelp("decode-memory"))
	r.StringVar(&f.device, "device", "auto", deviceHelp)
	r.Values("device", deviceValues...)
	r.Cores(&f.Threads, "threads", "threads that compute (default: one a fast core)")
	r.BoolVar(&f.winograd, "winograd", true, winogradHelp)
	r.StringVar(&f.float32, "float32", "", float32Help)
	r.Values("float32", float32Values...)
	r.StringVar(&f.Precision, "precision", "", precisionHelp)
	r.Values("precision", precisionValues...)
	r.BoolVar(&f.debugSync, "debug-sync", false, debugSyncHelp)
	addRanks(r, &f.ranks)
	cli.AddGroups(cmd, w, d, r)
	return cmd
}

// named takes the weights given by the arguments.
func (f *evalFlags) named(args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("%d files: want one file of weights, or the folder of a run; images are named by --data", len(args))
	case len(args) == 1 && f.Weights != "":
		return fmt.Errorf("%s and --weights %s: name the weights once", args[0], f.Weights)
	case len(args) == 1:
		f.Weights = args[0]
	case f.Weights == "":
		return errors.New("--weights is missing: the file to evaluate, or the folder of a run")
	}
	if f.AllImages && f.ValSplit > 0 {
		return errors.New("--all-images and --val-split exclude each other")
	}
	return nil
}

func (f *evalFlags) run(ctx context.Context, g *ranks.Group, out, log io.Writer) error {
	if !g.First() {
		out = io.Discard
	}
	f.Open = func(g *ranks.Group, threads int) (device.Device, error) {
		own, err := launch.OwnDevice(f.device, g)
		if err != nil {
			return nil, err
		}
		return openDevice(chosenDevice(own, log), deviceOptions{threads: threads, direct: !f.winograd, float32: f.float32,
			debugSync: f.debugSync, precision: f.Precision, log: log})
	}
	f.Ranking = f.perClass || f.json.Print || f.json.File != ""
	told := out
	if g.First() {
		told = f.json.Log(out, log)
	}
	r, err := f.Run(ctx, g, told, log)
	if err != nil && ctx.Err() != nil || errors.Is(err, ranks.ErrStop) {
		return cli.Stopped("interrupted, nothing was written")
	}
	if err != nil || !g.First() {
		return err
	}
	return f.json.Write(out, r, func(w io.Writer) error { return r.Print(w, f.perClass) })
}
