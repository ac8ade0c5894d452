package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/rna"
	"onlinerna/train/evaluate"
	"onlinerna/train/extrapolate"
	"onlinerna/train/merge"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
)

type mergeFlags struct {
	merge.Options
	window                     extrapolate.Window
	out, by, base, bn, adapter string
	lambda, tau, beta          float64
	sigmaRel                   float64
	stored, steps              []float64
	shardSize                  int64
	strict, resume, verify     bool
	quiet, sync, normalize     bool
	json                       cli.JSON
	workers                    int
	ranks                      launch.Options
	set                        *pflag.FlagSet
}

// mergeOptions are the options of each method in addition to --by.
var mergeOptions = map[merge.Method][]string{
	merge.ByMean: {}, merge.ByWeights: {"weights"}, merge.ByEMA: {"decay"}, merge.ByWSM: {"schedule"},
	merge.ByPowerEMA: {"sigma-rel", "stored", "steps"},
	merge.ByRNA:      {"lambda", "tau", "beta", "per"}, merge.BySlerp: {"t"}, merge.ByTask: {"base", "weights", "scale",
		"normalize", "sign"},
	merge.ByTIES:        {"base", "weights", "scale", "normalize", "sign", "density", "rescale"},
	merge.ByDARE:        {"base", "weights", "scale", "normalize", "sign", "density", "rescale", "seed"},
	merge.ByBreadcrumbs: {"base", "weights", "scale", "normalize", "sign", "density", "rescale", "gamma"},
}

