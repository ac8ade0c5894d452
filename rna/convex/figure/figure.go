// Package figure draws curves of package convex as the figures of the paper do.
package figure

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/internal/canvas"
)

// A Curve is a row of points of a method.
type Curve struct {
	// Name of the method decides the colour and the legend: see [Legend]. Other names are written unchanged.
	Name string
	X, Y []float64
}

// A Panel is one of the plots of a figure.
type Panel struct {
	Title  string
	X, Y   string // labels of the axes
	Log    bool   // logarithmic y axis; a linear one cuts off larger values in the first twentieth of curves
	Curves []Curve
}

const (
	width     = 28 * vg.Centimeter
	height    = 11 * vg.Centimeter
	margin    = 0.4 * vg.Centimeter
	titleLine = 0.9 * vg.Centimeter
	legendRow = 0.6 * vg.Centimeter
	columns   = 3

	// floor is the least value on a logarithmic axis: smaller values are rounding.
	floor = 1e-16
)

// Draw writes a figure, as svg, png or pdf, with the panels side by side, a title above and one legend below.
func Draw(w io.Writer, format, title string, panels ...Panel) error {
	var names []string
	place := map[string]int{}
	for _, p := range panels {
		for _, c := range p.Curves {
			if len(c.X) != len(c.Y) {
				return fmt.Errorf("figure: %s has %d x and %d y", c.Name, len(c.X), len(c.Y))
			}
			if _, seen := place[c.Name]; !seen && len(c.X) > 0 {
				place[c.Name] = len(names)
				names = append(names, c.Name)
			}
		}
	}
	if len(names) == 0 {
		return errors.New("figure: nothing to draw")
	}
	row := make([]*plot.Plot, len(panels))
	for i, p := range panels {
		var err error
		if row[i], err = p.plot(place); err != nil {
			return err
		}
	}
	legend := legendRow * vg.Length((len(names)+columns-1)/columns)
	c, err := canvas.New(format, width, titleLine+height+legend+2*margin)
	if err != nil {
		return err
	}
	dc := draw.New(c)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	dc = draw.Crop(dc, margin, -margin, margin, -margin)
	sty := textStyle(row[0].Title.TextStyle, 14)
	dc.FillText(sty, vg.Point{X: dc.Min.X, Y: dc.Max.Y - titleLine/3}, title)
	middle := draw.Crop(dc, 0, 0, legend, -titleLine)
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: vg.Centimeter}
	for i, cs := range plot.Align([][]*plot.Plot{row}, tiles, middle)[0] {
		row[i].Draw(cs)
	}
	drawLegend(draw.Crop(dc, 0, 0, 0, legend-(dc.Max.Y-dc.Min.Y)), names, textStyle(sty, 12))
	_, err = c.WriteTo(w)
	return err
}

func textStyle(s text.Style, size vg.Length) text.Style {
	s.Font.Variant, s.Font.Size = "Sans", size
	s.XAlign, s.YAlign = text.XLeft, text.YCenter
	return s
}

func (p Panel) plot(place map[string]int) (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text, out.Title.TextStyle.Font.Variant = p.Title, "Sans"
	for _, a := range []*plot.Axis{&out.X, &out.Y} {
		a.Label.TextStyle.Font.Variant, a.Tick.Label.Font.Variant = "Sans", "Sans"
		a.Label.Padding = 4
	}
	out.X.Label.Text, out.Y.Label.Text = p.X, p.Y
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{235}, color.Gray{225}
	out.Add(grid)
	out.X.Tick.Marker = plot.TickerFunc(steps)
	if !p.Log {
		out.Y.Tick.Marker = plot.TickerFunc(steps)
	}
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, c := range p.Curves {
		var xy plotter.XYs
		for k, y := range c.Y {
			if p.Log {
				y = math.Max(y, floor)
			}
			if !finite(y) || !finite(c.X[k]) {
				continue
			}
			xy = append(xy, plotter.XY{X: c.X[k], Y: y})
			lowest = math.Min(lowest, y)
			if p.Log || k >= len(c.Y)/20 {
				highest = math.Max(highest, y)
			}
		}
		if len(xy) == 0 {
			continue
		}
		line, err := plotter.NewLine(xy)
		if err != nil {
			return nil, fmt.Errorf("figure: %s: %w", c.Name, err)
		}
		line.LineStyle = look(c.Name, place[c.Name])
		out.Add(line)
	}
	if !finite(lowest) || !finite(highest) {
		lowest, highest = floor, 1
	}
	if !p.Log {
		pad := math.Max((highest-lowest)/20, 1e-9)
		out.Y.Min, out.Y.Max = lowest-pad, highest+pad
		return out, nil
	}
	low, high := math.Floor(math.Log10(lowest)), math.Ceil(math.Log10(highest))
	if high == low {
		high++
	}
	out.Y.Min, out.Y.Max = math.Pow(10, low), math.Pow(10, high)
	out.Y.Scale = plot.LogScale{}
	out.Y.Tick.Marker = plot.TickerFunc(func(float64, float64) []plot.Tick { return decades(low, high) })
	return out, nil
}

