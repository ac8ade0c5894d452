package main

import (
	"errors"

	"github.com/spf13/cobra"

	"onlinerna/internal/cli"
	"onlinerna/train/bench"
)

func newBenchTable() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table FILE...",
		Short: "Show measurements of training side by side",
		Long: `Show measurements of training side by side: files of "rna bench train --json-file" and of scripts/bench_pytorch.py. The ratio is
that of the images/s to those of the first file with the same work on the same device.`,
		Example: `  rna bench table rna.json pytorch.json`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return cli.Usage(cmd, errors.New("no files: name those that --json-file wrote"))
			}
			list, err := bench.ReadResults(files...)
			if err != nil {
				return err
			}
			return bench.WriteComparison(cmd.OutOrStdout(), list)
		},
	}
	cli.AddGroups(cmd)
	return cmd
}