func newMerge() *cobra.Command {
	f := &mergeFlags{}
	cmd := &cobra.Command{
		Use:   "merge CKPT… -o OUT [options]",
		Short: "Merge checkpoints of any framework and any size into one",
		Long: `Merge checkpoints: averages of a row, and combinations of models that share a base, in memory that does not
grow with them.

Checkpoints are safetensors, files of torch.save, folders of Hugging Face with shards and their index, folders of
PyTorch's distributed checkpoints (.metadata and .distcp, each sharded in its own way), folders of Orbax, Keras's
.weights.h5 and .keras, numpy's .npz, and GGUF of F64, F32, F16 and BF16. No code in them is run. Tensors are matched
by name. Floating-point numbers, those of eight bits too, are combined in float64 and rounded once; integers are copied
from the last file, and BatchNorm statistics too unless --bn says otherwise.

Under mpirun or srun the ranks share the work: they write the shards of a folder in turn, or each its tensors of one
file, with the bits of one process.

OUT is .safetensors, .pt or .pth for torch.load, or else a folder: shards with their index, and the configuration and
tokenizer of the last checkpoint. It appears whole or not at all.`,
		Example: `  rna merge step-*.safetensors -o mean.safetensors
  rna merge runs/llm/step-* -o merged --by wsm --schedule 1-sqrt
  rna merge ckpt-*.pt -o out.pt --by ema --decay 0.9
  rna merge --base base chat code -o merged --by ties --density 0.5`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.set = cmd.Flags()
			args, _, err := evaluate.Expand(args, true, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if args, err = f.check(args); err != nil {
				return cli.Usage(cmd, err)
			}
			ctx, out, log := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return f.ranks.Run(ctx, "cpu", func(g *ranks.Group) error {
				if !g.First() {
					out, log = io.Discard, io.Discard
				}
				return f.run(ctx, g, args, out, log)
			})
		},
	}
	var methods []string
	for _, m := range merge.Methods() {
		methods = append(methods, string(m))
	}
	o := cli.NewGroup("Files")
	o.StringVarP(&f.out, "out", "o", "", "`path` to write: .safetensors, .pt or .pth, or a folder")
	o.StringVar((*string)(&f.window.Order), "order", "", "order of the files, oldest first: natural (2 before 10), "+
		"given, or step (by the metadata or the last number in the name); default: natural for rows, given for the others")
	o.Values("order", string(extrapolate.Natural), string(extrapolate.Given), string(extrapolate.ByStep))
	o.StringVar(&f.window.Key, "key", "", keyHelp)
	o.BoolVar(&f.strict, "strict", true, "tensors that not all files have are an error; --strict=false leaves them out "+
		"and lists them")
	f.shardSize = merge.DefaultShardSize
	o.Bytes(&f.shardSize, "shard-size", "most bytes of a shard, of a folder, as 800MB or 5GB")
	o.BoolVar(&f.verify, "verify", true, "compare files with their checksums before; --verify=false saves a reading of "+
		"files of torch.save, .npz and rna")
	o.BoolVar(&f.resume, "resume", false, "go on from the finished shards of a folder whose writing was stopped")
	m := cli.NewGroup("Method")
	m.StringVar(&f.by, "by", string(merge.ByMean), "method: "+strings.Join(methods, ", "))
	m.Values("by", methods...)
	m.Floats(&f.Weights, "weights", "comma-separated `numbers`, one a file: weights of --by weights, or of the models "+
		"beside the base (default there: 1)")
	m.Float64Var(&f.Decay, "decay", 0.999, "ema: the average is decay × itself + (1 − decay) × the next file")
	m.StringVar(&f.Schedule, "schedule", "linear", "wsm: decay of the learning rate that the sum stands for")
	m.Values("schedule", merge.Schedules()...)
	m.Float64Var(&f.sigmaRel, "sigma-rel", 0.1, "power-ema: width of the average, its standard deviation relative to "+
		"the last step")
	m.Floats(&f.stored, "stored", "power-ema: widths of the files as comma-separated `numbers`, one a file; without, "+
		"they are no averages")
	m.Floats(&f.steps, "steps", "power-ema: steps of the files as comma-separated `numbers` (default: from the "+
		"metadata or the names)")
	m.Float64Var(&f.lambda, "lambda", rna.DefaultLambda, "rna: regularisation, relative to the squared norm of the "+
		"residuals")
	m.Float64Var(&f.tau, "tau", 0, "rna: bound the coefficients by ‖c‖ ≤ (1+τ)/√N instead")
	m.Float64Var(&f.beta, "beta", rna.DefaultBeta, "rna: mixing")
	m.StringVar(&f.Per, "per", "whole", "rna: coefficients for the whole, for each layer or for each tensor")
	m.Values("per", "whole", "layer", "tensor")
	m.Float64Var(&f.T, "t", 0.5, "slerp: place between the first file, 0, and the second one, 1")
	m.StringVar(&f.base, "base", "", "task, ties, dare, breadcrumbs: `path` of the checkpoint that the others were "+
		"trained from")
	m.Float64Var(&f.Density, "density", 0.5, "ties, dare, breadcrumbs: part of each difference from the base that is kept")
	m.Float64Var(&f.Gamma, "gamma", 0.01, "breadcrumbs: part of the largest elements that is left out")
	m.Float64Var(&f.Scale, "scale", 1, "task, ties, dare, breadcrumbs: factor of the sum of differences")
	m.StringVar(&f.Sign, "sign", "",
		"keep only differences with the sign of their sum: sum, or none (default: sum for ties)")
	m.Values("sign", "sum", "none")
	m.BoolVar(&f.normalize, "normalize", false, "divide by the sum of the weights (default: for ties)")
	m.StringVar(&f.Rescale, "rescale", "", "rescale the kept elements of differences: density divides by --density, "+
		"l1 keeps the sum of absolute values, none leaves them (default: density for dare)")
	m.Values("rescale", "none", "density", "l1")
	m.Uint64Var(&f.Seed, "seed", 0, "dare: seed of the random choice")
	m.StringVar(&f.bn, "bn", extrapolate.LastStats, "BatchNorm statistics: last file's, or combine (a negative "+
		"variance becomes 0)")
	m.Values("bn", extrapolate.LastStats, extrapolate.Combine)
	m.StringVar(&f.adapter, "adapter", "", "LoRA: delta merges the products B A of folders of adapters, exactly, into "+
		"one of the sum of their ranks; factors merges A and B, which have another product")
	m.Values("adapter", "delta", "factors")
	s := cli.NewGroup("Run")
	f.json.Add(s)
	s.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	s.Cores(&f.workers, "workers", "goroutines (default: one a core); results do not depend on it")
	addRanks(s, &f.ranks)
	s.BoolVar(&f.sync, "sync", false, "wait until a file is on the disk, not only with the system; folders always are")
	cli.AddGroups(cmd, o, m, s)
	return cmd
}

