package bench

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/train/internal/figure"
)

// shown are the kinds of a figure: those that take this share of a step.
const shown = 0.005

// Plot writes an SVG with a bar for each kind of ops: its time in a step, and the share that it reaches of the limit
// that applies, multiply-adds for products and bandwidth for the rest.
func (r *Result) Plot(w io.Writer) error {
	var kinds []Kind
	for _, k := range r.Kinds {
		if k.Share >= shown {
			kinds = append(kinds, k)
		}
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[len(kinds)-1-i] = k.Name
	}
	took, err := r.bars(kinds, fmt.Sprintf("ms of a step of %s", number(1e3*r.Seconds.Median)), func(k Kind) float64 { return 1e3 * k.Seconds })
	if err != nil {
		return err
	}
	took.NominalY(names...)
	took.Y.Tick.Label.Font.Variant = "Sans"
	limit := fmt.Sprintf("%% of the bandwidth, %.1f GB/s", r.Triad)
	if r.Peak > 0 {
		limit = fmt.Sprintf("%% of the peak, %.0f GFLOP/s (blue), or of the bandwidth, %.1f GB/s (orange)", r.Peak, r.Triad)
	}
	reached, err := r.bars(kinds, limit, func(k Kind) float64 {
		if k.GFLOP > 0 {
			return 100 * k.OfPeak
		}
		return 100 * k.OfTriad
	})
	if err != nil {
		return err
	}
	reached.X.Max = max(100, reached.X.Max)
	reached.NominalY(make([]string, len(kinds))...)

	svg, dc := figure.Canvas(r.title(), vg.Length(len(kinds))*0.7*vg.Centimeter+2.5*vg.Centimeter)
	plots := [][]*plot.Plot{{took, reached}}
	for i, cs := range plot.Align(plots, draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter}, dc)[0] {
		plots[0][i].Draw(cs)
	}
	_, err = svg.WriteTo(w)
	return err
}

func (r *Result) title() string {
	return fmt.Sprintf("%s, %s, batch %d: %s images/s on %s", r.Model, r.Mode, r.Batch, number(r.Images.Median), r.Device)
}

// bars draws a value of each kind, the first at the top.
func (r *Result) bars(kinds []Kind, label string, value func(Kind) float64) (*plot.Plot, error) {
	p := figure.New(label, "", 0, 0)
	for i, k := range kinds {
		bar, err := plotter.NewBarChart(plotter.Values{value(k)}, 0.45*vg.Centimeter)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", k.Name, err)
		}
		bar.Horizontal, bar.LineStyle.Width = true, 0
		bar.XMin = float64(len(kinds) - 1 - i)
		bar.Color = k.colour()
		p.Add(bar)
	}
	p.X.Min = 0
	p.Y.Min, p.Y.Max = -0.5, float64(len(kinds))-0.5
	return p, nil
}

func (k *Kind) colour() color.Color {
	switch {
	case k.GFLOP > 0:
		return figure.Blue
	case k.GB > 0:
		return figure.Orange
	}
	return color.Gray{140}
}
