package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"onlinerna/train/bench"
)

type benchFlags struct {
	bench.Options
	device, json, svg string
	threads           int
	winograd          bool
}

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a device is",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchTrain(), newBenchRNA())
	return cmd
}

func newBenchTrain() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "train [options]",
		Short: "Measure training steps, and where their time goes",
		Long: `Measure training steps on a synthetic batch: images/s, GFLOP/s, and for each kind of ops its time and what it
reaches of the machine's measured limits. A kind is what runs as one kernel, as "batch_norm + relu".

GFLOP are the products of convolutions and linear layers: a multiplication and an addition for each weight that
meets an input. "make bench-pytorch" compares with PyTorch.`,
		Example: `  rna bench train --model resnet50 --batch 16
  rna bench train --model resnet20 --batch 128 --eval --json eval.json --svg eval.svg`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"steps", "warmup"} {
				if n, err := cmd.Flags().GetInt(name); err == nil && n < 1 {
					return &usageError{cmd.CommandPath(), fmt.Errorf("--%s %d: must be at least 1", name, n)}
				}
			}
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	w := newGroup("Work")
	w.StringVar(&f.Model, "model", "resnet50", "model, see rna models")
	f.Batch = 16
	w.Var(batchFlag{&f.Batch}, "batch", "`images` a step; auto: as many as fit in the memory that is free")
	w.IntVar(&f.ImageSize, "image-size", 0, "height and width of an image (default: the model's)")
	w.BoolVar(&f.Eval, "eval", false, "measure evaluation: the forward pass with running statistics")
	w.Uint64Var(&f.Seed, "seed", 1, "seed of weights and images")
	r := newGroup("Run")
	r.IntVar(&f.Steps, "steps", 10, "steps that are measured")
	r.IntVar(&f.Warmup, "warmup", 3, "steps before them")
	r.StringVar(&f.device, "device", "auto", deviceHelp)
	r.IntVar(&f.threads, "threads", 0, "threads that compute (default: one a core)")
	r.BoolVar(&f.winograd, "winograd", false, winogradHelp)
	r.StringVar(&f.json, "json", "", "write everything to this `file`")
	r.StringVar(&f.svg, "svg", "", "draw the kinds of ops as bars to this `file`")
	r.BoolP("help", "h", false, "this help")
	addGroups(cmd, w, r)
	return cmd
}

func (f *benchFlags) run(ctx context.Context, out io.Writer) (err error) {
	dev, err := openDevice(f.device, deviceOptions{threads: f.threads, winograd: f.winograd})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	r, err := bench.Run(ctx, dev, f.Options)
	if errors.Is(err, context.Canceled) {
		return errStopped
	}
	if err != nil {
		return err
	}
	if err := r.WriteTable(out); err != nil {
		return err
	}
	if err := writeFile(f.json, r.WriteJSON); err != nil {
		return err
	}
	return writeFile(f.svg, r.Plot)
}

// writeFile lets write fill a file; no path means no file.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