// check finds mistakes in the command line, fills in values that the method determines, and puts the base before the
// other files.
func (f *mergeFlags) check(args []string) ([]string, error) {
	f.By = merge.Method(f.by)
	own, known := mergeOptions[f.By]
	switch {
	case !known:
		return nil, fmt.Errorf("unknown --by %q: %v", f.by, merge.Methods())
	case f.out == "":
		return nil, errors.New("--out is missing: the file or folder to write")
	case len(args) == 0:
		return nil, errors.New("no files: name the checkpoints")
	case f.By.Based() && f.base == "":
		return nil, fmt.Errorf("--by %s needs --base: the checkpoint that the others were trained from", f.By)
	case f.By == merge.ByWeights && f.Weights == nil:
		return nil, errors.New("--by weights needs --weights: one number a file")
	case f.adapter != "" && f.adapter != "delta" && f.adapter != "factors":
		return nil, fmt.Errorf("unknown --adapter %q: delta or factors", f.adapter)
	case f.adapter == "delta" && (f.By.Based() || !merge.IsFolder(f.out)):
		return nil, errors.New("--adapter delta writes a folder, by mean, weights, ema or wsm")
	case f.bn != extrapolate.LastStats && f.bn != extrapolate.Combine:
		return nil, fmt.Errorf("unknown --bn %q: last or combine", f.bn)
	case f.set.Changed("lambda") && f.set.Changed("tau"):
		return nil, errors.New("--lambda and --tau exclude each other")
	case f.set.Changed("shard-size") && !merge.IsFolder(f.out):
		return nil, fmt.Errorf("--shard-size is for a folder: %s is one file", f.out)
	}
	for _, list := range mergeOptions {
		for _, name := range list {
			if f.set.Changed(name) && !slices.Contains(own, name) {
				return nil, fmt.Errorf("--%s is not for --by %s", name, f.By)
			}
		}
	}
	ties := f.By == merge.ByTIES
	f.Sign = cmp.Or(f.Sign, map[bool]string{true: "sum", false: "none"}[ties])
	f.Rescale = cmp.Or(f.Rescale, map[bool]string{true: "density", false: "none"}[f.By == merge.ByDARE])
	if f.Normalize = f.normalize; !f.set.Changed("normalize") {
		f.Normalize = ties
	}
	if f.window.Order == "" {
		f.window.Order = extrapolate.Given
		if f.By.Row() {
			f.window.Order = extrapolate.Natural
		}
	}
	if f.By == merge.ByRNA {
		f.RNA.Beta = rna.Set(f.beta)
		if f.set.Changed("tau") {
			f.RNA.Tau = rna.Set(f.tau)
		} else {
			f.RNA.Lambda = rna.Set(f.lambda)
		}
	}
	if f.By.Based() {
		if f.window.Order != extrapolate.Given {
			return nil, errors.New("--order is for rows: the models of a base are taken as given")
		}
		args = append([]string{f.base}, args...)
	}
	return args, f.output().Check()
}

func (f *mergeFlags) output() *merge.Output {
	o := &merge.Output{Path: f.out, ShardSize: f.shardSize, Resume: f.resume}
	if o.Sync = f.sync; f.bn == extrapolate.Combine {
		o.Stats = extrapolate.CombineStats
	}
	return o
}

// mergeReport describes a merge, as --json prints it.
type mergeReport struct {
	Method    merge.Method         `json:"method"`
	Options   map[string]string    `json:"options,omitempty"`
	Output    string               `json:"output"`
	Files     []mergedFile         `json:"files"`
	RNA       map[string]mergedRNA `json:"rna,omitempty"`      // of the whole, by "", or of parts
	Residual  *float64             `json:"residual,omitempty"` // for power-ema
	Combined  int                  `json:"combined"`
	Scales    int                  `json:"scales,omitempty"` // of combined tensors of eight bits, computed anew
	Copied    []string             `json:"copied,omitempty"` // from the last file
	Left      []string             `json:"left,omitempty"`   // left out, with the reason
	Warnings  []string             `json:"warnings,omitempty"`
	Passes    int                  `json:"passes"`
	Shards    int                  `json:"shards"`
	Resumed   int                  `json:"resumed,omitempty"`
	WithFiles []string             `json:"with_files,omitempty"`
}

type mergedFile struct {
	Path   string   `json:"path"`
	Form   string   `json:"form"`
	Shards int      `json:"shards"`
	Weight *float64 `json:"weight,omitempty"`
}

