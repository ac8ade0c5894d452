package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/canvas"
	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/merge"
	"onlinerna/train/replay"
	"onlinerna/train/report"
)

type replayFlags struct {
	data, valData, device, precision, csv, plot string
	bn                                          string
	bnBatches, limit, workers, threads          int
	lambdas, wsm                                []string
	powers                                      []float64
	json                                        cli.JSON
	quiet                                       bool
	opt                                         replay.Options
}

func newReplay() *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:   "replay RUN [options]",
		Short: "Compute other windows and averages of a run without training again",
		Long: `Compute RNA, plain averages and moving averages with other windows and parameters for a run that is over. The
run's weights come from rna train --keep-every 1; nothing is trained again.

Each point gets BatchNorm statistics and scores as in training, beside the weights of the epoch. Lists are combined: two
windows and two lambdas make four curves. A curve begins as soon as there are enough snapshots.`,
		Example: `  rna replay runs/20260102-150405-lenet
  rna replay runs/… --rna-window 5,10 --lambda 1e-9,1e-3,auto --averages 5,10 \
    --ema 0.9 --plot replay.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := f.check(cmd.Flags(), args)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd, args[0])
		},
	}
	p := cli.NewGroup("Points")
	p.IntSliceVar(&f.opt.Windows, "rna-window", nil, "`numbers` of residuals N, each of N + 1 snapshots; 0: no RNA "+
		"(default: the run's)")
	p.StringSliceVar(&f.lambdas, "lambda", nil, "`numbers`, relative to the squared norm of the residuals, inf, or "+
		"auto: by the loss on held-out images (default: the run's)")
	p.Values("lambda", "inf", "auto")
	p.Float64SliceVar(&f.opt.Betas, "beta", nil, "mixing, as `numbers`: 1 combines the x of the residuals, 0 their y "+
		"(default: the run's)")
	p.IntSliceVar(&f.opt.Averages, "averages", nil, "`numbers` of last snapshots to average; 0: none (default: the run's)")
	p.Float64SliceVar(&f.opt.Decays, "ema", nil, "decays of moving averages over the snapshots, as `numbers`")
	p.Float64SliceVar(&f.powers, "power-ema", nil, "γ of power EMAs, as `numbers`, made of those that rna train --ema 5,12 "+
		"--keep-every 1 keeps")
	p.StringSliceVar(&f.wsm, "wsm", nil, "decays of the rate that averages stand for, each `schedule:epochs` as "+
		"linear:3, cosine:3 or 1-sqrt:3, made of the same")
	p.Values("wsm", "linear:", "cosine:", "1-sqrt:")
	p.StringVar(&f.bn, "bn", "", "BatchNorm statistics: last snapshot's, combine, or reestimate on training images "+
		"(default: the run's)")
	p.Values("bn", string(replay.Last), string(replay.Combine), string(replay.Reestimate))
	for _, name := range []string{"beta", "ema", "power-ema"} {
		p.Lookup(name).DefValue = ""
	}
	d := cli.NewGroup("Data")
	d.StringVar(&f.data, "data", "", "`folder` of the images, as of rna train (default: the run's)")
	d.StringVar(&f.valData, "val-data", "", "`folder` of the validation images (default: the run's)")
	d.IntVar(&f.bnBatches, "bn-batches", 0, "batches to re-estimate statistics on (default: the run's)")
	d.IntVar(&f.limit, "limit-val", 0, "batches an evaluation (default: the run's)")
	o := cli.NewGroup("Output")
	o.StringVar(&f.csv, "csv", "", "CSV `file` with a line a point")
	o.StringVar(&f.plot, "plot", "", "`file` with the curves"+canvas.Help)
	o.StringVar(&f.opt.Keep, "keep", "", "`folder` for the weights of all curves in the last epoch")
	f.json.Add(o)
	r := cli.NewGroup("Run")
	r.Cores(&f.workers, "workers", "goroutines that decode images (default: one a core)")
	r.StringVar(&f.device, "device", "auto", deviceHelp)
	r.Values("device", deviceValues...)
	r.StringVar(&f.precision, "precision", "", precisionHelp)
	r.Values("precision", precisionValues...)
	r.Cores(&f.threads, "threads", "threads that compute (default: one a fast core)")
	r.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	cli.AddGroups(cmd, p, d, o, r)
	return cmd
}

// check finds mistakes in the command line, and converts it to options.
func (f *replayFlags) check(set *pflag.FlagSet, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments: want the folder of a run", len(args))
	}
	for _, name := range []string{"limit-val", "bn-batches", "workers", "threads"} {
		if n, err := set.GetInt(name); err != nil || n < 0 {
			return fmt.Errorf("--%s %d: must not be negative", name, n)
		}
	}
	for _, s := range f.lambdas {
		if s == "auto" {
			f.opt.Lambdas = append(f.opt.Lambdas, replay.Lambda{Auto: true})
			continue
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(x) {
			return fmt.Errorf("--lambda %q: want numbers, inf or auto", s)
		}
		f.opt.Lambdas = append(f.opt.Lambdas, replay.Lambda{Value: x})
	}
	f.opt.Stats = replay.Stats(f.bn)
	var err error
	f.opt.Profiles, err = profiles(f.powers, f.wsm)
	return err
}

// profiles returns the averages to make of kept power EMAs.
func profiles(gammas []float64, wsm []string) (list []merge.Profile, err error) {
	for _, g := range gammas {
		if !(g > 0) || math.IsInf(g, 0) {
			return nil, fmt.Errorf("--power-ema %g: must be above 0", g)
		}
		list = append(list, merge.Profile{Gamma: g})
	}
	for _, text := range wsm {
		p, err := merge.ParseProfile(text)
		if err != nil {
			return nil, fmt.Errorf("--wsm: %w", err)
		}
		list = append(list, p)
	}
	return list, nil
}

// complete takes options missing from the command line from the run.
func (f *replayFlags) complete(set *pflag.FlagSet, c *average.Options, snapshots int) error {
	if !set.Changed("rna-window") && c.Mode == average.Offline && c.Window < snapshots {
		f.opt.Windows = []int{c.Window}
	}
	if !set.Changed("averages") && c.Mode != average.Off {
		f.opt.Averages = slices.DeleteFunc(slices.Clone(c.Averages), func(k int) bool { return k > snapshots })
	}
	none := func(n int) bool { return n == 0 }
	f.opt.Windows, f.opt.Averages = slices.DeleteFunc(f.opt.Windows, none), slices.DeleteFunc(f.opt.Averages, none)
	if len(f.opt.Lambdas) == 0 {
		switch {
		case c.Search:
			f.opt.Lambdas = []replay.Lambda{{Auto: true}}
		case c.Lambda != nil:
			f.opt.Lambdas = []replay.Lambda{{Value: *c.Lambda}}
		}
	}
	if len(f.opt.Betas) == 0 && c.Beta != nil && c.Residual != average.Gradients {
		f.opt.Betas = []float64{*c.Beta}
	}
	if len(f.opt.Windows)+len(f.opt.Averages)+len(f.opt.Decays)+len(f.opt.Profiles) == 0 {
		return errors.New("nothing to compute beside the weights themselves: give --rna-window, --averages, --ema, " +
			"--power-ema or --wsm")
	}
	return nil
}

func (f *replayFlags) run(cmd *cobra.Command, dir string) (err error) {
	out, log := cmd.OutOrStdout(), cmd.ErrOrStderr()
	c, err := train.ReadSpec(dir)
	if err != nil {
		return fmt.Errorf("nothing to replay: %w", err)
	}
	options := deviceOptions{threads: f.threads, direct: isFalse(c.Winograd), precision: f.precision, log: log}
	name := chosenDevice(f.device, log)
	kind, _ := device.Parse(name)
	if of, _ := device.Parse(c.Device); f.precision == "" && (kind == of || device.Usual(name) != "") {
		options.precision = c.Precision
		if kind == of {
			options.float32 = c.Float32Way()
		}
	}
	dev, err := openDevice(name, options)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	r, err := replay.Open(dir, train.Deps{Device: dev}, f.adjust)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, r.Close()) }()
	r.Run.Log = func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) }
	if err := f.complete(cmd.Flags(), &r.Config.RNA, len(r.Epochs())); err != nil {
		return err
	}
	bar := terminal.NewBar(log, f.quiet)
	bar.Start("replaying", int64(len(r.Epochs())), terminal.CountSteps)
	f.opt.Progress = func(_, done, _ int) { bar.Set(int64(done)) }
	res, err := r.Curves(cmd.Context(), f.opt)
	bar.Finish()
	if err != nil {
		return cli.Interrupted(cmd.Context(), err)
	}
	rep := report.Replay{Config: r.Config, Result: res}
	if err := files.WriteTo(f.csv, rep.CSV); err != nil {
		return err
	}
	if err := canvas.Draw(f.plot, rep.Plot); err != nil {
		return err
	}
	return f.json.Write(out, res, rep.Table)
}

// adjust changes the location of the run's data, and the limits on batches.
func (f *replayFlags) adjust(c *train.Spec) {
	if f.data != "" && f.data != c.Data {
		c.Data, c.ValData = f.data, ""
	}
	if f.valData != "" {
		c.ValData, c.ValSplit = f.valData, 0
	}
	if f.bnBatches > 0 {
		c.RNA.Batches = f.bnBatches
	}
	if f.limit > 0 {
		c.ValLimit = f.limit
	}
	c.Workers, c.Threads = f.workers, f.threads
}
