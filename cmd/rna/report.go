package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/evaluate"
	"onlinerna/train/ranks"
	"onlinerna/train/report"
	"onlinerna/train/runs"
)

// pageName is the file of a page in the folder of a run or of a sweep.
const pageName = "report.html"

const noReportHelp = "write no report.html at the end"

// reportFlags holds the options of rna report.
type reportFlags struct {
	out, card, sort  string
	reverse          bool
	noImages, noEval bool
	data, device     string
	threads          int
}

func newReport() *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "report RUN... [options]",
		Short: "Write a page about runs: curves, candidates, classes, images, options",
		Long: `Write one HTML file about runs, or about all runs in folders, that needs no network: the model and its images,
curves, the candidates with standard errors, RNA's coefficients, classes, confusion, worst and best images, time,
machine, versions, options, and the commands that repeat it. Runs that differ only in their seed are one group.

rna train, rna study and rna sweep write it at their end. Classes and images need an evaluation of the best weights,
which evaluation.json in the run's folder keeps; without one it is made now.`,
		Example: `  rna report runs/20260102-150405-resnet50
  rna report runs --sort best -o all.html
  rna report runs/photos --no-images --model-card README.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, errors.New("nothing to report: name runs, or folders of runs"))
			}
			if f.sort != "" {
				if err := report.SortGroups(nil, f.sort, false); err != nil {
					return cli.Usage(cmd, fmt.Errorf("--sort: %w", err))
				}
			}
			return f.run(cmd, args)
		},
	}
	o := cli.NewGroup("Options")
	o.StringVarP(&f.out, "out", "o", "", "`file` to write (default: "+pageName+" in the named folder if there is one, else "+
		"here)")
	o.BoolVar(&f.noImages, "no-images", false, "leave out the worst and best images")
	o.BoolVar(&f.noEval, "no-eval", false, "evaluate no weights: leave out classes and images of runs without an "+
		"evaluation.json")
	o.StringVar(&f.card, "model-card", "", "write this `file`, too: README.md as Hugging Face has it beside weights, about the "+
		"first group's best run")
	o.StringVar(&f.sort, "sort", "", "order of the groups: best, last, loss, name or an option of training")
	o.Values("sort", report.GroupColumns()...)
	o.BoolVar(&f.reverse, "reverse", false, "sort the other way round")
	o.StringVar(&f.data, "data", "", "`place` of the images to evaluate (default: that of the runs)")
	o.StringVar(&f.device, "device", "auto", deviceHelp)
	o.Values("device", deviceValues...)
	o.Cores(&f.threads, "threads", "threads that compute (default: one a fast core)")
	cli.AddGroups(cmd, o)
	return cmd
}

func (f *reportFlags) run(cmd *cobra.Command, args []string) error {
	log := cmd.ErrOrStderr()
	list, passed, err := findPassing(cmd, args...)
	if err != nil {
		return err
	}
	for i := range list {
		if r := &list[i]; r.State == train.Running {
			fmt.Fprintf(log, "%s is still going: its %d finished epochs of %d are shown\n", r.Dir, r.Epoch(), r.Config.Epochs)
		}
	}
	groups := report.GroupRuns(list)
	if f.sort != "" {
		if err := report.SortGroups(groups, f.sort, f.reverse); err != nil {
			return err
		}
	}
	b := pageBuilder{log: log, images: !f.noImages, data: f.data}
	if !f.noEval {
		b.open = func(_ *ranks.Group, threads int) (device.Device, error) {
			return openDevice(chosenDevice(f.device, log), deviceOptions{threads: cmp.Or(f.threads, threads), log: log})
		}
	}
	path := f.out
	if path == "" {
		path = pageName
		if len(args) == 1 {
			path = filepath.Join(args[0], pageName)
		}
	}
	page, err := b.build(cmd.Context(), groups, passed, report.MaxSections)
	if err == nil {
		err = files.WriteTo(path, page.Write)
	}
	if err == nil {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	if err == nil && f.card != "" {
		if err = files.WriteTo(f.card, page.WriteCard); err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), f.card)
		}
	}
	return err
}

// pageBuilder gathers the contents of a page.
type pageBuilder struct {
	log    io.Writer
	images bool
	data   string // place of the images; empty: that of each run
	// open opens a device for evaluations; nil: none are made.
	open func(g *ranks.Group, threads int) (device.Device, error)
}

// build makes a page whose first sections, as many as most, have classes and images.
func (b *pageBuilder) build(ctx context.Context, groups []report.Group, passed []string, most int) (*report.Page, error) {
	p := &report.Page{Groups: groups, Passed: passed, Evaluations: map[string]*report.Evaluation{},
		Missing: map[string]string{}}
	for i, r := range p.Shown() {
		if i >= most {
			p.Missing[r.Dir] = "Classes and images: rna report " + r.Dir
			continue
		}
		e, err := b.evaluation(ctx, r)
		if ctx.Err() != nil {
			return nil, cli.Stopped("interrupted, nothing was written")
		}
		if err != nil {
			p.Missing[r.Dir] = err.Error()
		}
		if err != nil && !errors.Is(err, errNoEvaluation) {
			fmt.Fprintln(b.log, terminal.Wrap(b.log, r.Dir+": "+err.Error(), "  "))
		}
		if e != nil {
			p.Evaluations[r.Dir] = e
		}
	}
	return p, nil
}

// errNoEvaluation is missing because nobody asked for it.
var errNoEvaluation = errors.New("classes and images need an evaluation: rna report makes it")

// evaluation reads or makes the evaluation of a run's best weights, with its pictures. An error says why there is none.
func (b *pageBuilder) evaluation(ctx context.Context, r *runs.Run) (e *report.Evaluation, err error) {
	if r.Best() == nil {
		return nil, errors.New("no weights were compared, so there are no best ones to show classes and images of")
	}
	if e, err = report.ReadEvaluation(r.Dir, r.Best()); err != nil {
		return nil, err
	}
	options := func() *evaluate.Options {
		o := evaluate.OfRun(r.Dir, &r.Config)
		o.Data, o.Open = b.data, b.open
		return o
	}
	if e == nil {
		switch {
		case r.State == train.Running:
			return nil, errors.New("classes and images are shown once the run has ended")
		case b.open == nil:
			return nil, errNoEvaluation
		}
		if e, err = options().Record(ctx, nil, b.log); e == nil || !e.Of(r.Best()) {
			return nil, cmp.Or(err, errors.New("best.safetensors has other weights than the run's records name best"))
		}
	}
	if !b.images {
		return e, err
	}
	return e, cmp.Or(err, options().Pictures(ctx, e))
}

// pageOfRun writes the page of a run that has ended, on the device of its ranks. It closes the run before, to make room.
func pageOfRun(ctx context.Context, run *train.Run, closeRun func() error, dev device.Device, g *ranks.Group,
	out, log io.Writer) error {
	dir, c := run.Resolved.Out, run.Resolved.Spec
	compared := len(run.History) > 0 && run.History[len(run.History)-1].Best != nil
	if err := g.Share(&compared); err != nil {
		return err
	}
	if err := g.Together(closeRun()); err != nil {
		return err
	}
	if compared {
		o := evaluate.OfRun(dir, &c)
		o.Open = func(*ranks.Group, int) (device.Device, error) { return lent{dev}, nil }
		if _, err := o.Record(ctx, g, log); err != nil && g.First() {
			fmt.Fprintln(log, terminal.Wrap(log, "The page of the run has no classes and images: "+err.Error(), "  "))
		}
	}
	if !g.First() {
		return nil
	}
	return writePage(ctx, dir, &pageBuilder{log: log, images: true}, 1, out)
}

// writePage writes the page of a run, a study or a sweep into its folder.
func writePage(ctx context.Context, dir string, b *pageBuilder, most int, out io.Writer) error {
	list, passed, err := runs.Find(dir)
	if err != nil {
		return err
	}
	groups := report.GroupRuns(list)
	if err := report.SortGroups(groups, "best", false); err != nil {
		return err
	}
	page, err := b.build(ctx, groups, passed, most)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, pageName)
	if err := files.WriteTo(path, page.Write); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, path)
	return err
}

// lent is a device that another owner closes.
type lent struct{ device.Device }

var _ device.Wrapper = lent{}

// Unwrap implements device.Wrapper.
func (l lent) Unwrap() device.Device { return l.Device }

// Close does nothing.
func (lent) Close() error { return nil }
