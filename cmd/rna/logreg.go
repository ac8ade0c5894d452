package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"onlinerna/cmd/internal/cli"
	"onlinerna/data"
	"onlinerna/internal/canvas"
	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
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
		Long: `Fit a linear model by l2-regularised logistic regression or least squares, by first-order methods with and
without RNA, and show how fast each approaches the minimum: the convex experiments of the paper.

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
	d.StringVar(&f.data, "data", "", "CSV `file` with the label first, or libsvm, ARFF, MATLAB or NIPS .data (with "+
		".labels beside it), gzipped or not; or a folder with MNIST's files (default: sonar)")
	d.BoolVar(&f.normalize, "normalize", false, "scale features to [0, 1] and add a constant")
	d.IntVar(&f.digit, "digit", 9, "`class` of images to distinguish from all others")
	p := cli.NewGroup("Problem")
	p.StringVar(&f.loss, "loss", "logistic", "logistic or squares")
	p.Values("loss", "logistic", "squares")
	p.StringVar(&f.cond, "cond", "regular", "conditioning: well, regular or bad")
	p.Values("cond", study.Conditions()...)
	p.Float64Var(&f.kappa, "kappa", 0, "regularisation over the data's smoothness (over the largest ‖x‖², with "+
		"--stochastic), in place of --cond")
	p.Float64Var(&f.reg, "reg", 0, "regularisation itself, in place of --cond")
	m := cli.NewGroup("Methods")
	m.BoolVar(&f.stochastic, "stochastic", false, "stochastic methods")
	m.StringSliceVar(&f.methods, "methods", nil, "comma-separated `names`, or all (default: those of the paper)")
	m.Values("methods", append([]string{"all"}, append(methodNames(convex.Deterministic()), methodNames(convex.Stochastic())...)...)...)
	m.IntVar(&f.iterations, "iterations", 0, "iterations, or epochs with --stochastic (default: 500, 100)")
	m.IntVar(&f.window, "window", convex.DefaultWindow, "residuals that RNA keeps")
	m.Float64Var(&f.lambda, "lambda", convex.DefaultLambda, "RNA's regularisation, relative to ‖R‖²; 0 is Anderson "+
		"acceleration")
	m.Uint64Var(&f.seed, "seed", 0, "seed of the samples drawn")
	o := cli.NewGroup("Output")
	o.StringVar(&f.csv, "csv", "", "write the curves to this CSV `file`")
	o.StringVar(&f.plot, "plot", "", "draw the curves into this `file`"+canvas.Help)
	o.StringVar(&f.allFigures, "all-figures", "", "draw every figure of the paper for these data into this `folder`, "+
		"with a CSV file beside each: of all digits, or of --digit with all methods")
	o.BoolVar(&f.anderson, "anderson", false, "compare RNA with and without regularisation, in place of methods")
	o.BoolVarP(&f.quiet, "quiet", "q", false, "no progress bar")
	cli.AddGroups(cmd, d, p, m, o)
	return cmd
}

func methodNames(methods []convex.Method) (all []string) {
	for _, m := range methods {
		all = append(all, m.String())
	}
	return all
}

func (f *logregFlags) check() error {
	known := convex.Deterministic()
	if f.stochastic {
		known = convex.Stochastic()
	}
	for _, m := range f.methods {
		if m != "all" && !slices.Contains(methodNames(known), m) {
			return fmt.Errorf("unknown method %q%s: want all or some of %s", m, cli.Suggest(m, methodNames(known), ""),
				strings.Join(methodNames(known), ", "))
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
		return errors.New("--all-figures decides on methods and files: leave out --methods, --stochastic, --anderson, " +
			"--csv and --plot")
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
		method, _ := convex.ParseMethod(m) // check has looked at the names
		list = append(list, method)
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

// strength returns the regularisation: a multiple of the smoothness of the data, or by samples of L_max/n.
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

// An experiment is a loss on some data.
type experiment struct {
	flags *logregFlags
	data  *linearData
	risk  *convex.Risk
	out   io.Writer
	log   io.Writer
}

func (f *logregFlags) experiment(out, log io.Writer) (*experiment, error) {
	loss := convex.Logistic
	if f.loss == "squares" {
		loss = convex.Squares
	}
	d, err := f.load(loss)
	if err != nil {
		return nil, err
	}
	risk, err := convex.NewRisk(d.train, loss)
	if err != nil {
		return nil, err
	}
	if smooth := risk.Smoothness(); smooth == 0 {
		return nil, fmt.Errorf("%s: all features are 0", f.data)
	} else if math.IsNaN(smooth) || math.IsInf(smooth, 0) {
		return nil, fmt.Errorf("%s: features so large that their squares overflow: scale them, with --normalize", f.data)
	}
	n, dim := risk.X.Dims()
	fmt.Fprintf(out, "%s: %d rows of %d features, %s loss\n", d.name, n, dim, loss)
	return &experiment{flags: f, data: d, risk: risk, out: out, log: log}, nil
}

// study runs the plans at a regularisation.
func (e *experiment) study(ctx context.Context, plans []study.Plan, stochastic bool, reg float64) (*study.Study,
	error) {
	risk := *e.risk
	risk.Reg = reg
	s, err := study.New(ctx, &risk, plans, study.Options{
		Title:      fmt.Sprintf("%s, %s loss, regularisation %.3g", e.data.name, risk.Loss, reg),
		Stochastic: stochastic, Iterations: e.flags.iterations, Window: e.flags.window, Seed: e.flags.seed,
		Validation: e.data.val, Progress: e.bar,
	})
	if ctx.Err() != nil {
		return nil, cli.Stopped("interrupted, nothing was written")
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(e.out, terminal.Wrap(e.out, fmt.Sprintf("regularisation %.4g, f* = %.15g with ‖∇f‖ = %.1e", reg,
		s.Best.Value, s.Best.GradNorm), "  "))
	for _, r := range s.Runs {
		if r.Err != nil {
			fmt.Fprintf(e.log, "%s: %v\n", r.Name, r.Err)
		}
	}
	return s, nil
}

// bar shows the progress of a run on a terminal.
func (e *experiment) bar(p study.Plan, total int) func(at int) {
	b := terminal.NewBar(e.log, e.flags.quiet)
	b.Start(p.Name, int64(total), terminal.CountSteps)
	return func(at int) {
		if at < 0 {
			b.Finish()
			return
		}
		b.Set(int64(at))
	}
}

// figures draws every figure of the paper for the data.
func (f *logregFlags) figures(ctx context.Context, out, log io.Writer) error {
	if err := os.MkdirAll(f.allFigures, 0o755); err != nil {
		return err
	}
	if isImages(f.data) {
		return f.digitFigures(ctx, out, log)
	}
	e, err := f.experiment(out, log)
	if err != nil {
		return err
	}
	for _, g := range study.Figures(f.lambda) {
		if err := e.figure(ctx, g, study.Regularisation(e.risk, g.Condition, g.Stochastic)); err != nil {
			return err
		}
	}
	return nil
}

// digitFigures draws loss and validation error of each digit against all others, or of the chosen one with more
// methods.
func (f *logregFlags) digitFigures(ctx context.Context, out, log io.Writer) error {
	digits := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	methods := study.Digits()
	if f.changed("digit") {
		digits, methods = []int{f.digit}, convex.Published(false)
	}
	for _, digit := range digits {
		g := *f
		g.digit = digit
		e, err := g.experiment(out, log)
		if err != nil {
			return err
		}
		if err := e.figure(ctx, study.Figure{Name: fmt.Sprintf("digit-%d", digit), Plans: study.Plans(methods, f.lambda)},
			g.strength(e.risk)); err != nil {
			return err
		}
	}
	return nil
}

// figure runs a study and writes its table, figure and curves.
func (e *experiment) figure(ctx context.Context, g study.Figure, reg float64) error {
	s, err := e.study(ctx, g.Plans, g.Stochastic, reg)
	if err != nil {
		return err
	}
	if err := s.Table(e.out); err != nil {
		return err
	}
	path := filepath.Join(e.flags.allFigures, g.Name)
	if err := errors.Join(canvas.Draw(path+".svg", s.Draw), files.WriteTo(path+".csv", s.CSV)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s.svg, %s.csv\n\n", path, path)
	return err
}

// linearData holds the data of a linear model, and held-out data if there are any.
type linearData struct {
	name       string
	train, val *convex.Data
}

func (f *logregFlags) load(loss convex.Loss) (*linearData, error) {
	d := &linearData{name: "sonar"}
	var err error
	switch {
	case f.data == "":
		d.train, err = convex.Sonar()
		return d, err
	case isImages(f.data):
		d.name = fmt.Sprintf("%s, %d against all", filepath.Base(strings.TrimRight(f.data, `/\`)), f.digit)
		d.train, d.val, err = loadImages(f.data, f.digit)
		return d, err
	}
	d.name = filepath.Base(f.data)
	if d.train, err = convex.ReadFile(f.data, loss); err == nil && f.normalize {
		d.train, err = d.train.Normalize()
	}
	return d, err
}

func isImages(path string) bool {
	if path == "" {
		return false
	}
	info, err := os.Stat(path)
	if it, ok := catalogue.Find(path); err != nil && ok && it.Kind == catalogue.Images {
		return true
	}
	return err == nil && info.IsDir() || strings.Contains(filepath.Base(path), "idx3-ubyte")
}

// loadImages returns rows of pixels from 0 to 1 and a constant, sparse since most pixels are black, with target 1 for
// the digit and −1 for all others.
func loadImages(path string, digit int) (train, val *convex.Data, err error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	sets := make([]data.Dataset, 2)
	if sets[0], sets[1], err = data.Open(path, data.Options{NoVal: true}); err != nil {
		return nil, nil, err
	}
	out := make([]*convex.Data, 2)
	for i, set := range sets {
		if set == nil {
			continue
		}
		if c, ok := set.(io.Closer); ok {
			defer c.Close()
		}
		if digit < 0 || digit >= len(set.Classes()) {
			return nil, nil, fmt.Errorf("--digit is %d: %s has classes 0 to %d", digit, path, len(set.Classes())-1)
		}
		if out[i], err = pixels(set, digit); err != nil {
			return nil, nil, err
		}
	}
	return out[0], out[1], nil
}

func pixels(set data.Dataset, digit int) (*convex.Data, error) {
	var scratch data.Scratch
	start := []int{0}
	var index []int32
	var values, y []float64
	size := 0
	for i := range set.Len() {
		im, err := set.Read(i, nil, &scratch)
		if err != nil {
			return nil, err
		}
		if size == 0 {
			size = len(im.Pix)
		}
		if len(im.Pix) != size {
			return nil, fmt.Errorf("%s: an image of %d values, where the first has %d", set.Name(i), len(im.Pix), size)
		}
		for j, v := range im.Pix {
			if v != 0 {
				index, values = append(index, int32(j)), append(values, float64(v)/255)
			}
		}
		index, values = append(index, int32(size)), append(values, 1)
		start = append(start, len(values))
		target := -1.0
		if set.Label(i) == digit {
			target = 1
		}
		y = append(y, target)
	}
	x, err := convex.NewSparse(set.Len(), size+1, start, index, values)
	if err != nil {
		return nil, err
	}
	return &convex.Data{X: x, Y: y, Labels: [2]string{"others", set.Classes()[digit]}}, nil
}
