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

	"onlinerna/cmd/internal/cli"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/evaluate"
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
	process    []option.Setting // other options on the command line

	recipe, configFile, resume string
	dataChanged                string
	orStart                    bool
	quiet, verbose, debugSync  bool
	noReport                   bool
	stopWithin                 time.Duration
	profile                    int
	ranks                      launch.Options
}

// startOptions determine the source of a run's options.
var startOptions = option.Table[trainFlags]{
	{Name: "config", Group: "Model", Field: func(f *trainFlags) any { return &f.configFile },
		Help: "`file` of options: a run's config.json, or JSON or YAML with the names of options as keys; the command " +
			"line wins"},
	{Name: "recipe", Group: "Model", Field: func(f *trainFlags) any { return &f.recipe }, Values: recipe.Names,
		Help: "a published way to train; the command line wins"},
}

// processOptions configure the process, not the run.
var processOptions = slices.Concat(option.Table[trainFlags]{
	{Name: "debug-sync", Group: "Run", Field: func(f *trainFlags) any { return &f.debugSync }, Resumable: true,
		Help: "wait for the GPU after each op, and record no step, so that a failure names the op that caused it: slow " +
			"(device cuda)"},
	{Name: "resume", Group: "Run", Field: func(f *trainFlags) any { return &f.resume }, Resumable: true,
		Help: "go on with the run in this `folder`, from its last checkpoint"},
	{Name: "resume-or-start", Group: "Run", Field: func(f *trainFlags) any { return &f.orStart },
		Help: "go on with the run in the folder of -o if it has a checkpoint, else start it: one command for jobs that " +
			"are queued again. " +
			"It waits for a process that writes there. Options that a run keeps must be as at its start; --config and " +
			"--recipe count at the start"},
	{Name: "data-changed", Group: "Run", Field: func(f *trainFlags) any { return &f.dataChanged },
		Values: func() []string { return []string{"ok"} }, Resumable: true,
		Help: "ok: --resume goes on with images that were edited, relabelled or replaced, as many as before"},
	{Name: "stop-within", Group: "Run", Field: func(f *trainFlags) any { return &f.stopWithin }, Resumable: true,
		Help: "`time`, as 20s, after Ctrl-C or a signal by which the run ends even if its step does not: without it each " +
			"step is finished and saved"},
	{Name: "profile", Group: "Run", Field: func(f *trainFlags) any { return &f.profile }, Check: option.Between(1,
		train.MaxProfile), Resumable: true,
		Help: "show the time of so many steps, after ten to warm up, by phase, kind of op and layer; and write " +
			"profile.json, a trace for " +
			"chrome://tracing or Perfetto, into the run's folder"},
}, option.In(launch.Table, func(f *trainFlags) *launch.Options { return &f.ranks }), option.Table[trainFlags]{
	{Name: "quiet", Short: "q", Group: "Run", Field: func(f *trainFlags) any { return &f.quiet }, Resumable: true,
		Help: "no progress"},
	{Name: "verbose", Group: "Run", Field: func(f *trainFlags) any { return &f.verbose }, Resumable: true,
		Help: "show the losses of all weights in each epoch, and RNA's coefficients in a table at the end"},
	{Name: "no-report", Group: "Run", Field: func(f *trainFlags) any { return &f.noReport }, Resumable: true,
		Help: noReportHelp},
})

// groups returns flags, under their headings, that set f.
func (f *trainFlags) groups() []cli.Group {
	return cli.UnderHeadings(train.Options().Groups(), slices.Concat(cli.Flags(startOptions, f, &f.process),
		cli.Flags(train.Options(), &f.Spec, &f.said),
		cli.Flags(processOptions, f, &f.process)))
}

// addTo adds the options to cmd.
func (f *trainFlags) addTo(cmd *cobra.Command) {
	cli.AddGroups(cmd, f.groups()...)
}

func newTrain() *cobra.Command {
	f := &trainFlags{}
	cmd := &cobra.Command{
		Use:   "train [options]",
		Short: "Train a model, with RNA beside it or put back into it",
		Long: `Train a model with SGD, AdamW, LARS, LAMB or another optimiser, and extrapolate its weights with RNA.

Without options it trains LeNet on generated images of ten shapes: about a minute on two cores. Other defaults depend on
the data: LeNet for small grey images, ResNet-20 for small colour images, ResNet-50 for all others. The run's folder
holds the resolved config, metrics, weights, a checkpoint and a plot.

With --init it fine-tunes: at least ten steps an epoch, 10 to 30 epochs by the number of images, and a low rate that
falls by half a cosine, five times as high for a new last layer. With --teacher it also learns the probabilities of
another net.`,
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
	progress := report.NewProgress(out, bar, f.quiet || !g.First())
	progress.Verbose = f.verbose
	run, err := f.prepare(dev, g, progress)
	if err != nil {
		return err
	}
	closeRun := sync.OnceValue(run.Close)
	defer func() { err = device.Closed(err, closeRun()) }()
	run.Log = progress.Log
	if !g.First() {
		run.Log = func(format string, args ...any) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", g.Name(g.Rank()), fmt.Sprintf(format, args...))
		}
	}
	if e := run.Resolved.ScoredEMA(); e > 0 && e < 1 {
		run.Log("--ema %g is the γ of a power average, of which 12 is a good one: a decay is said by --ema-decay %g", e, e)
	}
	if g.First() {
		progress.Live = &report.Live{Run: run}
	}
	f.observe(run, progress, out)
	report.Announce(out, run, dev.Name())
	defer f.deadline(cmd.Context(), "Go on from the checkpoint before with: rna train --resume "+run.Resolved.Out, bar)()
	err = run.Train(cmd.Context())
	progress.Done()
	if err != nil && g.First() && len(run.History) > 0 {
		progress.Live.Draw(run.History)
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
		err = report.Summarise(out, run, f.verbose)
	}
	if err = g.Together(err); err != nil || f.noReport {
		return err
	}
	return pageOfRun(cmd.Context(), run, closeRun, dev, g, out, bar)
}

