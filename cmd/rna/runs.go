package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/train/report"
	"onlinerna/train/runs"
)

func newRuns() *cobra.Command {
	var by string
	var where []string
	var reverse bool
	var json cli.JSON
	cmd := &cobra.Command{
		Use:   "runs [FOLDER...] [options]",
		Short: "List runs: model, data, epochs, best scores, state",
		Long: `List the runs in a folder, "runs" unless named, and in folders up to three levels below it.

A run is running while a process has its lock, done when its last epoch is, failed when an error ended it, stopped when
a sweep ended it early, and else interrupted: rna train --resume goes on with both.`,
		Example: `  rna runs
  rna runs --where state=done --where model=resnet* --sort best
  rna runs experiments --where "lr<0.1" --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := runs.Sort(nil, by, false); err != nil {
				return cli.Usage(cmd, fmt.Errorf("--sort: %w", err))
			}
			var conditions []runs.Condition
			for _, text := range where {
				c, err := runs.ParseCondition(text)
				if err != nil {
					return cli.Usage(cmd, fmt.Errorf("--where: %w", err))
				}
				conditions = append(conditions, c)
			}
			if len(args) == 0 {
				args = []string{"runs"}
			}
			all, err := findRuns(cmd, args...)
			if err != nil {
				return err
			}
			list := runs.Where(all, conditions...)
			if err := runs.Sort(list, by, reverse); err != nil {
				return err
			}
			return json.Write(cmd.OutOrStdout(), report.Rows(list), func(w io.Writer) error {
				if len(list) == 0 {
					_, err := fmt.Fprintf(w, "None of %d runs meets %s\n", len(all), strings.Join(where, ", "))
					return err
				}
				return report.RunTable(w, list)
			})
		},
	}
	g := cli.NewGroup("Options")
	g.StringArrayVar(&where, "where", nil, "list runs with `NAME=VALUE`, also !=, < and >: "+
		strings.Join(runs.Columns(), ", ")+" or an option of training; * stands for any text; several must all hold")
	g.StringVar(&by, "sort", "name", "order, by one of these names")
	g.Values("sort", runs.Columns()...)
	g.BoolVar(&reverse, "reverse", false, "sort the other way round")
	json.Add(g)
	cli.AddGroups(cmd, g)
	return cmd
}