type mergedRNA struct {
	C         []float64          `json:"c"`
	NormC     float64            `json:"norm_c"`
	Condition extrapolate.Number `json:"condition"`
}

// run merges, and prints a report.
func (f *mergeFlags) run(ctx context.Context, g *ranks.Group, args []string, out, log io.Writer) error {
	if f.adapter == "delta" {
		if !g.Single() {
			return errors.New("--adapter delta is for one process: start it without mpirun")
		}
		return f.adapters(args, out)
	}
	if f.workers == 0 {
		f.workers = g.Workers()
	}
	bar := terminal.NewBar(log, f.quiet || !g.First())
	f.window.Weights, f.window.Factors = true, f.adapter == "factors"
	s, err := f.window.Open(ctx, args, extrapolate.Options{Workers: f.workers, Start: bar.Bytes,
		Progress: bar.Add, Loose: !f.strict, Unverified: !f.verify, Ranks: g})
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer s.Close()
	if err := g.Together(s.CheckOutput(f.out)); err != nil {
		return err
	}
	for _, c := range s.Files() {
		if c.Found != "" {
			fmt.Fprintln(log, c.Found)
		}
	}
	if f.By == merge.ByPowerEMA {
		if err := f.power(s.Files()); err != nil {
			return err
		}
	}
	o := f.output()
	o.Ranks = g
	files := int64(len(s.Files()))
	bar.Start("reading", s.Bytes(int(files), o.Stats), terminal.CountBytes)
	plan, err := merge.New(ctx, s, f.Options)
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	rep := f.report(s, plan, o.Stats)
	for _, w := range plan.Warnings {
		fmt.Fprintf(log, "warning: %s\n", w)
	}
	said, err := json.Marshal(rep.short())
	if err != nil {
		return err
	}
	o.Metadata = map[string]string{"merge": string(said)}
	passes := plan.Passes
	if f.By == merge.ByRNA {
		passes--
	}
	bar.Start("merging", s.Bytes(int(files)*passes, o.Stats), terminal.CountBytes)
	if plan.Tame != "" {
		o.Meter = &extrapolate.Meter{}
	}
	w, err := merge.Write(ctx, s, plan.Rules, *o)
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	if o.Meter != nil {
		for _, far := range plan.Far(o.Meter.Distances()) {
			if w.Resumed > 0 {
				far = "in the shards written now " + far
			}
			rep.Warnings = append(rep.Warnings, far)
			fmt.Fprintf(log, "warning: %s\n", far)
		}
	}
	rep.Shards, rep.Resumed, rep.WithFiles = w.Shards, w.Resumed, w.Copied
	if !g.First() {
		return nil
	}
	return f.json.Write(out, rep, rep.print)
}

// adapters merges the products of adapters in the given or natural order.
func (f *mergeFlags) adapters(args []string, out io.Writer) error {
	if f.window.Order == extrapolate.ByStep {
		return errors.New("--order step is not for --adapter delta: natural or given")
	}
	if f.window.Order == extrapolate.Natural {
		args = slices.Clone(args)
		slices.SortStableFunc(args, extrapolate.CompareNatural)
	}
	weights, err := f.Fixed(len(args))
	if err != nil {
		return err
	}
	if err := merge.MergeAdapters(args, weights, f.out); err != nil {
		return err
	}
	rep := &mergeReport{Method: f.By, Output: f.out, Passes: 1, Shards: 1}
	for i, path := range args {
		rep.Files = append(rep.Files, mergedFile{Path: path, Form: "adapter", Shards: 1, Weight: &weights[i]})
	}
	return f.json.Write(out, rep, func(w io.Writer) error {
		for _, c := range rep.Files {
			fmt.Fprintf(w, "%10.6f  %s\n", *c.Weight, c.Path)
		}
		_, err := fmt.Fprintf(w, "%s: an adapter of the sum of the products\n", f.out)
		return err
	})
}

