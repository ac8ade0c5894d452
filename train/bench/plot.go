package bench

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/internal/text"
	"onlinerna/train/internal/figure"
)

// shown is the minimum share of a step for a kind in the figure.
const shown = 0.005

// Sizes of the figure: names on the left, two panels beside them, a line for the legend above.
const (
	names     = 8.5 * vg.Centimeter
	bar       = 0.45 * vg.Centimeter
	barRow    = 0.7 * vg.Centimeter
	axis      = 1.6 * vg.Centimeter
	legendRow = 0.7 * vg.Centimeter
	nameSize  = 10
)

// Plot writes a figure, as svg, png or pdf, with a bar for each kind of ops: its time in a step, and its share of the
// applicable limit, multiply-adds for products and bandwidth for the rest.
func (r *Result) Plot(w io.Writer, format string) error {
	var kinds []Kind
	for _, k := range r.Kinds {
		if k.Share >= shown {
			kinds = append(kinds, k)
		}
	}
	took, err := panel(kinds, "ms a step",
		func(k Kind) float64 { return 1e3 * k.Seconds },
		func(k Kind) string { return text.Percent(k.Share) })
	if err != nil {
		return err
	}
	reached, err := panel(kinds, "% of the limit", reach, func(k Kind) string {
		switch {
		case k.GFLOP > 0:
			return text.Number(k.GFLOPS) + " GFLOP/s"
		case k.GB > 0:
			return text.Number(k.GBS) + " GB/s"
		}
		return ""
	})
	if err != nil {
		return err
	}
	canvas, dc, err := figure.Canvas(format, r.title(), legendRow+barRow*vg.Length(len(kinds))+axis)
	if err != nil {
		return err
	}
	r.drawLegend(dc)
	dc = draw.Crop(dc, 0, 0, 0, -legendRow)
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter}
	plots := [][]*plot.Plot{{took, reached}}
	areas := plot.Align(plots, tiles, draw.Crop(dc, names, 0, 0, 0))[0]
	for i, area := range areas {
		plots[0][i].Draw(area)
	}
	data := took.DataCanvas(areas[0])
	_, y := took.Transforms(&data)
	for i, k := range kinds {
		data.FillText(figure.Text(nameSize), vg.Point{X: dc.Min.X, Y: y(at(i, kinds))}, k.Name)
	}
	_, err = canvas.WriteTo(w)
	return err
}

func (r *Result) title() string {
	on := r.Device
	if r.Card != "" {
		on = r.Card + ", " + r.Precision
	}
	return fmt.Sprintf("%s, %s, batch %d: %s images/s on %s", r.Model, r.work(), r.Batch, text.Number(r.Images.Median), on)
}

// drawLegend draws the legend of the colours.
func (r *Result) drawLegend(dc draw.Canvas) {
	products := "products"
	if r.Peak > 0 {
		products += fmt.Sprintf(": limit %.0f GFLOP/s of %s", r.Peak, r.multiplied())
	}
	x, y := dc.Min.X, dc.Max.Y-legendRow/2
	for _, l := range []struct {
		colour color.Color
		text   string
	}{
		{figure.Blue, products},
		{figure.Orange, fmt.Sprintf("others: limit %.1f GB/s of a %s", r.Triad, r.bandwidth())},
	} {
		dc.SetColor(l.colour)
		dc.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: y - bar/2}, Max: vg.Point{X: x + bar, Y: y + bar/2}}.Path())
		dc.FillText(figure.Text(nameSize), vg.Point{X: x + 1.4*bar, Y: y}, l.text)
		x += 11 * vg.Centimeter
	}
}

// multiplied names the measurement that limits products.
func (r *Result) multiplied() string {
	if len(r.Limits) > 0 {
		return "products in " + r.Precision
	}
	return "multiply-adds"
}

// reach returns the share of the limit in percent.
func reach(k Kind) float64 {
	if k.GFLOP > 0 {
		return 100 * k.OfPeak
	}
	return 100 * k.OfTriad
}

// at returns the vertical position of kind i in a panel, the first at the top.
func at(i int, kinds []Kind) float64 { return float64(len(kinds) - 1 - i) }

// panel draws a value of each kind, followed by a remark.
func panel(kinds []Kind, label string, value func(Kind) float64, remark func(Kind) string) (*plot.Plot, error) {
	p := figure.New(label, "", 0, 0)
	p.HideY()
	var notes plotter.XYLabels
	longest := 0.0
	for i, k := range kinds {
		v := value(k)
		b, err := plotter.NewBarChart(plotter.Values{v}, bar)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", k.Name, err)
		}
		b.Horizontal, b.LineStyle.Width, b.XMin, b.Color = true, 0, at(i, kinds), colour(k)
		p.Add(b)
		longest = max(longest, v)
		notes.XYs = append(notes.XYs, plotter.XY{X: v, Y: at(i, kinds)})
		notes.Labels = append(notes.Labels, remark(k))
	}
	labels, err := plotter.NewLabels(notes)
	if err != nil {
		return nil, fmt.Errorf("drawing remarks: %w", err)
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i] = figure.Text(nameSize)
	}
	labels.Offset.X = 4
	p.Add(labels)
	p.X.Min, p.X.Max = 0, max(1e-9, 1.35*longest) // space for the remark after the longest bar
	p.Y.Min, p.Y.Max = -0.5, float64(len(kinds))-0.5
	return p, nil
}

func colour(k Kind) color.Color {
	switch {
	case k.GFLOP > 0:
		return figure.Blue
	case k.GB > 0:
		return figure.Orange
	}
	return color.Gray{140}
}
