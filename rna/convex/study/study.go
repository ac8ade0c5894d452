// Package study runs rows of methods on one risk and shows how fast each comes to the minimum: the experiments of the
// paper, as tables, curves and figures.
package study

import (
	"context"
	"errors"
	"fmt"

	"onlinerna/rna"
	"onlinerna/rna/convex"
)

// A Plan is a run with a name of its own in tables, files and legends.
type Plan struct {
	Name   string
	Method convex.Method
	Lambda float64 // RNA's
}

// Plans are runs of methods under their names.
func Plans(methods []convex.Method, lambda float64) []Plan {
	var list []Plan
	for _, m := range methods {
		list = append(list, Plan{m.String(), m, lambda})
	}
	return list
}

// Anderson compares RNA to itself without regularisation (fig. comparison_reg): online, continuing from extrapolated
// points regardless of f, and offline, beside gradient descent. Names tell the panel of the figure.
func Anderson() []Plan {
	return []Plan{
		{"gd", convex.GD, 0},
		{"online, λ = 0 (Anderson)", convex.PlainOnline{Of: convex.GD}, 0},
		{"online, λ = 1e-8", convex.PlainOnline{Of: convex.GD}, 1e-8},
		{"online, λ = 1e-6", convex.PlainOnline{Of: convex.GD}, 1e-6},
		{"online, λ = 1e-8 where f falls", convex.Online{Of: convex.GD}, 1e-8},
		{"offline, λ = 0 (Anderson)", convex.Offline{Of: convex.GD}, 0},
		{"offline, λ = 1e-8", convex.Offline{Of: convex.GD}, 1e-8},
		{"offline, λ = 1e-6", convex.Offline{Of: convex.GD}, 1e-6},
	}
}

// Conditions are the names of the paper's conditionings: good, regular and bad.
func Conditions() []string { return []string{"well", "regular", "bad"} }

// Regularisation is Risk.Reg of a conditioning: κ = 1e-3, 1e-6 or 1e-9 times the smoothness of the data, or by samples
// 100, 1 or 1/100 times L_max/n. It is 0 for a name that is none of [Conditions].
func Regularisation(r *convex.Risk, condition string, stochastic bool) float64 {
	if stochastic {
		n, _ := r.X.Dims()
		return r.X.MaxRowNorm() / float64(n) * map[string]float64{"well": 100, "regular": 1, "bad": 0.01}[condition]
	}
	return r.Smoothness() * map[string]float64{"well": 1e-3, "regular": 1e-6, "bad": 1e-9}[condition]
}

// Options are the parameters of a study.
type Options struct {
	// Title heads the figure. Empty it is the loss and the regularisation.
	Title string

	// Stochastic reports that the methods use single samples.
	Stochastic bool

	// Iterations, or epochs; 0 for the paper's 500 or 100. Window and Seed are as in [convex.Options].
	Iterations, Window int
	Seed               uint64

	// Validation are data whose error is taken at each point, nil for none.
	Validation *convex.Data

	// Progress, if set, is called when a run begins, with its number of iterations. It returns a function, possibly
	// nil, that is called with the number of each finished iteration, and with −1 at the end.
	Progress func(p Plan, total int) func(at int)
}

// A Study is a row of runs on one function.
type Study struct {
	Title      string
	Stochastic bool
	Best       convex.Optimum // f*
	Runs       []Run
}

// A Run is a plan and its result.
type Run struct {
	Plan
	convex.Result
	Wrong []float64 // validation error at each point, %
	Err   error     // why it ended early
}

// New finds f* and runs the plans. A run that diverges leaves the others alone, and has its Err.
func New(ctx context.Context, risk *convex.Risk, plans []Plan, opt Options) (*Study, error) {
	best, err := risk.Optimum()
	if err != nil {
		return nil, err
	}
	s := &Study{Title: opt.Title, Stochastic: opt.Stochastic, Best: best}
	if s.Title == "" {
		s.Title = fmt.Sprintf("%s loss, regularisation %.3g", risk.Loss, risk.Reg)
	}
	problem, err := risk.Problem()
	if err != nil {
		return nil, err
	}
	total := opt.Iterations
	if total == 0 {
		if total = convex.DefaultIterations; opt.Stochastic {
			total = convex.DefaultEpochs
		}
	}
	for _, p := range plans {
		r := Run{Plan: p}
		tell := func(int) {}
		if opt.Progress != nil {
			if f := opt.Progress(p, total); f != nil {
				tell = f
			}
		}
		options := convex.Options{
			Iterations: total, Window: opt.Window, Lambda: rna.Set(p.Lambda), Seed: opt.Seed,
			Observe: func(at convex.Progress) error {
				if opt.Validation != nil {
					r.Wrong = append(r.Wrong, 100*opt.Validation.Error(at.W))
				}
				tell(at.At)
				return ctx.Err()
			},
		}
		if opt.Stochastic {
			r.Result, r.Err = convex.MinimizeSum(risk, p.Method, options)
		} else {
			r.Result, r.Err = convex.Minimize(problem, p.Method, options)
		}
		tell(-1)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s.Runs = append(s.Runs, r)
	}
	return s, nil
}

// Failed is an error when no run came to its end.
func (s *Study) Failed() error {
	var errs []error
	for _, r := range s.Runs {
		if r.Err == nil {
			return nil
		}
		errs = append(errs, r.Err)
	}
	return fmt.Errorf("no method came to its end: %w", errors.Join(errs...))
}

// Gap is f − f* at the end of a run.
func (s *Study) Gap(r Run) float64 { return r.Values[len(r.Values)-1] - s.Best.Value }

// Run is the run of a name, nil for none.
func (s *Study) Run(name string) *Run {
	for i := range s.Runs {
		if s.Runs[i].Name == name {
			return &s.Runs[i]
		}
	}
	return nil
}

// unit is the name of a run's steps: iterations or epochs.
func (s *Study) unit() string {
	if s.Stochastic {
		return "epoch"
	}
	return "iteration"
}

// validated says that runs have validation errors.
func (s *Study) validated() bool {
	for _, r := range s.Runs {
		if len(r.Wrong) > 0 {
			return true
		}
	}
	return false
}

// A Figure is one of the paper's figures: its file's name and its contents.
type Figure struct {
	Name       string
	Plans      []Plan
	Stochastic bool
	Condition  string
}

// Figures returns the paper's figures for a table of data: methods by conditioning, deterministic and by samples, and
// Anderson's instability.
func Figures(lambda float64) []Figure {
	var list []Figure
	for _, stochastic := range []bool{false, true} {
		for _, c := range Conditions() {
			name := map[bool]string{false: "deterministic-", true: "stochastic-"}[stochastic] + c
			list = append(list, Figure{name, Plans(convex.Published(stochastic), lambda), stochastic, c})
		}
	}
	for _, c := range []string{"well", "regular"} {
		list = append(list, Figure{"anderson-" + c, Anderson(), false, c})
	}
	return list
}

// Digits are the methods of the figures of one class of images against all others.
func Digits() []convex.Method {
	return []convex.Method{convex.GD, convex.NesterovConvex, convex.Online{Of: convex.GD}}
}
