package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/internal/canvas"
	"onlinerna/internal/cli"
	"onlinerna/internal/files"
	"onlinerna/rna"
	"onlinerna/rna/convex"
	"onlinerna/rna/convex/study"
)

type logregFlags struct {
	data, loss            string
	normalize             bool
	digit                 int
	cond                  string
	kappa, reg            float64
	changed               func(flag string) bool
	stochastic, anderson  bool
	methods               []string
	iterations, window    int
	lambda                float64
	seed                  uint64
	csv, plot, allFigures string
	quiet                 bool
}

func newLogreg() *cobra.Command {
	f := &logregFlags{}
	cmd := &cobra.Command{
		Use:   "logreg [options]",
		Short: "Minimise a convex loss by first-order methods and RNA",
		Long: `Fit a linear model by l2-regularised logistic regression or least squares, by first-order methods and by RNA
on them, and show how fast each comes to the minimum: the convex experiments of the paper.

Without --data it takes the sonar data of Gorman and Sejnowski (UCI, CC BY 4.0).`,
		Example: `  rna logreg --plot sonar.svg
  rna logreg --data madelon.csv --normalize --cond bad \
    --methods gd,online_rna_gd,lbfgs --csv curves.csv
  rna logreg --data sido0_train.mat --iterations 100 --csv curves.csv
  rna logreg --stochastic --plot sonar-stochastic.svg
  rna logreg --anderson --plot anderson.svg
  rna logreg --data mnist --all-figures figures`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.changed = cmd.Flags().Changed
			if err := f.check(); err != nil {
				return cli.Usage(cmd, err)
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	d := cli.NewGroup("Data")
	d.StringVar(&f.data, "data", "", "CSV `file` with the label first, or libsvm, ARFF, MATLAB or NIPS .data (with .labels beside it), gzipped or not; or a folder with MNIST's files (default: sonar)")
	d.BoolVar(&f.normalize, "normalize", false, "scale features to [0, 1] and add a constant")
	d.IntVar(&f.digit, "digit", 9, "the `class` that is told from all others, of images")
	p := cli.NewGroup("Problem")
	p.StringVar(&f.loss, "loss", "logistic", "logistic or squares")
	p.Values("loss", "logistic", "squares")
	p.StringVar(&f.cond, "cond", "regular", "conditioning: well, regular or bad")
	p.Values("cond", study.Conditions()...)
	p.Float64Var(&f.kappa, "kappa", 0, "regularisation over the data's smoothness (over the largest ‖x‖², with --stochastic), in place of --cond")
	p.Float64Var(&f.reg, "reg", 0, "regularisation itself, in place of --cond")
	m := cli.NewGroup("Methods")
	m.BoolVar(&f.stochastic, "stochastic", false, "methods that go by samples")
	m.StringSliceVar(&f.methods, "methods", nil, "comma-separated `names`, or all (default: those of the paper)")
	m.Values("methods", append(append([]string{"all"}, cli.Words(convex.Deterministic())...), cli.Words(convex.Stochastic())...)...)
	m.IntVar(&f.iterations, "iterations", 0, "iterations, or epochs with --stochastic (default: 500, 100)")
	m.IntVar(&f.window, "window", convex.DefaultWindow, "residuals that RNA keeps")
	m.Float64Var(&f.lambda, "lambda", convex.DefaultLambda, "RNA's regularisation, relative to ‖R‖²; 0 is Anderson acceleration")
	m.Uint64Var(&f.seed, "seed", 0, "seed of the samples drawn")
	o := cli.NewGroup("Output")
	o.StringVar(&f.csv, "csv", "", "write the curves to this CSV `file`")
	o.StringVar(&f.plot, "plot", "", "draw them into this `file`"+canvas.Help)
	o.StringVar(&f.allFigures, "all-figures", "", "draw every figure of the paper for these data into this `folder`, with a CSV file beside each: of all digits, or of --digit with all methods")
	o.BoolVar(&f.anderson, "anderson", false, "compare RNA with and without regularisation, in place of methods")
	o.BoolVarP(&f.quiet, "quiet", "q", false, "no progress bar")
	cli.AddGroups(cmd, d, p, m, o)
	return cmd
}

func (f *logregFlags) check() error {
	known := convex.Deterministic()
	if f.stochastic {
		known = convex.Stochastic()
	}
	var names []string
	for _, m := range known {
		names = append(names, string(m))
	}
	for _, m := range f.methods {
		if m != "all" && !slices.Contains(names, m) {
			return fmt.Errorf("unknown method %q%s: want all or some of %s", m, cli.Suggest(m, names, ""), strings.Join(names, ", "))
		}
	}
	switch {
	case f.loss != "logistic" && f.loss != "squares":
		return fmt.Errorf("unknown --loss %q: want logistic or squares", f.loss)
	case !slices.Contains(study.Conditions(), f.cond):
		return fmt.Errorf("unknown --cond %q: want well, regular or bad", f.cond)
	case f.changed("kappa") && f.changed("reg"), f.changed("cond") && (f.changed("kappa") || f.changed("reg")):
		return errors.New("more than one of --cond, --kappa and --reg: each determines the others")
	case f.changed("kappa") && !(f.kappa > 0 && f.kappa <= 1e6), f.changed("reg") && !(f.reg > 0 && f.reg <= 1e100):
		return errors.New("--kappa and --reg must be above 0")
	case f.changed("iterations") && f.iterations < 1:
		return fmt.Errorf("--iterations is %d: it must be 1 or more", f.iterations)
	case f.window < 1 || f.window > rna.MaxColumns:
		return fmt.Errorf("--window is %d: it must be 1 to %d", f.window, rna.MaxColumns)
	case !(f.lambda >= 0):
		return fmt.Errorf("--lambda is %v: it must be 0 or more", f.lambda)
	case f.anderson && (f.stochastic || len(f.methods) > 0 || f.changed("lambda")):
		return errors.New("--anderson has methods of its own: leave out --stochastic, --methods and --lambda")
	case f.changed("seed") && !f.stochastic && f.allFigures == "":
		return errors.New("--seed is for --stochastic: other methods draw no samples")
	case isImages(f.data) && f.normalize:
		return errors.New("--normalize: pixels of images are scaled already")
	case !isImages(f.data) && f.changed("digit"):
		return errors.New("--digit is for images: a folder with MNIST's files")
	case f.data == "" && f.normalize:
		return errors.New("--normalize: sonar is scaled already")
	case f.allFigures != "" && (f.csv != "" || f.plot != "" || f.anderson || f.stochastic || len(f.methods) > 0):
		return errors.New("--all-figures decides on methods and files: leave out --methods, --stochastic, --anderson, --csv and --plot")
	case f.allFigures != "" && !isImages(f.data) && (f.changed("cond") || f.changed("kappa") || f.changed("reg")):
		return errors.New("--all-figures goes through the conditionings: leave out --cond, --kappa and --reg")
	}
	return nil
}

func (f *logregFlags) selected() []convex.Method {
	if len(f.methods) == 0 {
		return convex.Published(f.stochastic)
	}
	if slices.Contains(f.methods, "all") {
		if f.stochastic {
			return convex.Stochastic()
		}
		return convex.Deterministic()
	}
	var list []convex.Method
	for _, m := range f.methods {
		list = append(list, convex.Method(m))
	}
	return list
}

func (f *logregFlags) run(ctx context.Context, out, log io.Writer) error {
	if f.allFigures != "" {
		return f.figures(ctx, out, log)
	}
	e, err := f.experiment(out, log)
	if err != nil {
		return err
	}
	plans := study.Plans(f.selected(), f.lambda)
	if f.anderson {
		plans = study.Anderson()
	}
	s, err := e.study(ctx, plans, f.stochastic, f.strength(e.risk))
	if err != nil {
		return err
	}
	return errors.Join(s.Table(out), files.WriteTo(f.csv, s.CSV), canvas.Draw(f.plot, s.Draw), s.Failed())
}

// strength is the regularisation: a multiple of the smoothness of the data, or by samples of L_max/n.
func (f *logregFlags) strength(r *convex.Risk) float64 {
	switch {
	case f.changed("reg"):
		return f.reg
	case f.stochastic && f.changed("kappa"):
		return f.kappa * r.X.MaxRowNorm()
	case f.changed("kappa"):
		return f.kappa * r.Smoothness()
	}
	return study.Regularisation(r, f.cond, f.stochastic)
}
