package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/stat"
	"onlinerna/internal/text"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// overviewOf compares groups.
func overviewOf(groups []Group) *overview {
	o := &overview{}
	o.Legend, o.Charts = groupCharts(groups)
	o.ChartNote = "Curves are the last iterates'. Of several seeds they are means, in bands from the lowest to the highest."
	if len(groups) > len(o.Legend) {
		o.ChartNote += fmt.Sprintf(" They show %s.", text.Count(len(o.Legend), "group"))
	}
	o.Scatters = optionScatters(groups)
	rows := compareRows(groups)
	all := runsOf(groups)
	o.Table = pageTable{Head: rows[0], Rows: rows[1:]}
	for i := range groups {
		o.Table.Rows[i][0] += ": " + groups[i].names()
	}
	if images := judges(all); images != "" {
		o.Table.Note = errorsOf(all).where(images, all) + " ± is a standard error over seeds."
	}
	if rows, notes := differenceRows(groups); len(rows) > 1 {
		o.Differences = &pageTable{Head: rows[0], Rows: rows[1:], Note: strings.Join(notes, " ")}
	}
	return o
}

// candidatesOf lists the scores of a group's kinds of weights after the last epoch that all of its runs have.
func candidatesOf(g *Group) *pageTable {
	all := g.drawn()
	if len(all) == 0 {
		return nil
	}
	epoch := all[0].Epoch()
	for _, r := range all {
		epoch = min(epoch, r.Epoch())
	}
	base := collect(all[0].Config, all[0].History)
	if len(base) == 0 {
		return nil
	}
	name, unit, _ := ErrorOf(all[0].Config.Task)
	t := &pageTable{Head: []string{"weights", strings.TrimSuffix(name+","+unit, ","), "loss", "to " + base[0].name, "p"}}
	least := math.Inf(1)
	for _, kind := range base {
		var scores, refs []network.Score
		for _, r := range all {
			list := collect(r.Config, r.History)
			at := slices.IndexFunc(list, func(s series) bool { return s.name == kind.name })
			if at < 0 {
				continue
			}
			if v, ok := list[at].scores[epoch]; ok {
				scores = append(scores, v)
				if ref, ok := list[0].scores[epoch]; ok && list[0].name == base[0].name {
					refs = append(refs, ref)
				}
			}
		}
		if len(scores) < len(all) {
			continue
		}
		row, wrong := scoreCells(kind.name, scores)
		if kind.name != base[0].name && len(refs) == len(scores) {
			row = append(row, differenceCells(scores, refs)...)
		} else {
			row = append(row, "", "")
		}
		if wrong < least {
			least, t.Best = wrong, nil
		}
		if wrong == least {
			t.Best = append(t.Best, len(t.Rows))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note = fmt.Sprintf("After epoch %d, on %s images. ", epoch, judges(all))
	if len(all) > 1 {
		t.Note += fmt.Sprintf("Means of %d seeds: ± of an error or a loss is its standard error over them, ± of a difference half of "+
			"the 95 %% interval by Student's t, by seed; p is of the paired t test.", len(all))
	} else {
		t.Note += "± is a standard error over images; p is McNemar's, of the same images. Neither knows of other seeds."
		if !classifies(all[0].Config) {
			t.Note = fmt.Sprintf("After epoch %d, on %s images. ± is a standard error over images, of a difference that of two sets "+
				"of images.", epoch, judges(all))
		}
	}
	if tested := len(all) > 1 || classifies(all[0].Config); tested && len(t.Rows) > 2 {
		t.Note += " p is not corrected for several comparisons."
	}
	return t
}

// scoreCells are the name, the error and the loss of weights in runs, and the error as a number.
func scoreCells(name string, scores []network.Score) (row []string, wrong float64) {
	if len(scores) == 1 {
		s := scores[0]
		_, _, format := ErrorOf(s.Task)
		return []string{name, fmt.Sprintf(format+" ± "+format, s.Error(), standardError(s)), lossText(s.Loss)}, s.Error()
	}
	var errs, losses []float64
	for _, s := range scores {
		errs, losses = append(errs, s.Error()), append(losses, s.Loss)
	}
	m := Measure{N: len(scores)}
	m.Error, m.ErrorSE = stat.Mean(errs)
	m.Loss, m.LossSE = stat.Mean(losses)
	_, _, format := ErrorOf(scores[0].Task)
	return append([]string{name}, m.cells(judged{format: format})...), m.Error
}

// differenceCells are the difference of errors from others of the same runs, and its p.
func differenceCells(scores, refs []network.Score) []string {
	p := func(x float64) string {
		if math.IsNaN(x) {
			return "-"
		}
		return strings.TrimPrefix(probability(x), "= ")
	}
	if len(scores) == 1 {
		g := between(scores[0], refs[0])
		if scores[0].Task == data.Regression {
			return []string{fmt.Sprintf("%+.4g ± %.4g", g.points, g.deviation), p(g.p)}
		}
		return []string{fmt.Sprintf("%s ± %.2f", signed(g.points), g.deviation), p(g.p)}
	}
	var d []float64
	for i := range scores {
		d = append(d, scores[i].Error()-refs[i].Error())
	}
	mean, half := stat.Interval(d)
	if scores[0].Task == data.Regression {
		return []string{fmt.Sprintf("%+.4g ± %.4g", mean, half), p(stat.PairedT(d))}
	}
	return []string{fmt.Sprintf("%s ± %.2f", signed(mean), half), p(stat.PairedT(d))}
}

// searchOf lists the candidates of the last search for λ; nil if there was none.
func searchOf(history []hook.EpochRecord) *pageTable {
	for _, r := range slices.Backward(history) {
		if r.RNA == nil || len(r.RNA.Candidates) == 0 {
			continue
		}
		number := func(x *float64, format string) string {
			if x == nil {
				return "-"
			}
			return fmt.Sprintf(format, *x)
		}
		t := &pageTable{Head: []string{"point", "λ", "‖c‖", "held-out loss", "to kept"},
			Note: fmt.Sprintf("Epoch %d chose: %s. ± is a standard error over images.", r.Epoch, r.RNA.Choice)}
		if r.RNA.NoDifference {
			t.Note += " No candidate is significantly better."
		}
		for _, c := range r.RNA.Candidates {
			row := []string{c.Kind, number(c.Lambda, "%.3g"), "-", number(c.Loss, "%.5f"), number(c.Difference, "%+.5f")}
			if c.NormC > 0 {
				row[2] = fmt.Sprintf("%.3f", c.NormC)
			}
			if c.Error != nil {
				row[4] += fmt.Sprintf(" ± %.5f", *c.Error)
			}
			if c.Status != "ok" && c.Status != "" {
				row[0] += ": " + c.Status
			}
			if c.Kind == r.RNA.Choice && number(c.Lambda, "%g") == number(r.RNA.Lambda, "%g") {
				t.Best = append(t.Best, len(t.Rows))
			}
			t.Rows = append(t.Rows, row)
		}
		return t
	}
	return nil
}

// timeOf splits the time of a group's runs.
func timeOf(g *Group) *pageTable {
	all := g.drawn()
	names := []string{"waiting for images", "steps", "evaluation of the iterate", "RNA: snapshots, solving, combining",
		"EMA", "evaluation of RNA's point and averages"}
	sums := make([]float64, len(names))
	total, images := 0., 0.
	for _, r := range all {
		for _, e := range r.History {
			s := e.Seconds
			for i, x := range []float64{s.Data, s.Compute, s.Eval, s.RNA, s.EMA, s.RNAEval} {
				sums[i] += x / float64(len(all))
				total += x / float64(len(all))
			}
			images += float64(e.Train.Images) / float64(len(all))
		}
	}
	if total == 0 {
		return nil
	}
	t := &pageTable{Head: []string{"part", "seconds", "%"}}
	for i, x := range sums {
		if x > 0 {
			t.Rows = append(t.Rows, []string{names[i], seconds(x), fmt.Sprintf("%.1f", 100*x/total)})
		}
	}
	t.Rows = append(t.Rows, []string{"all", seconds(total), "100"})
	t.Best = []int{len(t.Rows) - 1}
	if of := sums[0] + sums[1]; of > 0 {
		t.Note = fmt.Sprintf("%.0f training images a second while steps ran.", images/of)
	}
	if len(all) > 1 {
		t.Note += fmt.Sprintf(" Means of %d runs.", len(all))
	}
	return t
}

// seconds writes a time with three digits or more.
func seconds(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
