package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/internal/nearest"
)

// errStopped says that a run was interrupted, and that the user knows.
var errStopped = errors.New("stopped")

// interruptedError is errStopped with what to tell the user.
type interruptedError string

func (e interruptedError) Error() string        { return string(e) }
func (e interruptedError) Is(target error) bool { return target == errStopped }

// usageError is a mistake in the command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "rna",
		Short: "Train neural networks with SGD and Regularized Nonlinear Acceleration",
		Long: `rna trains neural networks with SGD and Regularized Nonlinear Acceleration (RNA): it keeps the weights
of the last epochs and extrapolates them, beside training or put back into it.

"rna train" without any option trains a small net on generated images in about a minute.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}")
	root.SetHelpFunc(help)
	root.SetUsageFunc(usage)
	root.AddCommand(newTrain(), newStudy(), newLRFind(), newEval(), newPredict(), newReplay(), newCompare(), newLogreg(),
		newBench(), newData(), newGet(), newExtrapolate(), newInspect(),
		newConvert(), newExport(), newVerify(), newModels(), newOptions(), newDevices(), newVersion(), newMan())
	root.PersistentPreRunE = guard
	root.SetFlagErrorFunc(flagError)
	root.Args = unknownCommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	completeAll(root)
	return root
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return &usageError{cmd.CommandPath(), fmt.Errorf("unknown command %q%s", args[0], suggest(args[0], names, ""))}
}

// noArgs rejects arguments that are no flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{cmd.CommandPath(), fmt.Errorf("unexpected argument %q: options start with --", args[0])}
	}
	return nil
}

var (
	shortFlag  = regexp.MustCompile(`^unknown shorthand flag: '(.)'`)
	refused    = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-., )?--([^"]+)" flag: (.*)`)
	wrongValue = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-., )?--([^"]+)" flag: strconv\.(.*)`)
)

// otherTrainers are options of torchvision's references, timm's train.py and others, with what they are here.
var otherTrainers = map[string]string{
	"wd": "--weight-decay", "svg": "--plot", "amp": "--precision bfloat16, or on a GPU float16", "data-path": "--data", "data-dir": "--data", "output-dir": "--out",
	"output": "--out", "opt": "--optimizer", "b": "--batch", "batch-size": "--batch", "j": "--workers", "num-workers": "--workers",
	"clip-grad-norm": "--clip-grad", "clip-mode": "--clip-grad for a norm, --clip-value for a value", "opt-eps": "--eps", "opt-betas": "--beta1 and --beta2", "sched": "--schedule",
	"lr-scheduler": "--schedule", "lr-step-size": "--lr-step", "min-lr": "--lr-final", "lr-min": "--lr-final", "warmup-epochs": "--warmup",
	"lr-warmup-epochs": "--warmup", "warmup-lr": "--warmup-from, as a fraction of --lr", "lr-warmup-decay": "--warmup-from", "smoothing": "--label-smoothing",
	"mixup-alpha": "--mixup", "cutmix-alpha": "--cutmix", "aa": "--auto-augment", "reprob": "--random-erase", "hflip": "--no-flip", "vflip": "--flip-vertical",
	"scale": "--crop-scale", "ratio": "--crop-ratio", "aug-repeats": "--repeat-augment", "ra-reps": "--repeat-augment", "ra-sampler": "--repeat-augment 4",
	"model-ema": "--ema-decay", "model-ema-decay": "--ema-decay", "model-ema-steps": "--ema-every", "drop": "--dropout", "bce-loss": "--loss bce",
	"bce-target-thresh": "--bce-threshold", "train-crop-size": "--train-crop", "val-crop-size": "--val-crop", "val-resize-size": "--val-resize", "img-size": "--image-size",
	"input-size": "--image-size", "crop-pct": "--val-resize: the image size divided by it", "pretrained": "--init FILE", "weights": "--init FILE",
	"initial-checkpoint": "--init FILE", "arch": "--model", "a": "--model", "grad-accum-steps": "--accumulate", "norm-weight-decay": "--decay-weights-only",
	"bias-weight-decay": "--no-decay '*.bias'", "gp": "fixed by the model", "print-freq": "needless: a line a minute", "log-interval": "needless: a line a minute",
	"learning-rate": "--lr", "imgsz": "--image-size", "gpu": "--device cuda, or --device cuda:1 for the second GPU",
	"patience": "needless: a run keeps its best weights as best.safetensors, and --epochs says how long it is",
	"name":     "the last part of --out, as --out runs/NAME", "project": "the first part of --out, as --out PROJECT/NAME",
	"wandb":                    "--tensorboard; metrics.jsonl in the run's folder has all numbers, too",
	"deterministic-algorithms": "--deterministic", "use-deterministic-algorithms": "--deterministic", "world-size": "the launcher's, see --distributed", "class-map": "--classes",
}

var unknownFlag = regexp.MustCompile(`^unknown flag: --([^=\s]+)`)

// flagError turns a flag's error into a usage error and suggests the nearest flag for an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		hint := suggest(m[1], names, "--")
		if h := hereItIs(cmd, m[1]); h != "" {
			hint = h
		}
		err = fmt.Errorf("unknown option --%s%s", m[1], hint)
	}
	if m := shortFlag.FindStringSubmatch(err.Error()); m != nil {
		hint := hereItIs(cmd, m[1])
		if m[1] == "o" {
			hint = ": the command prints; > FILE behind it writes that to a file"
		}
		err = fmt.Errorf("unknown option -%s%s", m[1], hint)
	}
	if m := wrongValue.FindStringSubmatch(err.Error()); m != nil {
		what := "a number"
		switch {
		case strings.HasSuffix(m[3], "value out of range"):
			what = "a number of usual size"
		case strings.HasPrefix(m[3], "ParseBool"):
			what = "true or false"
		case !strings.HasPrefix(m[3], "ParseFloat"):
			what = "a whole number"
		}
		if strings.HasPrefix(m[3], "ParseUint") {
			what += ", not negative"
		}
		err = fmt.Errorf("--%s %s: want %s", m[2], m[1], what)
	} else if m := refused.FindStringSubmatch(err.Error()); m != nil {
		err = fmt.Errorf("--%s %s: %s", m[2], m[1], m[3])
	}
	return &usageError{cmd.CommandPath(), err}
}

var flagNamed = regexp.MustCompile(`--([a-z0-9-]+)`)

// hereItIs says what another trainer's option is with cmd, if cmd has it.
func hereItIs(cmd *cobra.Command, name string) string {
	if name == "weights" && (strings.Contains(cmd.Use, " FILE") || strings.Contains(cmd.Use, " WEIGHTS")) {
		return ": here the file stands without an option"
	}
	h := otherTrainers[name]
	if h == "" {
		return ""
	}
	for _, m := range flagNamed.FindAllStringSubmatch(h, -1) {
		if cmd.Flags().Lookup(m[1]) == nil {
			return ""
		}
	}
	return ": here it is " + h
}

// suggest names the nearest of names, if one is near.
func suggest(word string, names []string, prefix string) string {
	best := nearest.To(word, names)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s%s?", prefix, best)
}
