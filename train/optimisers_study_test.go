package train

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/schedule"
)

var (
	scheduleFreeWay = way{"Schedule-Free SGD", func(c *Spec, rate float64, _ int) {
		c.Optimizer, c.Schedule = "schedule-free-sgd", schedule.Schedule{Kind: schedule.Constant, Rate: rate, Warmup: 0.5}
		averages(c)
	}, 1, iterate}
	muon = way{"Muon, linear decay", func(c *Spec, rate float64, epochs int) {
		c.Optimizer, c.WeightDecay = "muon", nil
		linear.change(c, rate, epochs)
	}, 0.004, iterate}
)

// TestOptimisers compares optimisers, and averages of their iterates, on small nets. Each has five rates and two seeds
// to choose its rate by. It prints a Markdown table. ONLINERNA_STUDY is "optimisers", or "quick" for a mere trial.
func TestOptimisers(t *testing.T) {
	ways := []way{linear, constant, scheduleFreeWay, muon}
	rows := []struct {
		name    string
		way     int
		weights string
	}{{"SGD, linear decay", 0, iterate}, {"SGD, constant rate: EMA 12", 1, byEMA}, {"same runs: RNA", 1, byRNA},
		{"Schedule-Free SGD", 2, iterate}, {"same runs: EMA 12", 2, byEMA}, {"same runs: RNA", 2, byRNA},
		{"Muon, linear decay", 3, iterate}}
	studyOf(t, "optimisers", func(t *testing.T, l *ledger, c contest, seeds int) {
		results, rates := c.compete(t, l, ways, seeds)
		var s strings.Builder
		fmt.Fprintf(&s, "\n%s, %d epochs, %d seeds\n\n| weights | rate | error %% | to linear: points | to the EMA: points |\n"+
			"|-|-|-|-|-|\n", c.name, c.epochs, len(results))
		if len(results) == 0 {
			t.Skip("no seed is complete")
		}
		errorsOf := func(i int) (x []float64) {
			for _, r := range results {
				list := r[rows[i].way]
				at := slices.IndexFunc(list, func(o mark) bool { return o.Name == rows[i].weights })
				if at < 0 { // a short run has no RNA
					return nil
				}
				x = append(x, list[at].Error)
			}
			return x
		}
		to := func(x, y []float64) string {
			d := slices.Clone(x)
			for i := range d {
				d[i] -= y[i]
			}
			return withInterval("%+.2f", d)
		}
		for i, row := range rows {
			x := errorsOf(i)
			if x == nil {
				continue
			}
			fmt.Fprintf(&s, "| %s | %g | %s | %s | %s |\n", row.name, rates[row.way], withInterval("%.2f", x),
				to(x, errorsOf(0)), to(x, errorsOf(1)))
		}
		fmt.Print(s.String())
	})
}
