package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/parallel"
	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/option"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/launch"
	"onlinerna/train/report"
	"onlinerna/train/runs"
	"onlinerna/train/sweep"
)

// unswept lists the options of rna train that a sweep does not have.
var unswept = append([]string{"resume-or-start", "data-changed", "stop-within", "profile", "verbose", "debug-sync"},
	optionNames(launch.Table)...)

// anytime lists the options that a sweep that goes on may change: results do not depend on them.
var anytime = []string{"resume", "jobs", "shard", "device", "threads", "workers", "quiet", "no-report", "sort", "reverse", "plot",
	"csv", "json", "json-file"}

func optionNames[S any](t option.Table[S]) (names []string) {
	for _, o := range t {
		names = append(names, o.Name)
	}
	return names
}

// sweepFlags holds the options of rna sweep.
type sweepFlags struct {
	trainFlags
	plan  sweep.Plan
	jobs  int
	shard string
	show  comparison
}

func newSweep() *cobra.Command {
	f := &sweepFlags{}
	cmd := &cobra.Command{
		Use:   "sweep --set NAME=VALUES [options]",
		Short: "Train the candidates of a space of options, each with several seeds",
		Long: `Train a run for each combination of options and each seed, and compare them.

The values of --set are a list, of which the grid is trained, or a range, from which --trials candidates are drawn. With
--search tpe, these are drawn near the best of those before. With --halving 3, candidates are compared after a few
epochs, and a third of them goes on: asynchronous successive halving (ASHA). With several seeds a candidate also goes on
while a paired t test cannot tell it from that third: three seeds or more let such a test tell anything.

The folder holds the plan and the runs, which are all of the state: a sweep that was stopped or killed goes on with
--resume, and ends with the same results. rna train --resume goes on with a run that stopped early. rna runs and rna
compare show the folder at any time.`,
		Example: `  rna sweep --set lr=0.01,0.03,0.1 --set weight-decay=1e-4,5e-4 --seeds 5
  rna sweep --set lr=log:1e-3..1 --set batch=32,128 --trials 30 --halving 3
  rna sweep --set lr=log:1e-3..1 --set weight-decay=log:1e-6..1e-2 \
    --trials 40 --search tpe
  rna sweep --resume runs/20260102-150405-sweep
  rna sweep --set lr=log:1e-3..1 --trials 99 -o runs/wide --shard auto`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.prepareSweep(cmd); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	s := cli.NewGroup("Sweep")
	s.StringArrayVar(&f.plan.Set, "set", nil, "values of an option, `NAME=VALUES`: a list as lr=0.01,0.1, or a range as "+
		"lr=log:1e-3..1, lin:0..1, int:1..8; semicolons separate values that are lists; give it for each option")
	s.IntVar(&f.plan.Seeds, "seeds", 1, "runs of each candidate, with successive seeds from --seed on")
	s.IntVar(&f.plan.Trials, "trials", 0, "candidates to choose (default: the whole grid)")
	s.StringVar(&f.plan.Search, "search", sweep.Random, "how to choose them: tpe takes the first ten at random, and the "+
		"others near the best so far, by a tree-structured Parzen estimator")
	s.Values("search", sweep.Random, sweep.TPE)
	s.IntVar(&f.plan.Halving, "halving", 0, "let one in so many candidates go on after each comparison (default: all)")
	s.IntVar(&f.plan.MinEpochs, "min-epochs", 0, "epochs before the first comparison (default: the run's, divided by "+
		"--halving three times)")
	s.IntVar(&f.jobs, "jobs", 1, "runs at a time, which share the cores or take a GPU each")
	s.StringVar(&f.shard, "shard", "", "train the `i/n`-th part of the candidates, in a folder that all parts share; "+
		"auto: by the environment of mpirun or of a Slurm array. Halving compares candidates of one part")
	s.Values("shard", "auto", "1/2", "2/2")
	f.show.addTo(s, "best")
	groups := []cli.Group{s}
	for _, g := range f.groups() {
		g.VisitAll(func(h *pflag.Flag) {
			h.Hidden = h.Hidden || slices.Contains(unswept, h.Name)
			if h.Name == "resume" {
				h.Usage = "go on with the sweep in this `folder`"
			}
		})
		groups = append(groups, g)
	}
	cli.AddGroups(cmd, groups...)
	return cmd
}

// prepareSweep makes the plan from the options, or reads that of a sweep to resume.
func (f *sweepFlags) prepareSweep(cmd *cobra.Command) (err error) {
	usage := func(err error) error { return cli.Usage(cmd, err) }
	var wrong []string
	cmd.Flags().Visit(func(g *pflag.Flag) {
		if g.Hidden || f.resume != "" && !slices.Contains(anytime, g.Name) {
			wrong = append(wrong, "--"+g.Name)
		}
	})
	if len(wrong) > 0 && f.resume != "" {
		return usage(fmt.Errorf("--resume goes on with the sweep's plan; it does not take %s", strings.Join(wrong, ", ")))
	} else if len(wrong) > 0 {
		return usage(fmt.Errorf("a sweep does not take %s", strings.Join(wrong, ", ")))
	}
	if err := report.SortGroups(nil, f.show.sort, false); err != nil {
		return usage(fmt.Errorf("--sort: %w", err))
	}
	if f.jobs < 1 || f.jobs > parallel.Most {
		return usage(fmt.Errorf("--jobs %d: want 1 or more, and no more than there are cores or GPUs are of use", f.jobs))
	}
	if f.resume != "" {
		f.Out = f.resume
		f.plan, err = sweep.ReadPlan(f.resume)
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%s holds no sweep: it has no sweep.json", f.resume)
		}
		return err
	}
	if err := f.build(); err != nil {
		return usage(err)
	}
	if f.recipe != "" {
		f.tellRecipe(f.show.json.Log(cmd.OutOrStdout(), cmd.ErrOrStderr()))
	}
	if f.plan.Width, f.plan.Shards = f.jobs, 1; f.plan.Search == sweep.Random {
		f.plan.Search = "" // as plans of earlier versions
	}
	var swept []string
	for _, text := range f.plan.Set {
		d, err := sweep.ParseDimension(text)
		if err != nil {
			return usage(fmt.Errorf("--set: %w", err))
		}
		if slices.ContainsFunc(f.said, func(s option.Setting) bool { return s.Name == d.Name }) {
			return usage(fmt.Errorf("--%s is given and swept: leave one out", d.Name))
		}
		swept = append(swept, d.Name, "out")
	}
	f.plan.Options = slices.DeleteFunc(train.Options().Settings(&f.Spec), func(s option.Setting) bool {
		return slices.Contains(swept, s.Name) || s.Name == "out"
	})
	if f.shard != "" && f.Out == "" {
		return usage(errors.New("--shard: name the folder that all parts share by -o"))
	}
	if _, err := f.plan.Candidates(); err != nil {
		return usage(err)
	}
	f.Out = cmp.Or(f.Out, filepath.Join("runs", time.Now().Format("20060102-150405")+"-sweep"))
	return nil
}