// deadline ends the program if a step takes longer than --stop-within after it was told to stop; it then prints the
// advice. The function that it returns cancels the deadline.
func (f *trainFlags) deadline(ctx context.Context, advice string, log io.Writer) func() {
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
			fmt.Fprintf(log, "rna: stopped within a step, %v after it was told to\n%s\n", f.stopWithin, advice)
			os.Exit(130)
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// observe makes the run profile and display the steps of --profile.
func (f *trainFlags) observe(run *train.Run, progress *report.Progress, out io.Writer) {
	progress.Spec, run.Profile = &run.Resolved.Spec, f.profile
	run.Profiled = func(p *profile.Profile, trace string) {
		progress.Done()
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
		train.Options().Apply(c, f.said...) // checked before
		c.Teacher = cmp.Or(f.Teacher, c.Teacher)
		c.Device, c.Precision = f.Device, f.Precision
		if !g.Single() {
			c.Threads, c.Workers = f.Threads, f.Workers
		}
	})
}

// build combines the recipe or the file with the command line, which wins.
func (f *trainFlags) build() error {
	var c train.Spec
	options := train.Options()
	switch {
	case f.configFile != "" && f.recipe != "":
		return errors.New("--config and --recipe exclude each other")
	case f.configFile != "":
		list, err := train.ReadOptions(f.configFile)
		if err != nil {
			return err
		}
		if err := options.Apply(&c, list...); err != nil {
			return fmt.Errorf("%s: %w", f.configFile, err)
		}
		if _, err := os.Stat(filepath.Join(c.Out, "config.json")); err == nil { // the run that the file belongs to
			c.Out = ""
		}
	case f.recipe != "":
		r, err := recipe.Find(f.recipe)
		if err != nil {
			return err
		}
		if err := options.Apply(&c, r.Settings...); err != nil {
			return fmt.Errorf("recipe %s: %w", r.Name, err)
		}
	}
	if err := options.Apply(&c, f.said...); err != nil {
		return cli.Dashed(err)
	}
	for _, weights := range []*string{&c.Init, &c.Teacher} {
		if run, err := evaluate.FindRun(*weights); err != nil {
			return err
		} else if run != nil {
			*weights = run.File
		}
	}
	c.NoteGiven()
	f.Spec = c
	var idle []option.Setting
	for _, x := range f.said {
		if strings.HasPrefix(x.Name, "rna-") || x.Name == "averages" {
			idle = append(idle, x)
		}
	}
	if f.RNA.Mode == average.Off && len(idle) > 0 {
		return fmt.Errorf("--rna off does not take %s", cli.Said(idle))
	}
	return nil
}

// onRanks calls run on the ranks given by the options and the launcher.
func (f *trainFlags) onRanks(cmd *cobra.Command, run func(g *ranks.Group) error) error {
	return f.ranks.Run(cmd.Context(), f.wanted(), run)
}

