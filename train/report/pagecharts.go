package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/train/internal/figure"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// chart is a figure of values over the epochs, as SVG of a page.
type chart struct {
	Title                            string
	Width, Height                    int
	Left, Right, Top, Bottom, Middle float64
	LabelX, LabelY, NameY            float64
	X, Y                             []chartTick
	Phases                           []float64
	Lines                            []chartLine
	Data                             chartData
}

// chartTick is a mark on an axis.
type chartTick struct {
	At, TextY float64
	Label     string
}

// chartLine is a curve, perhaps with a band around it. Class gives it its colour, its dashes and its width.
type chartLine struct {
	Name, Class, Colour string
	Path, Band          string
}

// chartData has the values for the pointer.
type chartData struct {
	X     []int       `json:"x"`  // epochs
	At    []float64   `json:"at"` // their places
	Lines []chartText `json:"lines"`
}

type chartText struct {
	Name   string   `json:"name"`
	Values []string `json:"v"`
}

// meanCurve is a series over the runs of a group: the mean by epoch, and, of several runs, the lowest and highest values.
type meanCurve struct {
	name, class, colour string
	mean, lo, hi        series // scores of lo and hi hold the extremes of the error and of the loss
}

// colourNames are the colours of a page's style.
var colourNames = []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "train"}

// colourClasses makes a class of each colour for strokes and one for areas.
func colourClasses() string {
	var b strings.Builder
	for _, c := range colourNames {
		fmt.Fprintf(&b, ".f%s{fill:var(--%[1]s)}.s%[1]s{stroke:var(--%[1]s)}\n", c)
	}
	return b.String()
}

// looks returns the colour and the further classes of a kind of weights, as look does for figures.
func (s series) looks() (colour, class string) {
	switch s.kind {
	case training:
		return "train", " thin"
	case network.SGDStats:
		return "c11", ""
	case network.RNA:
		return "c1", " wide"
	case network.EMA:
		return "c5", " d2"
	case network.Average:
		return []string{"c2", "c3", "c4", "c6"}[s.rank%4], " d1"
	}
	return "c0", ""
}

// groupLooks are the colour and the further classes of the i-th group.
func groupLooks(i int) (colour, class string) {
	order := []string{"c1", "c2", "c3", "c4", "c6", "c5", "c7", "c8", "c9", "c10", "c0", "c11"}
	return order[i%len(order)], []string{"", " d1", " d2", " d3"}[i/len(order)%4]
}

// over makes a curve of a series that several runs have, up to the last epoch that all of them have.
func over(of []series) meanCurve {
	c := meanCurve{mean: of[0]}
	if len(of) == 1 {
		return c
	}
	c.mean.scores, c.lo.scores, c.hi.scores = map[int]network.Score{}, map[int]network.Score{}, map[int]network.Score{}
	for e := range of[0].scores {
		var mean network.Score
		lo, hi := network.Score{Loss: math.Inf(1), Top1: math.Inf(-1)}, network.Score{Loss: math.Inf(-1), Top1: math.Inf(1)}
		n := 0
		for _, s := range of {
			if x, ok := s.scores[e]; ok {
				n++
				right := 100 - x.Error() // of any task
				mean.Loss, mean.Top1 = mean.Loss+x.Loss, mean.Top1+right
				lo.Loss, hi.Loss = min(lo.Loss, x.Loss), max(hi.Loss, x.Loss)
				lo.Top1, hi.Top1 = max(lo.Top1, right), min(hi.Top1, right)
			}
		}
		if n == len(of) {
			mean.Loss, mean.Top1 = mean.Loss/float64(n), mean.Top1/float64(n)
			c.mean.scores[e], c.lo.scores[e], c.hi.scores[e] = mean, lo, hi
		}
	}
	return c
}

