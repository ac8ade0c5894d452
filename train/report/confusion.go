package report

import (
	"errors"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"onlinerna/train/internal/figure"
)

// maxNamed is the maximum number of classes named along the axes, and maxCounted that of classes with counts in the
// cells.
const (
	maxNamed   = 60
	maxCounted = 20
)

// confusion is a grid of shares: rows are labels from the top down, columns predicted classes.
type confusion [][]int

var _ plotter.GridXYZ = confusion(nil)

func (g confusion) Dims() (c, r int)  { return len(g), len(g) }
func (g confusion) X(col int) float64 { return float64(col) }
func (g confusion) Y(row int) float64 { return float64(row) }

// Z is the share of the images of a label; NaN, which is not drawn, for none: a matrix of many classes is nearly empty.
func (g confusion) Z(col, row int) float64 {
	labels := g[len(g)-1-row]
	sum := 0
	for _, n := range labels {
		sum += n
	}
	if labels[col] == 0 {
		return math.NaN()
	}
	return float64(labels[col]) / float64(sum)
}

// whites is a palette from white to blue.
type whites struct{}

func (whites) Colors() []color.Color {
	list := make([]color.Color, 101)
	for i := range list {
		mix := func(to uint8) uint8 { return uint8(255 - float64(i)/100*(255-float64(to))) }
		list[i] = color.RGBA{mix(figure.Blue.R), mix(figure.Blue.G), mix(figure.Blue.B), 255}
	}
	return list
}

// Confusion draws a confusion matrix, restricted to the classes that occur if there are two or more: counts by label,
// then by predicted class; a cell's colour shows the share of the label's images.
func Confusion(w io.Writer, format, title string, names []string, counts [][]int) error {
	k := len(counts)
	if k < 2 || len(names) != k {
		return errors.New("nothing to draw: a confusion matrix has two classes or more, with a name each")
	}
	if few, matrix := occurring(names, counts); len(few) > 1 {
		k, names, counts = len(few), few, matrix
	}
	canvas, dc, err := figure.Canvas(format, "Confusion: "+title, 24*vg.Centimeter)
	if err != nil {
		return err
	}
	p := figure.New("predicted", "label", 1, 1)
	heat := plotter.NewHeatMap(confusion(counts), whites{})
	heat.Min, heat.Max = 0, 1
	p.Add(heat)
	var x, y []plot.Tick
	for i := range k {
		if k <= maxNamed {
			x = append(x, plot.Tick{Value: float64(i), Label: names[i]})
			y = append(y, plot.Tick{Value: float64(k - 1 - i), Label: names[i]})
		} else if i%(k/10) == 0 {
			x = append(x, plot.Tick{Value: float64(i), Label: names[i]})
			y = append(y, plot.Tick{Value: float64(k - 1 - i), Label: names[i]})
		}
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(x), plot.ConstantTicks(y)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/2, text.XRight, text.YCenter
	if k <= maxCounted {
		cells, err := countsIn(counts)
		if err != nil {
			return err
		}
		p.Add(cells)
	}
	p.Draw(draw.Crop(dc, 0, -(dc.Max.X-dc.Min.X)+26*vg.Centimeter, 0, 0))
	_, err = canvas.WriteTo(w)
	return err
}

// countsIn writes the counts into the cells.
func countsIn(counts [][]int) (*plotter.Labels, error) {
	k := len(counts)
	var at plotter.XYLabels
	var dark []bool
	for i, row := range counts {
		for j, n := range row {
			if n == 0 {
				continue
			}
			at.XYs = append(at.XYs, plotter.XY{X: float64(j), Y: float64(k - 1 - i)})
			at.Labels = append(at.Labels, strconv.Itoa(n))
			dark = append(dark, confusion(counts).Z(j, k-1-i) > 0.5)
		}
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		s := figure.Text(figure.TextSize)
		s.XAlign, s.YAlign = text.XCenter, text.YCenter
		if dark[i] {
			s.Color = color.White
		}
		labels.TextStyle[i] = s
	}
	return labels, nil
}

// occurring leaves out classes that neither images nor predictions have.
func occurring(names []string, counts [][]int) ([]string, [][]int) {
	var kept []int
	for i, row := range counts {
		n := 0
		for j, x := range row {
			n += x + counts[j][i]
		}
		if n > 0 {
			kept = append(kept, i)
		}
	}
	var few []string
	var matrix [][]int
	for _, i := range kept {
		few = append(few, names[i])
		var row []int
		for _, j := range kept {
			row = append(row, counts[i][j])
		}
		matrix = append(matrix, row)
	}
	return few, matrix
}
