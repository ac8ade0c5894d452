package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/terminal"
	"onlinerna/train/evaluate"
	"onlinerna/train/extrapolate"
	"onlinerna/train/merge"
	"onlinerna/train/statedict"
)

type inspectFlags struct {
	extrapolate.Window
	json    cli.JSON
	quiet   bool
	workers int
}

func newInspect() *cobra.Command {
	f := &inspectFlags{}
	cmd := &cobra.Command{
		Use:   "inspect FILE… [options]",
		Short: "Show the tensors of checkpoints and their extrapolation",
		Long: `Show the tensors of checkpoints of all forms that rna merge reads: types, shapes, norms, shards. For several
files also show the distances from each to the next, tensors that differ in shape or type or that a file lacks, the
coefficients of rna extrapolate, and the methods of rna merge that apply.
The folder of a run stands for its best weights.`,
		Example: `  rna inspect model.safetensors
  rna inspect runs/fine
  rna inspect ckpt-*.pt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, _, err := evaluate.Expand(args, false, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			err = f.Check(len(args), cmd.Flags().Changed("order"))
			if len(args) == 0 {
				err = fmt.Errorf("no files: name the checkpoints")
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o := cli.NewGroup("Files")
	addWindow(o, &f.Window)
	s := cli.NewGroup("Run")
	f.json.Add(s)
	s.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	s.Cores(&f.workers, "workers", "goroutines (default: one a core)")
	cli.AddGroups(cmd, o, s)
	return cmd
}

func (f *inspectFlags) run(ctx context.Context, args []string, out, log io.Writer) error {
	bar := terminal.NewBar(log, f.quiet)
	s, err := f.Open(ctx, args, extrapolate.Options{Workers: f.workers, Start: bar.Bytes, Progress: bar.Add,
		Loose: true, Differing: true})
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer s.Close()
	if err := s.Tell(log, false); err != nil {
		return err
	}
	in, err := s.Inspect(ctx, bar.Bytes)
	bar.Finish()
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	if len(args) > 1 {
		applies(in, s)
	}
	return f.json.Write(out, in, in.WriteTable)
}

// applies sets the methods of rna merge for the files, or its error.
func applies(in *extrapolate.Inspection, s *extrapolate.Series) {
	all := func(want statedict.Contents) bool {
		return !slices.ContainsFunc(s.Files(), func(c *extrapolate.Checkpoint) bool { return c.Contents != want })
	}
	if all(statedict.Factors) {
		in.With = " --adapter delta"
		in.Merge = cli.Words([]merge.Method{merge.ByMean, merge.ByWeights, merge.ByEMA, merge.ByWSM})
		return
	}
	for i, c := range s.Files() {
		if c.Contents != statedict.Weights {
			in.Refused = c.Path + " " + c.What
			return
		}
		if v := float64(in.Files[i].Norm); math.IsNaN(v) || math.IsInf(v, 0) {
			in.Refused = c.Path + " has weights that are not finite"
			return
		}
	}
	if len(in.Differences) > 0 { // rna extrapolate takes equal tensors
		in.RNA = nil
	}
	if s.Differ() {
		in.Refused = "tensors differ in shape or type"
		return
	}
	if len(in.Differences) > 0 {
		in.With = " --strict=false"
	}
	methods := merge.For(len(s.Files()))
	if in.RNA != nil && in.RNA.Refused != "" {
		methods = slices.DeleteFunc(methods, func(m merge.Method) bool { return m == merge.ByRNA })
	}
	in.Merge = cli.Words(methods)
}
