package watch

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/report"
)

// Frame draws a run on a screen of width columns and height lines, 80 × 24 or more of use.
func Frame(v *View, width, height int) []string {
	width = max(width, 20)
	c := &v.Config
	head := fmt.Sprintf("%s  %s on %s", v.Name, c.Model, filepath.Base(v.Data()))
	if k := len(v.Sessions); k > 0 {
		s := v.Sessions[k-1]
		head += strings.TrimRight("  "+cmp.Or(s.Card, s.Device)+" "+s.Precision, " ")
	}
	lines := []string{both(text.Printable(head), string(v.State), width), progress(v, width), speeds(v), ""}
	foot := []string{"", "q ends this view, not the run"}
	if v.State != train.Running {
		foot = []string{"", ended(v) + "; q ends this view"}
	}
	var log []string
	if k := len(v.Log); k > 0 {
		log = append(log, "")
		for _, line := range v.Log[max(0, k-3):] {
			log = append(log, text.Printable(line))
		}
	}
	table := candidates(v)
	room := height - len(lines) - len(foot) - len(log) - len(table) - 1
	if room >= 3 {
		lines = append(lines, curves(v, width, min(room, 14))...)
		lines = append(lines, "")
	}
	lines = append(append(append(lines, table...), log...), foot...)
	for i, line := range lines {
		lines[i] = text.Shorten(width-1, line)
	}
	return lines[:min(len(lines), height)]
}

// both is a line with a text at each end.
func both(left, right string, width int) string {
	room := width - 1 - text.Width(right) - 1
	left = text.Shorten(max(room, 1), left)
	return left + strings.Repeat(" ", max(1, room-text.Width(left)+1)) + right
}

// epochSteps is the number of steps of an epoch; 0 if unknown.
func (v *View) epochSteps() int {
	switch n := len(v.History); {
	case n > 1:
		return v.History[n-1].Step - v.History[n-2].Step
	case n == 1:
		return v.History[0].Step / max(1, v.History[0].Epoch)
	case len(v.Sessions) > 0:
		return v.Sessions[len(v.Sessions)-1].EpochSteps
	}
	return 0
}

// progress is a line with a bar over the whole run.
func progress(v *View, width int) string {
	part, step := 0., ""
	if n := v.epochSteps(); v.State == train.Running && n > 0 {
		part = min(1, float64(v.Steps)/float64(n))
		step = fmt.Sprintf(", step %d/%d", v.Steps, n)
	}
	epochs := max(1, v.Config.Epochs)
	done := min(1, (float64(v.Epoch())+part)/float64(epochs))
	what := fmt.Sprintf("epoch %d/%d%s", min(epochs, v.Epoch()+1), epochs, step)
	if v.State != train.Running {
		what = fmt.Sprintf("epoch %d/%d", v.Epoch(), epochs)
	}
	rest := fmt.Sprintf("%3.0f %%", 100*done)
	if t := v.epochTime(); v.State == train.Running && t > 0 {
		left := time.Duration(float64(t) * (float64(epochs-v.Epoch()) - part))
		rest += ", " + about(left) + " left"
	}
	room := max(4, width-1-len(what)-len(rest)-4)
	full := int(done * float64(room))
	return fmt.Sprintf("%s  %s%s  %s", what, strings.Repeat("█", full), strings.Repeat("░", room-full), rest)
}

// epochTime is the mean time of the last epochs; 0 if there is none.
func (v *View) epochTime() time.Duration {
	last := v.History[max(0, len(v.History)-5):]
	if len(last) == 0 {
		return 0
	}
	sum := 0.
	for _, r := range last {
		s := r.Seconds
		sum += s.Data + s.Compute + s.Eval + s.RNA + s.EMA + s.RNAEval
	}
	return time.Duration(sum / float64(len(last)) * float64(time.Second))
}

// about writes a time with about two digits.
func about(t time.Duration) string {
	switch {
	case t < time.Minute:
		return fmt.Sprintf("%.0f s", t.Seconds())
	case t < time.Hour:
		return fmt.Sprintf("%.0f min", t.Minutes())
	}
	return fmt.Sprintf("%d h %d min", int(t.Hours()), int(t.Minutes())%60)
}

// speeds is a line with the rates.
func speeds(v *View) string {
	var words []string
	if v.Steps > 0 {
		words = append(words, fmt.Sprintf("learning rate %.3g", v.Step.Rate), fmt.Sprintf("loss %.4f", v.Step.Loss))
	}
	if k := len(v.History); k > 0 {
		r := v.History[k-1]
		if len(words) == 0 {
			words = append(words, fmt.Sprintf("learning rate %.3g", r.Rate), fmt.Sprintf("loss %.4f", r.Train.Loss))
		}
		words = append(words, fmt.Sprintf("%.0f images/s", r.ImagesPerSecond), "epoch of "+about(v.epochTime()))
		if r.LossScale > 0 {
			words = append(words, fmt.Sprintf("loss scale %g", r.LossScale))
		}
		if r.Bad > 0 {
			words = append(words, text.Count(r.Bad, "image")+" unreadable")
		}
	}
	return strings.Join(words, ", ")
}

