package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"onlinerna/rna"
	"onlinerna/rna/convex"
	"onlinerna/rna/convex/figure"
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

// A planned run has a name in tables, files and legends of its own.
type planned struct {
	name   string
	method convex.Method
	lambda float64
}

func plan(methods []convex.Method, lambda float64) []planned {
	var list []planned
	for _, m := range methods {
		list = append(list, planned{string(m), m, lambda})
	}
	return list
}

// andersonPlans compare RNA to itself without regularisation: online, where it goes on from its points whatever f
// says there, and offline, beside gradient descent. Names say which panel of the figure they are in.
var andersonPlans = []planned{
	{"gd", convex.GD, 0},
	{"online, λ = 0 (Anderson)", convex.PlainOnlineRNAGD, 0},
	{"online, λ = 1e-8", convex.PlainOnlineRNAGD, 1e-8},
	{"online, λ = 1e-6", convex.PlainOnlineRNAGD, 1e-6},
	{"online, λ = 1e-8 where f falls", convex.OnlineRNAGD, 1e-8},
	{"offline, λ = 0 (Anderson)", convex.OfflineRNAGD, 0},
	{"offline, λ = 1e-8", convex.OfflineRNAGD, 1e-8},
	{"offline, λ = 1e-6", convex.OfflineRNAGD, 1e-6},
}

// A study is a row of runs on one function.
type study struct {
	title      string
	stochastic bool
	anderson   bool
	fstar      float64
	runs       []methodRun
}

type methodRun struct {
	planned
	convex.Result
	wrong []float64 // validation error of each point, %
	err   error
}

// study finds f* and runs the plans. A run that diverges leaves the others alone.
func (e *experiment) study(ctx context.Context, plans []planned, stochastic bool, reg float64) (*study, error) {
	risk := *e.risk
	risk.Reg = reg
	best, err := risk.Optimum()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(e.out, "regularisation %.4g, f* = %.15g with ‖∇f‖ = %.1e\n", reg, best.Value, best.GradNorm)
	s := &study{
		title:      fmt.Sprintf("%s, %s loss, regularisation %.3g", e.data.name, risk.Loss, reg),
		stochastic: stochastic, anderson: &plans[0] == &andersonPlans[0], fstar: best.Value,
	}
	problem, err := risk.Problem()
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		r := methodRun{planned: p}
		total := e.flags.iterations
		if total == 0 {
			total = convex.DefaultIterations
			if stochastic {
				total = convex.DefaultEpochs
			}
		}
		bar := e.bar(p.name, total)
		opt := convex.Options{
			Iterations: total, Window: e.flags.window, Lambda: rna.Set(p.lambda), Seed: e.flags.seed,
			Observe: func(at convex.Progress) error {
				if e.data.val != nil {
					r.wrong = append(r.wrong, 100*e.data.val.Error(at.W))
				}
				if bar != nil {
					bar.Set(at.At)
				}
				return ctx.Err()
			},
		}
		if stochastic {
			r.Result, r.err = convex.MinimizeSum(&risk, p.method, opt)
		} else {
			r.Result, r.err = convex.Minimize(problem, p.method, opt)
		}
		if bar != nil {
			bar.Clear()
		}
		if ctx.Err() != nil {
			return nil, interruptedError("interrupted, nothing was written")
		}
		if r.err != nil {
			fmt.Fprintf(e.log, "%s: %v\n", p.name, r.err)
		}
		s.runs = append(s.runs, r)
	}
	return s, nil
}

// bar is nil off a terminal.
func (e *experiment) bar(name string, total int) *progressbar.ProgressBar {
	f, ok := e.log.(*os.File)
	if e.flags.quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(f), progressbar.OptionSetWidth(30), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription(name))
}

// failed is an error when no run came to its end.
func (s *study) failed() error {
	var errs []error
	for _, r := range s.runs {
		if r.err == nil {
			return nil
		}
		errs = append(errs, r.err)
	}
	return fmt.Errorf("no method came to its end: %w", errors.Join(errs...))
}

func (s *study) unit() string {
	if s.stochastic {
		return "epoch"
	}
	return "iteration"
}

