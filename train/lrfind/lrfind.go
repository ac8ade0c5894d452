// Package lrfind finds a learning rate: it raises the rate exponentially from step to step until the loss diverges, and
// suggests a rate from the curve of loss by rate (Smith 2017, Cyclical learning rates, section 3.3).
package lrfind

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Options configure a sweep. The zero value is usable.
type Options struct {
	From, To float64 // the first and the last rate; 1e-6 and 10 by default
	Steps    int     // of the optimiser, 200 by default
	// Smoothing is the standard deviation, in steps, of the Gaussian weights that average medians of five losses; Steps/40
	// by default.
	Smoothing float64
	// Diverged ends the sweep when the smoothed loss reaches this multiple of its minimum, 4 by default.
	Diverged float64
}

// least is the fraction of the first loss by which the loss must fall for a suggestion.
const least = 0.02

// begun is the fraction of the whole fall at which the loss counts as falling.
const begun = 0.25

// resolve fills in defaults and checks the options.
func (o *Options) resolve() error {
	for _, f := range []struct {
		v    *float64
		to   float64
		name string
	}{{&o.From, 1e-6, "first rate"}, {&o.To, 10, "last rate"}, {&o.Diverged, 4, "factor of divergence"}} {
		if *f.v == 0 {
			*f.v = f.to
		}
		if !(*f.v > 0) || math.IsInf(*f.v, 0) {
			return fmt.Errorf("%s %g: must be positive and finite", f.name, *f.v)
		}
	}
	if o.Steps == 0 {
		o.Steps = 200
	}
	if o.Smoothing == 0 {
		o.Smoothing = float64(o.Steps) / 40
	}
	switch {
	case o.From >= o.To:
		return fmt.Errorf("rates from %g to %g: must rise", o.From, o.To)
	case o.Steps < 10:
		return fmt.Errorf("%d steps: at least 10", o.Steps)
	case !(o.Smoothing > 0) || math.IsInf(o.Smoothing, 0):
		return fmt.Errorf("smoothing over %g steps: must be positive and finite", o.Smoothing)
	case o.Diverged <= 1:
		return fmt.Errorf("factor of divergence %g: must be above 1", o.Diverged)
	}
	return nil
}

// Point is a step of a sweep.
type Point struct {
	Rate   float64 `json:"lr"`
	Loss   float64 `json:"loss"`     // of the step's images, before its update
	Smooth float64 `json:"smoothed"` // the smoothed loss
}

// Result is a sweep's curve and the rates read from it. Rates that were not found are 0.
type Result struct {
	Points []Point `json:"points"`
	// Diverged is the rate at which the sweep ended early.
	Diverged float64 `json:"diverged,omitempty"`
	// Lowest is the rate of the lowest smoothed loss.
	Lowest float64 `json:"lowest"`
	// Steepest is the rate with the fastest fall of the smoothed loss over the logarithm of the rate, before Lowest.
	Steepest float64 `json:"steepest,omitempty"`
	// Valley is the suggestion: the logarithmic middle between Lowest and the rate at which the smoothed loss has
	// completed a quarter of its fall.
	Valley float64 `json:"valley,omitempty"`
}

// Trainer takes optimiser steps at the given rates, such as [onlinerna/train.Run].SweepRates.
type Trainer func(ctx context.Context, rates []float64, next func(loss float64) bool) error

// Find sweeps the rate and reads the result from the curve.
func Find(ctx context.Context, train Trainer, o Options) (*Result, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	rates := make([]float64, o.Steps)
	for i := range rates {
		rates[i] = o.From * math.Pow(o.To/o.From, float64(i)/float64(o.Steps-1))
	}
	var losses []float64
	r := &Result{}
	lowest := math.Inf(1)
	err := train(ctx, rates, func(loss float64) bool {
		if at := len(losses); math.IsNaN(loss) || math.IsInf(loss, 0) {
			r.Diverged = rates[at]
			return false
		}
		losses = append(losses, loss)
		smooth := smoothed(losses, len(losses)-1, o.Smoothing)
		lowest = min(lowest, smooth)
		if smooth > o.Diverged*lowest {
			r.Diverged = rates[len(losses)-1]
			return false
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if len(losses) == 0 {
		return nil, fmt.Errorf("the loss is not finite at the first step, before any update: " +
			"the weights or the images are at fault, not the rate")
	}
	for i, l := range losses {
		r.Points = append(r.Points, Point{rates[i], l, smoothed(losses, i, o.Smoothing)})
	}
	r.suggest()
	return r, nil
}

// smoothed is the Gaussian-weighted mean of medians of five losses around index at; the medians remove single outliers.
func smoothed(losses []float64, at int, deviation float64) float64 {
	sum, weights := 0., 0.
	reach := int(math.Ceil(4 * deviation))
	for i := max(0, at-reach); i <= min(len(losses)-1, at+reach); i++ {
		d := float64(i-at) / deviation
		w := math.Exp(-d * d / 2)
		sum += w * median(losses[max(0, i-2):min(len(losses), i+3)])
		weights += w
	}
	return sum / weights
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// suggest finds the curve's notable rates.
func (r *Result) suggest() {
	low := 0
	for i, p := range r.Points {
		if p.Smooth < r.Points[low].Smooth {
			low = i
		}
	}
	r.Lowest = r.Points[low].Rate
	top, bottom := 0., r.Points[low].Smooth
	for _, p := range r.Points[:low+1] {
		top = max(top, p.Smooth)
	}
	if bottom > (1-least)*top {
		return
	}
	steepest := 0.
	for i := 1; i < low; i++ { // rates are evenly spaced in their logarithm
		if d := r.Points[i+1].Smooth - r.Points[i-1].Smooth; d < steepest {
			steepest, r.Steepest = d, r.Points[i].Rate
		}
	}
	from := low
	for from > 0 && r.Points[from-1].Smooth <= top-begun*(top-bottom) {
		from--
	}
	r.Valley = math.Sqrt(r.Points[from].Rate * r.Lowest)
}
