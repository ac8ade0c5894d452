package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// gradients records the gradients of the steps, before clipping, of a run without clipping.
func gradients(t *testing.T, list *[][]float64) watch {
	return watch{Step: func(s *hook.State) error {
		v, scale, err := s.Gradient()
		if err != nil {
			return err
		}
		g := numbers(t, v)
		for i := range g {
			g[i] *= scale
		}
		*list = append(*list, g)
		return nil
	}}
}

func norm(x []float64) (s float64) {
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}

// TestClip makes a step with clipped gradients, of one batch and of several, on one rank and on two. Plain SGD from the
// same weights reveals the gradient of the step.
func TestClip(t *testing.T) {
	base := tiny("")
	base.Epochs, base.StepsLimit, base.RNA.Mode, base.Batch = 1, 4, average.Off, 4
	base.Schedule = schedule.Schedule{Kind: schedule.Constant, Rate: 1}
	base.Momentum, base.WeightDecay = ptr(0), ptr(0)
	base.Accumulate = 4 // one step
	var list [][]float64
	start := newRun(t, base, reference(op.Float64), gradients(t, &list))
	from := numbers(t, start.Net.Params)
	if err := start.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	g := list[0]
	length := norm(g)
	sorted := slices.Clone(g)
	for i := range sorted {
		sorted[i] = math.Abs(sorted[i])
	}
	slices.Sort(sorted)
	bound := sorted[len(sorted)*99/100]
	for _, x := range []struct {
		name string
		set  func(c *Spec)
		want func(v float64) float64
	}{
		{"norm", func(c *Spec) { c.ClipGrad = length / 3 },
			func(v float64) float64 { return v * length / 3 / (length + 1e-6) }},
		{"norm above", func(c *Spec) { c.ClipGrad = 2 * length }, func(v float64) float64 { return v }},
		{"value", func(c *Spec) { c.ClipValue = bound }, func(v float64) float64 { return max(-bound, min(bound, v)) }},
	} {
		want := make([]float64, len(g))
		for i := range g {
			want[i] = from[i] - x.want(g[i])
		}
		c := base
		x.set(&c)
		for name, dev := range map[string]device.Device{"reference": reference(op.Float64), "cpu": cpuDevice(t, 2)} {
			tolerance := 1e-12
			if name == "cpu" {
				tolerance = 1e-5
			}
			got, want := numbers(t, trained(t, c, dev).Net.Params), slices.Clone(want)
			if name == "cpu" { // elements have another order
				slices.Sort(got)
				slices.Sort(want)
			}
			near(t, x.name+" on "+name, got, want, tolerance)
		}
		two := c
		two.Accumulate = 2
		for _, o := range together(t, 2, two, reference64, nil) {
			if o.err != nil {
				t.Fatal(o.err)
			}
			near(t, x.name+" on two ranks", o.params, want, 1e-12)
		}
		three := c // one rank has a batch less: its last step uses the others' gradients
		three.Accumulate, three.StepsLimit = 1, 5
		all := together(t, 2, three, reference64, nil)
		for _, o := range all {
			if o.err != nil || !slices.Equal(o.params, all[0].params) {
				t.Errorf("%s: ranks have gone apart: %v", x.name, o.err)
			}
		}
	}
}

// TestScheduleByStep checks the learning rate of each step, and resumes in the middle.
func TestScheduleByStep(t *testing.T) {
	c := tiny("")
	c.Epochs, c.StepsLimit, c.RNA.Mode, c.Accumulate = 3, 5, average.Off, 2 // three steps an epoch
	c.Schedule = schedule.Schedule{Kind: schedule.Cosine, By: schedule.ByStep, Rate: 0.1, Warmup: 0.5,
		WarmupFrom: ptr(0.1)}
	var got []float64
	r := trained(t, c, cpuDevice(t, 2), watch{Step: func(s *hook.State) error {
		got = append(got,
			s.Step.Rate)
		return nil
	}})
	var want []float64
	for i := range 9 {
		want = append(want, r.Resolved.Schedule.AtStep(i, 3))
	}
	if !slices.Equal(got, want) || r.History[1].Rate != want[5] {
		t.Errorf("rates %v, want %v; the second epoch's is %g", got, want, r.History[1].Rate)
	}
}