// table prints where each run ends and when it was within 1e-6 and 1e-10 of f*.
func (s *study) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "METHOD\tF − F*\t%sS TO 1E-6\tSECONDS\tTO 1E-10\tSECONDS\tSECONDS IN ALL\t", map[bool]string{false: "ITERATION", true: "EPOCH"}[s.stochastic])
	validated := false
	for _, r := range s.runs {
		validated = validated || len(r.wrong) > 0
	}
	if validated {
		fmt.Fprint(w, "VALIDATION ERROR\t")
	}
	fmt.Fprintln(w)
	for _, r := range s.runs {
		last := len(r.Values) - 1
		if last < 0 {
			fmt.Fprintf(w, "%s\tnone\t\n", r.name)
			continue
		}
		fmt.Fprintf(w, "%s\t%.2e\t", r.name, r.Values[last]-s.fstar)
		for _, goal := range []float64{1e-6, 1e-10} {
			at, seconds := "-", "-"
			for k, v := range r.Values {
				if v-s.fstar <= goal {
					at, seconds = strconv.Itoa(r.At[k]), fmt.Sprintf("%.3g", r.Seconds[k])
					break
				}
			}
			fmt.Fprintf(w, "%s\t%s\t", at, seconds)
		}
		fmt.Fprintf(w, "%.3g\t", r.Seconds[last])
		if len(r.wrong) > 0 {
			fmt.Fprintf(w, "%.2f %%\t", r.wrong[len(r.wrong)-1])
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// csv writes the curves in the long form of the published ones.
func (s *study) csv(out io.Writer) error {
	w := csv.NewWriter(out)
	header := []string{"method", s.unit(), "f_minus_fstar"}
	validated := len(s.runs) > 0 && len(s.runs[0].wrong) > 0
	if validated {
		header = append(header, "validation_error")
	}
	w.Write(header)
	for _, r := range s.runs {
		for k, v := range r.Values {
			row := []string{r.name, strconv.Itoa(r.At[k]), strconv.FormatFloat(v-s.fstar, 'g', 17, 64)}
			if validated {
				row = append(row, strconv.FormatFloat(r.wrong[k], 'g', -1, 64))
			}
			w.Write(row)
		}
	}
	w.Flush()
	return w.Error()
}

// draw shows f − f* by iterations, and by seconds or the validation error.
func (s *study) draw(out io.Writer) error {
	if s.anderson {
		return s.drawAnderson(out)
	}
	left := figure.Panel{X: s.unit(), Y: "f − f*", Log: true}
	right := figure.Panel{X: "seconds", Y: "f − f*", Log: true}
	for _, r := range s.runs {
		y, at := make([]float64, len(r.Values)), make([]float64, len(r.Values))
		for k, v := range r.Values {
			y[k], at[k] = v-s.fstar, float64(r.At[k])
		}
		left.Curves = append(left.Curves, figure.Curve{Name: r.name, X: at, Y: y})
		if len(r.wrong) > 0 {
			right.X, right.Y, right.Log = s.unit(), "validation error, %", false
			right.Curves = append(right.Curves, figure.Curve{Name: r.name, X: at, Y: r.wrong})
		} else {
			right.Curves = append(right.Curves, figure.Curve{Name: r.name, X: r.Seconds, Y: y})
		}
	}
	return figure.Draw(out, s.title, left, right)
}

// drawAnderson has a panel for online and one for offline RNA.
func (s *study) drawAnderson(out io.Writer) error {
	panels := []figure.Panel{{Title: "online", X: s.unit(), Y: "f − f*", Log: true}, {Title: "offline", X: s.unit(), Y: "f − f*", Log: true}}
	for _, r := range s.runs {
		c := figure.Curve{Name: r.name}
		for k, v := range r.Values {
			c.X, c.Y = append(c.X, float64(r.At[k])), append(c.Y, v-s.fstar)
		}
		for i := range panels {
			if name, found := strings.CutPrefix(r.name, panels[i].Title); found || r.method == convex.GD {
				if found {
					c.Name = strings.TrimPrefix(name, ", ")
				}
				panels[i].Curves = append(panels[i].Curves, c)
			}
		}
	}
	return figure.Draw(out, s.title, panels...)
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
	g := *f
	for _, g.stochastic = range []bool{false, true} {
		for _, g.cond = range []string{"well", "regular", "bad"} {
			name := map[bool]string{false: "deterministic-", true: "stochastic-"}[g.stochastic] + g.cond
			if err := e.figure(ctx, name, plan(convex.Published(g.stochastic), f.lambda), g.stochastic, g.strength(e.risk)); err != nil {
				return err
			}
		}
	}
	g.stochastic = false
	for _, g.cond = range []string{"well", "regular"} {
		if err := e.figure(ctx, "anderson-"+g.cond, andersonPlans, false, g.strength(e.risk)); err != nil {
			return err
		}
	}
	return nil
}

// digitFigures draws loss and validation error of each digit against all others, or of the chosen one with
// more methods.
func (f *logregFlags) digitFigures(ctx context.Context, out, log io.Writer) error {
	digits := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	methods := []convex.Method{convex.GD, convex.NesterovConvex, convex.OnlineRNAGD}
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
		if err := e.figure(ctx, fmt.Sprintf("digit-%d", digit), plan(methods, f.lambda), false, g.strength(e.risk)); err != nil {
			return err
		}
	}
	return nil
}

// figure runs a study and writes its table, figure and curves.
func (e *experiment) figure(ctx context.Context, name string, plans []planned, stochastic bool, reg float64) error {
	s, err := e.study(ctx, plans, stochastic, reg)
	if err != nil {
		return err
	}
	if err := s.table(e.out); err != nil {
		return err
	}
	path := filepath.Join(e.flags.allFigures, name)
	if err := errors.Join(writeFile(path+".svg", s.draw), writeFile(path+".csv", s.csv)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s.svg, %s.csv\n\n", path, path)
	return err
}
