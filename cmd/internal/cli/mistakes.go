package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/internal/nearest"
)

// UnknownCommand rejects arguments of a command that has commands below it.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return Usage(cmd, fmt.Errorf("unknown command %q%s", args[0], Suggest(args[0], names, "")))
}

// NoArgs rejects arguments other than flags.
func NoArgs(cmd *cobra.Command, args []string) error {
	if err := noFile(cmd, args); err != nil {
		return Usage(cmd, err)
	}
	if len(args) > 0 {
		return Usage(cmd, fmt.Errorf("unexpected argument %q: options start with --", args[0]))
	}
	return nil
}

var (
	shortFlag  = regexp.MustCompile(`^unknown shorthand flag: '(.)'`)
	refused    = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-., )?--([^"]+)" flag: (.*)`)
	valueless  = regexp.MustCompile(`^flag needs an argument: (?:--(.+)|'(.)' in )`)
	wrongValue = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-., )?--([^"]+)" flag: strconv\.(.*)`)
)

// OtherTrainers are options of torchvision's references, timm's train.py and others, with their names here.
var OtherTrainers = map[string]string{
	"wd": "--weight-decay", "svg": "--plot", "amp": "--precision bfloat16, or on a GPU float16", "data-path": "--data",
	"data-dir": "--data", "output-dir": "--out",
	"output": "--out", "opt": "--optimizer", "b": "--batch", "batch-size": "--batch", "j": "--workers",
	"num-workers":    "--workers",
	"clip-grad-norm": "--clip-grad", "clip-mode": "--clip-grad for a norm, --clip-value for a value", "opt-eps": "--eps",
	"opt-betas": "--beta1 and --beta2", "sched": "--schedule",
	"lr-scheduler": "--schedule", "lr-step-size": "--lr-step", "min-lr": "--lr-final", "lr-min": "--lr-final",
	"warmup-epochs":    "--warmup",
	"lr-warmup-epochs": "--warmup", "warmup-lr": "--warmup-from, as a fraction of --lr",
	"lr-warmup-decay": "--warmup-from", "smoothing": "--label-smoothing",
	"mixup-alpha": "--mixup", "cutmix-alpha": "--cutmix", "aa": "--auto-augment", "reprob": "--random-erase",
	"hflip": "--no-flip", "vflip": "--flip-vertical",
	"scale": "--crop-scale", "ratio": "--crop-ratio", "aug-repeats": "--repeat-augment", "ra-reps": "--repeat-augment",
	"ra-sampler": "--repeat-augment 4",
	"model-ema":  "--ema-decay", "model-ema-decay": "--ema-decay", "model-ema-steps": "--ema-every", "drop": "--dropout",
	"bce-loss":          "--loss bce",
	"bce-target-thresh": "--bce-threshold", "train-crop-size": "--train-crop", "val-crop-size": "--val-crop",
	"val-resize-size": "--val-resize", "img-size": "--image-size",
	"input-size": "--image-size", "crop-pct": "--val-resize: the image size divided by it", "pretrained": "--init FILE",
	"weights":            "--init FILE",
	"initial-checkpoint": "--init FILE", "arch": "--model", "a": "--model", "grad-accum-steps": "--accumulate",
	"norm-weight-decay": "--decay-weights-only",
	"bias-weight-decay": "--no-decay '*.bias'", "gp": "fixed by the model", "print-freq": "needless: a line a minute",
	"log-interval":  "needless: a line a minute",
	"learning-rate": "--lr", "imgsz": "--image-size", "gpu": "--device cuda, or --device cuda:1 for the second GPU",
	"name": "the last part of --out, as --out runs/NAME", "project": "the first part of --out, as --out PROJECT/NAME",
	"wandb":                    "--tensorboard; metrics.jsonl in the run's folder has all numbers, too",
	"deterministic-algorithms": "--deterministic", "use-deterministic-algorithms": "--deterministic",
	"world-size": "the launcher's, see --distributed", "class-map": "--classes",
}

var unknownFlag = regexp.MustCompile(`^unknown flag: --([^=\s]+)`)

// FlagError turns a flag's error into a usage error and suggests the nearest flag for an unknown one.
func FlagError(cmd *cobra.Command, err error) error {
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		hint := Suggest(m[1], names, "--")
		if h := HereItIs(cmd, m[1]); h != "" {
			hint = h
		}
		err = fmt.Errorf("unknown option --%s%s", m[1], hint)
	}
	if m := shortFlag.FindStringSubmatch(err.Error()); m != nil {
		hint := HereItIs(cmd, m[1])
		if m[1] == "o" {
			hint = ": the command prints; > FILE behind it writes that to a file"
		}
		err = fmt.Errorf("unknown option -%s%s", m[1], hint)
	}
	if m := valueless.FindStringSubmatch(err.Error()); m != nil {
		f := cmd.Flags().Lookup(m[1])
		if f == nil {
			f = cmd.Flags().ShorthandLookup(m[2])
		}
		kind, _ := pflag.UnquoteUsage(f)
		err = fmt.Errorf("option --%s needs a value: --%[1]s %s", f.Name, strings.ToUpper(kind))
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
	return Usage(cmd, err)
}

var flagNamed = regexp.MustCompile(`--([a-z0-9-]+)`)

// HereItIs names cmd's equivalent of another trainer's option, if cmd has one.
func HereItIs(cmd *cobra.Command, name string) string {
	if name == "weights" && (strings.Contains(cmd.Use, " FILE") || strings.Contains(cmd.Use, " WEIGHTS")) {
		return ": here the file stands without an option"
	}
	h := OtherTrainers[name]
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

// Suggest names the nearest of names, if one is near.
func Suggest(word string, names []string, prefix string) string {
	best := nearest.To(word, names)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s%s?", prefix, best)
}
