package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"onlinerna/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/option"
	"onlinerna/train/profile"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
	"onlinerna/train/recipe"
	"onlinerna/train/report"
)

// trainFlags holds the options of rna train: those of the run, and those of the process.
type trainFlags struct {
	train.Spec                  // from the recipe, the file and the command line
	said       []option.Setting // options of the run on the command line
	process    []option.Setting // other options there

	recipe, configFile, resume string
	dataChanged                string
	orStart                    bool
	quiet, verbose, debugSync  bool
	stopWithin                 time.Duration
	profile                    int
	ranks                      launch.Options
}

// startOptions are of how the options of a run are found.
var startOptions = option.Table[trainFlags]{
	{Name: "config", Group: "Model", Field: func(f *trainFlags) any { return &f.configFile },
		Help: "`file` of options: a run's config.json, or JSON or YAML with the names of options as keys; the command line wins"},
	{Name: "recipe", Group: "Model", Field: func(f *trainFlags) any { return &f.recipe }, Values: recipe.Names,
		Help: "a published way to train; the command line wins"},
}

// processOptions are of the process, not of the run.
var processOptions = slices.Concat(option.Table[trainFlags]{
	{Name: "debug-sync", Group: "Run", Field: func(f *trainFlags) any { return &f.debugSync }, Resumable: true,
		Help: "wait for the GPU after each op, and record no step, so that a failure names the op that caused it: slow (device cuda)"},
	{Name: "resume", Group: "Run", Field: func(f *trainFlags) any { return &f.resume }, Resumable: true,
		Help: "go on with the run in this `folder`, from its last checkpoint"},
	{Name: "resume-or-start", Group: "Run", Field: func(f *trainFlags) any { return &f.orStart },
		Help: "go on with the run in the folder of -o if it has a checkpoint, else start it: one command for jobs that are queued again. " +
			"It waits for a process that writes there. Options that a run keeps must be as at its start; --config and --recipe count at the start"},
	{Name: "data-changed", Group: "Run", Field: func(f *trainFlags) any { return &f.dataChanged }, Values: func() []string { return []string{"ok"} }, Resumable: true,
		Help: "ok: --resume goes on with images that were edited, relabelled or replaced, as many as before"},
	{Name: "stop-within", Group: "Run", Field: func(f *trainFlags) any { return &f.stopWithin }, Resumable: true,
		Help: "`time`, as 20s, after Ctrl-C or a signal by which the run ends even if its step does not: without it each step is finished and saved"},
	{Name: "profile", Group: "Run", Field: func(f *trainFlags) any { return &f.profile }, Check: option.Between(1, train.MaxProfile), Resumable: true,
		Help: "show the time of so many steps, after ten to warm up, by phase, kind of op and layer; and write profile.json, a trace for " +
			"chrome://tracing or Perfetto, into the run's folder"},
}, option.In(launch.Table, func(f *trainFlags) *launch.Options { return &f.ranks }), option.Table[trainFlags]{
	{Name: "quiet", Short: "q", Group: "Run", Field: func(f *trainFlags) any { return &f.quiet }, Resumable: true, Help: "no progress"},
	{Name: "verbose", Group: "Run", Field: func(f *trainFlags) any { return &f.verbose }, Resumable: true,
		Help: "show the losses of all weights in each epoch, and RNA's coefficients in a table at the end"},
})

// groups makes the options flags that set f, under their headings.
func (f *trainFlags) groups() []cli.Group {
	return cli.UnderHeadings(train.Options().Groups(), slices.Concat(cli.Flags(startOptions, f, &f.process), cli.Flags(train.Options(), &f.Spec, &f.said),
		cli.Flags(processOptions, f, &f.process)))
}

// addTo gives cmd the options.
func (f *trainFlags) addTo(cmd *cobra.Command) {
	cli.AddGroups(cmd, f.groups()...)
}