// candidates are the weights of the last epoch, the best first.
func candidates(v *View) []string {
	k := len(v.History)
	if k == 0 {
		return nil
	}
	r := &v.History[k-1]
	list, held := r.Ranking(v.Config.BestBy)
	if len(list) == 0 {
		return []string{fmt.Sprintf("epoch %d: training loss %.4f", r.Epoch, r.Train.Loss)}
	}
	images := "validation"
	if held {
		images = "held-out"
	}
	head, unit, format := report.ErrorOf(v.Config.Task)
	head = strings.TrimSuffix(head+","+unit, ",")
	show := func(name string, s network.Score) string {
		return fmt.Sprintf("  %-24s %10s %9.4f", name, fmt.Sprintf(format, s.Error()), s.Loss)
	}
	lines := []string{fmt.Sprintf("%-26s %10s %9s", fmt.Sprintf("epoch %d, %s", r.Epoch, images), head, "loss")}
	optimizer := v.Config.OptimizerName()
	for _, s := range list[:min(len(list), 5)] {
		lines = append(lines, show(s.Name(optimizer), s.Score))
	}
	if b := r.Best; b != nil {
		lines = append(lines, show(fmt.Sprintf("best: %s, epoch %d", b.Name(optimizer), b.Epoch), b.Score))
	}
	return lines
}

// curves are the training loss of the steps, and the error of the iterate over the epochs.
func curves(v *View, width, height int) []string {
	w := (width - 3) / 2
	loss := panel("training loss", "%.3g", v.Losses, w, height)
	var errs []float64
	for _, r := range v.History {
		x := math.NaN()
		if s := iterate(&r); s != nil {
			x = s.Error()
		}
		errs = append(errs, x)
	}
	name, unit, _ := report.ErrorOf(v.Config.Task)
	wrong := panel(strings.TrimSuffix(name+" of the iterate,"+unit, ","), "%.3g", errs, w, height)
	for i := range loss {
		loss[i] += strings.Repeat(" ", max(0, w-text.Width(loss[i]))) + "  " + wrong[i]
	}
	return loss
}

// iterate is the score of the iterate on validation images, else on held-out ones.
func iterate(r *hook.EpochRecord) *network.Score {
	if r.SGD != nil {
		return r.SGD
	}
	return r.HeldScore(network.SGD)
}

// panel draws values from left to right below a title, with the highest and the lowest beside them.
func panel(title, format string, values []float64, width, height int) []string {
	lo, hi, n := math.Inf(1), math.Inf(-1), 0
	for _, x := range values {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			lo, hi, n = min(lo, x), max(hi, x), n+1
		}
	}
	lines := []string{title}
	if n == 0 {
		lines[0] += ": none yet"
		return append(lines, make([]string, height-1)...)
	}
	top, bottom := fmt.Sprintf(format, hi), fmt.Sprintf(format, lo)
	margin := max(text.Width(top), text.Width(bottom))
	rows := braille(values, lo, hi, width-margin-2, height-1)
	for i, row := range rows {
		label := ""
		switch i {
		case 0:
			label = top
		case len(rows) - 1:
			label = bottom
		}
		lines = append(lines, fmt.Sprintf("%*s┤%s", margin, label, row))
	}
	return lines
}

// braille draws a curve in cells of 2 × 4 dots. Several values in a column are joined to a vertical line.
func braille(values []float64, lo, hi float64, width, height int) []string {
	cells := make([][]rune, height)
	for i := range cells {
		cells[i] = []rune(strings.Repeat("\u2800", max(width, 1)))
	}
	columns, dots := 2*max(width, 1), 4*height
	bits := [4][2]rune{{1, 8}, {2, 16}, {4, 32}, {64, 128}}
	at := func(x float64) int {
		if hi == lo {
			return dots / 2
		}
		return int(math.Round((hi - x) / (hi - lo) * float64(dots-1)))
	}
	before := -1
	for col := range columns {
		from, to := dots, -1
		first, end := col*len(values)/columns, (col+1)*len(values)/columns
		if len(values) <= columns { // a value spans several columns
			first = col * len(values) / columns
			end = first + 1
		}
		for _, x := range values[first:end] {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				from, to = min(from, at(x)), max(to, at(x))
			}
		}
		if to < 0 {
			before = -1
			continue
		}
		middle := (from + to) / 2
		if before >= 0 { // joined to the column before
			from, to = min(from, before), max(to, before)
		}
		before = middle
		for y := from; y <= to; y++ {
			cells[y/4][col/2] |= bits[y%4][col%2]
		}
	}
	rows := make([]string, height)
	for i := range cells {
		rows[i] = strings.TrimRight(string(cells[i]), "\u2800")
	}
	return rows
}
