package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/rna"
	"onlinerna/train/extrapolate"
	"onlinerna/train/statedict"
)

type extrapolateFlags struct {
	windowFlags
	out, bn           string
	lambda, tau, beta float64
	average, auto     bool
	quiet, sync       bool
	json              cli.JSON
	workers           int
	eval              evaluatorFlags

	set *pflag.FlagSet
}

// windowFlags say which files make residuals.
type windowFlags struct {
	order, y0, key string
	pairs          bool

	weights bool // nothing but whole checkpoints of weights
	factors bool // or factors of adapters
}

// add adds the options that say what the window is made of.
func (f *windowFlags) add(g cli.Group) {
	g.StringVar(&f.order, "order", string(extrapolate.Natural), "order of the files, oldest first: natural (2 before 10), given, or step (by the metadata or the last number in the name)")
	g.Values("order", string(extrapolate.Natural), string(extrapolate.Given), string(extrapolate.ByStep))
	g.StringVar(&f.y0, "y0", "", "`file` that the first one started from: one residual more")
	g.StringVar(&f.key, "key", "", keyHelp)
	g.BoolVar(&f.pairs, "pairs", false, "files are y x y x …, in the given order: residuals x − y of methods that did not go on from x")
}

// The fates of BatchNorm statistics.
const (
	bnLast       = "last"
	bnCombine    = "combine"
	bnReestimate = "reestimate"
)

