package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data"
	"onlinerna/internal/terminal"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/rna"
	"onlinerna/train"
	"onlinerna/train/evaluate"
	"onlinerna/train/extrapolate"
	"onlinerna/train/merge"
	"onlinerna/train/ranks"
)

type extrapolateFlags struct {
	extrapolate.Output
	window      extrapolate.Window
	lambda, tau float64
	quiet       bool
	json        cli.JSON
	net         evaluate.Options
	judge       evaluate.JudgeOptions
	device      string
	power       float64
	wsm         string
	profile     *merge.Profile

	set *pflag.FlagSet
}

// addWindow adds the options of a window.
func addWindow(g cli.Group, w *extrapolate.Window) {
	g.StringVar((*string)(&w.Order), "order", string(extrapolate.Natural), "order of the files, oldest first: natural "+
		"(2 before 10), given, or step (by the metadata or the last number in the name)")
	g.Values("order", string(extrapolate.Natural), string(extrapolate.Given), string(extrapolate.ByStep))
	g.StringVar(&w.Y0, "y0", "", "`file` from which the first one started, for one more residual")
	g.StringVar(&w.Key, "key", "", keyHelp)
	g.BoolVar(&w.Pairs, "pairs", false, "files are y x y x …, in the given order: residuals x − y of methods that did "+
		"not go on from x")
}

