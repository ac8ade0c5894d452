package report

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/internal/text"
	"onlinerna/train/internal/figure"
	"onlinerna/train/network"
	"onlinerna/train/runs"
	"onlinerna/train/schedule"
)

// groupColours are those of groups in a figure. Beyond them, lines repeat the colours with dashes.
var groupColours = []color.RGBA{figure.Vermilion, figure.Blue, figure.Green, figure.Purple, figure.Sky, figure.Orange,
	figure.Black, {0, 0, 255, 255}, {255, 0, 225, 255}, {0, 195, 0, 255}, {15, 0, 120, 255}, {255, 0, 90, 255}}

// groupLine is the line of the i-th group.
func groupLine(i int) draw.LineStyle {
	dashes := [][]vg.Length{nil, {7, 3}, {2, 3}, {9, 3, 2, 3}}
	return draw.LineStyle{Color: groupColours[i%len(groupColours)], Width: 2.5,
		Dashes: dashes[i/len(groupColours)%len(dashes)]}
}

// curves returns a thin series for each of several runs, and fills in their mean, as far as there are scores.
func (g *Group) curves(mean series) (list []series) {
	scored := g.scored()
	for _, r := range scored {
		one := series{style: draw.LineStyle{Color: mean.style.Color, Width: 0.6, Dashes: mean.style.Dashes},
			scores: map[int]network.Score{}}
		for _, e := range r.History {
			if v := lastAt(r, e.Epoch); v != nil {
				one.scores[e.Epoch] = *v
			}
		}
		if len(scored) > 1 && len(one.scores) > 0 {
			list = append(list, one)
		}
	}
	for e := 1; e <= g.Epoch; e++ {
		at := *g
		at.Epoch = e
		if m := at.over(scored, lastAt); m.N == len(scored) {
			mean.scores[e] = network.Score{Loss: m.Loss, Top1: 100 - m.Error}
		}
	}
	if len(mean.scores) > 0 {
		list = append(list, mean)
	}
	return list
}

// PlotGroups draws the iterates of groups over the epochs, in a colour each: the mean over the runs as far as all of
// them are, and thin lines for the runs. The legend says how many runs are still going.
func PlotGroups(w io.Writer, format string, groups []Group) error {
	all := runsOf(groups)
	if len(all) == 0 {
		return errors.New("nothing to draw: no runs")
	}
	c := all[0].Config
	var list []series
	going := 0
	for i := range groups {
		g := &groups[i]
		going += g.going()
		mean := series{style: groupLine(i), scores: map[int]network.Score{}}
		mean.name = fmt.Sprintf("%s: %s", g.Label, text.Shorten(26, text.Printable(g.names())))
		if n := len(g.scored()); n > 1 {
			mean.name = fmt.Sprintf("%s: mean of %d runs", g.Label, n)
		}
		if n := g.going(); n == len(g.Runs) {
			mean.name += ", still going"
		} else if n > 0 {
			mean.name += fmt.Sprintf(", %d still going", n)
		}
		for _, r := range g.Runs {
			c.Epochs = max(c.Epochs, r.Config.Epochs)
		}
		list = append(list, g.curves(mean)...)
	}
	if slices.ContainsFunc(all, func(r runs.Run) bool {
		return !slices.Equal(r.Config.Schedule.PhaseEnds(), all[0].Config.Schedule.PhaseEnds())
	}) {
		c.Schedule = schedule.Schedule{Epochs: c.Epochs} // no phase lines, since they belong to one run
	}
	title := text.Count(len(all), "run")
	if len(groups) < len(all) {
		title += " in " + text.Count(len(groups), "group")
	}
	title += ", last iterates"
	if going > 0 {
		title += fmt.Sprintf("; %d still going", going)
	}
	return plotSeries(w, format, title, c, list, judges(all), errorsOf(all))
}