func newExtrapolate() *cobra.Command {
	f := &extrapolateFlags{}
	cmd := &cobra.Command{
		Use:   "extrapolate FILE… -o OUT [options]",
		Short: "Extrapolate a row of checkpoints of any framework with RNA",
		Long: `Extrapolate a row of checkpoints with RNA, in memory that does not grow with them.

It is the short form of rna merge --by rna, and reads the same forms of checkpoints: safetensors, what torch.save wrote, folders of shards,
distributed checkpoints, npz and GGUF. No code of theirs is run. K files make K − 1 residuals. Integers are copied from the last
file, BatchNorm statistics too unless --bn says otherwise. The output is safetensors,
or for .pt and .pth what torch.load takes.

The folder of a run, alone, stands for the weights that it kept (rna train --keep-every 1), and its images are the default of --eval
and --data; among others it stands for its best weights.`,
		Example: `  rna extrapolate runs/fine -o out.safetensors --auto
  rna extrapolate ckpt-*.safetensors -o out.safetensors
  rna extrapolate checkpoint_*.pt -o average.safetensors --average
  rna extrapolate epoch-*.safetensors -o out.safetensors --model resnet50 \
    --auto --eval imagenet/val --bn reestimate --data imagenet`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.set = cmd.Flags()
			args, run, err := expand(args, true, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			f.eval.of(run, f.auto, f.bn == bnReestimate)
			if err := f.check(args); err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Files")
	o.StringVarP(&f.out, "out", "o", "", "`file` to write: .safetensors, or .pt or .pth for torch.load")
	f.windowFlags.add(o)
	r := cli.NewGroup("RNA")
	r.Float64Var(&f.lambda, "lambda", rna.DefaultLambda, "regularisation, relative to the squared norm of the residuals; inf: the average of their x")
	r.Float64Var(&f.tau, "tau", 0, "bound the coefficients by ‖c‖ ≤ (1+τ)/√N instead (CNA)")
	r.Float64Var(&f.beta, "beta", rna.DefaultBeta, "mixing: 1 combines the x of the residuals, 0 their y")
	r.BoolVar(&f.average, "average", false, "the uniform average over all files")
	r.BoolVar(&f.auto, "auto", false, "choose by the loss on --eval: the last file, or the average or a lambda up to 10 that is better by a t test at 5 %")
	r.StringVar(&f.bn, "bn", bnLast, "BatchNorm statistics: last file's, combine (a negative variance becomes 0), or reestimate on --data")
	r.Values("bn", bnLast, bnCombine, bnReestimate)
	s := cli.NewGroup("Run")
	f.json.Add(s)
	s.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	s.Cores(&f.workers, "workers", "goroutines (default: one a core); results do not depend on it")
	s.BoolVar(&f.sync, "sync", false, "wait until the output is on the disk, not only with the system")
	cli.AddGroups(cmd, o, r, f.eval.group(), s)
	return cmd
}

// check finds mistakes in the command line.
func (f *extrapolateFlags) check(args []string) error {
	kinds := 0
	for _, name := range []string{"lambda", "tau", "average", "auto"} {
		if f.set.Changed(name) {
			kinds++
		}
	}
	switch {
	case len(args) == 0:
		return errors.New("no files: name the checkpoints")
	case f.out == "":
		return errors.New("--out is missing: the safetensors file to write")
	case kinds > 1:
		return errors.New("--lambda, --tau, --average and --auto exclude each other")
	case !(f.lambda >= 0):
		return fmt.Errorf("--lambda %v: must be 0 or more", f.lambda)
	case !(f.tau >= 0) || math.IsInf(f.tau, 0):
		return fmt.Errorf("--tau %v: must be 0 or more, and finite", f.tau)
	case math.IsNaN(f.beta) || math.IsInf(f.beta, 0):
		return fmt.Errorf("--beta %v: must be finite", f.beta)
	case f.average && f.set.Changed("beta"):
		return errors.New("--average does not take --beta: it is over the files as they are")
	case f.bn != bnLast && f.bn != bnCombine && f.bn != bnReestimate:
		return fmt.Errorf("unknown --bn %q: last, combine or reestimate", f.bn)
	case f.auto != (f.eval.eval != ""):
		return errors.New("--auto and --eval go together: the data that it chooses by")
	case (f.bn == bnReestimate) != (f.eval.data != ""):
		return errors.New("--bn reestimate and --data go together: the training images to estimate on")
	}
	if !f.auto && f.bn != bnReestimate {
		for _, name := range f.eval.names() {
			if f.set.Changed(name) {
				return fmt.Errorf("--%s is for --auto and for --bn reestimate", name)
			}
		}
	}
	return f.windowFlags.check(f.set, len(args))
}

// check finds options that exclude each other, and files that are no pairs.
func (f *windowFlags) check(set *pflag.FlagSet, files int) error {
	switch {
	case f.pairs && f.y0 != "":
		return errors.New("--pairs and --y0 exclude each other")
	case f.pairs && files%2 != 0:
		return fmt.Errorf("--pairs takes y x y x …: %d files are no pairs", files)
	case f.pairs && set.Changed("order") && f.order != string(extrapolate.Given):
		return errors.New("--pairs takes the files in the given order")
	}
	return nil
}

// openWindow opens the files in order.
func (f *windowFlags) openWindow(args []string, opt extrapolate.Options) (*extrapolate.Series, error) {
	order := extrapolate.Order(f.order)
	if f.pairs {
		order = extrapolate.Given
		for i := 0; i < len(args); i += 2 {
			opt.Pairs = append(opt.Pairs, extrapolate.Pair{Y: i, X: i + 1})
		}
	}
	seen := map[string]bool{}
	var files []*extrapolate.Checkpoint
	open := func(path string) (err error) {
		if clean := filepath.Clean(path); seen[clean] {
			err = fmt.Errorf("%s is given twice", path)
		} else {
			seen[clean] = true
			var c *extrapolate.Checkpoint
			if c, err = extrapolate.Open(path, f.key); err == nil {
				files = append(files, c)
			}
			if err == nil && f.weights && c.Contents != statedict.Weights && !(f.factors && c.Contents == statedict.Factors) {
				err = fmt.Errorf("%s %s", c.Path, c.What)
				if c.Contents == statedict.Factors {
					err = fmt.Errorf("%w: --adapter delta merges the products of folders, --adapter factors the factors", err)
				}
			}
		}
		return err
	}
	var err error
	for _, path := range args {
		if err = open(path); err != nil {
			break
		}
	}
	if err == nil {
		err = extrapolate.Sort(files, order)
	}
	if err == nil && f.y0 != "" {
		if err = open(f.y0); err == nil {
			files = append(files[len(files)-1:], files[:len(files)-1]...)
		}
	}
	var s *extrapolate.Series
	if err == nil {
		s, err = extrapolate.NewSeries(files, opt)
	}
	if err != nil {
		closeAll(files)
		return nil, err
	}
	return s, nil
}

func closeAll(files []*extrapolate.Checkpoint) {
	for _, c := range files {
		c.Close()
	}
}

// run extrapolates, writes the file and prints what it is made of.
func (f *extrapolateFlags) run(ctx context.Context, args []string, out, log io.Writer) error {
	bar := terminal.NewBar(log, f.quiet)
	s, err := f.openWindow(args, extrapolate.Options{Workers: f.workers, Progress: bar.Add})
	if err != nil {
		return err
	}
	defer closeAll(s.Files())
	if found := s.Files()[0].Found; found != "" {
		fmt.Fprintln(log, found)
	}
	for _, c := range s.Files() {
		if c.Contents == statedict.OptimizerState {
			return fmt.Errorf("%s %s: name files of weights", c.Path, c.What)
		}
		if c.What != "" {
			fmt.Fprintf(log, "%s %s\n", c.Path, c.What)
		}
	}
	rep := newReport(s, f)
	bar.Start("reading", s.Bytes(len(s.Files()), extrapolate.KeepStats), terminal.CountBytes)
	if !f.average {
		err = s.Measure(ctx)
	}
	if err == nil {
		err = f.produce(ctx, s, rep, bar, log)
	}
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	return f.json.Write(out, rep, rep.print)
}

// produce writes the output.
func (f *extrapolateFlags) produce(ctx context.Context, s *extrapolate.Series, rep *extrapolation, bar *terminal.Bar, log io.Writer) error {
	if f.auto || f.bn == bnReestimate {
		return f.evaluated(ctx, s, rep, bar, log)
	}
	weights, err := f.weights(s, rep)
	if err != nil {
		return err
	}
	bar.Start("writing", s.Bytes(nonzero(weights), f.stats()), terminal.CountBytes)
	return s.Write(ctx, f.out, weights, extrapolate.WriteOptions{Stats: f.stats(), Metadata: rep.metadata(s), Sync: f.sync})
}

func (f *extrapolateFlags) stats() extrapolate.Stats {
	if f.bn == bnCombine {
		return extrapolate.CombineStats
	}
	return extrapolate.KeepStats
}

// weights solves for the weights of the files.
func (f *extrapolateFlags) weights(s *extrapolate.Series, rep *extrapolation) ([]float64, error) {
	if f.average {
		rep.Method = "average"
		rep.setWeights(s.Average())
		return rep.weights, nil
	}
	opt := rna.Options{Beta: rna.Set(f.beta)}
	if f.set.Changed("tau") {
		opt.Tau = rna.Set(f.tau)
	} else {
		opt.Lambda = rna.Set(f.lambda)
	}
	res, err := s.Solve(opt)
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return nil, err
	}
	rep.Method = "rna"
	rep.setResult(s, res, f.beta)
	return rep.weights, nil
}

func nonzero(v []float64) int {
	n := 0
	for _, x := range v {
		if x != 0 {
			n++
		}
	}
	return n
}

// extrapolation is what the command did, as --json prints it.
type extrapolation struct {
	Method    string          `json:"method"` // rna, average or last
	Output    string          `json:"output"`
	Files     []fileReport    `json:"files"`
	Residuals []residual      `json:"residuals,omitempty"`
	Beta      float64         `json:"beta"`
	Lambda    *number         `json:"lambda,omitempty"`
	Tau       *number         `json:"tau,omitempty"`
	NormC     float64         `json:"norm_c,omitempty"`
	Condition *number         `json:"condition,omitempty"`
	Rank      int             `json:"rank,omitempty"`
	Norm      float64         `json:"residual_norm,omitempty"` // ‖R‖₂
	BatchNorm string          `json:"bn"`
	Tensors   map[string]int  `json:"tensors"` // by what became of them
	Auto      []autoCandidate `json:"candidates,omitempty"`
	// NoDifference says that a candidate has a lower loss than the one chosen, but not by the test of [rna.Choose].
	NoDifference bool `json:"no_difference,omitempty"`

	weights []float64
}

type fileReport struct {
	Path   string  `json:"path"`
	Weight float64 `json:"weight"`
}

type residual struct {
	X    string  `json:"x"`
	Y    string  `json:"y"`
	C    float64 `json:"c"`
	Norm float64 `json:"norm"`
}

// number is a number that may be infinite, which JSON writes as a string.
type number float64

// MarshalJSON writes a string for what JSON has no number for.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsInf(v, 0) || math.IsNaN(v) {
		return json.Marshal(fmt.Sprint(v))
	}
	return json.Marshal(float64(n))
}

