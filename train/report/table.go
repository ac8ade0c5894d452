package report

import (
	"fmt"
	"io"
	"strings"

	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/network"
)

// Table writes how each kind of weights did on the validation images, or without any on the held-out ones, where the phases of the schedule end.
func Table(w io.Writer, c train.Config, history []train.EpochRecord) error {
	list := collect(c, history)
	if len(list) == 0 || list[0].kind != network.SGD {
		return tableWithout(w, history)
	}
	head := judgeOf(history) + ", error in %"
	width := len(head)
	for _, s := range list {
		width = max(width, len(s.name))
	}
	ends := phaseEnds(c, history)
	const row = "  %6s %6s %7s" // two of them and the longest name fit into a terminal
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s", width, "")
	for _, e := range ends {
		fmt.Fprintf(&b, "  %-21s", fmt.Sprintf("epoch %d, rate %.3g", e, rateOf(c, history, e)))
	}
	fmt.Fprintf(&b, "\n%-*s", width, head)
	for range ends {
		fmt.Fprintf(&b, row, "error", "loss", "to "+list[0].name)
	}
	b.WriteByte('\n')
	base := list[0].scores
	for _, s := range list {
		fmt.Fprintf(&b, "%-*s", width, s.name)
		for _, e := range ends {
			v, ok := s.scores[e]
			if !ok {
				fmt.Fprintf(&b, row, "-", "-", "-")
				continue
			}
			diff := ""
			if ref, ok := base[e]; ok && s.kind != network.SGD {
				diff = signed(v.Error() - ref.Error())
			}
			fmt.Fprintf(&b, row, fmt.Sprintf("%.2f", v.Error()), lossText(v.Loss), diff)
		}
		b.WriteByte('\n')
	}
	for line := range strings.Lines(verdict(c, history) + notes(c, history, ends)) {
		b.WriteString(text.Wrap(strings.TrimSuffix(line, "\n"), "  ") + "\n")
	}
	_, err := io.WriteString(w, trimLines(b.String()))
	return err
}

// signed is a difference in points, 0 without a sign.
func signed(x float64) string {
	if s := fmt.Sprintf("%+.2f", x); s != "-0.00" && s != "+0.00" {
		return s
	}
	return "0.00"
}

// lossText is a loss in six characters, if it is below 1000.
func lossText(x float64) string {
	digits := 4
	if x >= 10 {
		digits = 3
	}
	if x >= 100 {
		digits = 2
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// rateOf is the learning rate at the end of an epoch.
func rateOf(c train.Config, history []train.EpochRecord, epoch int) float64 {
	for _, r := range history {
		if r.Epoch == epoch {
			return r.Rate
		}
	}
	return c.Schedule.At(epoch - 1)
}

// tableWithout says what there is to say about a run without validation images.
func tableWithout(w io.Writer, history []train.EpochRecord) error {
	if len(history) == 0 {
		return nil
	}
	last := history[len(history)-1]
	_, err := fmt.Fprintf(w, "No validation images. Training loss in epoch %d: %.4f, error %.2f %%\n", last.Epoch, last.Train.Loss, last.Train.Error())
	return err
}

// notes says why there was no extrapolation and how sure the numbers are.
func notes(c train.Config, history []train.EpochRecord, ends []int) string {
	var b strings.Builder
	for _, r := range history {
		for _, e := range ends {
			if r.Epoch != e || r.RNA == nil {
				continue
			}
			if r.RNA.Score == nil && r.HeldScore(network.RNA) == nil {
				fmt.Fprintf(&b, "epoch %d: no extrapolation: %s\n", e, r.RNA.Status)
			} else if len(r.RNA.C) == 0 {
				fmt.Fprintf(&b, "epoch %d: the held-out loss chose the newest snapshot itself\n", e)
			}
		}
	}
	last := history[len(history)-1]
	if s := (series{kind: network.SGD}).score(c, last, judgeOf(history)); s != nil && s.Images > 0 {
		fmt.Fprintf(&b, "An error measured on %d images has a standard error of %.2f points.\n",
			s.Images, standardError(*s))
	}
	return b.String()
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}
