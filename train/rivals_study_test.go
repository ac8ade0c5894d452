package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"onlinerna/internal/stat"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/schedule"
)

// A contest is a net with its data, and the epochs at which rivals compete with runs that end there.
type contest struct {
	name   string
	config Spec
	at     []int
	rate   float64 // start of the search for the best rates
}

// TestRivals compares averages of all kinds, computed along one run at a constant rate, with a run per horizon whose
// rate falls linearly to zero there. Rates are tuned by the validation error of two extra seeds: the constant rate for
// the power average, the others for each horizon. It prints a Markdown table per horizon. It runs when ONLINERNA_STUDY
// is "rivals", which takes an hour on one core, or "quick", a mere trial.
func TestRivals(t *testing.T) {
	how := os.Getenv("ONLINERNA_STUDY")
	if how != "rivals" && how != "quick" {
		t.Skip("set ONLINERNA_STUDY to rivals, or to quick, to run it")
	}
	base := Spec{Model: "lenet", Batch: 128, WeightDecay: ptr(5e-4), Holdout: 0.1, Threads: 1, Workers: 1,
		RNA: average.Options{Mode: average.Off}}
	cifar := base
	cifar.Data, cifar.StepsLimit = cifarFolder(), 70
	for _, c := range []contest{{"glyphs", base, []int{5, 10}, 0.05}, {"CIFAR-10", cifar, []int{5}, 0.05}} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(c.config.Data); c.config.Data != "" && err != nil {
				t.Skip(err)
			}
			seeds := 10
			if how == "quick" {
				seeds, c.at = 2, []int{2, 3}
				c.config.StepsLimit, c.config.ValLimit = 4, 1
			}
			c.run(t, seeds)
		})
	}
}

func (c contest) run(t *testing.T, seeds int) {
	bars := map[int]float64{} // tuned rates by horizon
	for _, e := range c.at {
		bars[e] = tuned(c.rate, func(rate float64) float64 {
			wrong := c.average(t, func(seed uint64) float64 { return c.falling(t, seed, rate, e).val.Error() })
			t.Logf("%s, linear to zero in %d epochs, rate %g: error %.2f %%", c.name, e, rate, wrong)
			return wrong
		})
	}
	constant := tuned(c.rate, func(rate float64) float64 {
		wrong := c.average(t, func(seed uint64) float64 { return c.averaged(t, seed, rate) })
		t.Logf("%s, constant rate %g: error of the power average %.2f %%", c.name, rate, wrong)
		return wrong
	})
	results := map[int][][]verdict{} // by horizon and seed; the first is the decayed run's
	for seed := range uint64(seeds) {
		h := &rivals{at: c.at}
		r, err := c.train(t, seed+1, schedule.Schedule{Kind: schedule.Constant, Rate: constant}, c.at[len(c.at)-1], h)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		for _, e := range c.at {
			list := append([]verdict{c.falling(t, seed+1, bars[e], e)}, h.verdicts[e]...)
			list = append(list, best("the best on held-out images of SGD and averages", h.verdicts[e][:6]),
				best("the best on held-out images of all", h.verdicts[e]))
			results[e] = append(results[e], list)
			for _, v := range list {
				t.Logf("%s, seed %d, epoch %d: %s %.2f %% %.4f, held out %.2f %% %.4f", c.name, seed+1, e, v.name, v.val.Error(),
					v.val.Loss, v.held.Error(), v.held.Loss)
			}
		}
	}
	for _, e := range c.at {
		fmt.Printf("\n%s, %d epochs, %d seeds, constant rate %g, linear from %g\n\n%s", c.name, e, seeds, constant, bars[e],
			compare(results[e]))
	}
}

// train runs to an epoch. An error means that the run diverged.
func (c contest) train(t *testing.T, seed uint64, s schedule.Schedule, epochs int, h *rivals) (*Run, error) {
	x := c.config
	x.Seed, x.Schedule, x.Epochs = seed, s, epochs
	var hooks []hook.Hook
	if h != nil {
		hooks = append(hooks, h)
	}
	r := newRun(t, x, cpuDevice(t, 1), hooks...)
	if h != nil {
		h.run = r
	}
	err := r.Train(context.Background())
	if d := (*DivergedError)(nil); err != nil && !errors.As(err, &d) {
		t.Fatal(err)
	}
	return r, err
}

