package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"onlinerna/internal/canvas"
	"onlinerna/internal/cli"
	"onlinerna/internal/files"
	"onlinerna/internal/terminal"
	"onlinerna/rna/convex"
	"onlinerna/rna/convex/study"
)

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
func (e *experiment) study(ctx context.Context, plans []study.Plan, stochastic bool, reg float64) (*study.Study, error) {
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
	fmt.Fprintln(e.out, terminal.Wrap(e.out, fmt.Sprintf("regularisation %.4g, f* = %.15g with ‖∇f‖ = %.1e", reg, s.Best.Value, s.Best.GradNorm), "  "))
	for _, r := range s.Runs {
		if r.Err != nil {
			fmt.Fprintf(e.log, "%s: %v\n", r.Name, r.Err)
		}
	}
	return s, nil
}

// bar shows the progress of a run, on a terminal.
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

// digitFigures draws loss and validation error of each digit against all others, or of the chosen one with
// more methods.
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
		if err := e.figure(ctx, study.Figure{Name: fmt.Sprintf("digit-%d", digit), Plans: study.Plans(methods, f.lambda)}, g.strength(e.risk)); err != nil {
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