func (f *sweepFlags) run(cmd *cobra.Command) error {
	out, log := cli.SteadyOutputs(cmd)
	progress := f.show.json.Log(out, log)
	if f.quiet {
		progress = io.Discard
	}
	s := &sweep.Sweep{Dir: f.Out, Plan: f.plan, Jobs: f.jobs}
	if f.shard != "" {
		shard, shards, err := sweep.ParseShard(f.shard, os.Getenv)
		if err != nil {
			return cli.Usage(cmd, fmt.Errorf("--%w", err))
		}
		if f.resume != "" && shards != f.plan.Shards {
			return cli.Usage(cmd, fmt.Errorf("--shard %s: the sweep has %s", f.shard, text.Count(f.plan.Shards, "part")))
		}
		s.Shard, s.Plan.Shards = shard, shards
	} else if f.plan.Shards > 1 {
		return cli.Usage(cmd, fmt.Errorf("the sweep has %d parts: say which by --shard i/%[1]d", f.plan.Shards))
	}
	s.Open = func(c *train.Spec, job int) (device.Device, error) { return f.openShared(c, job, log) }
	var mu sync.Mutex
	said := map[string]bool{}
	s.Log = func(run, message string) { // most messages concern all runs
		mu.Lock()
		defer mu.Unlock()
		if !said[message] {
			fmt.Fprintln(log, terminal.Wrap(log, run+": "+message, "  "))
		}
		said[message] = true
	}
	count := f.announce(progress, s)
	known, there := 0, 0
	s.Arrived = func(e sweep.Event) {
		if there++; e.Known {
			known++
			return
		}
		line := fmt.Sprintf("[%d%s] %s  %s: ", there, count, e.Run.Name, e.Candidate)
		c, b := e.Run.Config, e.Run.Best()
		switch {
		case e.Run.Failure != nil:
			line += e.Run.Failure.Error
		case b == nil:
			line += fmt.Sprintf("epoch %d of %d", e.Run.Epoch(), c.Epochs)
		default:
			name, unit, format := report.ErrorOf(c.Task)
			line += fmt.Sprintf("epoch %d of %d, best %s "+format+"%s, loss %.4f", e.Run.Epoch(), c.Epochs,
				strings.Replace(name, "Error", "error", 1), b.Score.Error(), unit, b.Score.Loss)
		}
		fmt.Fprintln(progress, terminal.Wrap(progress, line, "  "))
		c.Out = e.Run.Dir
		if _, err := report.DrawRun(c, e.Run.History); err != nil {
			fmt.Fprintln(log, err)
		}
		if !f.noReport && e.Run.State == train.Done {
			if err := writePage(cmd.Context(), e.Run.Dir, &pageBuilder{log: log}, 0, io.Discard); err != nil {
				fmt.Fprintln(log, err)
			}
		}
	}
	if f.resume == "" {
		if err := s.Check(); err != nil {
			return err
		}
		if err := s.Plan.Write(f.Out, f.shard != ""); err != nil {
			return err
		}
	}
	result, err := s.Run(cmd.Context())
	if known > 0 {
		fmt.Fprintf(progress, "%s had arrived before\n", text.Count(known, "run"))
	}
	if errors.Is(err, train.ErrInterrupted) {
		fmt.Fprintf(progress, "Interrupted, all runs are saved\nGo on with: rna sweep --resume %s%s\n", f.Out, f.part())
		return cli.ErrStopped
	}
	if err != nil {
		return fmt.Errorf("%w; the other runs are saved, go on with: rna sweep --resume %s%s", err, f.Out, f.part())
	}
	list, _, err := runs.Find(f.Out)
	if err != nil {
		return err
	}
	if f.plan.Halving > 0 {
		fmt.Fprintln(progress, terminal.Wrap(progress, halved(result, list, f.plan.Seeds), "  "))
	}
	fmt.Fprintln(progress)
	if err := f.show.show(out, list); err != nil || f.noReport {
		return err
	}
	b := pageBuilder{log: log, images: true}
	b.open = func(_ *ranks.Group, threads int) (device.Device, error) {
		return openDevice(chosenDevice(cmp.Or(f.Device, "auto"), log), deviceOptions{threads: cmp.Or(f.Threads, threads),
			log: log})
	}
	return writePage(cmd.Context(), f.Out, &b, 1, progress)
}

