package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data"
	"onlinerna/data/gallery"
	"onlinerna/internal/text"
)

type showFlags struct {
	augment, val string
	size         int
	sheet        gallery.Options
	view         string
	eval         bool
	task         string
	split        float64
	seed         uint64
}

func newDataShow() *cobra.Command {
	f := &showFlags{}
	cmd := &cobra.Command{
		Use:   "show PLACE [options]",
		Short: "Draw images as the network sees them",
		Long: `Draw a sheet of images with their labels, each as in its file and as the network sees it, augmented as in
training. Print the mean and the deviation of each channel and the number of images of each class.`,
		Example: `  rna data show imagenet --out sheet.png
  rna data show cifar10 --view original --count 200 --group-by class`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(cmd, fmt.Errorf("%d arguments: want the place of the images", len(args)))
			}
			err := f.sheet.Check("count", gallery.ByClass)
			switch {
			case f.size < 0 || f.size > 4096:
				err = fmt.Errorf("--image-size %d: want at most 4096 pixels", f.size)
			case !slices.Contains(gallery.Views, f.view):
				err = fmt.Errorf("--view %s: want %s", f.view, strings.Join(gallery.Views, ", "))
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	o := cli.NewGroup("Options")
	o.StringVar(&f.sheet.Path, "out", "sheet.png", "`file` for the sheet, .png or .jpg")
	addSheet(o, &f.sheet, "count", 64, gallery.ByClass)
	o.StringVar(&f.view, "view", gallery.Views[0], "both: each image as in its file and as the network sees it; "+
		"original or network: one of them")
	o.Values("view", gallery.Views...)
	o.StringVar(&f.augment, "augment", "auto", strings.Join(data.Augmentations(), ", "))
	o.Values("augment", data.Augmentations()...)
	o.IntVar(&f.size, "image-size", 0, "height and width of an image (default: the set's)")
	o.BoolVar(&f.eval, "eval", false, "show validation images, as for evaluation")
	o.StringVar(&f.val, "val-data", "", "`place` of the validation images, if not beside the training images")
	addTask(o, &f.task)
	o.Share(&f.split, "val-split", valSplitHelp)
	o.Uint64Var(&f.seed, "seed", 1, "seed of the choice and the augmentation")
	cli.AddGroups(cmd, o)
	return cmd
}

func (f *showFlags) run(ctx context.Context, place string, stdout io.Writer) error {
	set, val, closeSets, err := openData(place, f.val, f.split, data.Task(f.task), stdout)
	if err != nil {
		return err
	}
	defer closeSets()
	profile, err := data.ProfileOf(set)
	if err != nil {
		return err
	}
	if f.size == 0 {
		f.size = profile.Size
	}
	transform, err := profile.Train(f.augment, f.size)
	if f.eval {
		if transform = profile.Eval(f.size); val == nil {
			return fmt.Errorf("%s: has no validation images: --val-split 0.2 takes a fifth of each class", place)
		}
		set = val
	}
	if err != nil {
		return err
	}
	gallery.WriteCounts(stdout, set)
	fmt.Fprintf(stdout, "%s: %d×%d×%d, %v; normalised by mean %.4v and deviation %.4v\n",
		profile.Name, f.size, f.size, set.Channels(), transform, profile.Mean, profile.Std)

	loader, err := data.NewLoader(set, transform, data.LoaderOptions{
		Batch: min(f.sheet.Count, set.Len()), Shuffle: true, Seed: f.seed, Limit: 1, Substitute: true, MaxBad: data.AllBad,
		Log: func(format string, args ...any) { fmt.Fprintln(stdout, text.Printable(fmt.Sprintf(format, args...))) },
	})
	if err != nil {
		return err
	}
	for batch, err := range loader.Epoch(ctx, 0, 0) {
		if err != nil {
			return err
		}
		mean, std := gallery.Moments(batch)
		fmt.Fprintf(stdout, "of these %d: mean %.4v and deviation %.4v\n", batch.N, mean, std)
		title := fmt.Sprintf("%s: %d of %d images", place, batch.N, set.Len())
		if f.view != gallery.Original {
			title += fmt.Sprintf("; as the network sees them: %v", transform)
		}
		g := gallery.Gallery{Options: &f.sheet, Title: title, Place: place, Set: set, Name: gallery.Namer(set.Classes(),
			len(set.Classes())), Budget: data.NewBudget(0, 1)}
		if err := g.Draw(ctx, stdout, gallery.Images(batch, f.view)); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s: %s\n", f.sheet.Path, text.Count(batch.N, "image"))
	}
	return nil
}
