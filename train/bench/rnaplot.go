package bench

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/internal/text"
	"onlinerna/train/internal/figure"
)

const (
	panelHeight = 11 * vg.Centimeter
	sample      = 1.1 * vg.Centimeter
)

// curve is a pass at a place, for all N.
type curve struct {
	name   string
	style  draw.LineStyle
	passes []RNAPass
}

// Plot writes a figure, as svg, png or pdf: the time of passes by N, on a logarithmic axis with that of a forward and
// backward pass, and their share of the memory bandwidth. Error bars are the quartiles.
func (r *RNAResult) Plot(w io.Writer, format string) error {
	curves := r.curves()
	times, err := r.plotTimes(curves)
	if err != nil {
		return err
	}
	shares, err := plotShares(curves)
	if err != nil {
		return err
	}
	lines := len(curves)
	if r.Net != nil {
		lines++
	}
	const perRow = 2
	legend := legendRow * vg.Length((lines+perRow-1)/perRow)
	canvas, dc, err := figure.Canvas(format, r.title(), legend+panelHeight)
	if err != nil {
		return err
	}
	column := (dc.Max.X - dc.Min.X) / perRow
	entry := func(i int, s draw.LineStyle, text string) {
		x, y := dc.Min.X+column*vg.Length(i%perRow), dc.Max.Y-legendRow*(vg.Length(i/perRow)+0.5)
		dc.StrokeLine2(s, x, y, x+sample, y)
		dc.FillText(figure.Text(nameSize), vg.Point{X: x + sample + 6, Y: y}, text)
	}
	for i, c := range curves {
		entry(i, c.style, c.name)
	}
	if n := r.Net; n != nil {
		entry(len(curves), netStyle, fmt.Sprintf("forward + backward of %s on %s, batch %d", n.Model, n.Device, n.Batch))
	}
	plots := [][]*plot.Plot{{times, shares}}
	areas := plot.Align(plots, draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter}, draw.Crop(dc, 0, 0, 0, -legend))[0]
	for i, area := range areas {
		plots[0][i].Draw(area)
	}
	_, err = canvas.WriteTo(w)
	return err
}

func (r *RNAResult) title() string {
	title := fmt.Sprintf("A pass of RNA on %s float32 weights", text.Thousands(r.Dim))
	if r.Net != nil {
		title = fmt.Sprintf("%s, beside a batch of %s", title, r.Net.Model)
	}
	return title
}

var netStyle = draw.LineStyle{Color: figure.Black, Width: 1.5, Dashes: []vg.Length{8, 3, 2, 3}}

// curves assigns each place a colour and each pass a line style.
func (r *RNAResult) curves() []curve {
	colours := []color.RGBA{figure.Blue, figure.Vermilion, figure.Green, figure.Purple}
	dashes := map[string][]vg.Length{FullPass: {6, 3}, HostOnlinePass: {2, 2}}
	var list []curve
	for i, place := range r.Places {
		for _, name := range []string{FullPass, OnlinePass, HostOnlinePass} {
			c := curve{
				name:  fmt.Sprintf("%s, %s: %s", place.Name, name, place.describe()),
				style: draw.LineStyle{Color: colours[i%len(colours)], Width: 2, Dashes: dashes[name]},
			}
			for _, p := range r.Passes {
				if p.Place == place.Name && p.Pass == name {
					c.passes = append(c.passes, p)
				}
			}
			if len(c.passes) > 0 {
				list = append(list, c)
			}
		}
	}
	return list
}

// spreads are the points of a curve in milliseconds, with error bars.
type spreads []RNAPass

func (s spreads) Len() int                { return len(s) }
func (s spreads) XY(i int) (x, y float64) { return float64(s[i].N), 1e3 * s[i].Seconds.Median }
func (s spreads) YError(i int) (lo, hi float64) {
	t := s[i].Seconds.times(1e3)
	return t.Median - t.Q1, t.Q3 - t.Median
}

func (r *RNAResult) plotTimes(curves []curve) (*plot.Plot, error) {
	p := figure.New("N", "ms", 1, 0)
	low, high := math.Inf(1), 0.0
	reach := func(s Spread) { low, high = min(low, 1e3*s.Q1), max(high, 1e3*s.Q3) }
	first, last := math.Inf(1), 0.0
	for _, c := range curves {
		line, err := plotter.NewLine(spreads(c.passes))
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", c.name, err)
		}
		bars, err := plotter.NewYErrorBars(spreads(c.passes))
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", c.name, err)
		}
		line.LineStyle = c.style
		bars.LineStyle = draw.LineStyle{Color: c.style.Color, Width: 1}
		p.Add(line, bars, dots(spreads(c.passes), c.style.Color))
		for _, pass := range c.passes {
			reach(pass.Seconds)
			first, last = min(first, float64(pass.N)), max(last, float64(pass.N))
		}
	}
	pad := max(1, (last-first)/40)
	if r.Net != nil {
		reach(r.Net.Seconds)
		y := 1e3 * r.Net.Seconds.Median
		line, err := plotter.NewLine(plotter.XYs{{X: first - pad, Y: y}, {X: last + pad, Y: y}})
		if err != nil {
			return nil, fmt.Errorf("drawing the forward and backward pass: %w", err)
		}
		line.LineStyle = netStyle
		p.Add(line)
	}
	p.X.Min, p.X.Max = first-pad, last+pad
	p.Y.Min, p.Y.Max = low/1.3, high*1.3
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.TickerFunc(logTicks)
	return p, nil
}

func plotShares(curves []curve) (*plot.Plot, error) {
	p := figure.New("N", "% of the memory's bandwidth", 1, 0)
	first, last, most := math.Inf(1), 0.0, 100.0
	for _, c := range curves {
		var points plotter.XYs
		for _, pass := range c.passes {
			points = append(points, plotter.XY{X: float64(pass.N), Y: 100 * pass.OfBandwidth})
			first, last = min(first, float64(pass.N)), max(last, float64(pass.N))
			most = max(most, 105*pass.OfBandwidth)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", c.name, err)
		}
		line.LineStyle = c.style
		p.Add(line, dots(points, c.style.Color))
	}
	pad := max(1, (last-first)/40)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = first-pad, last+pad, 0, most
	return p, nil
}

func dots(points plotter.XYer, c color.Color) *plotter.Scatter {
	s, _ := plotter.NewScatter(points) // the line of the same points would have failed
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: 2.5, Shape: draw.CircleGlyph{}}
	return s
}

// logTicks returns marks at 1, 2 and 5 times powers of ten, or only at the powers if there are many.
func logTicks(lo, hi float64) []plot.Tick {
	steps := []float64{1, 2, 5}
	if hi/lo > 1e4 {
		steps = steps[:1]
	}
	var list []plot.Tick
	for e := math.Floor(math.Log10(lo)); e <= math.Log10(hi); e++ {
		for _, s := range steps {
			if v := s * math.Pow(10, e); v >= lo && v <= hi {
				list = append(list, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', max(0, -int(e)), 64)})
			}
		}
	}
	return list
}