func (f *sweepFlags) part() string {
	if f.shard == "" {
		return ""
	}
	return " --shard " + f.shard
}

// halved tells how many candidates of a halving sweep stopped early, and the share of the epochs that was trained.
func halved(result sweep.Result, list []runs.Run, seeds int) string {
	epochs, all := 0, 0
	for i := range list {
		epochs, all = epochs+list[i].Epoch(), all+list[i].Config.Epochs
	}
	line := fmt.Sprintf("%d of %d candidates stopped early, %d of %d epochs were trained; ", result.Stopped, result.Candidates,
		epochs, all)
	if result.Stopped == 0 && seeds > 1 {
		return line + fmt.Sprintf("no t test over %d seeds told one from those that go on: more seeds tell more, and one seed "+
			"goes by the scores alone", seeds)
	}
	return line + "rna train --resume goes on with any of them"
}

// announce prints a sweep's numbers of candidates and seeds, and its folder. It returns "/N" for N runs that are all
// trained to the end.
func (f *sweepFlags) announce(w io.Writer, s *sweep.Sweep) (count string) {
	list, err := f.plan.Candidates()
	if err != nil {
		return "" // Check tells
	}
	n := len(list)
	if s.Shard > 0 {
		n = (n - s.Shard + s.Plan.Shards) / s.Plan.Shards
	}
	if s.Plan.Halving == 0 {
		count = fmt.Sprintf("/%d", n*s.Plan.Seeds)
	}
	fmt.Fprintf(w, "%s of %s in %s\n", text.Count(n, "candidate"), text.Count(s.Plan.Seeds, "seed"), f.Out)
	return count
}

// openShared opens the device of a run that shares the machine with others.
func (f *sweepFlags) openShared(c *train.Spec, job int, log io.Writer) (device.Device, error) {
	for _, s := range f.said {
		if slices.Contains(anytime, s.Name) {
			if err := train.Options().Apply(c, s); err != nil {
				return nil, err
			}
		}
	}
	name := chosenDevice(cmp.Or(c.Device, "auto"), log)
	if f.jobs > 1 && (c.Device == "" || c.Device == "auto") {
		name, _ = device.Parse(name)
	}
	own, err := launch.Share(name, job, f.jobs)
	if err != nil {
		return nil, err
	}
	o := deviceOptions{threads: c.Threads, direct: isFalse(c.Winograd), float32: c.Float32, precision: c.Precision,
		deterministic: c.Deterministic, log: log}
	if o.threads == 0 && f.jobs > 1 {
		o.threads = max(1, parallel.Cores()/f.jobs)
	}
	c.Device, _ = device.Parse(own) // without the unit, which differs between runs
	c.Precision = o.resolved(own)
	return openDevice(own, o)
}
