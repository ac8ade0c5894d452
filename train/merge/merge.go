package merge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/rna"
	"onlinerna/train/extrapolate"
)

// Method names a way to merge.
type Method string

// The methods.
const (
	ByMean        Method = "mean"
	ByWeights     Method = "weights"
	ByEMA         Method = "ema"
	ByWSM         Method = "wsm"
	ByPowerEMA    Method = "power-ema"
	ByRNA         Method = "rna"
	BySlerp       Method = "slerp"
	ByTask        Method = "task"
	ByTIES        Method = "ties"
	ByDARE        Method = "dare"
	ByBreadcrumbs Method = "breadcrumbs"
)

// Methods lists all methods.
func Methods() []Method {
	return []Method{ByMean, ByWeights, ByEMA, ByWSM, ByPowerEMA, ByRNA, BySlerp, ByTask, ByTIES, ByDARE, ByBreadcrumbs}
}

// Based reports whether the first file is the base of the others.
func (m Method) Based() bool {
	return slices.Contains([]Method{ByTask, ByTIES, ByDARE, ByBreadcrumbs}, m)
}

// Row reports whether the files are of one run, oldest first.
func (m Method) Row() bool {
	return slices.Contains([]Method{ByMean, ByEMA, ByWSM, ByPowerEMA, ByRNA}, m)
}

// For lists the methods for the given number of checkpoints of the same tensors, including a base.
func For(files int) []Method {
	if files < 2 {
		return nil
	}
	return slices.DeleteFunc(Methods(), func(m Method) bool { return m == BySlerp && files != 2 })
}

// Options are the methods' parameters.
type Options struct {
	By Method

	// Weights of the files; with a base, of the files after it; nil: 1 each.
	Weights []float64

	Decay    float64 // for ByEMA
	Schedule string  // for ByWSM

	// Stored describes the files, and Want the EMA, for ByPowerEMA.
	Stored []Power
	Want   Power

	// RNA has λ, τ and β for ByRNA; Per is the unit with its own coefficients: "whole", "layer" or "tensor".
	RNA rna.Options
	Per string

	// T is BySlerp's position between the first file, 0, and the second, 1.
	T float64

	// Density is the fraction of elements kept in each difference from the base; Gamma is the fraction of the largest ones
	// that ByBreadcrumbs drops.
	Density, Gamma float64
	// Scale multiplies the sum of differences.
	Scale float64
	// Sign "sum" keeps, for each element, the differences with the sign of their sum; "none" keeps all.
	Sign string
	// Normalize divides each sum by the sum of its weights.
	Normalize bool
	// Rescale scales the kept differences: "none" does not; "density" divides them by the density; "l1" restores the sum
	// of absolute values of all differences.
	Rescale string
	Seed    uint64 // for ByDARE
}

// Plan is a planned merge.
type Plan struct {
	Rules   extrapolate.Rules
	Weights []float64 // of the files, nil if they differ among tensors or elements

	// RNA has the solution for each unit: the whole, or layers or tensors by name.
	RNA map[string]rna.Result
	// Residual is the distance between ByPowerEMA's profile and the wanted one, relative to the norm of the latter.
	Residual float64
	Warnings []string
	// Tame advises how to bring a point nearer to the files, for plans that may leave their middle and whose distances
	// are not known yet: see [Plan.Far].
	Tame     string
	fromBase bool
	// Passes is the number of times the weights are read.
	Passes int
}

// New plans the merge of a series. For ByRNA it reads all files once.
func New(ctx context.Context, s *extrapolate.Series, opt Options) (*Plan, error) {
	n := len(s.Files())
	if len(opt.Weights) > 0 && opt.By != ByWeights && !opt.By.Based() {
		return nil, fmt.Errorf("%s takes no weights", opt.By)
	}
	for _, w := range opt.Weights {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("weight %v: must be finite", w)
		}
	}
	p := &Plan{Passes: 1}
	var err error
	switch opt.By {
	case ByMean:
		p.Weights = Mean(n)
		rule := extrapolate.Rule{Weights: slices.Repeat([]float64{1}, n), Divisor: float64(n)}
		p.Rules = func(context.Context, extrapolate.Tensor) (extrapolate.Rule, error) { return rule, nil }
	case ByWeights, ByEMA, ByWSM:
		p.Weights, err = opt.Fixed(n)
		sum := 0.0
		for _, w := range p.Weights {
			sum += w
		}
		if err == nil && math.Abs(sum-1) > 1e-6 {
			p.Warnings = append(p.Warnings, fmt.Sprintf("the weights add up to %.6g, not to 1: "+
				"all weights of the net are scaled", sum))
		}
	case ByPowerEMA:
		if len(opt.Stored) != n {
			return nil, fmt.Errorf("%d steps for %d files", len(opt.Stored), n)
		}
		p.Weights, p.Residual, err = PowerEMA(opt.Stored, opt.Want)
	case ByRNA:
		err = p.rna(ctx, s, opt)
	case BySlerp:
		err = p.slerp(s, opt)
	case ByTask, ByTIES, ByDARE, ByBreadcrumbs:
		err = p.based(s, opt)
	default:
		return nil, fmt.Errorf("unknown method %q", opt.By)
	}
	if err != nil {
		return nil, err
	}
	if p.Rules == nil {
		p.Rules = extrapolate.Linear(p.Weights)
	}
	p.far(opt)
	return p, nil
}

