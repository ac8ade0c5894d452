package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/schedule"
)

// A Finished run is one read from its folder.
type Finished struct {
	Name    string
	Config  train.Spec
	History []hook.EpochRecord
}

// Compare writes the final scores of runs side by side, their differences from the first, and the options in which they
// differ.
func Compare(w io.Writer, runs []Finished) error {
	b := terminal.NewPage(w)
	for i, r := range runs {
		fmt.Fprintf(b, "%c  %s\n", 'A'+i, text.Printable(r.Name))
	}
	b.WriteByte('\n')
	rows := [][]string{{"", "epoch", "error %", "loss", "best: error %", "loss", "weights"}}
	for i, r := range runs {
		row := []string{string(rune('A' + i)), "0", "-", "-", "-", "-", "no epoch is over"}
		if len(r.History) > 0 {
			last := r.History[len(r.History)-1]
			row[1], row[6] = fmt.Sprint(last.Epoch), "-"
			if s := r.last(); s != nil {
				row[2], row[3] = fmt.Sprintf("%.2f", s.Error()), lossText(s.Loss)
			}
			if x := last.Best; x != nil {
				row[4], row[5] = fmt.Sprintf("%.2f", x.Score.Error()), lossText(x.Score.Loss)
				row[6] = fmt.Sprintf("%s of epoch %d", x.Name(r.Config.OptimizerName()), x.Epoch)
			}
		}
		rows = append(rows, row)
	}
	b.LeftTable(rows)
	if images := judges(runs); images != "" {
		b.WriteString("Errors and losses are those on " + images + " images; best by " + bestBy(runs) + ".\n")
	}
	for i, r := range runs[1:] {
		for _, d := range []struct {
			what string
			of   func(Finished) *network.Score
		}{
			{"the last epoch", Finished.last},
			{"the best", Finished.best},
		} {
			if x, y := d.of(runs[0]), d.of(r); x != nil && y != nil {
				g := between(*y, *x)
				if !sameImages(runs[0], r) {
					g = between(network.Score{Top1: y.Top1, Images: y.Images}, *x)
				}
				fmt.Fprintf(b, "%c − A, %s: error %s ± %.2f points (%s)\n", 'B'+i, d.what, signed(g.points), g.deviation, g.how(1))
			}
		}
	}
	b.WriteString("± is a standard error over images; p is McNemar's, of the same images. Neither knows of other seeds.\n")
	overSeeds(&b.Builder, runs)
	different := differences(runs)
	if len(different) == 0 {
		b.WriteString("\nThe runs have the same options.\n")
	} else {
		b.WriteString("\nOptions that differ:\n")
		head := []string{""}
		for i := range runs {
			head = append(head, string(rune('A'+i)))
		}
		b.LeftTable(append([][]string{head}, different...))
	}
	return b.Flush(w)
}

// bestBy names the measures by which runs chose the best weights.
func bestBy(runs []Finished) string {
	var list []string
	for _, r := range runs {
		list = append(list, cmp.Or(r.Config.BestBy, hook.ByLoss))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " or ")
}

// judges names the images on which runs are compared, for runs with a finished epoch.
func judges(runs []Finished) string {
	var list []string
	for _, r := range runs {
		if len(r.History) > 0 {
			list = append(list, judgeOf(r.History))
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " or ")
}

func (r Finished) last() *network.Score {
	if len(r.History) == 0 {
		return nil
	}
	return series{kind: network.SGD}.score(r.Config, r.History[len(r.History)-1], judgeOf(r.History))
}

func (r Finished) best() *network.Score {
	if len(r.History) == 0 || r.History[len(r.History)-1].Best == nil {
		return nil
	}
	return &r.History[len(r.History)-1].Best.Score
}

// differences has a row for each option that differs between runs, with the values; a dash if it is not set.
func differences(runs []Finished) (rows [][]string) {
	const most = 24 // characters
	options := train.Options()
	for i := range options {
		o := &options[i]
		row := []string{o.Name}
		first, same := o.Text(&runs[0].Config), true
		for _, r := range runs {
			v := o.Text(&r.Config)
			same = same && v == first
			if x, err := strconv.ParseFloat(v, 64); err == nil && strings.Contains(v, ".") {
				v = fmt.Sprintf("%.6g", x)
			}
			row = append(row, text.Middle(cmp.Or(v, "-"), func(short string) bool { return text.Width(short) <= most }))
		}
		if !same && o.Name != "out" {
			rows = append(rows, row)
		}
	}
	return rows
}

// PlotRuns draws the iterates of runs over the epochs, as Plot draws the kinds of weights of one run.
func PlotRuns(w io.Writer, format string, runs []Finished) error {
	if len(runs) == 0 {
		return errors.New("nothing to draw: no runs")
	}
	var list []series
	c := runs[0].Config
	for i, r := range runs {
		judge := judgeOf(r.History)
		c.Epochs = max(c.Epochs, r.Config.Epochs)
		s := series{kind: network.RNA, rank: i, name: fmt.Sprintf("%c: %s", 'A'+i, text.Printable(r.Name)),
			scores: map[int]network.Score{}}
		for _, e := range r.History {
			if v := (series{kind: network.SGD}).score(r.Config, e, judge); v != nil {
				s.scores[e.Epoch] = *v
			}
		}
		if len(s.scores) > 0 {
			list = append(list, s)
		}
	}
	if slices.ContainsFunc(runs, func(r Finished) bool {
		return !slices.Equal(r.Config.Schedule.PhaseEnds(), runs[0].Config.Schedule.PhaseEnds())
	}) {
		c.Schedule = schedule.Schedule{Epochs: c.Epochs} // no phase lines, since they belong to one run
	}
	return plotSeries(w, format, fmt.Sprintf("%d runs, last iterates", len(runs)), c, list, judges(runs))
}
