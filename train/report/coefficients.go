package report

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/internal/figure"
)

// grid holds the coefficients of all extrapolations: columns are epochs, rows the age of snapshots, 0 the newest.
type grid struct {
	first int
	c     [][]float64 // by epoch, oldest first; nil if nothing was extrapolated
	rows  int
}

var _ plotter.GridXYZ = (*grid)(nil)

func (g *grid) Dims() (c, r int)  { return len(g.c), g.rows }
func (g *grid) X(col int) float64 { return float64(g.first + col) }
func (g *grid) Y(row int) float64 { return float64(row) }

// Z is NaN, which is not drawn, if there is no such snapshot.
func (g *grid) Z(col, row int) float64 {
	c := g.c[col]
	if row >= len(c) {
		return math.NaN()
	}
	return c[len(c)-1-row]
}

// coefficients collects c from a run's history.
func coefficients(history []hook.EpochRecord) *grid {
	g := &grid{}
	for _, r := range history {
		var c []float64
		if r.RNA != nil {
			c = r.RNA.C
		}
		if len(g.c) == 0 {
			if len(c) == 0 {
				continue
			}
			g.first = r.Epoch
		}
		g.c = append(g.c, c)
		g.rows = max(g.rows, len(c))
	}
	return g
}

// Extrapolated reports whether there are coefficients to draw.
func Extrapolated(history []hook.EpochRecord) bool { return coefficients(history).rows > 0 }

// Coefficients writes a heat map of the coefficients c over the epochs: a column for each extrapolation,
// a row for the age of a snapshot.
func Coefficients(w io.Writer, format string, c train.Spec, history []hook.EpochRecord) error {
	g := coefficients(history)
	if g.rows == 0 {
		return errors.New("nothing to draw: no epoch has coefficients")
	}
	most := 0.0
	for _, col := range g.c {
		for _, x := range col {
			most = max(most, math.Abs(x))
		}
	}
	const height, bar, caption = 12 * vg.Centimeter, 2.6 * vg.Centimeter, 1.2 * vg.Centimeter
	canvas, dc, err := figure.Canvas(format, "Coefficients of RNA: "+title(c), height)
	if err != nil {
		return err
	}
	p := figure.New("epoch", "snapshots before the newest", 1, 1)
	heat := plotter.NewHeatMap(g, diverging{})
	heat.Min, heat.Max = -most, most
	p.Add(heat)
	p.Draw(draw.Crop(dc, 0, -bar, caption, 0))
	drawScale(draw.Crop(dc, dc.Max.X-dc.Min.X-bar+0.6*vg.Centimeter, 0, caption+1.2*vg.Centimeter, -0.8*vg.Centimeter),
		most)
	for i, line := range []string{
		"Each column is an epoch: RNA's point is the sum of the snapshots of the weights, each times its coefficient.",
		"The coefficients of a column add up to 1; the plain average has equal ones. A negative coefficient subtracts a " +
			"snapshot.",
	} {
		dc.FillText(figure.Text(figure.TextSize), vg.Point{X: dc.Min.X, Y: dc.Min.Y + caption*vg.Length(3-2*i)/4}, line)
	}
	_, err = canvas.WriteTo(w)
	return err
}

// diverging is a palette from blue through white to vermilion.
type diverging struct{}

var _ palette.Palette = diverging{}

// Colors implements palette.Palette.
func (diverging) Colors() []color.Color {
	const half = 50
	list := make([]color.Color, 0, 2*half+1)
	for i := -half; i <= half; i++ {
		end := figure.Vermilion
		if i < 0 {
			end = figure.Blue
		}
		t := math.Abs(float64(i)) / half
		mix := func(to uint8) uint8 { return uint8(math.Round(255 + t*(float64(to)-255))) }
		list = append(list, color.RGBA{mix(end.R), mix(end.G), mix(end.B), 255})
	}
	return list
}

// drawScale draws the colour scale from -most to most.
func drawScale(dc draw.Canvas, most float64) {
	colours := diverging{}.Colors()
	const width = 0.5 * vg.Centimeter
	step := (dc.Max.Y - dc.Min.Y) / vg.Length(len(colours))
	for i, c := range colours {
		lo := dc.Min.Y + step*vg.Length(i)
		dc.SetColor(c)
		dc.Fill(vg.Rectangle{Min: vg.Point{X: dc.Min.X, Y: lo}, Max: vg.Point{X: dc.Min.X + width, Y: lo + step}}.Path())
	}
	sty := figure.Text(figure.TextSize)
	dc.FillText(sty, vg.Point{X: dc.Min.X, Y: dc.Max.Y + 0.5*vg.Centimeter}, "coefficient")
	for i, x := range []float64{-most, 0, most} {
		y := dc.Min.Y + (dc.Max.Y-dc.Min.Y)*vg.Length(i)/2
		dc.FillText(sty, vg.Point{X: dc.Min.X + width + 4, Y: y}, fmt.Sprintf("%.2g", x))
	}
}