// tames says how each method comes nearer to the files.
var tames = map[Method]string{
	ByWeights:  "weights nearer to those of an average bring it nearer",
	ByPowerEMA: "a sigma-rel between those of the files brings it nearer",
	ByRNA:      "a larger lambda or a tau brings it nearer",
	BySlerp:    "a t from 0 to 1 stays between the files",
}

// far warns of large weights, and decides whether the point may lie outside of the files.
func (p *Plan) far(opt Options) {
	tame := tames[opt.By]
	if p.fromBase = opt.By.Based(); p.fromBase {
		tame = "a smaller scale or smaller weights bring it nearer"
	}
	sum, least := 0.0, 0.0
	for _, w := range p.Weights {
		sum, least = sum+w, min(least, w)
	}
	switch {
	case opt.By == ByRNA && p.Weights != nil: // measured
		return
	case opt.By == BySlerp:
		if opt.T < 0 || opt.T > 1 {
			p.Tame = tame
		}
	case p.Weights == nil || least < 0 || math.Abs(sum-1) > 1e-6:
		p.Tame = tame
	}
	p.Warnings = append(p.Warnings, extrapolate.Far(extrapolate.Norm2(p.Weights), nil, p.fromBase, tame)...)
}

// Far warns of a point with the given distances that lies outside of the files.
func (p *Plan) Far(d *extrapolate.Distances) []string {
	return extrapolate.Far(0, d, p.fromBase, p.Tame)
}

// Fixed are the weights of n files by a method that does not read them: ByMean, ByWeights, ByEMA and ByWSM.
func (o *Options) Fixed(n int) ([]float64, error) {
	switch o.By {
	case ByMean:
		return Mean(n), nil
	case ByWeights:
		if len(o.Weights) != n {
			return nil, fmt.Errorf("%d weights for %d files", len(o.Weights), n)
		}
		return o.Weights, nil
	case ByEMA:
		return EMA(n, o.Decay)
	case ByWSM:
		return WSM(n, o.Schedule)
	}
	return nil, fmt.Errorf("%s looks at the files: mean, weights, ema and wsm do not", o.By)
}

// Layer is a tensor's name without its last part: the unit of "layer".
func Layer(name string) string {
	if i := strings.LastIndexAny(name, "./"); i >= 0 {
		return name[:i]
	}
	return name
}

// rna solves for the whole, or for each unit.
func (p *Plan) rna(ctx context.Context, s *extrapolate.Series, opt Options) error {
	p.Passes, p.RNA = 2, map[string]rna.Result{}
	if opt.Per == "whole" {
		w, res, err := solved(ctx, s, opt.RNA)
		if err != nil {
			return err
		}
		p.Weights, p.RNA[""] = w, res
		p.Warnings = append(p.Warnings, extrapolate.Far(res.NormC, s.Distances(w), false, tames[ByRNA])...)
		return nil
	}
	part := Layer
	if opt.Per == "tensor" {
		part = func(name string) string { return name }
	} else if opt.Per != "layer" {
		return fmt.Errorf("coefficients per %q: whole, layer or tensor", opt.Per)
	}
	weights := map[string][]float64{}
	var alike []string
	large, most := "", 0.0
	for _, t := range s.Tensors() {
		name := part(t.Name)
		if t.Role != extrapolate.Weight || weights[name] != nil {
			continue
		}
		own := s.Of(func(t extrapolate.Tensor) bool { return part(t.Name) == name })
		w, res, err := solved(ctx, own, opt.RNA)
		switch {
		case errors.Is(err, errAlike):
			alike = append(alike, name)
			w = s.Last()
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		default:
			p.RNA[name] = res
			if res.NormC > most {
				large, most = name, res.NormC
			}
		}
		weights[name] = w
	}
	if len(alike) > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d of %d do not differ between the files and are the last one's, as %s",
			len(alike), len(weights), alike[0]))
	}
	for _, w := range extrapolate.Far(most, nil, false, tames[ByRNA]) {
		p.Warnings = append(p.Warnings, large+": "+w)
	}
	p.Rules = func(_ context.Context, t extrapolate.Tensor) (extrapolate.Rule, error) {
		w := weights[part(t.Name)]
		if w == nil { // statistics of a layer without weights
			w = s.Last()
		}
		return extrapolate.Rule{Weights: w}, nil
	}
	return nil
}

var errAlike = errors.New("the files do not differ")

// solved measures a series and solves for its files' weights.
func solved(ctx context.Context, s *extrapolate.Series, opt rna.Options) ([]float64, rna.Result, error) {
	if err := s.Measure(ctx); err != nil {
		return nil, rna.Result{}, err
	}
	if s.Alike() {
		return nil, rna.Result{}, errAlike
	}
	res, err := s.Solve(opt)
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return nil, res, err
	}
	return s.Weights(res.C, opt.Beta.Or(rna.DefaultBeta)), res, nil
}