func newReport(s *extrapolate.Series, f *extrapolateFlags) *extrapolation {
	r := &extrapolation{Output: f.out, BatchNorm: f.bn, Beta: f.beta, Tensors: map[string]int{}}
	for _, c := range s.Files() {
		r.Files = append(r.Files, fileReport{Path: c.Path})
	}
	for _, t := range s.Tensors() {
		switch {
		case t.Role == extrapolate.Weight:
			r.Tensors["combined"]++
		case t.Role == extrapolate.Copied:
			r.Tensors["copied"]++
		default:
			r.Tensors["statistics"]++
		}
	}
	if r.Tensors["statistics"] == 0 {
		r.BatchNorm = ""
	}
	return r
}

// setWeights enters the weight of each file.
func (r *extrapolation) setWeights(w []float64) {
	r.weights = w
	for i, v := range w {
		r.Files[i].Weight = v
	}
}

// setResult enters coefficients and what they are made of.
func (r *extrapolation) setResult(s *extrapolate.Series, res rna.Result, beta float64) {
	lambda, tau, condition := number(res.Lambda), number(res.Tau), number(res.Condition)
	r.Lambda, r.Tau, r.Condition = &lambda, &tau, &condition
	r.NormC, r.Rank, r.Norm = res.NormC, res.Rank, res.Norm
	r.Residuals = nil
	for j, p := range s.Pairs() {
		r.Residuals = append(r.Residuals, residual{s.Files()[p.X].Path, s.Files()[p.Y].Path, res.C[j], res.ResidualNorms[j]})
	}
	r.setWeights(s.Weights(res.C, beta))
}

