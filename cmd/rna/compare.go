package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/canvas"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/report"
)

func newCompare() *cobra.Command {
	var plot string
	cmd := &cobra.Command{
		Use:   "compare RUN RUN… [options]",
		Short: "Show runs side by side, with the options in which they differ",
		Example: `  rna compare runs/20260102-150405-resnet50 runs/20260103-090000-resnet50
  rna compare runs/* --plot runs.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 26 {
				return cli.Usage(cmd, fmt.Errorf("%s to compare: want the folders of 2 to 26", text.Count(len(args), "run")))
			}
			var runs []report.Finished
			for _, dir := range args {
				c, err := train.ReadSpec(dir)
				if err != nil {
					return fmt.Errorf("%s is no folder of a run: %w", dir, err)
				}
				h, err := train.ReadHistory(dir)
				if err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
				runs = append(runs, report.Finished{Name: filepath.Base(strings.TrimRight(dir, "/")), Config: c, History: h})
			}
			if err := report.Compare(cmd.OutOrStdout(), runs); err != nil {
				return err
			}
			return canvas.Draw(plot, func(w io.Writer, format string) error { return report.PlotRuns(w, format, runs) })
		},
	}
	o := cli.NewGroup("Options")
	o.StringVar(&plot, "plot", "", "draw loss and error over the epochs into this `file`"+canvas.Help)
	cli.AddGroups(cmd, o)
	return cmd
}
