package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// Table writes the scores of each kind of weights at the ends of the schedule's phases, on the validation images or, if
// there are none, on the held-out ones.
func Table(w io.Writer, c train.Spec, history []hook.EpochRecord) error {
	list := collect(c, history)
	if len(list) == 0 || list[0].kind != network.SGD {
		return tableWithout(w, history)
	}
	m := measureOf(c.Task)
	head := judgeOf(history) + ", " + m.name
	if m.unit != "" {
		head += " in %"
	}
	width := len(head)
	for _, s := range list {
		width = max(width, len(s.name))
	}
	ends := phaseEnds(c, history)
	page := terminal.NewPage(w)
	for i, part := range page.Fit(ends, width, m.width) {
		if i > 0 {
			page.WriteByte('\n')
		}
		phases(page, c, history, list, part, head, width)
	}
	page.WriteString(verdict(c, history) + notes(c, history, ends))
	return page.Flush(w)
}

// phases writes the table of some epochs, after a column of names of the given width.
func phases(b *terminal.Page, c train.Spec, history []hook.EpochRecord, list []series, ends []int, head string,
	width int) {
	m := measureOf(c.Task)
	row := func(cells ...string) string {
		list := make([]any, len(cells))
		for i, x := range cells {
			list[i] = x
		}
		return fmt.Sprintf(m.row, list...)
	}
	line := fmt.Sprintf("%-*s", width, "")
	for _, e := range ends {
		line += fmt.Sprintf("  %-*s", m.width-2, fmt.Sprintf("epoch %d, rate %.3g", e, rateOf(c, history, e)))
	}
	b.WriteString(b.Style.Bold(strings.TrimRight(line, " ")) + "\n")
	line = fmt.Sprintf("%-*s", width, head)
	for range ends {
		line += row(append(slices.Clone(m.columns), "to "+list[0].name)...)
	}
	b.WriteString(b.Style.Bold(strings.TrimRight(line, " ")) + "\n")
	base := list[0].scores
	for _, s := range list {
		line := fmt.Sprintf("%-*s", width, s.name)
		for _, e := range ends {
			v, ok := s.scores[e]
			if !ok {
				line += row(slices.Repeat([]string{"-"}, len(m.columns)+1)...)
				continue
			}
			diff := ""
			if ref, ok := base[e]; ok && s.kind != network.SGD {
				diff = m.difference(v, ref)
			}
			line += row(append(m.cells(v), diff)...)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// signed formats a difference in points, 0 without a sign.
func signed(x float64) string {
	if s := fmt.Sprintf("%+.2f", x); s != "-0.00" && s != "+0.00" {
		return s
	}
	return "0.00"
}

// lossText formats a loss in six characters, if it is below 1000.
func lossText(x float64) string {
	if x >= 1e5 {
		return fmt.Sprintf("%.1e", x)
	}
	digits := 4
	if x >= 10 {
		digits = 3
	}
	if x >= 100 {
		digits = 2
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// rateOf returns the learning rate at the end of an epoch.
func rateOf(c train.Spec, history []hook.EpochRecord, epoch int) float64 {
	for _, r := range history {
		if r.Epoch == epoch {
			return r.Rate
		}
	}
	return c.Schedule.At(epoch - 1)
}

// tableWithout describes a run without validation images.
func tableWithout(w io.Writer, history []hook.EpochRecord) error {
	if len(history) == 0 {
		return nil
	}
	last := history[len(history)-1]
	s := fmt.Sprintf("No validation images. Training loss in epoch %d: %.4f", last.Epoch, last.Train.Loss)
	if last.Train.Task == "" {
		s += fmt.Sprintf(", error %.2f %%", last.Train.Error())
	}
	_, err := fmt.Fprintln(w, s)
	return err
}

// uncertainty tells the standard error of a score.
func uncertainty(c train.Spec, s network.Score) string {
	if classifies(c) {
		return fmt.Sprintf("An error measured on %d images has a standard error of %.2f points.\n", s.Images, standardError(s))
	}
	m := measureOf(c.Task)
	return fmt.Sprintf("The %s on %d images has a standard error of "+m.points+"%s.\n", m.name, s.Images, standardError(s),
		map[bool]string{true: " points"}[m.unit != ""])
}

// notes explains missing extrapolations and the uncertainty of the numbers.
func notes(c train.Spec, history []hook.EpochRecord, ends []int) string {
	var b strings.Builder
	for _, r := range history {
		for _, e := range ends {
			if r.Epoch != e || r.RNA == nil {
				continue
			}
			if r.RNA.Score == nil && r.HeldScore(network.RNA) == nil {
				fmt.Fprintf(&b, "epoch %d: no extrapolation: %s\n", e, text.Printable(r.RNA.Status))
			} else if len(r.RNA.C) == 0 {
				fmt.Fprintf(&b, "epoch %d: the held-out loss chose the newest snapshot itself\n", e)
			}
		}
	}
	last := history[len(history)-1]
	if s := (series{kind: network.SGD}).score(c, last, judgeOf(history)); s != nil && s.Images > 0 {
		b.WriteString(uncertainty(c, *s))
		var gaps []string
		for _, x := range collect(c, history)[1:] {
			if v, ok := x.scores[last.Epoch]; ok {
				if g := between(v, *s); g.paired {
					gaps = append(gaps, fmt.Sprintf("%s %s ± %.2f", x.name, signed(g.points), g.deviation))
				}
			}
		}
		if gaps != nil {
			fmt.Fprintf(&b, "Differences to %s on the same images, epoch %d: %s points.\n",
				nameOf(c, hook.ScoreRecord{Kind: network.SGD}), last.Epoch, strings.Join(gaps, "; "))
		}
	}
	return b.String()
}