// metadata is what the output says about itself beside what the last file said.
func (r *extrapolation) metadata(s *extrapolate.Series) map[string]string {
	short := *r
	short.Output, short.Auto, short.Tensors = "", nil, nil
	short.Files = nil
	for _, f := range r.Files {
		short.Files = append(short.Files, fileReport{filepath.Base(f.Path), f.Weight})
	}
	short.Residuals = nil
	for _, v := range r.Residuals {
		v.X, v.Y = filepath.Base(v.X), filepath.Base(v.Y)
		short.Residuals = append(short.Residuals, v)
	}
	b, err := json.Marshal(short)
	if err != nil {
		return nil
	}
	m := map[string]string{"extrapolation": string(b)}
	last := s.Files()[len(s.Files())-1].Metadata
	if _, ours := last["kind"]; ours {
		m["kind"] = map[string]string{"rna": "rna", "average": "average", "last": last["kind"]}[r.Method]
	}
	return m
}

// print writes the coefficients as a table.
func (r *extrapolation) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(r.Residuals) > 0 {
		fmt.Fprintln(t, "c\t‖x − y‖\tx\ty\t")
		for _, v := range r.Residuals {
			fmt.Fprintf(t, "%.6f\t%.4g\t%s\t%s\t\n", v.C, v.Norm, v.X, v.Y)
		}
	} else {
		fmt.Fprintln(t, "weight\tfile\t")
		for _, f := range r.Files {
			fmt.Fprintf(t, "%.6f\t%s\t\n", f.Weight, f.Path)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Lambda != nil && len(r.Residuals) > 0 {
		fmt.Fprintf(w, "‖c‖ %.4g, lambda %.3g, tau %.4g, beta %g, condition %.3g, rank %d of %d\n",
			r.NormC, float64(*r.Lambda), float64(*r.Tau), r.Beta, float64(*r.Condition), r.Rank, len(r.Residuals))
	}
	if err := r.printCandidates(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", r.Output, r.fates())
	return err
}

// fates says what became of the tensors.
func (r *extrapolation) fates() string {
	parts := []string{text.Count(r.Tensors["combined"], "tensor") + " combined"}
	if n := r.Tensors["copied"]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of integers copied from the last file", n))
	}
	if n := r.Tensors["statistics"]; n > 0 {
		fate := map[string]string{bnLast: "copied from the last file (see --bn)", bnCombine: "combined", bnReestimate: "re-estimated"}[r.BatchNorm]
		parts = append(parts, fmt.Sprintf("%d of BatchNorm statistics %s", n, fate))
	}
	return strings.Join(parts, ", ")
}