// power determines the averages that the files hold.
func (f *mergeFlags) power(files []*extrapolate.Checkpoint) error {
	if f.stored != nil && len(f.stored) != len(files) || f.steps != nil && len(f.steps) != len(files) {
		return fmt.Errorf("--stored and --steps have one number a file: there are %d files", len(files))
	}
	for i, c := range files {
		var p merge.Power
		if f.stored != nil {
			p.SigmaRel = f.stored[i]
		}
		if f.steps != nil {
			p.Step = f.steps[i]
		} else if n, ok := c.Step(); ok {
			p.Step = float64(n)
		} else {
			return fmt.Errorf("%s: neither its metadata nor its name tells the step: give --steps", c.Path)
		}
		if p.Step <= 0 {
			return fmt.Errorf("%s is of step %v: power-ema takes steps above 0: give --steps", c.Path, p.Step)
		}
		f.Stored = append(f.Stored, p)
		f.Want = merge.Power{Step: max(f.Want.Step, p.Step), SigmaRel: f.sigmaRel}
	}
	return nil
}

func (f *mergeFlags) report(s *extrapolate.Series, p *merge.Plan, stats extrapolate.Stats) *mergeReport {
	r := &mergeReport{Method: f.By, Output: f.out, Left: s.Left(), Warnings: p.Warnings, Passes: p.Passes,
		Options: map[string]string{}}
	for _, name := range mergeOptions[f.By] {
		if v := f.set.Lookup(name).Value.String(); v != "" && v != "[]" {
			r.Options[name] = v
		}
	}
	for i, c := range s.Files() {
		file := mergedFile{Path: c.Path, Form: string(c.File.Form), Shards: c.File.Shards}
		if p.Weights != nil {
			file.Weight = &p.Weights[i]
		}
		r.Files = append(r.Files, file)
	}
	if f.By == merge.ByPowerEMA {
		r.Residual = &p.Residual
	}
	for name, res := range p.RNA {
		if r.RNA == nil {
			r.RNA = map[string]mergedRNA{}
		}
		r.RNA[name] = mergedRNA{res.C, res.NormC, extrapolate.Number(res.Condition)}
	}
	for _, t := range s.Tensors() {
		if t.Role == extrapolate.Scale {
			r.Scales++
		} else if t.Role == extrapolate.Weight || t.Role != extrapolate.Copied && stats == extrapolate.CombineStats {
			r.Combined++
		} else {
			r.Copied = append(r.Copied, t.Name)
		}
	}
	return r
}

// short returns the metadata of the output.
func (r *mergeReport) short() map[string]any {
	var names []string
	var weights []float64
	for _, c := range r.Files {
		names = append(names, filepath.Base(c.Path))
		if c.Weight != nil {
			weights = append(weights, *c.Weight)
		}
	}
	return map[string]any{"method": r.Method, "options": r.Options, "files": names, "weights": weights}
}

func (r *mergeReport) print(w io.Writer) error {
	rows := [][]string{{"file", "weight", "form", "shards"}}
	for _, c := range r.Files {
		weight := "by tensor"
		if c.Weight != nil {
			weight = fmt.Sprintf("%.6f", *c.Weight)
		}
		rows = append(rows, []string{c.Path, weight, c.Form, fmt.Sprint(c.Shards)})
	}
	page := terminal.NewPage(w)
	page.Table(rows)
	if r.Residual != nil {
		fmt.Fprintf(page, "the profile of this average is %.3g away from the wanted one, relative to its norm\n", *r.Residual)
	}
	for _, name := range slices.Sorted(maps.Keys(r.RNA)) {
		fmt.Fprintf(page, "%s‖c‖ %.4g, condition %.3g\n", strings.TrimPrefix(name+": ", ": "), r.RNA[name].NormC,
			float64(r.RNA[name].Condition))
	}
	for _, l := range r.Left {
		fmt.Fprintf(page, "left out: %s\n", l)
	}
	line := fmt.Sprintf("%s: %s combined", r.Output, text.Count(r.Combined, "tensor"))
	if r.Scales > 0 {
		line += fmt.Sprintf(", %d of them with new scales", r.Scales)
	}
	if n := len(r.Copied); n > 0 {
		line += fmt.Sprintf(", %d copied from the last file: %s", n, strings.Join(r.Copied[:min(n, 6)], ", "))
		if n > 6 {
			line += ", …"
		}
	}
	if r.Shards > 1 {
		line += fmt.Sprintf("; %d shards", r.Shards)
	}
	if len(r.WithFiles) > 0 {
		line += "; with " + strings.Join(r.WithFiles, ", ")
	}
	fmt.Fprintln(page, line)
	return page.Flush(w)
}
