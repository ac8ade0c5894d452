package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"onlinerna/train"
	"onlinerna/train/network"
	"onlinerna/train/replay"
)

// Replay shows the curves of a run that was replayed. Scores are those on the validation images, or on the held-out ones where there are no others.
type Replay struct {
	Config train.Config // of the run
	*replay.Result
}

// series are the curves, and the kind of images that they were scored on.
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

// replayColumns is how many curves stand beside each other in 80 columns.
const replayColumns = 9

// Table writes how the curves end and where each is lowest, and then the error of all epochs, in 80 columns.
func (r Replay) Table(w io.Writer) error {
	list, images := r.series()
	var b strings.Builder
	last := r.Epochs[len(r.Epochs)-1]
	fmt.Fprintf(&b, "%3s  %-30s %9s %8s %8s  %s\n", "", images, fmt.Sprintf("epoch %d", last), "", "to", "lowest error")
	fmt.Fprintf(&b, "%3s  %-30s %9s %8s %8s  %s\n", "", "", "error %", "loss", "the first", "%, in epoch")
	for i, s := range list {
		wrong, loss, to := "-", "-", ""
		if v, ok := s.scores[last]; ok {
			wrong, loss = fmt.Sprintf("%.2f", v.Error()), fmt.Sprintf("%.4f", v.Loss)
			if ref, ok := list[0].scores[last]; ok && i > 0 {
				to = signed(v.Error() - ref.Error())
			}
		}
		best, low := 0, math.Inf(1)
		for _, e := range r.Epochs {
			if v, ok := s.scores[e]; ok && v.Error() < low {
				best, low = e, v.Error()
			}
		}
		least := "-"
		if best > 0 {
			least = fmt.Sprintf("%.2f, %d", low, best)
		}
		fmt.Fprintf(&b, "%3d  %-30.30s %9s %8s %8s  %s\n", i+1, s.name, wrong, loss, to, least)
	}
	for from := 0; from < len(list); from += replayColumns {
		part := list[from:min(from+replayColumns, len(list))]
		fmt.Fprintf(&b, "\n%7s", "epoch")
		for i := range part {
			fmt.Fprintf(&b, "%8d", from+i+1)
		}
		fmt.Fprintf(&b, "\n")
		for _, e := range r.Epochs {
			fmt.Fprintf(&b, "%7d", e)
			for _, s := range part {
				if v, ok := s.scores[e]; ok {
					fmt.Fprintf(&b, "%8.2f", v.Error())
				} else {
					fmt.Fprintf(&b, "%8s", "-")
				}
			}
			b.WriteByte('\n')
		}
	}
	if v, ok := list[0].scores[last]; ok && v.Images > 0 {
		fmt.Fprintf(&b, "\nAn error measured on %d images has a standard error of %.2f points.\n", v.Images, standardError(v))
	}
	for _, c := range r.Curves {
		if n := len(c.Points); n > 0 && c.Points[n-1].Status != "" {
			fmt.Fprintf(&b, "%s, epoch %d: %s\n", c.Name, c.Points[n-1].Epoch, c.Points[n-1].Status)
		}
	}
	_, err := io.WriteString(w, trimLines(b.String()))
	return err
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
	return plotSeries(w, format, title(r.Config), r.Config, scored, images)
}

// CSV writes a line for each point.
func (r Replay) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"epoch", "weights", "kind", "window", "lambda_rule", "beta", "snapshots", "decay", "lambda", "c_norm", "choice", "status",
		"val_loss", "val_top1", "val_top5", "held_loss", "held_top1", "held_top5"})
	number := func(x float64, there bool) string {
		if !there {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for _, k := range r.Curves {
		for _, p := range k.Points {
			line := []string{strconv.Itoa(p.Epoch), k.Name, string(k.Kind), number(float64(k.Window), k.Window > 0), k.Lambda, "",
				number(float64(k.Last), k.Last > 0), number(k.Decay, k.Decay > 0), "", number(p.NormC, p.C != nil), p.Choice, p.Status}
			if k.Beta != nil {
				line[5] = number(*k.Beta, true)
			}
			if p.Lambda != nil {
				line[8] = number(*p.Lambda, true)
			}
			for _, s := range []*network.Score{p.Val, p.Held} {
				if s == nil {
					s = &network.Score{}
				}
				line = append(line, number(s.Loss, s.Images > 0), number(s.Top1, s.Images > 0), number(s.Top5, s.Images > 0))
			}
			c.Write(line)
		}
	}
	c.Flush()
	return c.Error() // of any line
}