// kindsOf lists the curves of a group's kinds of weights, first that of training.
func kindsOf(g *Group) (list []meanCurve) {
	var order []series
	by := map[string][]series{}
	all := g.drawn()
	for _, r := range all {
		for _, s := range append([]series{trainingOf(r.History)}, collect(r.Config, r.History)...) {
			if by[s.name] == nil {
				order = append(order, s)
			}
			by[s.name] = append(by[s.name], s)
		}
	}
	for _, s := range order {
		if len(by[s.name]) < len(all) {
			continue
		}
		c := over(by[s.name])
		colour, class := s.looks()
		c.name, c.colour, c.class = strings.ToUpper(s.name[:1])+s.name[1:], colour, "s"+colour+class
		list = append(list, c)
	}
	return list
}

// drawn lists the runs whose curves are drawn: those that count, or else a run that failed.
func (g *Group) drawn() []runs.Run {
	if list := g.scored(); len(list) > 0 {
		return list
	}
	for _, r := range g.Runs {
		if len(r.History) > 0 {
			return []runs.Run{r}
		}
	}
	return nil
}

// chartsOf draws the loss and the error of a group's kinds of weights.
func chartsOf(g *Group) (legend []chartLine, charts []chart, note string) {
	list := kindsOf(g)
	if len(list) == 0 {
		return nil, nil, ""
	}
	all := g.drawn()
	note = "Curves are those on " + judges(all) + " images; training is the mean over each epoch while the weights moved."
	if len(all) > 1 {
		note += fmt.Sprintf(" They are means of %d seeds; bands reach from the lowest to the highest.", len(all))
	}
	legend, charts = drawCharts(list, epochsOf(all), breaks(all[0].Config), errorsOf(all))
	if len(charts[0].Phases) > 0 {
		note += " Dotted lines end phases of the learning rate."
	}
	return legend, charts, note
}

// groupCharts draws the iterates of groups.
func groupCharts(groups []Group) (legend []chartLine, charts []chart) {
	var list []meanCurve
	epochs := 0
	for i := range groups {
		g := &groups[i]
		var of []series
		for _, r := range g.drawn() {
			s := series{kind: network.SGD, scores: map[int]network.Score{}}
			for _, e := range r.History {
				if v := lastAt(r, e.Epoch); v != nil {
					s.scores[e.Epoch] = *v
				}
			}
			of = append(of, s)
		}
		if len(of) == 0 || len(list) == 2*MaxSections {
			continue
		}
		c := over(of)
		colour, class := groupLooks(i)
		c.name, c.colour, c.class = g.Label+": "+g.names(), colour, "s"+colour+class
		list = append(list, c)
		epochs = max(epochs, epochsOf(g.drawn()))
	}
	return drawCharts(list, epochs, nil, errorsOf(runsOf(groups)))
}

// epochsOf is the number of epochs of the longest run.
func epochsOf(list []runs.Run) (n int) {
	for _, r := range list {
		n = max(n, r.Config.Epochs, r.Epoch())
	}
	return n
}

// drawCharts draws the losses and the errors of curves.
func drawCharts(list []meanCurve, epochs int, phases []int, j judged) (legend []chartLine, charts []chart) {
	for _, c := range list {
		legend = append(legend, chartLine{Name: c.name, Class: c.class})
	}
	for _, of := range []struct {
		title, unit, format string
		value               func(network.Score) float64
	}{
		{strings.ToUpper(j.label()[:1]) + j.label()[1:], j.unit, j.format, network.Score.Error},
		{"Loss", "", "%.4f", func(s network.Score) float64 { return s.Loss }},
	} {
		c := newChart(of.title, epochs, phases)
		var all []series
		for _, x := range list {
			all = append(all, x.mean, x.lo, x.hi)
		}
		c.curves(list, epochs, spanOf(all, of.value), of.value, of.format, of.unit)
		charts = append(charts, c)
	}
	return legend, charts
}

