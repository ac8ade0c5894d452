package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/canvas"
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
	float32, precision  string
	deterministic       bool
	ranks               launch.Options
	rounds              int
	within              time.Duration // 0: the given number of steps
}

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a device is",
		Args:  cli.UnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchTrain(), newBenchData(), newBenchRNA(), newBenchTable(), newBenchComm(), newBenchScale(),
		newBenchTraffic())
	return cmd
}

func newBenchTrain() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "train [options]",
		Short: "Measure training steps by kind of op",
		Long: `Measure training steps: images/s, GFLOP/s, and the time of each kind of ops with its share of the measured
limits. A kind is a group of ops that run as one kernel, such as "batch_norm + relu". A GPU's clock times the kinds in a
few separate steps.

The input is synthetic: one batch of noise. --data adds two inputs: batches that were decoded before (memory), and
images that are decoded during the steps, as in training (loader).

Under mpirun or srun the ranks train as one. Rounds alternate between the ranks, rank 0 alone, steps without sums over
ranks, and, on one machine, one process with all threads. Without --steps, --warmup and --rounds their number is reduced
to take about a minute.

GFLOP count a multiplication and an addition for each product of a weight and an input in convolutions and linear
layers. "make bench-pytorch" compares with PyTorch.`,
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
	w.Images(&f.Batch, "auto", network.AutoBatch, "batch",
		"`images` a step; auto: as many as fit in the memory that is free")
	w.IntVar(&f.ImageSize, "image-size", 0, "height and width of an image (default: the model's)")
	w.BoolVar(&f.Eval, "eval", false, "measure evaluation: the forward pass with running statistics")
	w.StringSliceVar(&f.Freeze, "freeze", nil, optionHelp("freeze"))
	w.StringVar(&f.Optimizer, "optimizer", "sgd", strings.Join(train.Optimizers(), ", "))
	w.Values("optimizer", train.Optimizers()...)
	w.StringVar(&f.Data, "data", "", "images, as for rna train: a `folder`, or glyphs (default: noise alone)")
	w.StringSliceVar(&f.Inputs, "input", nil, "inputs with commas between: synthetic, memory, loader; kinds of ops are "+
		"timed for the first (default: all)")
	w.Values("input", "synthetic", "memory", "loader")
	w.Cores(&f.Workers, "workers", "goroutines that decode images (default: one a core)")
	w.Uint64Var(&f.Seed, "seed", 1, "seed of weights and images")
	r := cli.NewGroup("Run")
	r.IntVar(&f.Steps, "steps", 10, "measured steps")
	r.IntVar(&f.Warmup, "warmup", 3, "steps before the measured ones")
	r.StringVar(&f.device, "device", "auto", deviceHelp)
	r.Values("device", deviceValues...)
	r.Cores(&f.threads, "threads", "threads that compute (default: one a fast core)")
	r.BoolVar(&f.winograd, "winograd", true, winogradHelp)
	r.StringVar(&f.float32, "float32", "", float32Help)
	r.Values("float32", float32Values...)
	r.BoolVar(&f.LowMemory, "low-memory", false, lowMemoryHelp)
	r.StringVar(&f.precision, "precision", "", precisionHelp)
	r.Values("precision", precisionValues...)
	r.BoolVar(&f.deterministic, "deterministic", false, deterministicHelp)
	r.BoolVar(&f.debugSync, "debug-sync", false, debugSyncHelp)
	r.IntVar(&f.rounds, "rounds", 3, "rounds of the measurements of ranks")
	addRanks(r, &f.ranks)
	f.json.Add(r)
	r.StringVar(&f.plot, "plot", "", "draw the kinds of ops as bars to this `file`"+canvas.Help)
	cli.AddGroups(cmd, w, r)
	return cmd
}

// options returns the device options.
func (f *benchFlags) options() deviceOptions {
	return deviceOptions{threads: f.threads, direct: !f.winograd, float32: f.float32, debugSync: f.debugSync,
		precision: f.precision, deterministic: f.deterministic}
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

func newBenchTable() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table FILE...",
		Short: "Show measurements of training side by side",
		Long: `Show measurements of training side by side, from files of "rna bench train --json-file" and of
scripts/bench_pytorch.py. The ratio compares the images/s with those of the first file with the same work on the same
device.`,
		Example: `  rna bench table rna.json pytorch.json`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return cli.Usage(cmd, errors.New("no files: name those that --json-file wrote"))
			}
			list, err := bench.ReadResults(files...)
			if err != nil {
				return err
			}
			return bench.WriteComparison(cmd.OutOrStdout(), list)
		},
	}
	cli.AddGroups(cmd)
	return cmd
}

