package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data/augment"
	"onlinerna/train/bench"
)

type benchDataFlags struct {
	sample  string
	json    cli.JSON
	size    int
	workers int
	seconds float64
	fast    bool
}

var fastDecodeHelp = optionHelp("fast-decode")

func newBenchData() *cobra.Command {
	f := &benchDataFlags{}
	cmd := &cobra.Command{
		Use:   "data PLACE [options]",
		Short: "Measure how fast images are loaded",
		Long: `Measure how fast images are read, decoded and resampled, without a network. PLACE is as for --data. The first
epoch warms up. "make bench-loader" compares with torchvision and PyTorch's DataLoader.`,
		Example: `  rna bench data imagenet --sample train --workers 1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || f.workers < 0 || f.size < 8 || f.seconds <= 0 {
				return cli.Usage(cmd, fmt.Errorf("want one place of images, workers of 0 or more, a size of 8 or more and more "+
					"than 0 seconds"))
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Options")
	o.StringVar(&f.sample, "sample", "train", "train: random resized crop and flip; eval: shorter side to 8/7 of the "+
		"size, centre crop")
	o.Values("sample", "train", "eval")
	o.IntVar(&f.size, "image-size", 224, "height and width of an image")
	o.Cores(&f.workers, "workers", "goroutines that decode (default: one a core)")
	o.Float64Var(&f.seconds, "seconds", 3, "least time of the measurement")
	o.BoolVar(&f.fast, "fast-decode", false, fastDecodeHelp)
	f.json.Add(o)
	cli.AddGroups(cmd, o)
	return cmd
}

func (f *benchDataFlags) run(ctx context.Context, place string, stdout, log io.Writer) error {
	set, _, closeSets, err := openData(place, "", 0, "", f.json.Log(stdout, log))
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
	return f.json.Write(stdout, l, l.WriteText)
}