// newChart is a chart with its horizontal axis.
func newChart(title string, epochs int, phases []int) chart {
	c := chart{Title: title, Width: 460, Height: 290, Left: 46, Right: 450, Top: 26, Bottom: 246, LabelX: 41, LabelY: 262,
		NameY: 282}
	c.Middle = (c.Left + c.Right) / 2
	for _, t := range figure.Ticks(1, float64(max(epochs, 2)), 1) {
		c.X = append(c.X, chartTick{At: c.x(t.Value, epochs), Label: t.Label})
	}
	for _, e := range phases {
		c.Phases = append(c.Phases, c.x(float64(e), epochs))
	}
	return c
}

// x is the place of an epoch.
func (c *chart) x(epoch float64, epochs int) float64 {
	return round(c.Left + 8 + (c.Right-c.Left-16)*(epoch-1)/float64(max(epochs-1, 1)))
}

func round(x float64) float64 { return math.Round(10*x) / 10 }

// maxPoints is the number of epochs that a curve shows; of longer runs it shows some, evenly.
const maxPoints = 100

// curves draws curves in a span of values.
func (c *chart) curves(list []meanCurve, epochs int, span span, value func(network.Score) float64, format, unit string) {
	y := func(v float64) float64 {
		at := (span.at(v) - span.at(span.lo)) / (span.at(span.hi) - span.at(span.lo))
		return round(c.Bottom - (c.Bottom-c.Top)*max(0, min(1, at)))
	}
	if span.log {
		c.Title += " (log scale)"
		for _, t := range span.ticks() {
			v := math.Pow(10, t.Value)
			c.Y = append(c.Y, chartTick{At: y(v), TextY: y(v) + 4, Label: t.Label})
		}
	} else {
		for _, t := range figure.Ticks(span.lo, span.hi, 0) {
			c.Y = append(c.Y, chartTick{At: y(t.Value), TextY: y(t.Value) + 4, Label: t.Label})
		}
	}
	shown := map[int]bool{}
	for _, s := range list {
		for e := range s.mean.scores {
			shown[e] = true
		}
	}
	all := slices.Sorted(maps.Keys(shown))
	stride := (len(all) + maxPoints - 1) / maxPoints
	for i, e := range all {
		if i%max(stride, 1) == 0 || i == len(all)-1 {
			c.Data.X, c.Data.At = append(c.Data.X, e), append(c.Data.At, c.x(float64(e), epochs))
		}
	}
	for _, s := range list {
		var top, bottom, path []string
		texts := chartText{Name: s.name}
		for i, e := range c.Data.X {
			v, ok := s.mean.scores[e]
			if !ok || !finite(value(v)) {
				texts.Values = append(texts.Values, "")
				continue
			}
			shown := fmt.Sprintf(format, value(v)) + unit
			path = append(path, place(c.Data.At[i], y(value(v))))
			if lo, ok := s.lo.scores[e]; ok {
				hi := s.hi.scores[e]
				shown += fmt.Sprintf(" ("+format+" to "+format+")", value(lo), value(hi))
				top, bottom = append(top, place(c.Data.At[i], y(value(hi)))), append(bottom, place(c.Data.At[i], y(value(lo))))
			}
			texts.Values = append(texts.Values, shown)
		}
		c.Data.Lines = append(c.Data.Lines, texts)
		line := chartLine{Name: s.name, Class: s.class, Colour: s.colour}
		if len(path) == 1 { // a line of no length shows as a dot
			path = append(path, path[0])
			line.Class += " dot"
		}
		if len(path) > 0 {
			line.Path = "M" + strings.Join(path, "L")
		}
		if len(top) > 1 {
			slices.Reverse(bottom)
			line.Band = "M" + strings.Join(append(top, bottom...), "L") + "Z"
		}
		c.Lines = append(c.Lines, line)
	}
}

// place writes coordinates.
func place(x, y float64) string {
	return strconv.FormatFloat(x, 'f', -1, 64) + " " + strconv.FormatFloat(y, 'f', -1, 64)
}