func newBenchScale() *cobra.Command {
	c, out := bench.Cluster{}, cli.JSON{}
	var (
		model, gradients               string
		jitter, link, network, latency float64
		most, images, epochs           int
	)
	cmd := &cobra.Command{
		Use:   "scale [options]",
		Short: "Predict how training scales from one device to many",
		Long: `Predict the steps of 1, 2, 4 … devices that train as one from the speed of one device. A step takes the time of
the slowest device and of the sums of gradients that are left when the backward pass ends; sums begin bucket by bucket
during the backward pass. Nothing is measured: the rate comes from rna bench train, the bandwidths come from rna bench
comm or nccl-tests.`,
		Example: `  rna bench scale --rate 3000 --batch 256
  rna bench scale --rate 25 --batch 32 --node 1 --network 3 --gradients float32`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fail := func(format string, args ...any) error {
				return cli.Usage(cmd, fmt.Errorf(format, args...))
			}
			switch gradients {
			case "float32":
				c.Element = 4
			case "bfloat16":
				c.Element = 2
			default:
				return fail("--gradients %s: float32 or bfloat16", gradients)
			}
			if most < 1 || images < 1 || epochs < 1 {
				return fail("--devices %d, --images %d, --epochs %d: at least 1", most, images, epochs)
			}
			var err error
			if c.Buckets, err = bench.BucketsOf(model); err != nil {
				return err
			}
			c.Jitter, c.Link, c.Network, c.Latency = jitter/100, link*1e9, network*1e9, latency/1e6
			var list []bench.Prediction
			for n := 1; n <= most; n *= 2 {
				p, err := c.Predict(n)
				if err != nil {
					return fail("%w", err)
				}
				list = append(list, p)
			}
			return out.Write(cmd.OutOrStdout(), list, func(w io.Writer) error {
				return bench.WriteScale(w, &c, list, images,
					epochs)
			})
		},
	}
	w := cli.NewGroup("One device")
	w.StringVar(&model, "model", "resnet50", "model, see rna models")
	w.Values("model", modelNames()...)
	w.Float64Var(&c.Rate, "rate", 2500, "`images` a second")
	w.IntVar(&c.Batch, "batch", 256, "`images` of a step")
	w.Float64Var(&jitter, "jitter", 1, "standard deviation of a step's time, in `percent`")
	n := cli.NewGroup("Many")
	n.IntVar(&most, "devices", 4096, "largest number of devices")
	n.IntVar(&c.Node, "node", 8, "devices of a node")
	n.Float64Var(&link, "link", 200, "`GB/s` of each device to others of its node")
	n.Float64Var(&network, "network", 25, "`GB/s` of each device to other nodes")
	n.Float64Var(&latency, "latency", 10, "latency of the network in `µs`")
	n.StringVar(&gradients, "gradients", "float32", "type of the gradients that are sent: float32, bfloat16")
	n.Values("gradients", "float32", "bfloat16")
	n.BoolVar(&c.Serial, "serial", false, "begin sums after the backward pass")
	o := cli.NewGroup("Output")
	o.IntVar(&images, "images", 1281167, "images of an epoch")
	o.IntVar(&epochs, "epochs", 90, "epochs of a training")
	out.Add(o)
	cli.AddGroups(cmd, w, n, o)
	return cmd
}

// runMany measures ranks.
func (f *benchFlags) runMany(ctx context.Context, out io.Writer, g *ranks.Group) (err error) {
	if f.threads == 0 {
		f.threads = g.Threads()
	}
	options := f.options()
	if !g.First() { // rank 0 warns about the processor
		options.log = io.Discard
	}
	var dev device.Device
	own, err := launch.OwnDevice(f.device, g)
	if err == nil {
		dev, err = openDevice(own, options)
	}
	if dev, err = launch.Joined(g, dev, err, ""); err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	o := bench.ManyOptions{Options: f.Options, Ranks: g, Rounds: f.rounds, Within: f.within}
	if runtime.NumCPU() >= f.threads*g.Locals() {
		o.Whole = func(threads int) (device.Device, error) {
			options.threads, options.log = threads, io.Discard
			return openDevice(dev.Name(), options)
		}
	}
	r, err := bench.RunMany(ctx, dev, o)
	if err != nil || !g.First() {
		return err
	}
	return f.json.Write(out, r, r.WriteTable)
}
