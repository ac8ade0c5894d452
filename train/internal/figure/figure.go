// Package figure is the common style of all figures: white, light grids, sans-serif text, colours for colour-blind
// readers.
package figure

import (
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/internal/canvas"
)

// Common sizes of figures.
const (
	Width     = 28 * vg.Centimeter
	Margin    = 0.4 * vg.Centimeter
	TitleLine = 0.9 * vg.Centimeter
	TitleSize = 14
	TextSize  = 12
)

// Okabe and Ito's colours.
var (
	Black     = color.RGBA{0, 0, 0, 255}
	Vermilion = color.RGBA{213, 94, 0, 255}
	Blue      = color.RGBA{0, 114, 178, 255}
	Green     = color.RGBA{0, 158, 115, 255}
	Purple    = color.RGBA{204, 121, 167, 255}
	Sky       = color.RGBA{86, 180, 233, 255}
	Orange    = color.RGBA{230, 159, 0, 255}
)

// Canvas is a white figure in a format of package canvas, with a title and space of the given height below it.
func Canvas(format, title string, height vg.Length) (io.WriterTo, draw.Canvas, error) {
	c, err := canvas.New(format, Width, TitleLine+height+2*Margin)
	if err != nil {
		return nil, draw.Canvas{}, err
	}
	dc := draw.New(c)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	dc = draw.Crop(dc, Margin, -Margin, Margin, -Margin)
	dc.FillText(Text(TitleSize), vg.Point{X: dc.Min.X, Y: dc.Max.Y - TitleLine/3}, title)
	return c, draw.Crop(dc, 0, 0, 0, -TitleLine), nil
}

// Text is left-aligned sans-serif text; a viewer's substitute for the font may have another width.
func Text(size vg.Length) text.Style {
	s := plot.New().Title.TextStyle
	s.Font.Variant, s.Font.Size = "Sans", size
	s.XAlign, s.YAlign = text.XLeft, text.YCenter
	return s
}

// New is a plot with a grid. The ticks of its axes are at least xUnit and yUnit apart.
func New(x, y string, xUnit, yUnit float64) *plot.Plot {
	p := plot.New()
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Variant, a.Tick.Label.Font.Variant = "Sans", "Sans"
		a.Label.Padding = 4
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Tick.Marker = plot.TickerFunc(func(lo, hi float64) []plot.Tick { return Ticks(lo, hi, xUnit) })
	p.Y.Tick.Marker = plot.TickerFunc(func(lo, hi float64) []plot.Tick { return Ticks(lo, hi, yUnit) })
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{235}, color.Gray{225}
	p.Add(grid)
	return p
}

// Ticks are at most ten marks at multiples of 1, 2 or 5 times a power of ten, at least unit apart; one at lo if hi is
// equal but for rounding.
func Ticks(lo, hi, unit float64) []plot.Tick {
	const most = 10
	if scale := max(math.Abs(lo), math.Abs(hi)); !(hi-lo > 1e-9*scale) { // steps would be lost in rounding
		return []plot.Tick{{Value: lo, Label: strconv.FormatFloat(lo, 'g', 6, 64)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/most)))
	for _, k := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(k*step) <= most {
			step *= k
			break
		}
	}
	step = max(step, unit)
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var list []plot.Tick
	for i := math.Ceil(lo/step-1e-9) + 0; i*step <= hi+1e-9*step; i++ {
		list = append(list, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return list
}
