package report

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/internal/figure"
	"onlinerna/train/network"
)

// Sizes of the figure: two panels, with the legend below.
const (
	panels    = 11 * vg.Centimeter
	legendRow = 0.6 * vg.Centimeter
	columns   = 3 // of the legend
)

// Plot writes a figure with the loss and error of each kind of weights over the epochs, on the validation images or, if
// there are none, on the held-out ones, and with those on the training images. The format is svg, png or pdf, as in all
// figures.
func Plot(w io.Writer, format string, c train.Spec, history []hook.EpochRecord) error {
	list := collect(c, history)
	if len(list) > 0 {
		list = append([]series{trainingOf(history)}, list...)
	}
	return plotSeries(w, format, title(c), c, list, judgeOf(history), errorOf(c))
}

// plotSeries draws series of scores on the named kind of images.
func plotSeries(w io.Writer, format, heading string, c train.Spec, list []series, images string, j judged) error {
	if len(list) == 0 {
		return errors.New("nothing to draw: no epoch was evaluated")
	}
	loss, err := panel(c, list, images+" loss", func(s network.Score) float64 { return s.Loss })
	if err != nil {
		return err
	}
	wrong, err := panel(c, list, images+" "+j.label(), network.Score.Error)
	if err != nil {
		return err
	}
	entries := legendOf(c, list)
	legend := legendRow * vg.Length(legendRows(len(entries)))
	canvas, dc, err := figure.Canvas(format, heading, panels+legend)
	if err != nil {
		return err
	}
	middle := draw.Crop(dc, 0, 0, legend, 0)
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter}
	plots := [][]*plot.Plot{{loss, wrong}}
	for i, cs := range plot.Align(plots, tiles, middle)[0] {
		plots[0][i].Draw(cs)
	}
	drawLegend(draw.Crop(dc, 0, 0, 0, legend-(dc.Max.Y-dc.Min.Y)), entries)
	_, err = canvas.WriteTo(w)
	return err
}

// legendRows is the number of rows of a legend.
func legendRows(entries int) int { return (entries + columns - 1) / columns }

func title(c train.Spec) string {
	data := c.Data
	if data == "" {
		data = "glyphs"
	}
	batch := strconv.Itoa(c.Batch)
	if c.Accumulate > 1 {
		batch += fmt.Sprintf(" × %d", c.Accumulate)
	}
	return fmt.Sprintf("%s on %s, batch %s, rate %s", c.Model, filepath.Base(data), batch, c.Schedule)
}

// panel draws one value of all kinds of weights over the epochs.
func panel(c train.Spec, list []series, label string, value func(network.Score) float64) (*plot.Plot, error) {
	p := figure.New("epoch", label, 1, 0)
	span := spanOf(list, value)
	for _, e := range breaks(c) {
		line, err := plotter.NewLine(plotter.XYs{{X: float64(e), Y: span.at(span.lo)}, {X: float64(e), Y: span.at(span.hi)}})
		if err != nil {
			return nil, err
		}
		line.LineStyle = dotted
		p.Add(line)
	}
	for _, s := range list {
		var xy plotter.XYs
		for _, e := range slices.Sorted(maps.Keys(s.scores)) {
			if v := value(s.scores[e]); e >= 1 && e <= c.Epochs && finite(v) {
				xy = append(xy, plotter.XY{X: float64(e), Y: span.at(v)})
			}
		}
		if len(xy) == 0 {
			continue
		}
		line, points, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", s.name, err)
		}
		line.LineStyle, points.GlyphStyle = s.look()
		p.Add(line, points)
	}
	margin := max(0.5, 0.02*float64(c.Epochs-1))          // so that the first and the last point are drawn completely
	p.X.Min, p.X.Max = 1-margin, float64(c.Epochs)+margin // Add widens them
	span.set(&p.Y)
	return p, nil
}

// breaks returns the epochs at which phases of the schedule end, except the last.
func breaks(c train.Spec) []int {
	return slices.DeleteFunc(c.Schedule.PhaseEnds(), func(e int) bool { return e >= c.Epochs })
}

// dotted is the style of phase lines.
var dotted = draw.LineStyle{Color: color.Gray{130}, Width: 1, Dashes: []vg.Length{2, 3}}

// training is the kind of a series of scores over each epoch while the weights moved.
const training network.Kind = "training"

func trainingOf(history []hook.EpochRecord) series {
	s := series{kind: training, name: "training, mean of the epoch", scores: map[int]network.Score{}}
	for _, r := range history {
		s.scores[r.Epoch] = r.Train
	}
	return s
}

// averages are the colours of averages, extrapolated those of several RNA curves, and moving those of moving averages.
var (
	averages     = []color.RGBA{figure.Blue, figure.Green, figure.Purple, figure.Sky}
	extrapolated = []color.RGBA{figure.Vermilion, figure.Sky, figure.Purple, figure.Green, figure.Blue, figure.Orange}
	moving       = []color.RGBA{figure.Orange, figure.Sky, figure.Purple, figure.Green}
)

// look returns the style of a kind of weights. RNA is wide and averages are dashed, so that neither hides the other.
func (s series) look() (draw.LineStyle, draw.GlyphStyle) {
	line := draw.LineStyle{Color: figure.Black, Width: 1.5}
	switch {
	case s.style.Color != nil:
		line = s.style
	case s.kind == training:
		line.Color, line.Width = color.Gray{170}, 1
	case s.kind == network.SGDStats:
		line.Color = color.Gray{140}
	case s.kind == network.RNA:
		line.Color, line.Width = extrapolated[s.rank%len(extrapolated)], 3
	case s.kind == network.EMA:
		line.Color, line.Dashes = moving[s.rank%len(moving)], []vg.Length{2, 2}
	case s.kind == network.Average:
		line.Color, line.Dashes = averages[s.rank%len(averages)], []vg.Length{6, 3}
	}
	return line, draw.GlyphStyle{Color: line.Color, Radius: line.Width/2 + 1.25, Shape: draw.CircleGlyph{}}
}

// entry is a legend entry.
type entry struct {
	name  string
	line  draw.LineStyle
	glyph draw.GlyphStyle
}

// legendOf returns entries for the series, and for the dotted lines if there are any.
func legendOf(c train.Spec, list []series) (legend []entry) {
	for _, s := range list {
		if s.name == "" {
			continue
		}
		line, glyph := s.look()
		legend = append(legend, entry{strings.ToUpper(s.name[:1]) + s.name[1:], line, glyph})
	}
	if len(breaks(c)) > 0 {
		legend = append(legend, entry{name: "Phase of the learning rate ends", line: dotted})
	}
	return legend
}

// drawLegend writes the names in columns.
func drawLegend(dc draw.Canvas, legend []entry) {
	sty := figure.Text(figure.TextSize)
	const sample = 1.1 * vg.Centimeter
	column := (dc.Max.X - dc.Min.X) / columns
	for i, e := range legend {
		x := dc.Min.X + column*vg.Length(i%columns)
		y := dc.Max.Y - legendRow*(vg.Length(i/columns)+0.5)
		dc.StrokeLine2(e.line, x, y, x+sample, y)
		if e.glyph.Shape != nil {
			dc.DrawGlyph(e.glyph, vg.Point{X: x + sample/2, Y: y})
		}
		dc.FillText(sty, vg.Point{X: x + sample + 6, Y: y}, e.name)
	}
}
