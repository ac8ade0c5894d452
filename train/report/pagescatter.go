package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"

	"onlinerna/train/internal/figure"
)

// scatter is a figure of points, as SVG of a page.
type scatter struct {
	Title, Name                      string // Name is that of the horizontal axis
	Width, Height                    int
	Left, Right, Top, Bottom, Middle float64
	LabelX, LabelY, NameY            float64
	X, Y                             []chartTick
	Points, Diagonal                 string
	Large                            bool // the points
	Note                             string
	Data                             scatterData
	x, y                             span
}

// scatterData has the points for the pointer: their places and texts.
type scatterData struct {
	Points [][3]any `json:"points"`
}

// newScatter draws points, whose texts are for the pointer. log asks for logarithms of positive values.
func newScatter(title, name string, points [][2]float64, texts []string, log bool) scatter {
	c := scatter{Title: title, Name: name, Width: 460, Height: 290, Left: 60, Right: 450, Top: 26, Bottom: 246, LabelX: 54,
		LabelY: 262, NameY: 282, Data: scatterData{Points: [][3]any{}}}
	c.Middle = (c.Left + c.Right) / 2
	var of [2][]float64
	for _, p := range points {
		of[0], of[1] = append(of[0], p[0]), append(of[1], p[1])
	}
	c.x, c.y = around(of[0]), around(of[1])
	if c.x.log = log && len(points) > 0 && slices.Min(of[0]) > 0; c.x.log {
		c.x.lo, c.x.hi = slices.Min(of[0])*.999, slices.Max(of[0])*1.001
		c.Name += " (log scale)"
	}
	for _, t := range marks(c.x) {
		c.X = append(c.X, chartTick{At: c.atX(t.Value), Label: t.Label})
	}
	for _, t := range marks(c.y) {
		y := c.atY(t.Value)
		c.Y = append(c.Y, chartTick{At: y, TextY: y + 4, Label: t.Label})
	}
	var path strings.Builder
	for i, p := range points {
		x, y := c.atX(p[0]), c.atY(p[1])
		path.WriteString("M" + place(x, y) + "h0")
		c.Data.Points = append(c.Data.Points, [3]any{x, y, texts[i]})
	}
	c.Points = path.String()
	return c
}

// around is the linear span of values.
func around(values []float64) span {
	if len(values) == 0 {
		return span{lo: 0, hi: 1}
	}
	s := span{lo: slices.Min(values), hi: slices.Max(values)}
	if equal(s.lo, s.hi) {
		s.lo, s.hi = s.lo-1, s.hi+1
	}
	return s
}

// marks are the ticks of an axis, at values.
func marks(s span) (list []plot.Tick) {
	if !s.log {
		return figure.Ticks(s.lo, s.hi, 0)
	}
	for _, t := range s.ticks() {
		list = append(list, plot.Tick{Value: math.Pow(10, t.Value), Label: t.Label})
	}
	return list
}

func (c *scatter) atX(v float64) float64 {
	return round(c.Left + 8 + (c.Right-c.Left-16)*(c.x.at(v)-c.x.at(c.x.lo))/(c.x.at(c.x.hi)-c.x.at(c.x.lo)))
}

func (c *scatter) atY(v float64) float64 {
	return round(c.Bottom - 8 - (c.Bottom-c.Top-16)*(v-c.y.lo)/(c.y.hi-c.y.lo))
}

// optionScatters draws the groups' best scores over each numeric option with three or more values.
func optionScatters(groups []Group) (list []scatter) {
	const most, leastValues = 6, 3 // figures, and different values
	const factor = 20              // the ratio from which the axis is logarithmic
	j := errorsOf(runsOf(groups))
	if j.mixed {
		return nil
	}
	for _, name := range groupOptions(groups) {
		var points [][2]float64
		var texts []string
		values := map[float64]bool{}
		for i := range groups {
			g := &groups[i]
			text := g.Runs[0].Option(name)
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || g.Best.N == 0 || !finite(g.Best.Error) {
				continue
			}
			values[x] = true
			points = append(points, [2]float64{x, g.Best.Error})
			texts = append(texts, fmt.Sprintf("%s: %s\n%s %s\nbest %s", g.Label, g.names(), name, text,
				g.Best.named(j)[0]))
		}
		if len(values) < leastValues || len(list) == most {
			continue
		}
		lo, hi := points[0][0], points[0][0]
		for x := range values {
			lo, hi = min(lo, x), max(hi, x)
		}
		c := newScatter("Best "+j.label()+" by "+name, name, points, texts,
			lo > 0 && hi/lo >= factor)
		c.Large = true
		list = append(list, c)
	}
	return list
}
