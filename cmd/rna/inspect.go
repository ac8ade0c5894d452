package main

import (
	"context"
	"fmt"
	"io"
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
files also show the distances from each to the next, the coefficients of rna extrapolate, and the methods of rna merge.
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
	s, err := f.Open(args, extrapolate.Options{Workers: f.workers, Progress: bar.Add})
	if err != nil {
		return err
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
	if !slices.ContainsFunc(s.Files(), func(c *extrapolate.Checkpoint) bool { return c.Contents != statedict.Weights }) {
		in.Merge = cli.Words(merge.For(len(s.Files())))
	}
	return f.json.Write(out, in, in.WriteTable)
}
