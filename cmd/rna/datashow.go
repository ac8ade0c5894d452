package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/data"
	"onlinerna/data/imaging"
	"onlinerna/internal/cli"
	"onlinerna/internal/text"
)

type showFlags struct {
	augment, val string
	size         int
	sheet        sheetFlags
	view         string
	eval         bool
	split        float64
	seed         uint64
}

func newDataShow() *cobra.Command {
	f := &showFlags{}
	cmd := &cobra.Command{
		Use:   "show PLACE [options]",
		Short: "Draw images as the network sees them, tell mean and classes",
		Long: `Draw a sheet of images with their labels, each as its file has it and, beside that, as the network sees it: augmented as in
training. Tell their sizes, the mean and the deviation of each channel and how many images each class has.`,
		Example: `  rna data show imagenet --out sheet.png
  rna data show cifar10 --view original --count 200 --group-by class`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(cmd, fmt.Errorf("%d arguments: want the place of the images", len(args)))
			}
			err := f.sheet.check("count", byClass)
			switch {
			case f.size < 0 || f.size > 4096:
				err = fmt.Errorf("--image-size %d: want at most 4096 pixels", f.size)
			case !slices.Contains(views, f.view):
				err = fmt.Errorf("--view %s: want %s", f.view, strings.Join(views, ", "))
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	o := cli.NewGroup("Options")
	o.StringVar(&f.sheet.path, "out", "sheet.png", "`file` for the sheet, .png or .jpg")
	f.sheet.add(o, "count", 64, byClass)
	o.StringVar(&f.view, "view", views[0], "both: each image and what the network sees of it; original or network: one of them")
	o.Values("view", views...)
	o.StringVar(&f.augment, "augment", "auto", strings.Join(data.Augmentations(), ", "))
	o.Values("augment", data.Augmentations()...)
	o.IntVar(&f.size, "image-size", 0, "height and width of an image (default: the set's)")
	o.BoolVar(&f.eval, "eval", false, "validation images, as they are evaluated")
	o.StringVar(&f.val, "val-data", "", "`place` of the validation images, where it is not beside the others")
	o.Share(&f.split, "val-split", valSplitHelp)
	o.Uint64Var(&f.seed, "seed", 1, "seed of the choice and the augmentation")
	cli.AddGroups(cmd, o)
	return cmd
}

// What a tile shows.
var views = []string{"both", "original", "network"}

func (f *showFlags) run(ctx context.Context, place string, stdout io.Writer) error {
	set, val, closeSets, err := openData(place, f.val, f.split, stdout)
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
	classCounts(set, stdout)
	fmt.Fprintf(stdout, "%s: %d×%d×%d, %v; normalised by mean %.4v and deviation %.4v\n",
		profile.Name, f.size, f.size, set.Channels(), transform, profile.Mean, profile.Std)

	loader, err := data.NewLoader(set, transform, data.LoaderOptions{
		Batch: min(f.sheet.count, set.Len()), Shuffle: true, Seed: f.seed, Limit: 1, Substitute: true, MaxBad: data.AllBad,
		Log: func(format string, args ...any) { fmt.Fprintln(stdout, text.Printable(fmt.Sprintf(format, args...))) },
	})
	if err != nil {
		return err
	}
	for batch, err := range loader.Epoch(ctx, 0, 0) {
		if err != nil {
			return err
		}
		mean, std := moments(batch)
		fmt.Fprintf(stdout, "of these %d: mean %.4v and deviation %.4v\n", batch.N, mean, std)
		title := fmt.Sprintf("%s: %d of %d images", place, batch.N, set.Len())
		if f.view != "original" {
			title += fmt.Sprintf("; as the network sees them: %v", transform)
		}
		g := gallery{sheetFlags: &f.sheet, title: title, place: place, set: set, name: namer(set.Classes(), len(set.Classes())), budget: data.NewBudget(0, 1)}
		if err := g.draw(ctx, stdout, f.images(batch)); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s: %s\n", f.sheet.path, text.Count(batch.N, "image"))
	}
	return nil
}

// classCounts prints how many images the classes have.
func classCounts(set data.Dataset, out io.Writer) {
	counts := data.ClassCounts(set)
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	fmt.Fprintf(out, "%.1f images a class, from %d to %d\n", float64(set.Len())/float64(len(counts)), counts[order[len(order)-1]], counts[order[0]])
	const most = 20
	for k, class := range order {
		if k >= most/2 && k < len(order)-most/2 {
			if k == most/2 {
				fmt.Fprintln(out, "  …")
			}
			continue
		}
		fmt.Fprintf(out, "  %6d  %s\n", counts[class], text.Printable(set.Classes()[class]))
	}
}

// seen is the sample that the network sees at (x, y) of image n: see data.Batch.
func seen(b *data.Batch, n, x, y, c int) uint8 {
	crop := b.Crops[3*n : 3*n+3]
	if crop[2] != 0 {
		x = b.Width - 1 - x
	}
	x, y = x+int(crop[1]), y+int(crop[0])
	if x < 0 || y < 0 || x >= b.Width || y >= b.Height {
		return 0
	}
	return b.Images[((n*b.Height+y)*b.Width+x)*b.Channels+c]
}

// moments are the mean and the deviation of each channel, of samples as fractions of 255.
func moments(b *data.Batch) (mean, std []float64) {
	count := float64(b.N * b.Height * b.Width)
	for c := range b.Channels {
		sum, squares := 0.0, 0.0
		for n := range b.N {
			for y := range b.Height {
				for x := range b.Width {
					v := float64(seen(b, n, x, y, c)) / 255
					sum, squares = sum+v, squares+v*v
				}
			}
		}
		mean = append(mean, sum/count)
		std = append(std, math.Sqrt(max(0, squares/count-sum/count*sum/count)))
	}
	return mean, std
}

// images are those of a batch, with what the network sees of them.
func (f *showFlags) images(b *data.Batch) (list []sheetImage) {
	for n := range b.N {
		x := sheetImage{index: b.Index[n], label: int(b.Labels[n]), loss: math.NaN(), alone: f.view == "network"}
		if f.view != "original" {
			x.seen = imaging.New(b.Width, b.Height, b.Channels)
			for i := range x.seen.Pix {
				x.seen.Pix[i] = seen(b, n, i/b.Channels%b.Width, i/b.Channels/b.Width, i%b.Channels)
			}
		}
		list = append(list, x)
	}
	return list
}
