package train

import (
	"fmt"
	"os"
	"path/filepath"
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

// optimisers are the ways of the study, in the order of their runs.
var optimisers = []way{linear, constant, scheduleFreeWay, muon}

// TestOptimisers compares optimisers, and averages of their iterates, on small nets. Each has five rates and two seeds,
// or in a brief contest one, to choose its rate by. It prints a Markdown table. ONLINERNA_STUDY is "optimisers", or
// "quick" for a mere trial.
func TestOptimisers(t *testing.T) {
	studyOf(t, "optimisers", func(t *testing.T, l *ledger, c contest, seeds int) {
		results, rates := c.compete(t, l, optimisers, seeds)
		if len(results) == 0 {
			t.Skip("no seed is complete")
		}
		fmt.Printf("\n%s, %d epochs, %d seeds\n\n| weights | rate | error %% | to linear: points | to the EMA: points |\n"+
			"|-|-|-|-|-|\n%s", c.name, c.epochs, len(results), strings.Join(optimiserRows(results, rates), ""))
	})
}

// optimiserRows are the rows of the study's table. Differences are to the EMA and to the linear decay, with BatchNorm
// recalibrated, as the averages have it, if the decay has that score.
func optimiserRows(results [][][]mark, rates []float64) (list []string) {
	rows := []struct {
		name    string
		way     int
		weights string
	}{{"SGD, linear decay", 0, iterate}, {"same runs: BatchNorm recalibrated", 0, restat},
		{"SGD, constant rate: EMA 12", 1, byEMA}, {"same runs: RNA", 1, byRNA}, {"Schedule-Free SGD", 2, iterate},
		{"same runs: EMA 12", 2, byEMA}, {"same runs: RNA", 2, byRNA}, {"Muon, linear decay", 3, iterate},
		{"same runs: BatchNorm recalibrated", 3, restat}}
	errorsOf := func(i int) (x []float64) {
		for _, r := range results {
			list := r[rows[i].way]
			at := slices.IndexFunc(list, func(o mark) bool { return o.Name == rows[i].weights })
			if at < 0 { // a short run has no RNA, and LeNet no BatchNorm
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
	decay := errorsOf(1)
	if decay == nil {
		decay = errorsOf(0)
	}
	for i, row := range rows {
		if x := errorsOf(i); x != nil {
			list = append(list, fmt.Sprintf("| %s | %g | %s | %s | %s |\n", row.name, rates[row.way],
				withInterval("%.2f", x), to(x, decay), to(x, errorsOf(2))))
		}
	}
	return list
}

// TestOptimisersPage has the page's tables agree with the kept results.
func TestOptimisersPage(t *testing.T) {
	t.Setenv("ONLINERNA_RESULTS", "")
	t.Setenv("ONLINERNA_MINUTES", "0")
	page, err := os.ReadFile(filepath.Join("..", "docs", "rna-on-nets.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## Optimisers")
	text, _, _ = strings.Cut(text, "\n## ")
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| |") {
			lines = append(lines, line)
		}
	}
	plain := strings.NewReplacer("-", "−", "**", "", "+0.00 ± 0.00", "")
	l, rows := openLedger(t), []string{}
	for _, c := range contests() {
		results, rates := c.compete(t, l, optimisers, 10)
		if len(results) != 10 {
			t.Fatalf("%s: %d seeds", c.name, len(results))
		}
		rows = append(rows, optimiserRows(results, rates)...)
	}
	if len(lines) != len(rows) {
		t.Fatalf("%d lines in the page, %d rows", len(lines), len(rows))
	}
	for i, row := range rows {
		got, want := strings.Split(lines[i], "|"), strings.Split(plain.Replace(row), "|")
		for k := 3; k < 6; k++ {
			if strings.TrimSpace(got[k]) != strings.TrimSpace(want[k]) {
				t.Errorf("the page has %swant %s", lines[i], row)
				break
			}
		}
		if rate := strings.TrimSpace(got[2]); rate != "" && rate != strings.TrimSpace(want[2]) {
			t.Errorf("the page has the rate %s, want %s", rate, want[2])
		}
	}
}