func newTrain() *cobra.Command {
	f := &trainFlags{}
	cmd := &cobra.Command{
		Use:   "train [options]",
		Short: "Train a model, with RNA beside it or put back into it",
		Long: `Train a model with SGD, AdamW, LARS or LAMB, and extrapolate its weights with RNA.

Without options it trains LeNet on generated images of ten shapes: about a minute on two cores. What an
option leaves open is chosen for the data: LeNet for small grey images, ResNet-20 for small colour
images, ResNet-50 for all others. The run's folder holds the config as resolved, metrics, weights, a
checkpoint and a plot.

With --init it fine-tunes: ten steps an epoch or more, 10 to 30 epochs by the number of images, and a low
rate that falls by half a cosine, five times as high for a last layer that has to be learnt.`,
		Example: `  rna train
  rna train --data cifar10 --model resnet20 --epochs 30
  rna train --data imagenet --model resnet50
  rna train --data photos --val-split 0.2 --model resnet18 --init resnet18.pth
  rna train --resume runs/20260102-150405-resnet50
  rna train --resume-or-start -o runs/mine --data imagenet`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.onRanks(cmd, func(g *ranks.Group) error { return runTrain(cmd, f, g) })
		},
	}
	f.addTo(cmd)
	return cmd
}

func runTrain(cmd *cobra.Command, f *trainFlags, g *ranks.Group) (err error) {
	dev, err := f.open(cmd, g)
	dev, err = launch.Joined(g, dev, err, f.CommPrecision)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	out, bar := cli.SteadyOutputs(cmd)
	if !g.First() {
		out, bar = io.Discard, io.Discard
	}
	progress := newProgress(out, bar, f.quiet || !g.First())
	progress.verbose = f.verbose
	run, err := f.prepare(dev, g, progress)
	if err != nil {
		return err
	}
	defer func() { err = device.Closed(err, run.Close()) }()
	run.Log = progress.log
	if !g.First() {
		run.Log = func(format string, args ...any) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", g.Name(g.Rank()), fmt.Sprintf(format, args...))
		}
	}
	if e := run.Resolved.EMA; e > 0 && e < 1 {
		run.Log("--ema %g is the γ of a power average, of which 12 is a good one: a decay is said by --ema-decay %g", e, e)
	}
	if g.First() {
		progress.plot = &livePlot{run: run}
	}
	f.observe(run, progress, out)
	announce(out, run, dev.Name())
	defer f.deadline(cmd.Context(), run.Resolved.Out, bar)()
	err = run.Train(cmd.Context())
	progress.done()
	if err != nil && g.First() && len(run.History) > 0 {
		progress.plot.draw(run.History)
	}
	if failed := (*train.FailedError)(nil); errors.As(err, &failed) && failed.Checkpoint != "" {
		return fmt.Errorf("%w; go on from there with: rna train --resume %s", err, run.Resolved.Out)
	}
	if errors.Is(err, train.ErrInterrupted) {
		fmt.Fprintf(out, "%v\nGo on with: rna train --resume %s\n", err, run.Resolved.Out)
		return cli.ErrStopped
	}
	if err != nil {
		return err
	}
	if g.First() {
		err = summarise(out, run, f.verbose)
	}
	return g.Together(err)
}