// falling returns the end of a run whose rate falls linearly: one more step would make it zero.
func (c contest) falling(t *testing.T, seed uint64, rate float64, epochs int) verdict {
	r, err := c.train(t, seed, schedule.Schedule{Kind: schedule.Linear, Rate: rate, Final: ptr(rate / float64(epochs))},
		epochs, nil)
	v := verdict{name: "linear decay"}
	if err != nil {
		v.val.Loss = math.Inf(1)
		return v
	}
	defer r.Close()
	rec := r.History[epochs-1]
	v.val, v.held = *rec.SGD, rec.Held[0].Score
	return v
}

// averaged returns the mean error over the horizons of the power average at a constant rate.
func (c contest) averaged(t *testing.T, seed uint64, rate float64) float64 {
	c.config.EMA = 12
	r, err := c.train(t, seed, schedule.Schedule{Kind: schedule.Constant, Rate: rate}, c.at[len(c.at)-1], nil)
	if err != nil {
		return 100
	}
	defer r.Close()
	sum := 0.
	for _, e := range c.at {
		sum += r.History[e-1].EMA.Error()
	}
	return sum / float64(len(c.at))
}

// average returns the mean over the tuning seeds.
func (c contest) average(t *testing.T, f func(seed uint64) float64) float64 {
	return (f(101) + f(102)) / 2
}

// tuned returns the rate with the lowest error among start times powers of two: it doubles while that helps, else
// halves.
func tuned(start float64, wrong func(rate float64) float64) float64 {
	rate, least := start, wrong(start)
	for _, by := range []float64{2, .5} {
		for {
			w := wrong(rate * by)
			if w >= least {
				break
			}
			rate, least = rate*by, w
		}
		if rate != start {
			break
		}
	}
	return rate
}

// best returns the verdict with the lowest loss on the held-out images.
func best(name string, list []verdict) verdict {
	b := list[0]
	for _, v := range list {
		if v.held.Loss < b.held.Loss {
			b = v
		}
	}
	b.name = name
	return b
}

// compare returns a table of rivals against the first of them and against the power average with γ = 12: differences
// and their 95 % intervals over seeds.
func compare(seeds [][]verdict) string {
	base := 0
	for i, v := range seeds[0] {
		if v.name == "EMA 12" {
			base = i
		}
	}
	var s strings.Builder
	s.WriteString("| weights | error % | loss | to linear: points | loss | to EMA 12: points | loss |\n|-|-|-|-|-|-|-|\n")
	for i, v := range seeds[0] {
		column := func(format string, value func(list []verdict) float64) {
			var x []float64
			for _, list := range seeds {
				x = append(x, value(list))
			}
			fmt.Fprintf(&s, " | %s", withInterval(format, x))
		}
		fmt.Fprintf(&s, "| %s", v.name)
		column("%.2f", func(l []verdict) float64 { return l[i].val.Error() })
		column("%.4f", func(l []verdict) float64 { return l[i].val.Loss })
		for _, to := range []int{0, base} {
			column("%+.2f", func(l []verdict) float64 { return l[i].val.Error() - l[to].val.Error() })
			column("%+.4f", func(l []verdict) float64 { return l[i].val.Loss - l[to].val.Loss })
		}
		s.WriteString(" |\n")
	}
	return s.String()
}

// withInterval writes a mean with half of its 95 % interval by Student's t, in bold if the whole interval is below
// zero.
func withInterval(format string, x []float64) string {
	m, e := stat.Interval(x)
	s := fmt.Sprintf(format, m) + fmt.Sprintf(" ± "+strings.ReplaceAll(format, "+", ""), e)
	if m < -e {
		s = "**" + s + "**"
	}
	return s
}
