package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"onlinerna/cmd/internal/cli"
	"onlinerna/internal/canvas"
	"onlinerna/internal/terminal"
	"onlinerna/nn/device"
	"onlinerna/train"
	"onlinerna/train/average"
	"onlinerna/train/lrfind"
	"onlinerna/train/ranks"
)

// swept lists the options of rna train that a sweep accepts besides those of data and model: those that affect a step.
var swept = []string{"batch", "accumulate", "head-lr", "layer-decay", "lr", "optimizer", "nesterov", "weight-decay",
	"decay-weights-only", "no-decay", "clip-grad",
	"clip-value", "label-smoothing", "loss", "huber-delta", "bce-threshold", "focal-gamma", "asl-gamma", "asl-margin",
	"class-weights", "mixup", "cutmix", "dropout", "drop-path",
	"device", "threads", "winograd", "float32",
	"low-memory", "precision", "deterministic", "debug-sync", "help"}

func newLRFind() *cobra.Command {
	f := &trainFlags{}
	var o lrfind.Options
	var plot string
	var json cli.JSON
	cmd := &cobra.Command{
		Use:   "lr-find [options]",
		Short: "Suggest a learning rate: the loss of a short run whose rate rises",
		Long: `Train for two hundred steps while the learning rate rises exponentially, and show the loss by the rate. The
sweep ends when the loss diverges. It writes only the figure and the file that the options name. The same seed gives the
same curve.

The suggested rate is the valley: the geometric mean of the rate at which the smoothed loss has done a quarter of its
fall and the rate of the lowest loss, beyond which training soon diverges. The sweep also shows the rate at which the
loss falls most steeply. Data, model, initial weights and optimiser are options of rna train; the sweep takes the ratio
of --lr and --head-lr.`,
		Example: `  rna lr-find
  rna lr-find --data cifar10 --model resnet20 --plot lr.svg
  rna lr-find --init resnet18 --data photos --val-split 0.2 --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var wrong []string
			cmd.Flags().Visit(func(g *pflag.Flag) {
				if g.Hidden {
					wrong = append(wrong, "--"+g.Name)
				}
			})
			if len(wrong) > 0 {
				return cli.Usage(cmd, fmt.Errorf("a sweep of rates does not take %s", strings.Join(wrong, ", ")))
			}
			return f.onRanks(cmd, func(g *ranks.Group) error {
				if !g.Single() {
					return cli.Usage(cmd, fmt.Errorf("one process sweeps the rate: choose one device"))
				}
				r, title, err := f.sweep(cmd, g, o, &json)
				if err != nil {
					return err
				}
				return canvas.Draw(plot, func(w io.Writer, format string) error { return r.Plot(w, format, title) })
			})
		},
	}
	s := cli.NewGroup("Sweep")
	s.Float64Var(&o.From, "from", 1e-6, "first learning rate")
	s.Float64Var(&o.To, "to", 10, "last learning rate")
	s.IntVar(&o.Steps, "steps", 200, "steps from the one to the other")
	s.Float64Var(&o.Smoothing, "smoothing", 0, "standard deviation, in steps, of the weights by which losses are "+
		"averaged (default: a 40th of --steps)")
	s.Float64Var(&o.Diverged, "diverged", 4, "times the lowest smoothed loss that ends the sweep")
	s.StringVar(&plot, "plot", "", "draw the curve into this `file`"+canvas.Help)
	json.Add(s)
	groups := []cli.Group{s}
	for _, g := range f.groups() {
		g.VisitAll(func(h *pflag.Flag) {
			shapes := g.Title == "Data" || g.Title == "Model" || slices.Contains(swept, h.Name) || isHyperparameter(h.Name)
			h.Hidden = h.Hidden || !shapes
		})
		if g.Title == "RNA" {
			cmd.Flags().AddFlagSet(g.FlagSet)
		} else {
			groups = append(groups, g)
		}
	}
	cli.AddGroups(cmd, groups...)
	return cmd
}

func isHyperparameter(name string) bool {
	return slices.ContainsFunc(train.Hyperparameters(), func(h train.Hyperparameter) bool { return h.Name == name })
}

// sweep sweeps the learning rate and shows the curve. The title names model, data and optimiser.
func (f *trainFlags) sweep(cmd *cobra.Command, g *ranks.Group, o lrfind.Options, json *cli.JSON) (r *lrfind.Result,
	title string, err error) {
	dev, err := f.open(cmd, g)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = device.Closed(err, dev.Close()) }()
	c := f.Spec
	c.Out, c.RNA.Mode = "", average.Off
	run, err := train.New(c, train.Deps{Device: dev, Ranks: g})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = device.Closed(err, run.Close()) }()
	c = run.Resolved.Spec
	out := json.Log(cmd.OutOrStdout(), cmd.ErrOrStderr())
	for _, note := range run.Resolved.Notes {
		fmt.Fprintln(out, terminal.Wrap(out, note, "  "))
	}
	if r, err = lrfind.Find(cmd.Context(), run.SweepRates, o); err != nil {
		return nil, "", err
	}
	batch := fmt.Sprint(c.Batch)
	if c.Accumulate > 1 {
		batch = fmt.Sprintf("%d × %d", c.Batch, c.Accumulate)
	}
	title = fmt.Sprintf("%s on %s, %s, batch %s", c.Model, cmp.Or(c.Data, "glyphs"), c.OptimizerName(), batch)
	err = json.Write(cmd.OutOrStdout(), r, func(w io.Writer) error {
		return showSweep(w, r, title,
			c.HeadRate/c.Schedule.Rate)
	})
	return r, title, err
}

// shownRates is the approximate number of steps of a sweep in the table.
const shownRates = 25

// showSweep writes a table of a sweep and its suggestion; head is the ratio of the head's rate to the others', 0 for
// none.
func showSweep(out io.Writer, r *lrfind.Result, title string, head float64) error {
	fmt.Fprintln(out, terminal.Wrap(out, title, "  "))
	page := terminal.NewPage(out)
	rows := [][]string{{"rate", "loss", "smoothed"}}
	every := (len(r.Points) + shownRates - 1) / shownRates
	for i := (len(r.Points) - 1) % every; i < len(r.Points); i += every {
		p := r.Points[i]
		rows = append(rows, []string{fmt.Sprintf("%.2e", p.Rate), fmt.Sprintf("%.4f", p.Loss), fmt.Sprintf("%.4f", p.Smooth)})
	}
	page.Table(rows)
	if err := page.Flush(out); err != nil {
		return err
	}
	if r.Diverged > 0 {
		fmt.Fprintf(out, "Diverged at %.2g\n", r.Diverged)
	}
	if r.Valley == 0 {
		_, err := fmt.Fprintln(out, terminal.Wrap(out, "No suggestion: the loss hardly falls at any rate. Give it more "+
			"--steps, or other rates by --from and --to", "  "))
		return err
	}
	fmt.Fprintf(out, "Valley at %.2g, steepest at %.2g, lowest loss at %.2g\n", r.Valley, r.Steepest, r.Lowest)
	suggestion := fmt.Sprintf("--lr %.2g", r.Valley)
	if head > 0 {
		suggestion += fmt.Sprintf(" --head-lr %.2g", head*r.Valley)
	}
	_, err := fmt.Fprintln(out, "Suggestion: "+suggestion)
	return err
}
