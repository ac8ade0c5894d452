package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/network"
	"onlinerna/train/replay"
)

// Replay shows the curves of a replayed run. Scores are on the validation images or, if there are none, on the held-out
// ones.
type Replay struct {
	Config train.Spec // the run's
	*replay.Result
}

// series returns the curves, and the kind of images that they were scored on.
func (r Replay) series() (list []series, images string) {
	images = onHeldOut
	for _, c := range r.Curves {
		for _, p := range c.Points {
			if p.Val != nil {
				images = onValidation
			}
		}
	}
	ranks := map[network.Kind]int{}
	for _, c := range r.Curves {
		s := series{kind: c.Kind, name: c.Name, scores: map[int]network.Score{}}
		s.rank = ranks[s.kind]
		ranks[s.kind]++
		for _, p := range c.Points {
			v := p.Val
			if images == onHeldOut {
				v = p.Held
			}
			if v != nil {
				s.scores[p.Epoch] = *v
			}
		}
		list = append(list, s)
	}
	return list, images
}

// Table writes the final and the lowest score of each curve, and then the errors of all epochs.
func (r Replay) Table(w io.Writer) error {
	list, images := r.series()
	b := terminal.NewPage(w)
	last := r.Epochs[len(r.Epochs)-1]
	paired := false
	j := errorOf(r.Config)
	head := "    " + images + ", " + j.name
	if j.unit != "" {
		head += " in %"
	}
	rows := [][]string{{head, fmt.Sprintf("epoch %d", last), "loss", "to the first", "lowest", "in epoch"}}
	for i, s := range list {
		row := []string{fmt.Sprintf("%2d  %s", i+1, text.Shorten(30, s.name)), "-", "-", "", "-", ""}
		if v, ok := s.scores[last]; ok {
			row[1], row[2] = fmt.Sprintf(j.format, v.Error()), fmt.Sprintf("%.4f", v.Loss)
			if ref, ok := list[0].scores[last]; ok && i > 0 {
				g := between(v, ref)
				if row[3] = j.signed(g.points); g.paired {
					row[3] += fmt.Sprintf(" ± %.2f", g.deviation)
					paired = true
				}
			}
		}
		low := math.Inf(1)
		for _, e := range r.Epochs {
			if v, ok := s.scores[e]; ok && v.Error() < low {
				low = v.Error()
				row[4], row[5] = fmt.Sprintf(j.format, low), fmt.Sprint(e)
			}
		}
		rows = append(rows, row)
	}
	b.Table(rows)
	b.WriteByte('\n')
	rows = [][]string{{"epoch"}}
	for i := range list {
		rows[0] = append(rows[0], fmt.Sprint(i+1))
	}
	for _, e := range r.Epochs {
		row := []string{fmt.Sprint(e)}
		for _, s := range list {
			cell := "-"
			if v, ok := s.scores[e]; ok {
				cell = fmt.Sprintf(j.format, v.Error())
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	b.Table(rows)
	if v, ok := list[0].scores[last]; ok && v.Images > 0 {
		b.WriteString("\n" + uncertainty(r.Config, v))
	}
	if paired {
		b.WriteString("± is the paired standard error of a difference on the same images.\n")
	}
	b.WriteString(lowest(list, last))
	for _, c := range r.Curves {
		if len(c.Points) == 0 {
			continue
		}
		p := c.Points[len(c.Points)-1]
		if p.Status != "" {
			fmt.Fprintf(b, "%s, epoch %d: %s\n", c.Name, p.Epoch, p.Status)
		}
		if p.Fit != nil {
			fmt.Fprintf(b, "%s, epoch %d: the fit is off by %.2g %% of the profile's norm\n", c.Name, p.Epoch, 100**p.Fit)
		}
	}
	return b.Flush(w)
}

// lowest compares the curve with the lowest error in an epoch with the first one, and says how likely a gap as large is
// by chance: of one pair on the same images, and of the best of as many. It is empty if the first has the lowest.
func lowest(list []series, epoch int) string {
	first, ok := list[0].scores[epoch]
	best, others := list[0], 0
	for _, s := range list[1:] {
		if v, scored := s.scores[epoch]; scored {
			if others++; v.Error() < best.scores[epoch].Error() {
				best = s
			}
		}
	}
	g := between(best.scores[epoch], first)
	if !ok || !g.paired || g.points == 0 {
		return ""
	}
	return fmt.Sprintf("Lowest in epoch %d: %s, %.2f ± %.2f points below %s,\n%s by McNemar's test\n", epoch,
		text.Shorten(30, best.name), -g.points, g.deviation, list[0].name, g.how(others))
}

// Plot writes a figure with loss and error of all curves over the epochs.
func (r Replay) Plot(w io.Writer, format string) error {
	list, images := r.series()
	var scored []series
	for _, s := range list {
		if len(s.scores) > 0 {
			scored = append(scored, s)
		}
	}
	return plotSeries(w, format, title(r.Config), r.Config, scored, images, errorOf(r.Config))
}

// CSV writes a line for each point, with the scores that the run's task has.
func (r Replay) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	none := network.Score{Task: r.Config.Task}
	head := []string{"epoch", "weights", "kind", "window", "lambda_rule", "beta", "snapshots", "decay", "lambda", "c_norm",
		"choice", "status"}
	for _, images := range []string{"val_", "held_"} {
		head = append(head, images+"loss")
		for _, x := range none.Numbers() {
			head = append(head, images+x.Name)
		}
	}
	c.Write(append(head, "gamma", "wsm", "fit"))
	number := func(x float64, there bool) string {
		if !there || math.IsNaN(x) || math.IsInf(x, 0) {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for _, k := range r.Curves {
		for _, p := range k.Points {
			line := []string{strconv.Itoa(p.Epoch), text.Cell(k.Name), string(k.Kind), number(float64(k.Window), k.Window > 0),
				k.Lambda, "",
				number(float64(k.Last), k.Last > 0), number(k.Decay, k.Decay > 0), "", number(p.NormC, p.C != nil), p.Choice,
				p.Status}
			if k.Beta != nil {
				line[5] = number(*k.Beta, true)
			}
			if p.Lambda != nil {
				line[8] = number(*p.Lambda, true)
			}
			for _, s := range []*network.Score{p.Val, p.Held} {
				v := none
				if s != nil {
					v = *s
					v.Task = none.Task
				}
				line = append(line, number(v.Loss, v.Images > 0))
				for _, x := range v.Numbers() {
					line = append(line, number(x.Value, v.Images > 0))
				}
			}
			fit := ""
			if p.Fit != nil {
				fit = number(*p.Fit, true)
			}
			c.Write(append(line, number(k.Gamma, k.Gamma > 0), k.WSM, fit))
		}
	}
	c.Flush()
	return c.Error() // error of any line
}