func newExtrapolate() *cobra.Command {
	f := &extrapolateFlags{}
	cmd := &cobra.Command{
		Use:   "extrapolate FILE… -o OUT [options]",
		Short: "Extrapolate a row of checkpoints of any framework with RNA",
		Long: `Extrapolate a row of checkpoints with RNA. The memory does not grow with the checkpoints.

It is the short form of rna merge --by rna, and reads the same forms of checkpoints: safetensors, files of torch.save,
folders of shards, distributed checkpoints, folders of Orbax, weights of Keras, npz and GGUF. No code in them is run. K
files make K − 1 residuals. Integers are copied from the last file, and so are BatchNorm statistics without --bn. The
output is in safetensors, or for .pt and .pth in a form that torch.load reads.

The folder of a run as the only argument stands for the weights that rna train --keep-every 1 kept, and its images are
the default of --eval and --data. Among other files it stands for its best weights.`,
		Example: `  rna extrapolate runs/fine -o out.safetensors --auto
  rna extrapolate ckpt-*.safetensors -o out.safetensors
  rna extrapolate checkpoint_*.pt -o average.safetensors --average
  rna extrapolate epoch-*.safetensors -o out.safetensors --model resnet50 \
    --auto --eval imagenet/val --bn reestimate --data imagenet`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.set = cmd.Flags()
			if err := f.parse(); err != nil {
				return cli.Usage(cmd, err)
			}
			args, run, err := f.files(args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			f.of(run)
			if err := f.check(args); err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Files")
	o.StringVarP(&f.Path, "out", "o", "", "`file` to write: .safetensors, or .pt or .pth for torch.load")
	addWindow(o, &f.window)
	r := cli.NewGroup("RNA")
	r.Float64Var(&f.lambda, "lambda", rna.DefaultLambda, "regularisation, relative to the squared norm of the "+
		"residuals; inf: the average of their x")
	r.Float64Var(&f.tau, "tau", 0, "bound the coefficients by ‖c‖ ≤ (1+τ)/√N instead (CNA)")
	r.Float64Var(&f.Beta, "beta", rna.DefaultBeta, "mixing: 1 combines the x of the residuals, 0 their y")
	r.BoolVar(&f.Average, "average", false, "the uniform average over all files")
	r.Float64Var(&f.power, "power-ema", 0, "γ of a power EMA, made of those that rna train --ema 5,12 --keep-every 1 "+
		"keeps in the folder of the run")
	r.StringVar(&f.wsm, "wsm", "", "decay of the rate that an average stands for, `schedule:epochs` as linear:3, cosine:3 "+
		"or 1-sqrt:3, made of the same")
	r.Values("wsm", "linear:", "cosine:", "1-sqrt:")
	r.BoolVar(&f.Auto, "auto", false, "choose by the loss on --eval: the last file, or the average or a lambda up to "+
		"10 that is better by a t test at 5 %")
	r.StringVar(&f.BatchNorm, "bn", extrapolate.LastStats, "BatchNorm statistics: last file's, combine (a negative "+
		"variance becomes 0), or reestimate on --data")
	r.Values("bn", extrapolate.LastStats, extrapolate.Combine, extrapolate.Reestimate)
	s := cli.NewGroup("Run")
	f.json.Add(s)
	s.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	s.Cores(&f.net.Workers, "workers", "goroutines (default: one a core); results do not depend on it")
	s.BoolVar(&f.Sync, "sync", false, "wait until the output is on the disk")
	cli.AddGroups(cmd, o, r, f.evaluation(), s)
	return cmd
}

// check finds mistakes in the command line.
func (f *extrapolateFlags) check(args []string) error {
	kinds := 0
	for _, name := range []string{"lambda", "tau", "average", "auto", "power-ema", "wsm"} {
		if f.set.Changed(name) {
			kinds++
		}
	}
	switch {
	case len(args) == 0:
		return errors.New("no files: name the checkpoints")
	case f.Path == "":
		return errors.New("--out is missing: the safetensors file to write")
	case kinds > 1:
		return errors.New("--lambda, --tau, --average, --auto, --power-ema and --wsm exclude each other")
	case !(f.lambda >= 0):
		return fmt.Errorf("--lambda %v: must be 0 or more", f.lambda)
	case !(f.tau >= 0) || math.IsInf(f.tau, 0):
		return fmt.Errorf("--tau %v: must be 0 or more, and finite", f.tau)
	case math.IsNaN(f.Beta) || math.IsInf(f.Beta, 0):
		return fmt.Errorf("--beta %v: must be finite", f.Beta)
	case f.Rebuild != nil && (f.set.Changed("beta") || f.set.Changed("order") || f.window.Y0 != "" || f.window.Pairs):
		return errors.New("--power-ema and --wsm go without --beta, --order, --y0 and --pairs: the files are the run's EMAs")
	case f.Average && f.set.Changed("beta"):
		return errors.New("--average does not take --beta: it is over the files as they are")
	case f.BatchNorm != extrapolate.LastStats && f.BatchNorm != extrapolate.Combine &&
		f.BatchNorm != extrapolate.Reestimate:
		return fmt.Errorf("unknown --bn %q: last, combine or reestimate", f.BatchNorm)
	case f.Auto != (f.judge.Eval != ""):
		return errors.New("--auto and --eval go together: the data that it chooses by")
	case (f.BatchNorm == extrapolate.Reestimate) != (f.judge.Data != ""):
		return errors.New("--bn reestimate and --data go together: the training images to estimate on")
	}
	if !f.Auto && f.BatchNorm != extrapolate.Reestimate {
		for _, name := range judgeOptions {
			if f.set.Changed(name) {
				return fmt.Errorf("--%s is for --auto and for --bn reestimate", name)
			}
		}
	}
	return f.window.Check(len(args), f.set.Changed("order"))
}

// judgeOptions are the options of evaluation that require --auto or --bn reestimate.
var judgeOptions = []string{"model", "num-classes", "classes", "image-size", "mean", "std", "augment", "batch",
	"bn-batches", "limit-batches", "max-bad", "device"}

// evaluation returns the options of nets that run candidates.
func (f *extrapolateFlags) evaluation() cli.Group {
	g := cli.NewGroup("Evaluation (--auto) and re-estimation (--bn reestimate)")
	g.StringVar(&f.judge.Eval, "eval", "", "`folder` of held-out images that --auto chooses by, as of rna eval")
	g.StringVar(&f.judge.Data, "data", "", "`folder` of the training images to re-estimate BatchNorm statistics on, as "+
		"of rna train")
	g.StringVar(&f.net.Model, "model", "", "model (default: that of the last file)")
	g.Values("model", modelNames()...)
	g.IntVar(&f.net.NumClasses, "num-classes", 0, "outputs of the net (default: those of the files)")
	g.StringVar(&f.net.Classes, "classes", "", "`file` with the names of the classes by index, one a line (default: "+
		"those of the last file, or of the data)")
	g.IntVar(&f.net.ImageSize, "image-size", 0, "height and width of the net's input (default: that of the last file, "+
		"or of the data)")
	g.Floats(&f.net.Mean, "mean", "mean of each channel: comma-separated `numbers`, for pixels from 0 to 1 (default: "+
		"as above)")
	g.Floats(&f.net.Std, "std", "standard deviation of each channel, as comma-separated `numbers`")
	g.StringVar(&f.judge.Augment, "augment", "auto", "augmentation of the training images, as of rna train")
	g.Values("augment", data.Augmentations()...)
	g.IntVar(&f.net.Batch, "batch", 64, "images a forward pass")
	g.IntVar(&f.judge.BNBatches, "bn-batches", 20, "batches to re-estimate on")
	g.IntVar(&f.judge.Limit, "limit-batches", 0, "batches an evaluation (default: all)")
	g.MaxBad(&f.net.MaxBad, "max-bad", optionHelp("max-bad"))
	g.StringVar(&f.device, "device", "auto", deviceHelp)
	g.Values("device", deviceValues...)
	return g
}

// of takes the images of a run, nil for none, if they are needed and not named.
func (f *extrapolateFlags) of(run *evaluate.Run) {
	if run == nil {
		return
	}
	s := run.Located(*run.Split())
	if f.Auto && f.judge.Eval == "" {
		f.judge.Eval = cmp.Or(s.ValData, s.Data)
	}
	if f.BatchNorm == extrapolate.Reestimate && f.judge.Data == "" {
		f.judge.Data = s.Data
	}
}

// parse reads the average to rebuild.
func (f *extrapolateFlags) parse() error {
	var gammas []float64
	var wsm []string
	if f.set.Changed("power-ema") {
		gammas = []float64{f.power}
	}
	if f.set.Changed("wsm") {
		wsm = []string{f.wsm}
	}
	list, err := profiles(gammas, wsm)
	if len(list) > 0 {
		f.profile = &list[0]
	}
	return err
}

// files returns the files to combine: for an average that is rebuilt the power EMAs that a run has kept.
func (f *extrapolateFlags) files(args []string, log io.Writer) ([]string, *evaluate.Run, error) {
	if f.profile == nil {
		return evaluate.Expand(args, true, log)
	}
	var run *evaluate.Run
	if len(args) == 1 {
		var err error
		if run, err = evaluate.FindRun(args[0]); err != nil {
			return nil, nil, err
		}
	}
	if run == nil {
		return nil, nil, errors.New("--power-ema and --wsm take the folder of a run alone")
	}
	epochs, _, err := train.Kept(run.Dir, run.Config)
	if err != nil {
		return nil, nil, err
	}
	last := 0
	if len(epochs) > 0 {
		last = epochs[len(epochs)-1]
	}
	f.window.Order = extrapolate.Given
	f.Rebuild = func(s *extrapolate.Series) ([]float64, float64, error) {
		return merge.Rebuild(s.Files(), *f.profile, last)
	}
	kept, err := train.KeptEMAs(run.Dir, run.Config, last)
	return kept, run, err
}

// run extrapolates, writes the file and prints the coefficients.
func (f *extrapolateFlags) run(ctx context.Context, args []string, out, log io.Writer) error {
	bar := terminal.NewBar(log, f.quiet)
	s, err := f.window.Open(ctx, args, extrapolate.Options{Workers: f.net.Workers, Start: bar.Bytes,
		Progress: bar.Add})
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer s.Close()
	if err := s.Tell(log, true); err != nil {
		return err
	}
	if f.set.Changed("tau") {
		f.Tau = rna.Set(f.tau)
	} else {
		f.Lambda = rna.Set(f.lambda)
	}
	f.Start = bar.Bytes
	f.net.Threads = f.net.Workers
	f.net.Open = func(_ *ranks.Group, threads int) (device.Device, error) {
		name, options := chosenDevice(f.device, log), deviceOptions{threads: threads}
		if options.resolved(name) != "" {
			options.precision = op.Float32.String() // candidates differ by little
		}
		return openDevice(name, options)
	}
	f.judge.Name = s.Files()[len(s.Files())-1].Path // the judge reads temporary files
	f.Judge = func(weights string) (extrapolate.Judge, error) { return f.net.NewJudge(weights, f.judge, log) }
	rep, err := f.Make(ctx, s)
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	for _, w := range rep.Warnings {
		fmt.Fprintf(log, "warning: %s\n", w)
	}
	return f.json.Write(out, rep, rep.WriteTable)
}
