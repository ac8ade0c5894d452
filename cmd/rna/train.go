package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/data"
	"onlinerna/data/format"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/profile"
	"onlinerna/train/ranks"
	"onlinerna/train/report"
)

// trainFlags holds what the command line says; what it leaves out is resolved from the data.
type trainFlags struct {
	train.Config
	decay, tau, beta            float64
	maxBad                      data.MaxBad
	hyper                       map[string]*float64
	final                       float64
	shuffle                     bool
	classesFile, device, resume string
	quiet, verbose, debugSync   bool
	precision                   string
	deterministic               bool
	averages                    []int
	ranks                       ranksFlags
	valCrop                     int
	ramp                        []int
	recipe                      string
	configFile                  string
	stopWithin                  time.Duration
	profile                     int
	file                        *train.Config // what is in it
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
  rna train --resume runs/20260102-150405-resnet50`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.onRanks(cmd, func(g *ranks.Group) error { return runTrain(cmd, f, g) })
		},
	}
	addGroups(cmd, f.groups()...)
	return cmd
}

func (f *trainFlags) groups() []group {
	d := newGroup("Data")
	d.StringVar(&f.Data, "data", "glyphs", "`folder` with train/ and val/ (or test/), train-*.tar and val-*.tar, or CIFAR's or MNIST's files; or a name of \"rna get\"; glyphs: generated")
	d.StringVar(&f.ValData, "val-data", "", "`folder` of the validation images, if not beside the training set")
	d.Float64Var(&f.ValSplit, "val-split", 0, "share of each class to validate on and not to train on, where there are no validation images")
	d.StringVar(&f.classesFile, "classes", "", "`file` with the names of the classes by index, one a line (default: those of the training set, sorted)")
	d.IntVar(&f.NumClasses, "num-classes", 0, "outputs of the net (default: the data's classes)")
	d.IntVar(&f.ImageSize, "image-size", 0, "height and width of the net's input (default: the data's, 224 for photographs)")
	d.floats(&f.Mean, "mean", "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: the usual ones for the data)")
	d.floats(&f.Std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	d.StringVar(&f.Augment, "augment", "auto", strings.Join(data.Augmentations(), ", ")+"; none: as in evaluation")
	d.values("augment", data.Augmentations()...)
	f.pictures(d)
	d.BoolVar(&f.shuffle, "shuffle", true, "a new order of the images in each epoch")
	d.cores(&f.Workers, "workers", "goroutines that decode images (default: one a core)")
	d.decodeMemory(&f.DecodeMemory)
	d.Float64Var(&f.Holdout, "holdout", 0, "share of the training set kept from training, by which the best weights are chosen (default: the validation images choose)")
	d.maxBad(&f.maxBad)

	m := newGroup("Model")
	m.StringVar(&f.configFile, "config", "", "`file` of options: a run's config.json, or JSON or YAML with the same keys; the command line wins")
	m.StringVar(&f.recipe, "recipe", "", "a published way to train, whose options others overrule: "+strings.Join(train.RecipeNames(), ", "))
	m.values("recipe", train.RecipeNames()...)
	m.StringVar(&f.Model, "model", "", "model, as listed by 'rna models' (default: that of --init, or by the data)")
	m.values("model", modelNames()...)
	m.StringVar(&f.Init, "init", "", "`file` with the weights to start from: safetensors, or what torch.save wrote, the folder of a run, "+
		"or a name of \"rna get\", as resnet18; a last layer of another size starts fresh. "+
		"Batch, epochs, rates and schedule are then by default those of fine-tuning")
	m.StringVar(&f.InitKey, "key", "", keyHelp)
	m.StringSliceVar(&f.Freeze, "freeze", nil, "leave the parameters of these names, and the statistics of their BatchNorm, as they are: comma-separated `patterns`, as layer[12].*; !fc.* is all but fc.*")
	m.BoolVar(&f.ZeroInit, "zero-init", false, "start residual blocks as the identity: their last BatchNorm scale is 0")
	m.BoolVar(&f.BlurPool, "blurpool", false, "blur what convolutions of a stride above 1 take, against aliasing")
	m.Uint64Var(&f.Seed, "seed", 0, "of initial weights, order and augmentation")

	o := newGroup("Optimiser")
	o.Var(batchFlag{&f.Batch}, "batch", "`images` a forward pass; auto: as many as fit in the memory that is free (default: by the data)")
	o.values("batch", "auto")
	o.IntVar(&f.Accumulate, "accumulate", 0, "batches a step, for a larger effective batch (default: by the data, 1 with --batch)")
	o.IntVar(&f.Epochs, "epochs", 0, "epochs (default: by the data)")
	o.Float64Var(&f.Schedule.Rate, "lr", 0, "learning rate at the start (default: by the data; "+train.RateDefaults()+")")
	o.Float64Var(&f.HeadRate, "head-lr", 0, "learning rate of the last layer at the start (default: --lr; five times the default rate where --init leaves it to be learnt)")
	o.Float64Var(&f.LayerDecay, "layer-decay", 0, "factor of the learning rate from each layer or block to the one before it (default 1)")
	o.StringVar((*string)(&f.Schedule.Kind), "schedule", "", "linear (the paper's, a step an epoch), constant, step, multi, cosine, poly, one-cycle, hold: constant, then linear (default: by the data)")
	o.values("schedule", words(train.Schedules)...)
	o.Float64Var(&f.final, "lr-final", 0, "learning rate at the end of linear, hold, cosine, poly and one-cycle (default: a hundredth of --lr; 0 for cosine and poly)")
	o.Float64Var(&f.Schedule.Gamma, "lr-gamma", 0, "factor of step and multi (default 0.1)")
	o.IntVar(&f.Schedule.StepEvery, "lr-step", 0, "epochs between the steps of step (default: a third of --epochs)")
	o.Float64Var(&f.Schedule.Power, "lr-power", 0, "power of poly (default 1)")
	o.IntSliceVar(&f.Schedule.Milestones, "lr-milestones", nil, "epochs of multi, counted from 0")
	o.IntVar(&f.Schedule.HoldFor, "lr-hold", 0, "epochs at the constant rate of hold (default: five sixths of --epochs)")
	o.Float64Var(&f.Schedule.Warmup, "warmup", 0, "epochs of linear warm-up, also a fraction of one")
	o.IntVar(&f.Schedule.WarmupSteps, "warmup-steps", 0, "steps of linear warm-up, instead")
	o.Float64Var(&f.Schedule.WarmupFrom, "warmup-from", 0, "rate at which the warm-up starts, as a fraction of --lr (default 0.01; a 25th for one-cycle)")
	o.BoolVar(&f.Schedule.WarmupInside, "warmup-inside", false, "the schedule starts with the run, under the warm-up, as timm's; else behind it")
	o.StringVar((*string)(&f.Schedule.By), "schedule-by", "", "epoch: the rate is constant within an epoch; step: each step has its own (default: epoch; step for one-cycle and a warm-up that does not end with an epoch)")
	o.values("schedule-by", string(train.ByEpoch), string(train.ByStep))
	o.StringVar(&f.Optimizer, "optimizer", "sgd", strings.Join(train.Optimizers(), ", "))
	o.values("optimizer", train.Optimizers()...)
	f.hyper = make(map[string]*float64)
	for _, h := range train.Hyperparameters() {
		f.hyper[h.Name] = o.Float64(h.Name, 0, h.Help)
	}
	o.BoolVar(&f.Nesterov, "nesterov", false, "Nesterov's form of momentum, with sgd and lars")
	o.Float64Var(&f.decay, "weight-decay", 0, "weight decay (default: 1e-4, 5e-4 for LeNet's data; "+train.DecayDefaults()+")")
	o.BoolVar(&f.DecayWeightsOnly, "decay-weights-only", false, "exempt BatchNorm and biases from weight decay")
	o.StringSliceVar(&f.NoDecay, "no-decay", nil, "exempt the parameters of these names from weight decay: comma-separated `patterns`, as *.bias,fc.*")
	o.Float64Var(&f.ClipGrad, "clip-grad", 0, "scale the gradient down to this norm where it is longer (default: never)")
	o.Float64Var(&f.ClipValue, "clip-value", 0, "cut each element of the gradient to this size (default: never)")
	o.Float64Var(&f.LabelSmoothing, "label-smoothing", 0, "label smoothing")
	f.regularize(o)

	o.Float64Var(&f.EMA, "ema", 0, "power average beside training: x += (γ+1)/(t+γ)·(w − x) at step t, for this γ; 12 is a good one (default: none)")
	o.Float64Var(&f.EMADecay, "ema-decay", 0, "average with this decay beside training, x = d·x + (1−d)·w, as 0.9999 (default: none)")
	o.IntVar(&f.EMAEvery, "ema-every", 0, "steps from one such average to the next (default 1)")

	r := newGroup("RNA")
	r.StringVar((*string)(&f.RNA.Mode), "rna", string(train.Offline), "off, offline: beside training, online: put back (on nets this costs progress, see the README)")
	r.values("rna", string(train.Off), string(train.Offline), string(train.Online))
	r.IntVar(&f.RNA.Window, "rna-window", 0, "residuals N, from N + 1 epochs (default: min(10, max(3, epochs/2)), 5 for small grey images)")
	r.Var(lambdaFlag{&f.RNA}, "rna-lambda", "regularisation, relative to the squared norm of the residuals; auto: chosen by held-out loss, with --holdout (default 1e-9)")
	r.values("rna-lambda", "auto")
	r.Float64Var(&f.tau, "rna-tau", 0, "bound the norm of the coefficients to (1+tau)/√N instead of regularising (CNA)")
	r.Float64Var(&f.beta, "rna-beta", 1, "mixing: 1 combines the snapshots, 0 those before them; with gradients 0, the default there, combines the snapshots")
	r.IntVar(&f.RNA.Start, "rna-start", 2, "first epoch whose weights are used")
	r.IntVar(&f.RNA.PerEpoch, "rna-per-epoch", 1, "snapshots an epoch; the window and --averages count them")
	r.BoolVar(&f.RNA.SegmentMeans, "rna-segment-means", false, "snapshots are the mean of the weights since the one before, not the weights")
	r.StringVar((*string)(&f.RNA.Residual), "rna-residual", string(train.Weights), "weights: differences of snapshots, or gradients: their mean since the snapshot before")
	r.values("rna-residual", string(train.Weights), string(train.Gradients))
	r.IntVar(&f.RNA.Every, "rna-every", 1, "epochs from one extrapolation to the next")
	r.StringVar((*string)(&f.RNA.Stats), "rna-bn", string(train.Reestimate), "BatchNorm statistics of combined weights: reestimate on training batches, or combine those of the snapshots")
	r.values("rna-bn", string(train.Reestimate), string(train.Combine))
	r.IntVar(&f.RNA.Batches, "rna-bn-batches", 20, "batches to re-estimate on")
	r.StringVar((*string)(&f.RNA.Momentum), "rna-momentum", string(train.Reset), "momentum when weights are put back: reset or keep")
	r.values("rna-momentum", string(train.Reset), string(train.Keep))
	r.BoolVar(&f.RNA.Accept, "rna-accept", false, "put weights back only if the held-out loss does not rise, with --holdout")
	r.IntSliceVar(&f.averages, "averages", nil, "plain averages of this many last epochs to show beside RNA (default: by the data)")

	s := newGroup("Run")
	s.StringVar(&f.device, "device", "auto", deviceHelp)
	s.values("device", deviceValues...)
	s.cores(&f.Threads, "threads", "threads that compute (default: one a fast core); results do not depend on it")
	s.BoolVar(&f.Winograd, "winograd", true, winogradHelp)
	s.BoolVar(&f.LowMemory, "low-memory", false, lowMemoryHelp)
	s.StringVar(&f.precision, "precision", "", precisionHelp)
	s.values("precision", precisionValues...)
	s.BoolVar(&f.deterministic, "deterministic", false, deterministicHelp)
	s.BoolVar(&f.debugSync, "debug-sync", false, debugSyncHelp)
	s.StringVarP(&f.Out, "out", "o", "", "`folder` of the run (default: runs/<time>-<model>)")
	s.BoolVar(&f.TensorBoard, "tensorboard", false, "write losses, errors and rates for TensorBoard, too, into the run's folder: tensorboard --logdir runs")
	s.StringVar(&f.resume, "resume", "", "go on with the run in this `folder`, from its last checkpoint")
	f.CheckpointEvery = 1
	s.Var((*everyValue)(&f.Config), "checkpoint-every", "from one checkpoint to the next: epochs, as 2, or steps, as 500steps, or time, as 10m; an interrupted run writes one too")
	s.IntVar(&f.CheckpointKeep, "checkpoint-keep", 2, "newest checkpoints to keep, so that there is another where one is damaged")
	s.DurationVar(&f.stopWithin, "stop-within", 0, "`time`, as 20s, after Ctrl-C or a signal by which the run ends even if its step does not: without it each step is finished and saved")
	s.IntVar(&f.KeepEvery, "keep-every", 0, "keep the weights of every so many epochs, complete, in the folder kept of the run")
	s.IntVar(&f.KeepBest, "keep-best", 0, "keep those of the so many best epochs there, by --best-by")
	s.StringVar(&f.BestBy, "best-by", "", "error or loss: the `measure`, on held-out images, else on validation images, by which best.safetensors is chosen among all weights of the table and all epochs (default: error)")
	s.values("best-by", train.ByError, train.ByLoss)
	s.IntVar(&f.profile, "profile", 0, "show what so many steps, after ten to warm up, spend their time on, by phase, kind of op and layer; and write profile.json, a trace for chrome://tracing or Perfetto, into the run's folder")
	s.IntVar(&f.StepsLimit, "limit-batches", 0, "batches an epoch, for a quick look (default: all)")
	s.IntVar(&f.ValLimit, "limit-val", 0, "batches an evaluation (default: all)")
	f.ranks.add(s)
	s.StringVar(&f.CommPrecision, "comm-precision", "", "what gradients are sent as between GPUs: "+strings.Join(commPrecisions, " or ")+"; sums are float32 in both (default: float32)")
	s.values("comm-precision", commPrecisions...)
	s.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	s.BoolVar(&f.verbose, "verbose", false, "show the losses of all weights in each epoch, and RNA's coefficients in a table at the end")
	s.BoolP("help", "h", false, "this help")
	return []group{d, m, o, r, s}
}

// resumable lists the options that may go with --resume: they do not change what is computed, but for rounding.
var resumable = map[string]bool{"resume": true, "workers": true, "decode-memory": true, "threads": true, "low-memory": true, "device": true, "precision": true, "max-bad": true, "quiet": true, "verbose": true, "debug-sync": true, "data": true, "val-data": true,
	"distributed": true, "comm-timeout": true, "epochs": true, "checkpoint-every": true, "checkpoint-keep": true, "stop-within": true, "profile": true}

// positive are the options that have no meaning at 0.
var positive = []string{"num-classes", "image-size", "accumulate", "epochs", "lr", "head-lr", "layer-decay", "lr-gamma", "lr-step", "lr-hold", "lr-power", "warmup-steps", "clip-grad", "clip-value", "ema-decay", "ema-every",
	"val-crop", "val-resize", "val-split", "train-crop", "train-crop-from", "repeat-augment",
	"rna-window", "rna-start", "rna-per-epoch", "rna-every", "rna-bn-batches", "checkpoint-keep", "profile"}

// check finds mistakes that the config does not show: there what is 0 was not said.
func (f *trainFlags) check(set *pflag.FlagSet) error {
	for _, name := range positive {
		if g := set.Lookup(name); g.Changed && g.Value.String() == "0" {
			return fmt.Errorf("--%s 0: must be above 0", name)
		}
	}
	var idle []string
	set.Visit(func(g *pflag.Flag) {
		if strings.HasPrefix(g.Name, "rna-") || g.Name == "averages" {
			idle = append(idle, "--"+g.Name)
		}
	})
	if f.RNA.Mode == train.Off && len(idle) > 0 {
		return fmt.Errorf("--rna off does not take %s", strings.Join(idle, ", "))
	}
	return nil
}

// config turns the flags into a config.
func (f *trainFlags) config(set *pflag.FlagSet) (train.Config, error) {
	c := f.Config
	if run, err := findRun(c.Init); err != nil {
		return c, err
	} else if run != nil {
		c.Init = run.file
	}
	for _, h := range train.Hyperparameters() {
		if set.Changed(h.Name) {
			*h.Field(&c) = f.hyper[h.Name]
		}
	}
	if set.Changed("weight-decay") {
		c.WeightDecay = &f.decay
	}
	if set.Changed("lr-final") {
		c.Schedule.Final = &f.final
	}
	if set.Changed("rna-tau") {
		c.RNA.Tau = &f.tau
	}
	if set.Changed("rna-beta") {
		c.RNA.Beta = &f.beta
	}
	if f.says(set, "max-bad") {
		c.MaxBad = &f.maxBad
	}
	if f.valCrop > 0 { // --image-size is then that of training
		if c.TrainSize == 0 {
			c.TrainSize = c.ImageSize
		}
		c.ImageSize = f.valCrop
	}
	if len(f.ramp) > 0 {
		if len(f.ramp) != 2 {
			return c, fmt.Errorf("--train-crop-ramp %v: give two epochs, as 4,13", f.ramp)
		}
		c.TrainRamp = [2]int{f.ramp[0], f.ramp[1]}
	}
	if f.says(set, "averages") {
		c.RNA.Averages = f.averages
	}
	if f.says(set, "shuffle") {
		c.NoShuffle = !f.shuffle
	}
	c.Device = f.device
	c.Precision, c.Deterministic = f.precision, f.deterministic
	if set.Changed("averages") && c.RNA.Averages == nil {
		c.RNA.Averages = []int{}
	}
	if c.Out == "" {
		c.Out = train.AutoOut
	}
	if f.classesFile != "" {
		names, err := format.ReadClasses(f.classesFile)
		if err != nil {
			return c, err
		}
		c.Classes = names
	}
	return c, nil
}

func runTrain(cmd *cobra.Command, f *trainFlags, g *ranks.Group) (err error) {
	set := cmd.Flags()
	dev, err := f.open(cmd, g)
	dev, err = joined(g, dev, err, f.CommPrecision)
	if err != nil {
		return err
	}
	defer func() { err = closed(err, dev.Close()) }()
	out, bar := steadyOutputs(cmd)
	if !g.First() {
		out, bar = io.Discard, io.Discard
	}
	progress := newProgress(out, bar, f.quiet || !g.First())
	progress.verbose = f.verbose
	run, err := f.prepare(set, dev, g, progress)
	if err != nil {
		return err
	}
	defer func() { err = closed(err, run.Close()) }()
	run.Log = progress.log
	if !g.First() {
		run.Log = func(format string, args ...any) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", g.Name(g.Rank()), fmt.Sprintf(format, args...))
		}
	}
	if e := run.Config.EMA; e > 0 && e < 1 {
		run.Log("--ema %g is the γ of a power average, of which 12 is a good one: a decay is said by --ema-decay %g", e, e)
	}
	if g.First() {
		progress.plot = &livePlot{run: run}
	}
	f.observe(run, progress, out)
	announce(out, run, dev.Name())
	defer f.deadline(cmd.Context(), run.Config.Out, bar)()
	err = run.Train(cmd.Context())
	progress.done()
	if err != nil && g.First() && len(run.History) > 0 {
		progress.plot.draw(run.History)
	}
	if failed := (*train.FailedError)(nil); errors.As(err, &failed) && failed.Checkpoint != "" {
		return fmt.Errorf("%w; go on from there with: rna train --resume %s", err, run.Config.Out)
	}
	if errors.Is(err, train.ErrInterrupted) {
		fmt.Fprintf(out, "%v\nGo on with: rna train --resume %s\n", err, run.Config.Out)
		return errStopped
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

// observe has the run profile what --profile says, and show it.
func (f *trainFlags) observe(run *train.Run, progress *progress, out io.Writer) {
	run.Profile = f.profile
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

func (f *trainFlags) prepare(set *pflag.FlagSet, dev device.Device, g *ranks.Group, hook train.Hook) (*train.Run, error) {
	if f.resume == "" {
		c, err := f.config(set)
		if err = g.Together(err); err != nil {
			return nil, err
		}
		c.Ranks = g
		return train.New(c, dev, hook)
	}
	return train.Resume(f.resume, dev, func(c *train.Config) {
		c.Device, c.Precision, c.Ranks = f.device, f.precision, g
		if !g.Single() {
			c.Threads, c.Workers = f.Threads, f.Workers
		}
		for name, change := range map[string]func(){
			"epochs":  func() { c.Epochs = f.Epochs },
			"workers": func() { c.Workers = f.Workers }, "threads": func() { c.Threads = f.Threads },
			"low-memory":      func() { c.LowMemory = f.LowMemory },
			"decode-memory":   func() { c.DecodeMemory = f.DecodeMemory },
			"max-bad":         func() { c.MaxBad = &f.maxBad },
			"checkpoint-keep": func() { c.CheckpointKeep = f.CheckpointKeep },
			"checkpoint-every": func() {
				c.CheckpointEvery, c.CheckpointSteps, c.CheckpointMinutes = f.CheckpointEvery, f.CheckpointSteps, f.CheckpointMinutes
			},
			"data": func() { c.Data = f.Data }, "val-data": func() { c.ValData = f.ValData },
		} {
			if set.Changed(name) {
				change()
			}
		}
	}, hook)
}

// announce says what is going to run.
func announce(w io.Writer, r *train.Run, device string) {
	c := &r.Config
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
	if g := c.Ranks; !g.Single() {
		fmt.Fprintf(w, "%v: %s images a step, %s a rank\n", g, text.Thousands(c.Batch*c.Accumulate*g.Size()), text.Count(g.Threads(), "thread"))
	}
	if r.Fit != nil {
		line("%v", r.Fit)
	}
	for _, note := range r.Notes {
		line("%s", note)
	}
	switch c.RNA.Mode {
	case train.Off:
		fmt.Fprintln(w, "RNA off")
	default:
		fmt.Fprintf(w, "RNA %s, window %d, %s, beta %g, from epoch %d on\n", c.RNA.Mode, c.RNA.Window, c.RNA.Rule(), *c.RNA.Beta, c.RNA.Start)
	}
	if c.RNA.Mode == train.Online {
		line("%s online RNA looks better at once and costs progress on most nets; compare with --rna offline.", terminal.StyleOf(w).Warning("Warning:"))
	}
	if n := len(r.History); n > 0 || stepsOf(r) > 0 {
		epoch, batches, steps := r.Position()
		if batches > 0 {
			fmt.Fprintf(w, "Resumed in epoch %d, after step %d of the run\n", epoch, steps)
		} else {
			fmt.Fprintf(w, "Resumed after epoch %d\n", n)
		}
	}
}

func stepsOf(r *train.Run) int { _, _, steps := r.Position(); return steps }

// summarise prints the table of the results and writes the plot.
func summarise(w io.Writer, r *train.Run, verbose bool) error {
	fmt.Fprintln(w)
	if err := report.Table(w, r.Config, r.History); err != nil {
		return err
	}
	if verbose && report.Extrapolated(r.History) {
		fmt.Fprintln(w)
		if err := report.CoefficientTable(w, r.History); err != nil {
			return err
		}
	}
	dir := r.Config.Out
	names, err := drawRun(r.Config, r.History)
	if err != nil {
		return err
	}
	names = append(names, "final.safetensors", "best.safetensors", "metrics.jsonl", "config.json")
	names = append(names, "rna.safetensors", "ema.safetensors")
	for _, k := range r.Config.RNA.Averages {
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
