package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/canvas"
	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/bench"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
)

type benchRNAFlags struct {
	bench.RNAOptions
	dim, threads      int
	winograd, quiet   bool
	device, rnaDevice string
	csv, plot         string
	json              cli.JSON
	ranks             launch.Options
	group             *ranks.Group // nil for one process
}

func newBenchRNA() *cobra.Command {
	f := &benchRNAFlags{}
	f.Windows = []int{2, 5, 10, 20, 30, 40, 50}
	cmd := &cobra.Command{
		Use:   "rna [options]",
		Short: "Measure RNA beside forward and backward passes",
		Long: `Measure a pass of RNA on the CPU and, if there is one, on the GPU, for windows of N residuals with as many
elements as a model has weights. A forward and backward pass of that model and an epoch of ImageNet are shown beside it.

A full pass starts from N + 1 vectors: the Gram matrix, the coefficients, the combination. An online pass takes one
iterate into a full window: a row of the Gram matrix, the coefficients, the combination.

Under mpirun or srun only RNA is measured, on rank 0 and then on all ranks, each with its part of the vectors.`,
		Example: `  rna bench rna --plot rna.svg --csv rna.csv
  rna bench rna --window 2-10,20 --batch 32
  rna bench rna --dim 1000000`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return cli.Usage(cmd, err)
			}
			f.Exactly = cmd.Flags().Changed("window")
			var err error
			if f.group, err = f.ranks.Join(device.Preferred()[len(device.Preferred())-1]); err != nil {
				return err
			}
			return launch.On(f.group, func() error { return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()) })
		},
	}
	w := cli.NewGroup("Work")
	w.Numbers(&f.Windows, rna.MaxColumns, "window", "`N` of the windows: numbers and ranges, as 2-10,20,30-50:10 "+
		"(default: those up to 50 that fit)")
	w.StringVar(&f.Net.Model, "model", "resnet50", "model, see rna models: its weights, and its forward and backward pass")
	w.Values("model", modelNames()...)
	w.IntVar(&f.dim, "dim", 0, "elements of a vector in place of a model's weights: RNA alone is measured")
	w.IntVar(&f.Net.Batch, "batch", 0, "images that go forward and backward (default: 256, or as many as fit)")
	w.IntVar(&f.Net.ImageSize, "image-size", 0, "height and width of an image (default: the model's)")
	w.Uint64Var(&f.Seed, "seed", 1, "seed of weights, images and iterates")
	r := cli.NewGroup("Run")
	r.StringVar(&f.rnaDevice, "rna-device", "auto", "where RNA runs: auto (the CPU, and the first GPU if there is "+
		"one), cpu, or cuda or cuda:1, a GPU alone")
	r.Values("rna-device", deviceUnits(deviceNames, false)...)
	r.StringVar(&f.device, "device", "auto", "device of the forward and backward pass: "+deviceHelp)
	r.Values("device", deviceValues...)
	r.Cores(&f.threads, "threads", "threads that compute (default: one a fast core)")
	r.BoolVar(&f.winograd, "winograd", true, winogradHelp)
	r.IntVar(&f.Repeats, "repeats", 5, "repetitions of each pass; ten times as many of quick ones")
	r.IntVar(&f.Net.Steps, "steps", 3, "forward and backward passes, after one to warm up")
	addRanks(r, &f.ranks)
	r.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	o := cli.NewGroup("Output")
	o.StringVar(&f.csv, "csv", "", "write a line for each pass to this `file`")
	f.json.Add(o)
	o.StringVar(&f.plot, "plot", "",
		"draw the times by N, and the share of the memory's bandwidth, to this `file`"+canvas.Help)
	cli.AddGroups(cmd, w, r, o)
	return cmd
}

// check finds mistakes in the command line.
func (f *benchRNAFlags) check(cmd *cobra.Command) error {
	set := cmd.Flags()
	for _, name := range []string{"dim", "batch", "image-size", "repeats", "steps", "threads"} {
		if n, err := set.GetInt(name); err == nil && set.Changed(name) && n < 1 {
			return fmt.Errorf("--%s %d: must be at least 1", name, n)
		}
	}
	if set.Changed("dim") {
		for _, name := range []string{"model", "batch", "image-size", "steps", "device", "winograd"} {
			if set.Changed(name) {
				return fmt.Errorf("--dim measures RNA alone: it does not take --%s", name)
			}
		}
	}
	return nil
}

// run measures, prints the table and writes the files.
func (f *benchRNAFlags) run(ctx context.Context, out, log io.Writer) (err error) {
	f.Net.Seed = f.Seed
	if f.dim == 0 {
		m, err := nn.Build(f.Net.Model, nn.Config{Batch: 1, Mode: nn.Eval, Size: f.Net.ImageSize})
		if err != nil {
			return err
		}
		f.dim = m.NumParams()
		if f.group.Single() {
			f.Device = func() (device.Device, error) {
				options := deviceOptions{threads: f.threads, direct: !f.winograd}
				return openDevice(chosenDevice(f.device, log), options)
			}
			f.Free = bench.FreeOn
		}
	}
	places, err := bench.OpenPlaces(f.rnaDevice, f.dim, f.threads, f.group)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, places.Close()) }()
	f.Places, f.NoGPU = places.List, places.NoGPU
	bar := terminal.NewBar(log, f.quiet || !f.group.First())
	f.Progress = func(done, total int, next string) {
		if done == 0 {
			bar.Start(next, int64(total), terminal.CountSteps)
		}
		bar.Describe(next)
		bar.Set(int64(done))
	}
	r, err := bench.RunRNA(ctx, f.RNAOptions)
	bar.Finish()
	if errors.Is(err, context.Canceled) {
		return cli.Stopped("interrupted")
	}
	if err != nil || !f.group.First() {
		return err
	}
	if err := errors.Join(f.json.Write(out, r, r.WriteTable), files.WriteTo(f.csv, r.WriteCSV)); err != nil {
		return err
	}
	return canvas.Draw(f.plot, r.Plot)
}
