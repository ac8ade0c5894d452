package report

import (
	"fmt"
	"math"
	"strings"

	"onlinerna/data"
	"onlinerna/train/internal/figure"
)

// targets describes the measures of another task than classification. of says which weights on which images; heldOut
// that others than these images chose the thresholds.
func (v *evaluationView) targets(e *Evaluation, of string, heldOut bool) {
	t, s := e.Targets, e.Targets.Score
	if s.Task == data.Regression {
		v.Title = "Numbers"
		v.Lines = []string{of + fmt.Sprintf("RMSE %.5g ± %.2g, MAE %.5g, R² %.4f, loss %s; ± is a standard error.", s.RMSE,
			s.Deviation, s.MAE, s.R2, lossText(s.Loss))}
		if len(t.Columns) > 1 {
			v.Lines[0] += " The first three are means over the columns."
		}
		rows := t.columnRows()
		v.Classes, v.Long = pageTable{Head: rows[0], Rows: rows[1:]}, len(t.Columns) > maxOpen
		for k, pairs := range e.Pairs {
			v.Scatters = append(v.Scatters, scatterOf(t.Columns[k].Name, pairs, s.Images))
		}
		return
	}
	rows := t.classRows()
	v.Classes, v.Long = pageTable{Head: rows[0], Rows: rows[1:]}, len(t.Classes) > maxOpen
	words := t.found()
	v.Lines = []string{of + fmt.Sprintf("mAP %v %%, mean ROC-AUC %v %%, loss %s; ± is a standard error.", t.AP, t.AUC,
		lossText(s.Loss)), strings.ToUpper(words[:1]) + words[1:] + "."}
	if heldOut {
		v.Classes.Note = "Held-out images chose the thresholds."
	} else {
		v.Classes.Note = "These images chose the thresholds themselves: F1, recall and precision are slightly too good."
	}
}

// scatter is a figure of predictions by labels, as SVG of a page.
type scatter struct {
	Title                            string
	Width, Height                    int
	Left, Right, Top, Bottom, Middle float64
	LabelX, LabelY, NameY            float64
	X, Y                             []chartTick
	Points, Diagonal                 string
	Note                             string
	Data                             scatterData
}

// scatterData has the points for the pointer: their places and texts.
type scatterData struct {
	Points [][3]any `json:"points"`
}

// scatterOf draws pairs of a label and a prediction, of so many images.
func scatterOf(name string, pairs [][2]float64, images int) scatter {
	c := scatter{Title: name + ": prediction by label", Width: 460, Height: 290, Left: 60, Right: 450, Top: 26,
		Bottom: 246, LabelX: 54, LabelY: 262, NameY: 282, Data: scatterData{Points: [][3]any{}},
		Note: "The dotted line is that of equal numbers."}
	c.Middle = (c.Left + c.Right) / 2
	if len(pairs) < images {
		c.Note += fmt.Sprintf(" %d of %d images are drawn.", len(pairs), images)
	}
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, p := range pairs {
		for k, x := range p {
			lo[k], hi[k] = min(lo[k], x), max(hi[k], x)
		}
	}
	if len(pairs) == 0 {
		lo, hi = [2]float64{}, [2]float64{1, 1}
	}
	for k := range lo {
		if lo[k] == hi[k] {
			lo[k], hi[k] = lo[k]-1, hi[k]+1
		}
	}
	x := func(v float64) float64 { return round(c.Left + 8 + (c.Right-c.Left-16)*(v-lo[0])/(hi[0]-lo[0])) }
	y := func(v float64) float64 { return round(c.Bottom - 8 - (c.Bottom-c.Top-16)*(v-lo[1])/(hi[1]-lo[1])) }
	for _, t := range figure.Ticks(lo[0], hi[0], 0) {
		c.X = append(c.X, chartTick{At: x(t.Value), Label: t.Label})
	}
	for _, t := range figure.Ticks(lo[1], hi[1], 0) {
		c.Y = append(c.Y, chartTick{At: y(t.Value), TextY: y(t.Value) + 4, Label: t.Label})
	}
	if from, to := max(lo[0], lo[1]), min(hi[0], hi[1]); from < to {
		c.Diagonal = "M" + place(x(from), y(from)) + "L" + place(x(to), y(to))
	}
	var path strings.Builder
	for _, p := range pairs {
		path.WriteString("M" + place(x(p[0]), y(p[1])) + "h0")
		c.Data.Points = append(c.Data.Points, [3]any{x(p[0]), y(p[1]), fmt.Sprintf("label %.5g\npredicted %.5g", p[0], p[1])})
	}
	c.Points = path.String()
	return c
}
