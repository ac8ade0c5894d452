package report

import (
	"fmt"
	"strings"

	"onlinerna/data"
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

// scatterOf draws pairs of a label and a prediction, of so many images.
func scatterOf(name string, pairs [][2]float64, images int) scatter {
	var texts []string
	for _, p := range pairs {
		texts = append(texts, fmt.Sprintf("label %.5g\npredicted %.5g", p[0], p[1]))
	}
	c := newScatter(name+": prediction by label", "label", pairs, texts, false)
	c.Note = "The dotted line is that of equal numbers."
	if len(pairs) < images {
		c.Note += fmt.Sprintf(" The figure shows %d of %d images.", len(pairs), images)
	}
	if from, to := max(c.x.lo, c.y.lo), min(c.x.hi, c.y.hi); from < to {
		c.Diagonal = "M" + place(c.atX(from), c.atY(from)) + "L" + place(c.atX(to), c.atY(to))
	}
	return c
}