// deadline ends the program when a step takes longer than --stop-within after it was told to stop. What it returns takes that back.
func (f *trainFlags) deadline(ctx context.Context, out string, log io.Writer) func() {
	if f.stopWithin == 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		select {
		case <-done:
		case <-time.After(f.stopWithin):
			fmt.Fprintf(log, "rna: stopped within a step, %v after it was told to\nGo on from the checkpoint before with: rna train --resume %s\n", f.stopWithin, out)
			os.Exit(130)
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// observe shows the progress of a run and the profile that --profile asks for.
func (f *trainFlags) observe(run *train.Run, progress *progress, out io.Writer) {
	progress.spec, run.Profile = &run.Resolved.Spec, f.profile
	run.Profiled = func(p *profile.Profile, trace string) {
		progress.done()
		fmt.Fprintln(out)
		p.WriteTable(out)
		if trace != "" {
			fmt.Fprintf(out, "Trace for chrome://tracing or ui.perfetto.dev: %s\n", trace)
		}
		fmt.Fprintln(out)
	}
}

func (f *trainFlags) prepare(dev device.Device, g *ranks.Group, watcher hook.Hook) (*train.Run, error) {
	d := train.Deps{Device: dev, Ranks: g, Hooks: []hook.Hook{watcher}, DataChanged: f.dataChanged != ""}
	if f.resume == "" {
		c := f.Spec
		c.Out = cmp.Or(c.Out, train.AutoOut)
		return train.New(c, d)
	}
	return train.Resume(f.resume, d, func(c *train.Spec) {
		train.Options().Apply(c, f.said...) // which were checked
		c.Device, c.Precision = f.Device, f.Precision
		if !g.Single() {
			c.Threads, c.Workers = f.Threads, f.Workers
		}
	})
}

// announce says what is going to run.
func announce(w io.Writer, r *train.Run, device string) {
	c := &r.Resolved
	images, val := r.Images()
	line := func(format string, args ...any) {
		fmt.Fprintln(w, terminal.Wrap(w, fmt.Sprintf(format, args...), "  "))
	}
	line("%s, %s parameters, on %s: %s images of %d classes at %d×%d, %s for validation",
		c.Model, text.Thousands(r.Net.Params.Len()), cmp.Or(c.Data, "glyphs"), text.Thousands(images), len(c.Classes), c.ImageSize, c.ImageSize, text.Thousands(val))
	batch := fmt.Sprint(c.Batch)
	if c.Accumulate > 1 {
		batch = fmt.Sprintf("%d × %d", c.Batch, c.Accumulate)
	}
	line("%s, batch %s, %s, device %s", text.Count(c.Epochs, "epoch"), batch, c.OptimizerLine(), strings.TrimSpace(device+" "+c.Precision))
	if g := r.Ranks; !g.Single() {
		fmt.Fprintf(w, "%v: %s images a step, %s a rank\n", g, text.Thousands(c.Batch*c.Accumulate*g.Size()), text.Count(g.Threads(), "thread"))
	}
	if c.Fit != nil {
		line("%v", c.Fit)
	}
	for _, note := range c.Notes {
		line("%s", note)
	}
	switch c.RNA.Mode {
	case average.Off:
		fmt.Fprintln(w, "RNA off")
	default:
		fmt.Fprintf(w, "RNA %s, window %d, %s, beta %g, from epoch %d on\n", c.RNA.Mode, c.RNA.Window, c.RNA.Rule(), *c.RNA.Beta, c.RNA.Start)
	}
	if c.RNA.Mode == average.Online {
		line("%s online RNA looks better at once and costs progress on most nets; compare with --rna offline.", terminal.StyleOf(w).Warning("Warning:"))
	}
	if n := len(r.History); n > 0 || stepsOf(r) > 0 {
		epoch, batches, steps := r.Position()
		if batches > 0 {
			fmt.Fprintf(w, "Resumed in epoch %d, after step %d of the run\n", epoch, steps)
		} else {
			fmt.Fprintf(w, "Resumed after epoch %d\n", epoch-1)
		}
	}
}

func stepsOf(r *train.Run) int { _, _, steps := r.Position(); return steps }

// summarise prints the table of the results and writes the plot.
func summarise(w io.Writer, r *train.Run, verbose bool) error {
	fmt.Fprintln(w)
	if err := report.Table(w, r.Resolved.Spec, r.History); err != nil {
		return err
	}
	if verbose && report.Extrapolated(r.History) {
		fmt.Fprintln(w)
		if err := report.CoefficientTable(w, r.History); err != nil {
			return err
		}
	}
	dir := r.Resolved.Out
	names, err := drawRun(r.Resolved.Spec, r.History)
	if err != nil {
		return err
	}
	names = append(names, "final.safetensors", "best.safetensors", "metrics.jsonl", "config.json")
	names = append(names, "rna.safetensors", "ema.safetensors")
	for _, k := range r.Resolved.RNA.Averages {
		names = append(names, fmt.Sprintf("average-%d.safetensors", k))
	}
	var there []string
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(dir, n)); err == nil {
			there = append(there, n)
		}
	}
	fmt.Fprintf(w, "\n%s\n", terminal.Wrap(w, dir+": "+strings.Join(there, ", "), "  "))
	return nil
}
