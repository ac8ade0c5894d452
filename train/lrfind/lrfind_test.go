package lrfind

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// curve trains with a loss that is a function of the rate.
func curve(loss func(rate float64) float64) Trainer {
	return func(_ context.Context, rates []float64, next func(float64) bool) error {
		for _, r := range rates {
			if !next(loss(r)) {
				return nil
			}
		}
		return nil
	}
}

// valleyAt falls from 2 to 1 over the two decades below a rate, and rises in proportion to the rate above it.
func valleyAt(rate float64) func(float64) float64 {
	return func(r float64) float64 {
		x := math.Log10(r / rate)
		switch {
		case x < -2:
			return 2
		case x < 0:
			return 1.5 + 0.5*math.Cos(math.Pi*(x+2)/2)
		}
		return r / rate
	}
}

func TestFind(t *testing.T) {
	noise := rand.New(rand.NewPCG(1, 2))
	for name, loss := range map[string]func(float64) float64{
		"smooth": valleyAt(0.1),
		"noisy":  func(r float64) float64 { return valleyAt(0.1)(r) + 0.1*noise.NormFloat64() },
		"one spike": func(r float64) float64 {
			if math.Abs(math.Log(r/0.003)) < 0.03 {
				return 50
			}
			return valleyAt(0.1)(r)
		},
	} {
		r, err := Find(context.Background(), curve(loss), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Lowest < 0.04 || r.Lowest > 0.15 || r.Steepest < 0.004 || r.Steepest > 0.03 || r.Valley < 0.01 ||
			r.Valley > 0.06 {
			t.Errorf("%s: valley %g, steepest %g, lowest %g", name, r.Valley, r.Steepest, r.Lowest)
		}
		if r.Diverged < 0.4 || r.Diverged > 1.2 || r.Points[len(r.Points)-1].Rate > r.Diverged {
			t.Errorf("%s: diverged at %g, %d points", name, r.Diverged, len(r.Points))
		}
	}
}

// TestFindWhole takes all steps if the loss does not diverge, and suggests nothing if it does not fall.
func TestFindWhole(t *testing.T) {
	r, err := Find(context.Background(), curve(func(float64) float64 { return 2 }), Options{From: 1e-4, To: 1, Steps: 41})
	if err != nil || len(r.Points) != 41 || r.Diverged != 0 || r.Valley != 0 || r.Steepest != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if a, b, c := r.Points[0].Rate, r.Points[10].Rate, r.Points[40].Rate; a != 1e-4 ||
		math.Abs(b-1e-3) > 1e-15 || math.Abs(c-1) > 1e-12 {
		t.Errorf("rates %g, %g, %g", a, b, c)
	}
}

// TestFindNotFinite ends at a loss that is not finite, which adds no point to the curve.
func TestFindNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		r, err := Find(context.Background(), curve(func(r float64) float64 {
			if r > 0.5 {
				return bad
			}
			return valleyAt(0.1)(r)
		}), Options{})
		if err != nil || r.Diverged < 0.5 || r.Diverged > 0.6 || r.Points[len(r.Points)-1].Rate >= r.Diverged ||
			r.Valley == 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := Find(context.Background(), curve(func(float64) float64 { return bad }), Options{}); err == nil ||
			!strings.Contains(err.Error(), "first step") {
			t.Errorf("%v", err)
		}
	}
}

func TestFindErrors(t *testing.T) {
	train := curve(valleyAt(0.1))
	for want, o := range map[string]Options{
		"first rate -1": {From: -1}, "last rate NaN": {To: math.NaN()}, "must rise": {From: 1, To: 0.1},
		"at least 10":       {Steps: 3},
		"smoothing over -1": {Smoothing: -1}, "must be above 1": {Diverged: 0.5}, "last rate +Inf": {To: math.Inf(1)},
	} {
		if _, err := Find(context.Background(), train, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	broken := errors.New("broken")
	if _, err := Find(context.Background(), func(context.Context, []float64, func(float64) bool) error { return broken },
		Options{}); err != broken {
		t.Errorf("%v", err)
	}
}

func TestPlot(t *testing.T) {
	for _, loss := range []func(float64) float64{valleyAt(0.1), func(float64) float64 { return 2 }} {
		r, err := Find(context.Background(), curve(loss), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.Plot(&b, "svg", "a net on data"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"a net on data", "learning rate", "training loss", "smoothed"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in the figure", want)
			}
		}
		if got := strings.Contains(b.String(), "valley: "); got != (r.Valley > 0) {
			t.Errorf("valley shown: %v", got)
		}
	}
}
