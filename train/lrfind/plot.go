package lrfind

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/train/internal/figure"
)

// height of the figure without its title
const height = 14 * vg.Centimeter

// Plot writes a figure as svg, png or pdf: the raw and the smoothed loss by rate, with the notable rates marked.
func (r *Result) Plot(w io.Writer, format, title string) error {
	p := figure.New("learning rate", "training loss", 0, 0)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	var raw, smooth plotter.XYs
	low, high := math.Inf(1), math.Inf(-1)
	for _, q := range r.Points {
		raw, smooth = append(raw, plotter.XY{X: q.Rate, Y: q.Loss}), append(smooth, plotter.XY{X: q.Rate, Y: q.Smooth})
		if low = min(low, q.Smooth); q.Rate <= r.Lowest {
			high = max(high, q.Smooth)
		}
	}
	pad := 0.5 * max(high-low, 1e-2*math.Abs(high)) // the loss above has diverged
	p.X.Min, p.X.Max = r.Points[0].Rate, r.Points[len(r.Points)-1].Rate*1.0001
	p.Y.Min, p.Y.Max = low-pad, high+pad
	dots, err := plotter.NewScatter(inside(raw, p.Y.Min, p.Y.Max))
	if err != nil {
		return fmt.Errorf("drawing losses: %w", err)
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: color.Gray{170}, Radius: 2, Shape: draw.CircleGlyph{}}
	line, err := plotter.NewLine(upTo(smooth, p.Y.Max))
	if err != nil {
		return fmt.Errorf("drawing the curve: %w", err)
	}
	line.Color, line.Width = figure.Blue, 2
	p.Add(dots, line)
	p.Legend.Add("loss of a step", dots)
	p.Legend.Add("smoothed", line)
	for _, m := range []struct {
		rate   float64
		name   string
		colour color.Color
		dashes []vg.Length
	}{{r.Valley, "valley", figure.Vermilion, nil}, {r.Steepest, "steepest", figure.Green, []vg.Length{6, 3}},
		{r.Lowest, "lowest", figure.Black, []vg.Length{2, 3}}} {
		if m.rate == 0 {
			continue
		}
		mark, err := plotter.NewLine(plotter.XYs{{X: m.rate, Y: p.Y.Min}, {X: m.rate, Y: p.Y.Max}})
		if err != nil {
			return fmt.Errorf("drawing %s: %w", m.name, err)
		}
		mark.Color, mark.Width, mark.Dashes = m.colour, 1.5, m.dashes
		p.Add(mark)
		p.Legend.Add(fmt.Sprintf("%s: %.2g", m.name, m.rate), mark)
	}
	p.Legend.TextStyle.Font.Variant = "Sans"
	p.Legend.Left, p.Legend.Top = true, false
	p.Legend.XOffs, p.Legend.YOffs, p.Legend.Padding = 12, 12, 3
	c, dc, err := figure.Canvas(format, title, height)
	if err != nil {
		return err
	}
	p.Draw(dc)
	_, err = c.WriteTo(w)
	return err
}

// inside keeps the points within the figure.
func inside(points plotter.XYs, low, high float64) plotter.XYs {
	var in plotter.XYs
	for _, p := range points {
		if p.Y >= low && p.Y <= high {
			in = append(in, p)
		}
	}
	return in
}

// upTo is the curve's start, up to the point where it leaves the figure's top for good.
func upTo(curve plotter.XYs, high float64) plotter.XYs {
	end := len(curve)
	for end > 2 && curve[end-1].Y > high {
		end--
	}
	return curve[:end]
}

// decades puts ticks at powers of ten.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	var list []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for k := 1.; k < 10; k++ {
			t := plot.Tick{Value: k * math.Pow(10, e)}
			if k == 1 {
				t.Label = fmt.Sprintf("%.0e", t.Value)
				if e >= -4 && e <= 2 {
					t.Label = fmt.Sprintf("%.*f", int(max(0, -e)), t.Value)
				}
			}
			if t.Value >= low*(1-1e-9) && t.Value <= high*(1+1e-9) {
				list = append(list, t)
			}
		}
	}
	return list
}
