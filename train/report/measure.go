package report

import (
	"cmp"
	"fmt"
	"strings"

	"onlinerna/data"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// measure has the numbers of a task's scores that tables of candidates show.
type measure struct {
	name    string                         // of the first of its numbers, by which weights are compared
	unit    string                         // behind a number
	columns []string                       // names of the numbers
	row     string                         // format of the columns and a difference
	width   int                            // of it
	cells   func(s network.Score) []string // the numbers
	value   func(s network.Score) float64  // the first of them
	points  string                         // format of a difference
}

// measureOf returns the measure of a task.
func measureOf(t data.Task) measure {
	percent := func(value func(s network.Score) float64) func(s network.Score) []string {
		return func(s network.Score) []string { return []string{fmt.Sprintf("%.2f", value(s)), lossText(s.Loss)} }
	}
	switch t {
	case data.MultiLabel:
		value := func(s network.Score) float64 { return s.MAP }
		return measure{"mAP", "\u00a0%", []string{"mAP", "loss"}, "  %6s %6s %7s", 23, percent(value), value, "%.2f"}
	case data.Regression:
		return measure{"RMSE", "", []string{"RMSE", "MAE", "R²"}, "  %8s %8s %6s %8s", 35, func(s network.Score) []string {
			return []string{fmt.Sprintf("%.4g", s.RMSE), fmt.Sprintf("%.4g", s.MAE), fmt.Sprintf("%.3f", s.R2)}
		}, network.Score.Error, "%.3g"}
	}
	return measure{"error", "\u00a0%", []string{"error", "loss"}, "  %6s %6s %7s", 23, percent(network.Score.Error),
		network.Score.Error, "%.2f"}
}

// difference formats how much the value of a score is above another's, 0 without a sign.
func (m measure) difference(x, y network.Score) string {
	if m.unit != "" {
		return signed(m.value(x) - m.value(y))
	}
	return fmt.Sprintf("%+.3g", m.value(x)-m.value(y))
}

// show formats the value of a score with its unit.
func (m measure) show(s network.Score) string { return m.cells(s)[0] + m.unit }

// ErrorOf is the measure of a task that is the lower the better, network.Score.Error: its name, its unit and its format.
func ErrorOf(t data.Task) (name, unit, format string) {
	switch t {
	case data.MultiLabel:
		return "100 − mAP", " %", "%.2f"
	case data.Regression:
		return "RMSE", "", "%.4g"
	}
	return "Error", " %", "%.2f"
}

// judged is how a table of runs shows network.Score.Error.
type judged struct {
	name, unit, format string
	mixed              bool // the runs have different tasks
}

// errorsOf is the measure of runs: of all tasks if they differ.
func errorsOf(list []runs.Run) judged {
	task := func(r *runs.Run) data.Task { return cmp.Or(r.Config.Task, data.Classification) }
	var j judged
	for i := range list {
		if task(&list[i]) != task(&list[0]) {
			return judged{"error", "", "%.4g", true}
		} else if i == 0 {
			j.name, j.unit, j.format = ErrorOf(task(&list[0]))
		}
	}
	if j.name == "Error" {
		j.name = "error"
	}
	return j
}

// errorOf is the measure of a run.
func errorOf(c train.Spec) judged { return errorsOf([]runs.Run{{Config: c}}) }

// label is the name with the unit, for an axis.
func (j judged) label() string { return strings.TrimSuffix(j.name+","+j.unit, ",") }

// signed formats a difference.
func (j judged) signed(x float64) string {
	if j.unit != "" {
		return signed(x)
	}
	return fmt.Sprintf("%+.3g", x)
}

// difference formats a difference and its uncertainty.
func (j judged) difference(x, uncertain float64) string {
	if j.unit != "" {
		return fmt.Sprintf("%s ± %.2f", j.signed(x), uncertain)
	}
	return fmt.Sprintf("%s ± %.3g", j.signed(x), uncertain)
}

// where is the note below a table of runs: the images of its scores, and the choice of the best weights.
func (j judged) where(images string, list []runs.Run) string {
	name := j.name
	if name == "error" {
		name = "Errors"
	}
	if j.mixed {
		name = "Scores"
	}
	best := "best by " + bestBy(list)
	if on := choosers(list); on != images && on != "" {
		best += " on " + on + " images"
	}
	return fmt.Sprintf("%s and losses are those on %s images; %s.", name, images, best)
}

// by names the measure that chooses the best weights.
func by(c *train.Spec) string {
	if cmp.Or(c.BestBy, hook.ByLoss) == hook.ByLoss {
		return hook.ByLoss
	}
	return measureOf(c.Task).name
}
