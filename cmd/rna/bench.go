package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/internal/canvas"
	"onlinerna/internal/cli"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/bench"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
)

type benchFlags struct {
	bench.Options
	device, plot        string
	json                cli.JSON
	threads             int
	winograd, debugSync bool
	precision           string
	deterministic       bool
	ranks               launch.Options
	rounds              int
	within              time.Duration // 0: as many steps as are said
}

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a device is",
		Args:  cli.UnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchTrain(), newBenchData(), newBenchRNA(), newBenchTable(), newBenchComm(), newBenchScale(), newBenchTraffic())
	return cmd
}

func newBenchTrain() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "train [options]",
		Short: "Measure training steps, and where their time goes",
		Long: `Measure training steps: images/s, GFLOP/s, and for each kind of ops its time and what it reaches of the limits that
are measured beside it. A kind is what runs as one kernel, as "batch_norm + relu". On a GPU its clock tells the kinds
apart, in a few steps of their own.

The input is synthetic: one batch of noise. With --data there are two more: batches of images that were decoded before
(memory), and images that are decoded meanwhile as in training (loader).

Under mpirun or srun the ranks are measured, which train as one: beside rank 0 alone, beside steps without sums over ranks, and, on one
machine, beside one process with the threads of all; in turn, with noise. Without --steps, --warmup and --rounds there are fewer where
they would take longer than a minute.

GFLOP are the products of convolutions and linear layers: a multiplication and an addition for each weight that
meets an input. "make bench-pytorch" compares with PyTorch.`,
		Example: `  rna bench train --model resnet50 --batch 16
  rna bench train --model resnet20 --batch 128 --eval --plot eval.svg
  rna bench train --device cuda --batch auto --data imagenet`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"steps", "warmup", "rounds"} {
				if n, err := cmd.Flags().GetInt(name); err == nil && n < 1 {
					return cli.Usage(cmd, fmt.Errorf("--%s %d: must be at least 1", name, n))
				}
			}
			set := cmd.Flags()
			if !set.Changed("steps") && !set.Changed("warmup") && !set.Changed("rounds") {
				f.within = 40 * time.Second
			}
			return f.ranks.Run(cmd.Context(), f.device, func(g *ranks.Group) error {
				if g.Single() {
					return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
				}
				return f.runMany(cmd.Context(), cmd.OutOrStdout(), g)
			})
		},
	}
	w := cli.NewGroup("Work")
	w.StringVar(&f.Model, "model", "resnet50", "model, see rna models")
	w.Values("model", modelNames()...)
	f.Batch = 16
	w.Images(&f.Batch, "auto", network.AutoBatch, "batch", "`images` a step; auto: as many as fit in the memory that is free")
	w.IntVar(&f.ImageSize, "image-size", 0, "height and width of an image (default: the model's)")
	w.BoolVar(&f.Eval, "eval", false, "measure evaluation: the forward pass with running statistics")
	w.StringVar(&f.Optimizer, "optimizer", "sgd", strings.Join(train.Optimizers(), ", "))
	w.Values("optimizer", train.Optimizers()...)
	w.StringVar(&f.Data, "data", "", "images, as for rna train: a `folder`, or glyphs (default: noise alone)")
	w.StringSliceVar(&f.Inputs, "input", nil, "synthetic, memory, loader: one or several with commas; the first has its kinds of ops told apart (default: all that there are)")
	w.Values("input", "synthetic", "memory", "loader")
	w.Cores(&f.Workers, "workers", "goroutines that decode images (default: one a core)")
	w.Uint64Var(&f.Seed, "seed", 1, "seed of weights and images")
	r := cli.NewGroup("Run")
	r.IntVar(&f.Steps, "steps", 10, "steps that are measured")
	r.IntVar(&f.Warmup, "warmup", 3, "steps before them")
	r.StringVar(&f.device, "device", "auto", deviceHelp)
	r.Values("device", deviceValues...)
	r.Cores(&f.threads, "threads", "threads that compute (default: one a fast core)")
	r.BoolVar(&f.winograd, "winograd", true, winogradHelp)
	r.BoolVar(&f.LowMemory, "low-memory", false, lowMemoryHelp)
	r.StringVar(&f.precision, "precision", "", precisionHelp)
	r.Values("precision", precisionValues...)
	r.BoolVar(&f.deterministic, "deterministic", false, deterministicHelp)
	r.BoolVar(&f.debugSync, "debug-sync", false, debugSyncHelp)
	r.IntVar(&f.rounds, "rounds", 3, "of measurements of ranks, each way in turn")
	addRanks(r, &f.ranks)
	f.json.Add(r)
	r.StringVar(&f.plot, "plot", "", "draw the kinds of ops as bars to this `file`"+canvas.Help)
	cli.AddGroups(cmd, w, r)
	return cmd
}

// options are those of the device.
func (f *benchFlags) options() deviceOptions {
	return deviceOptions{threads: f.threads, direct: !f.winograd, debugSync: f.debugSync, precision: f.precision, deterministic: f.deterministic}
}

func (f *benchFlags) run(ctx context.Context, out, log io.Writer) (err error) {
	options := f.options()
	options.log = log
	own, err := launch.OwnDevice(f.device, nil)
	if err != nil {
		return err
	}
	dev, err := openDevice(chosenDevice(own, log), options)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	r, err := bench.Run(ctx, dev, f.Options)
	if errors.Is(err, context.Canceled) {
		return cli.Stopped("interrupted")
	}
	if err != nil {
		return err
	}
	if err := f.json.Write(out, r, r.WriteTable); err != nil {
		return err
	}
	return canvas.Draw(f.plot, r.Plot)
}