// open checks the options and opens the device.
func (f *trainFlags) open(cmd *cobra.Command, g *ranks.Group) (device.Device, error) {
	said := cmd.Flags().Changed
	if f.orStart {
		if err := f.resumeOrStart(cmd, g); err != nil {
			return nil, err
		}
	} else if f.resume != "" {
		if wrong := f.fixed(); len(wrong) > 0 {
			return nil, cli.Usage(cmd, fmt.Errorf("--resume goes on with the options of the run; it does not take %s",
				cli.Said(wrong)))
		}
	}
	if f.dataChanged != "" && f.resume == "" && !f.orStart {
		return nil, cli.Usage(cmd, errors.New("--data-changed is of a run that goes on: give --resume, too"))
	}
	if err := f.build(); err != nil {
		return nil, cli.Usage(cmd, err)
	}
	recorded := f.Device // a file may name the device
	f.Device = cmp.Or(f.Device, "auto")
	if f.recipe != "" && g.First() {
		f.tellRecipe(cmd.OutOrStdout())
	}
	if said("comm-precision") && g.Single() {
		return nil, cli.Usage(cmd,
			errors.New("--comm-precision is for several GPUs, as --device cuda:all: there is one process"))
	}
	if !g.Single() {
		if f.Threads == 0 {
			f.Threads = g.Threads()
		}
		if f.Workers == 0 {
			f.Workers = g.Workers()
		}
	}
	options := deviceOptions{threads: f.Threads, direct: isFalse(f.Winograd), debugSync: f.debugSync,
		float32: f.Float32, precision: f.Precision, deterministic: f.Deterministic}
	if f.resume != "" {
		c, err := train.ReadSpec(f.resume)
		if err != nil {
			return nil, fmt.Errorf("nothing to resume: %w", err)
		}
		recorded = c.Device
		if !said("device") && c.Device != "" {
			f.Device = c.Device
		}
		options.direct, options.deterministic, f.CommPrecision = isFalse(c.Winograd), c.Deterministic, c.CommPrecision
		if !said("float32") {
			options.float32 = c.Float32Way()
		}
		if !said("precision") {
			options.precision = c.Precision
			if c.Precision == "" && device.Usual(c.Device) != "" {
				options.precision = op.Float32.String() // the only one, if none was recorded
			}
		}
	}
	own, err := launch.OwnDevice(f.Device, g)
	if err != nil {
		return nil, err
	}
	if f.Device == "auto" && !g.Single() { // for the resumed run
		f.Device, _ = device.Parse(own)
	}
	own = chosenDevice(own, cmd.ErrOrStderr())
	d := device.Of(own)
	if !said("float32") && len(d.Float32) == 0 {
		options.float32 = "" // the record of another device
	}
	if p := options.precision; p != "" && !said("precision") && p == device.Usual(recorded) && device.Usual(own) != p {
		return nil, fmt.Errorf("the run's precision %s was that of device %s: on device %s give one of --precision %s, "+
			"of which the first may be faster", p, recorded, own, strings.Join(d.Precisions, ", "))
	}
	if !launch.Several(f.Device) && g.Single() {
		f.Device = own
	}
	f.Precision, options.log = options.resolved(own), cmd.ErrOrStderr()
	if d.Several == nil && !g.First() { // rank 0 reports a device shared by ranks
		options.log = io.Discard
	}
	return openDevice(own, options)
}

// wanted returns the name of the device that the user requests, before the available ones are known.
func (f *trainFlags) wanted() string {
	if dir := cmp.Or(f.resume, f.started()); dir != "" && f.Device == "" {
		if c, err := train.ReadSpec(dir); err == nil && c.Device != "" {
			return c.Device
		}
	}
	return cmp.Or(f.Device, "auto")
}

// started returns the folder of --resume-or-start, "" without it.
func (f *trainFlags) started() string {
	for _, x := range f.said {
		if f.orStart && x.Name == "out" {
			return x.Text
		}
	}
	return ""
}

// resumeOrStart turns the command line into that of a resumed run, if its folder has a checkpoint.
func (f *trainFlags) resumeOrStart(cmd *cobra.Command, g *ranks.Group) error {
	dir := f.started()
	if f.resume != "" || dir == "" || dir == train.AutoOut {
		return cli.Usage(cmd, errors.New("--resume-or-start is for the run in a folder of its own: name that by -o, "+
			"without --resume"))
	}
	there, err := false, error(nil)
	if g.First() {
		there, err = train.Await(cmd.Context(), dir, func(holder error) { fmt.Fprintln(cmd.ErrOrStderr(), holder) })
	}
	if err = g.Together(err); err == nil {
		err = g.Share(&there)
	}
	if err != nil || !there {
		return err
	}
	c, err := train.ReadSpec(dir)
	if err != nil {
		return err
	}
	var kept []option.Setting
	var wrong []string
	for _, x := range f.said {
		switch o := train.Options().Find(x.Name); {
		case o.Resumable:
			kept = append(kept, x)
		case x.Name == "out" || x.Name == "init" || x.Text == "auto": // resolved at the start
		default:
			trial := c
			if err := train.Options().Apply(&trial, x); err != nil {
				return cli.Usage(cmd, cli.Dashed(err))
			}
			if o.Text(&trial) != o.Text(&c) {
				wrong = append(wrong, fmt.Sprintf("--%s %s", x.Name, cmp.Or(o.Text(&c), "left out")))
			}
		}
	}
	if len(wrong) > 0 {
		return cli.Usage(cmd, fmt.Errorf("the run in %s was started with %s: say the same, or choose another folder", dir,
			strings.Join(wrong, ", ")))
	}
	f.resume, f.said, f.configFile, f.recipe = dir, kept, "", ""
	return nil
}

// fixed lists the options on the command line that a resumed run does not accept.
func (f *trainFlags) fixed() (list []option.Setting) {
	for _, x := range f.said {
		if !train.Options().Find(x.Name).Resumable {
			list = append(list, x)
		}
	}
	for _, x := range f.process {
		if o := processOptions.Find(x.Name); o == nil || !o.Resumable {
			list = append(list, x)
		}
	}
	return list
}

func isFalse(b *bool) bool { return b != nil && !*b }