// steps are at most eight marks at multiples of 1, 2 or 5 times a power of ten.
func steps(low, high float64) []plot.Tick {
	const most = 8
	step := math.Pow(10, math.Floor(math.Log10((high-low)/most)))
	for _, k := range []float64{1, 2, 5, 10} {
		if (high-low)/(k*step) <= most {
			step *= k
			break
		}
	}
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step+0, 'f', digits, 64)})
	}
	return ticks
}

// decades are marks at powers of ten, at most nine.
func decades(low, high float64) []plot.Tick {
	step := math.Ceil((high - low) / 8)
	var ticks []plot.Tick
	for e := low; e <= high; e += step {
		ticks = append(ticks, plot.Tick{Value: math.Pow(10, e), Label: "1e" + strconv.FormatFloat(e, 'f', 0, 64)})
	}
	return ticks
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// bases are the methods that RNA accelerates, with their names in the legend, in colours of Okabe and Ito.
var bases = map[string]struct {
	name   string
	colour color.RGBA
}{
	"gd":               {"gradient", color.RGBA{0, 114, 178, 255}},
	"nesterov_convex":  {"Nesterov (convex)", color.RGBA{0, 158, 115, 255}},
	"nesterov_strong":  {"Nesterov (strong)", color.RGBA{204, 121, 167, 255}},
	"lbfgs":            {"L-BFGS", color.RGBA{0, 0, 0, 255}},
	"bfgs":             {"BFGS", color.RGBA{120, 120, 120, 255}},
	"optimal_adaptive": {"optimal adaptive (Algorithm 3)", color.RGBA{230, 159, 0, 255}},
	"printed_adaptive": {"Algorithm 3 as printed", color.RGBA{86, 180, 233, 255}},
	"anderson_gd":      {"Anderson + gradient", color.RGBA{213, 94, 0, 255}},
	"sgd":              {"SGD", color.RGBA{0, 114, 178, 255}},
	"svrg":             {"SVRG", color.RGBA{204, 121, 167, 255}},
	"saga":             {"SAGA", color.RGBA{0, 158, 115, 255}},
	"katyusha":         {"Katyusha", color.RGBA{0, 0, 0, 255}},
}

var others = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255},
	{230, 159, 0, 255}, {0, 0, 0, 255},
}

// prefixes are RNA's part of names: dashed offline, wide online.
var prefixes = []struct {
	prefix, name string
	width        vg.Length
	dashes       []vg.Length
}{
	{"offline_rna_", "offline RNA + ", 1.5, []vg.Length{6, 3}},
	{"plain_online_rna_", "plain online RNA + ", 1.5, []vg.Length{8, 2, 2, 2}},
	{"online_rna_", "online RNA + ", 2.75, nil},
	{"", "", 1.25, nil},
}

// Legend returns the name of a method as the legend has it.
func Legend(method string) string {
	for _, p := range prefixes {
		if base, ok := strings.CutPrefix(method, p.prefix); ok {
			if b, known := bases[base]; known {
				return upperFirst(p.name + b.name)
			}
		}
	}
	return method
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// look returns the style of a method; other names are styled by their place.
func look(method string, place int) draw.LineStyle {
	for _, p := range prefixes {
		if base, ok := strings.CutPrefix(method, p.prefix); ok {
			if b, known := bases[base]; known {
				return draw.LineStyle{Color: b.colour, Width: p.width, Dashes: p.dashes}
			}
		}
	}
	return draw.LineStyle{Color: others[place%len(others)], Width: 1.5}
}

func drawLegend(dc draw.Canvas, names []string, sty text.Style) {
	const sample = 1.1 * vg.Centimeter
	column := (dc.Max.X - dc.Min.X) / columns
	for i, name := range names {
		x := dc.Min.X + column*vg.Length(i%columns)
		y := dc.Max.Y - legendRow*(vg.Length(i/columns)+0.5)
		dc.StrokeLine2(look(name, i), x, y, x+sample, y)
		dc.FillText(sty, vg.Point{X: x + sample + 6, Y: y}, Legend(name))
	}
}
