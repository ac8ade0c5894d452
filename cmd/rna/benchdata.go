package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/data/augment"
	"onlinerna/train/bench"
)

type benchDataFlags struct {
	sample, json string
	size         int
	workers      int
	seconds      float64
	fast         bool
}

var fastDecodeHelp = optionHelp("fast-decode")

func newBenchData() *cobra.Command {
	f := &benchDataFlags{}
	cmd := &cobra.Command{
		Use:   "data PLACE [options]",
		Short: "Measure how fast images are read, decoded and made ready",
		Long: `Measure how fast the images of a place that --data takes are read, decoded and made ready, without a network. The first epoch
warms up. "make bench-loader" compares with torchvision and PyTorch's DataLoader.`,
		Example: `  rna bench data imagenet --sample train --workers 1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || f.workers < 0 || f.size < 8 || f.seconds <= 0 {
				return &usageError{cmd.CommandPath(), fmt.Errorf("want one place of images, workers of 0 or more, a size of 8 or more and more than 0 seconds")}
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	o := newGroup("Options")
	o.StringVar(&f.sample, "sample", "train", "train: random resized crop and flip; eval: shorter side to 8/7 of the size, centre crop")
	o.values("sample", "train", "eval")
	o.IntVar(&f.size, "image-size", 224, "height and width of an image")
	o.cores(&f.workers, "workers", "goroutines that decode (default: one a core)")
	o.Float64Var(&f.seconds, "seconds", 3, "how long at least")
	o.BoolVar(&f.fast, "fast-decode", false, fastDecodeHelp)
	o.StringVar(&f.json, "json", "", "`file` for the result")
	o.BoolP("help", "h", false, "this help")
	addGroups(cmd, o)
	return cmd
}

func (f *benchDataFlags) run(ctx context.Context, place string, stdout io.Writer) error {
	set, _, closeSets, err := openData(place, "", 0, stdout)
	if err != nil {
		return err
	}
	defer closeSets()
	var transform augment.Transform
	switch f.sample {
	case "train":
		transform = augment.TrainImageNet(f.size)
	case "eval":
		transform = augment.Eval(f.size)
	default:
		return fmt.Errorf("--sample %q: want train or eval", f.sample)
	}
	if f.workers == 0 {
		f.workers = runtime.GOMAXPROCS(0)
	}
	l, err := bench.Load(ctx, set, transform, f.workers, f.fast, time.Duration(f.seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	if err := writeFile(f.json, indented(l)); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s, %d workers: %.0f images/s, %.0f a second of a core; %d of %d images could not be read\n",
		l.Sample, l.Workers, l.PerSecond(), l.PerCPUSecond(), l.Bad, l.Images)
	if d := l.Difference; d != nil {
		fmt.Fprintf(stdout, "%d of %d images are decoded smaller; their samples differ by %.2f of 255 levels on average, %d at most\n", d.Images, d.Of, d.Mean, d.Max)
	}
	return nil
}
