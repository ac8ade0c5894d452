package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/canvas"
	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/report"
	"onlinerna/train/runs"
	"onlinerna/train/watch"
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

// comparison holds the options of rna compare, which rna sweep has, too.
type comparison struct {
	plot, csv, sort string
	reverse         bool
	json            cli.JSON
}

// addTo adds the options; by is the default of --sort.
func (o *comparison) addTo(g cli.Group, by string) {
	g.StringVar(&o.sort, "sort", by, "order: "+strings.Join(report.GroupColumns(), ", ")+" or an option of training; "+
		"differences are from the first")
	g.Values("sort", report.GroupColumns()...)
	g.BoolVar(&o.reverse, "reverse", false, "sort the other way round")
	g.StringVar(&o.plot, "plot", "", "draw loss and error over the epochs into this `file`"+canvas.Help)
	g.StringVar(&o.csv, "csv", "", "write a line for each run to this `file`")
	o.json.Add(g)
}

// show writes runs in groups.
func (o *comparison) show(out io.Writer, list []runs.Run) error {
	groups := report.GroupRuns(list)
	if o.sort != "" {
		if err := report.SortGroups(groups, o.sort, o.reverse); err != nil {
			return err
		}
	}
	err := o.json.Write(out, report.CompareJSON(groups), func(w io.Writer) error { return report.Compare(w, groups) })
	if err == nil {
		err = files.WriteTo(o.csv, func(w io.Writer) error { return report.CompareCSV(w, groups) })
	}
	if err != nil {
		return err
	}
	return canvas.Draw(o.plot, func(w io.Writer, format string) error { return report.PlotGroups(w, format, groups) })
}

func newCompare() *cobra.Command {
	var o comparison
	cmd := &cobra.Command{
		Use:   "compare RUN... [options]",
		Short: "Show runs side by side, with the options in which they differ",
		Long: `Show the scores of runs, or of all runs in folders, with the options in which they differ and their differences
from the first.

Runs that differ only in their seed are one group, with the mean and its standard error. Groups are compared after the
last epoch that all of their runs have finished, seed by seed; single runs image by image. A failed run does not count.`,
		Example: `  rna compare runs/20260102-150405-resnet50 runs/20260103-090000-resnet50
  rna compare runs --sort best --plot runs.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, fmt.Errorf("nothing to compare: name runs, or folders of runs"))
			}
			if o.sort != "" {
				if err := report.SortGroups(nil, o.sort, false); err != nil {
					return cli.Usage(cmd, fmt.Errorf("--sort: %w", err))
				}
			}
			list, err := findRuns(cmd, args...)
			if err != nil {
				return err
			}
			return o.show(cmd.OutOrStdout(), list)
		},
	}
	g := cli.NewGroup("Options")
	o.addTo(g, "")
	cli.AddGroups(cmd, g)
	return cmd
}

// findRuns reads the runs in folders, and prints a line for each path that it passes over.
func findRuns(cmd *cobra.Command, paths ...string) ([]runs.Run, error) {
	list, _, err := findPassing(cmd, paths...)
	return list, err
}

// findPassing is findRuns, and also returns these lines.
func findPassing(cmd *cobra.Command, paths ...string) (list []runs.Run, passed []string, err error) {
	list, passed, err = runs.Find(paths...)
	if err != nil {
		return nil, nil, err
	}
	for i := range passed {
		passed[i] = text.Printable(passed[i])
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%s", strings.Join(passed, "; "))
	}
	log := cmd.ErrOrStderr()
	for _, line := range passed {
		fmt.Fprintln(log, terminal.Wrap(log, "Passed over: "+line, "  "))
	}
	return list, passed, nil
}

// oneRun reads the only run in a folder or, if going is set, the only one that is going on.
func oneRun(cmd *cobra.Command, args []string, going bool) (*runs.Run, error) {
	if len(args) != 1 {
		return nil, cli.Usage(cmd, fmt.Errorf("%d arguments: want the folder of a run", len(args)))
	}
	list, err := findRuns(cmd, args[0])
	if err != nil {
		return nil, err
	}
	return theRun(args[0], list, going)
}

// theRun is the only run of a list or, if going is set, the only one that is going on.
func theRun(dir string, list []runs.Run, going bool) (*runs.Run, error) {
	of := "runs"
	if going && len(list) > 1 {
		of = "runs, and none of them is going"
		running := slices.DeleteFunc(slices.Clone(list), func(r runs.Run) bool { return r.State != train.Running })
		if len(running) > 0 {
			list, of = running, "runs that are going"
		}
	}
	if len(list) > 1 {
		return nil, fmt.Errorf("%s has %d %s: name one, such as %s", dir, len(list), of, list[0].Dir)
	}
	return &list[0], nil
}

func newWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch a run in progress: bar, curves, candidates, messages",
		Long: `Show a run from its folder while another process trains it, here or on a machine with the same files: progress, the
training loss of each step and the error of each epoch, the candidates of the last epoch, rates and the last messages.
q ends the view, and leaves the run alone.

RUN is the folder of a run, or one of several runs, as of a sweep, of which one is going: "runs" unless named.

In a pipe it writes a line for each epoch and message, and ends with the run.`,
		Example: `  rna watch
  rna watch runs/20260102-150405-resnet50
  ssh -t host rna watch runs/photos`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"runs"}
			}
			r, err := oneRun(cmd, args, true)
			if err != nil {
				return err
			}
			if out := cmd.OutOrStdout(); terminal.Is(out) {
				return watch.Screen(cmd.Context(), r.Dir, os.Stdin, terminal.Raw(out))
			}
			return watch.Lines(cmd.Context(), r.Dir, cmd.OutOrStdout())
		},
	}
	cli.AddGroups(cmd)
	return cmd
}

func newExportMetrics() *cobra.Command {
	var to, out string
	var steps bool
	cmd := &cobra.Command{
		Use:   "export-metrics RUN [options]",
		Short: "Write a run's metrics as CSV or JSON lines for other programs",
		Long: `Write a line for each epoch of a run, and with --steps for each step, with flat names such as validation/SGD/loss.

docs/output.md shows how Weights & Biases and others take the lines.`,
		Example: `  rna export-metrics runs/photos --to csv -o photos.csv
  rna export-metrics runs/photos --to jsonl --steps | head`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(runs.Forms(), to) {
				return cli.Usage(cmd, fmt.Errorf("--to %q: want %s", to, strings.Join(runs.Forms(), " or ")))
			}
			r, err := oneRun(cmd, args, false)
			if err != nil {
				return err
			}
			if r.State == train.Running {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is still going: its metrics so far are written\n", r.Dir)
			}
			if out == "" {
				_, err = runs.Export(cmd.OutOrStdout(), r, to, steps)
				return err
			}
			n := 0
			err = files.WriteTo(out, func(w io.Writer) (err error) {
				n, err = runs.Export(w, r, to, steps)
				return err
			})
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", out, text.Count(n, "line"))
			}
			return err
		},
	}
	o := cli.NewGroup("Options")
	o.StringVar(&to, "to", "csv", "form: "+strings.Join(runs.Forms(), ", "))
	o.Values("to", runs.Forms()...)
	o.BoolVar(&steps, "steps", false, "also a line for each step")
	o.StringVarP(&out, "out", "o", "", "`file` to write (default: the standard output)")
	cli.AddGroups(cmd, o)
	return cmd
}
