package report

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/train"
	"onlinerna/train/internal/figure"
	"onlinerna/train/network"
)

// Sizes of the figure: two panels, and the legend below them.
const (
	panels    = 11 * vg.Centimeter
	legendRow = 0.6 * vg.Centimeter
	columns   = 3 // of the legend
)

// Plot writes a figure with the loss and error on the validation images, or without any on the held-out ones, of each kind of weights over the epochs. The format is svg, png or pdf, as in all
// figures.
func Plot(w io.Writer, format string, c train.Config, history []train.EpochRecord) error {
	list := collect(c, history)
	return plotSeries(w, format, title(c), c, list, judgeOf(history))
}

// plotSeries draws series of scores on images of the kind that is named.
func plotSeries(w io.Writer, format, heading string, c train.Config, list []series, images string) error {
	if len(list) == 0 {
		return errors.New("nothing to draw: no epoch was evaluated")
	}
	loss, err := panel(c, list, images+" loss", func(s network.Score) float64 { return s.Loss })
	if err != nil {
		return err
	}
	wrong, err := panel(c, list, images+" error, %", network.Score.Error)
	if err != nil {
		return err
	}
	legend := legendRow * vg.Length((len(list)+columns-1)/columns)
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
	drawLegend(draw.Crop(dc, 0, 0, 0, legend-(dc.Max.Y-dc.Min.Y)), list)
	_, err = canvas.WriteTo(w)
	return err
}

func title(c train.Config) string {
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
func panel(c train.Config, list []series, label string, value func(network.Score) float64) (*plot.Plot, error) {
	p := figure.New("epoch", label, 1, 0)
	lo, hi := bounds(c, list, value)
	for _, e := range c.Schedule.PhaseEnds() {
		if e == c.Epochs {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{{X: float64(e), Y: lo}, {X: float64(e), Y: hi}})
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = color.Gray{130}, []vg.Length{2, 3}
		p.Add(line)
	}
	for _, s := range list {
		var xy plotter.XYs
		for e := 1; e <= c.Epochs; e++ {
			if v, ok := s.scores[e]; ok && finite(value(v)) {
				xy = append(xy, plotter.XY{X: float64(e), Y: value(v)})
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
	p.X.Min, p.X.Max = 1, float64(max(2, c.Epochs)) // Add widens them
	p.Y.Min, p.Y.Max = lo, hi
	return p, nil
}

// bounds is the range of values shown. The first quarter of a run and outliers would squeeze the rest: what does not fit
// runs out of the picture, but for the lowest value of each series.
func bounds(c train.Config, list []series, value func(network.Score) float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	var late []float64
	for _, s := range list {
		lowest := math.Inf(1)
		for e, v := range s.scores {
			y := value(v)
			if !finite(y) {
				continue
			}
			lowest = min(lowest, y)
			if e > c.Epochs/4 {
				late = append(late, y)
			}
		}
		if lo = min(lo, lowest); finite(lowest) {
			hi = max(hi, lowest)
		}
	}
	if slices.Sort(late); len(late) > 0 { // an outlier is far above three quarters of the rest
		most := late[(len(late)-1)*3/4]
		for _, y := range late {
			if y <= lo+outlier*(most-lo) || most == lo {
				hi = max(hi, y)
			}
		}
	}
	if !finite(lo) {
		return 0, 1
	}
	if hi = max(hi, lo); hi == lo {
		hi = lo + max(1e-3, lo/10)
	}
	pad := (hi - lo) / 20
	return max(0, lo-pad), hi + pad
}

// outlier is how many times as far above the lowest value as three quarters of the others a value may be.
const outlier = 6

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// averages are the colours of averages, extrapolated those of RNA where there are several, and moving those of moving averages.
var (
	averages     = []color.RGBA{figure.Blue, figure.Green, figure.Purple, figure.Sky}
	extrapolated = []color.RGBA{figure.Vermilion, figure.Sky, figure.Purple, figure.Green, figure.Blue, figure.Orange}
	moving       = []color.RGBA{figure.Orange, figure.Sky, figure.Purple, figure.Green}
)

// look is how a kind of weights is drawn. RNA is wide and averages are dashed, so that neither hides the other.
func (s series) look() (draw.LineStyle, draw.GlyphStyle) {
	line := draw.LineStyle{Color: figure.Black, Width: 1.5}
	switch {
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

// drawLegend writes the names in columns.
func drawLegend(dc draw.Canvas, list []series) {
	sty := figure.Text(figure.TextSize)
	const sample = 1.1 * vg.Centimeter
	column := (dc.Max.X - dc.Min.X) / columns
	for i, s := range list {
		x := dc.Min.X + column*vg.Length(i%columns)
		y := dc.Max.Y - legendRow*(vg.Length(i/columns)+0.5)
		line, glyph := s.look()
		dc.StrokeLine2(line, x, y, x+sample, y)
		dc.DrawGlyph(glyph, vg.Point{X: x + sample/2, Y: y})
		dc.FillText(sty, vg.Point{X: x + sample + 6, Y: y}, strings.ToUpper(s.name[:1])+s.name[1:])
	}
}
