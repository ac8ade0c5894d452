package report

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"onlinerna/train"
)

// palette is Okabe and Ito's, told apart by colour-blind readers too.
var palette = []color.RGBA{
	{0, 0, 0, 255}, {230, 159, 0, 255}, {213, 94, 0, 255}, {0, 114, 178, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255},
}

// Plot writes an SVG with the validation loss and error of each kind of weights over the epochs.
func Plot(w io.Writer, c train.Config, history []train.EpochRecord) error {
	list := collect(c, history)
	if len(list) == 0 {
		return fmt.Errorf("nothing to draw: no epoch was evaluated")
	}
	left, err := panel(c, list, "validation loss", func(s train.Score) float64 { return s.Loss })
	if err != nil {
		return err
	}
	right, err := panel(c, list, "validation error, %", func(s train.Score) float64 { return s.Error() })
	if err != nil {
		return err
	}
	left.Title.Text = fmt.Sprintf("%s, batch %d × %d", c.Model, c.Batch, c.Accumulate)
	if c.Accumulate == 1 {
		left.Title.Text = fmt.Sprintf("%s, batch %d", c.Model, c.Batch)
	}
	right.Title.Text = " "
	canvas := vgsvg.New(28*vg.Centimeter, 12*vg.Centimeter)
	dc := draw.New(canvas)
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter, PadTop: 4, PadBottom: 4, PadLeft: 4, PadRight: 8}
	plots := [][]*plot.Plot{{left, right}}
	for i, cs := range plot.Align(plots, tiles, dc)[0] {
		plots[0][i].Draw(cs)
	}
	_, err = canvas.WriteTo(w)
	return err
}

func panel(c train.Config, list []series, label string, value func(train.Score) float64) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text = "epoch"
	p.Y.Label.Text = label
	p.X.Min, p.X.Max = 0, float64(c.Epochs)
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	lo, hi := math.Inf(1), 0.0
	for i, s := range list {
		var xy plotter.XYs
		for e := 1; e <= c.Epochs; e++ {
			if v, ok := s.scores[e]; ok {
				y := value(v)
				xy = append(xy, plotter.XY{X: float64(e), Y: y})
				lo = min(lo, y)
				if e > c.Epochs/8 { // the first epochs would squeeze the rest
					hi = max(hi, y)
				}
			}
		}
		line, points, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", s.name, err)
		}
		col := palette[i%len(palette)]
		line.Color, points.Color = col, col
		line.Width = vg.Points(1.5)
		points.Radius = vg.Points(2)
		points.Shape = draw.CircleGlyph{}
		p.Add(line, points)
		p.Legend.Add(s.name, line, points)
	}
	if hi > lo {
		p.Y.Min, p.Y.Max = max(0, lo-(hi-lo)/20), hi+(hi-lo)/2 // room for the legend
	}
	for _, e := range c.Schedule.PhaseEnds() {
		if e == c.Epochs {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{{X: float64(e), Y: p.Y.Min}, {X: float64(e), Y: p.Y.Max}})
		if err != nil {
			return nil, err
		}
		line.Color = color.Gray{160}
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
	}
	return p, nil
}
