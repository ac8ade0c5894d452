package evaluate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/data/gallery"
	"onlinerna/internal/text"
	"onlinerna/train/evaluate/measure"
	"onlinerna/train/network"
	"onlinerna/train/report"
)

// MarshalJSON writes the results of the task.
func (r *Report) MarshalJSON() ([]byte, error) {
	if r.Targets != nil {
		return json.Marshal(r.Targets)
	}
	type plain Report
	return json.Marshal((*plain)(r))
}

// finishTargets computes the measures.
func (r *Report) finishTargets(model string, s network.Score, m *network.Meaning) {
	r.Targets = &report.Targets{Model: model, Score: s}
	values, targets, images := r.outputs.Values()
	k := len(r.names)
	if m.Task == data.Regression {
		each, _ := measure.Fits(values, targets, k)
		for i, f := range each {
			c := report.ColumnScore{Name: r.names[i], RMSE: f.RMSE, MAE: f.MAE}
			if !math.IsNaN(f.R2) {
				c.R2 = &each[i].R2
			}
			r.Targets.Columns = append(r.Targets.Columns, c)
		}
		return
	}
	t := r.Targets
	each, mean := measure.Classes(k, len(images), func(class int) *measure.Ranking {
		rank, _ := r.outputs.Ranking(class)
		return rank
	}, (*measure.Ranking).AveragePrecision, (*measure.Ranking).AUC)
	found := make([]bool, len(values))
	for i, p := range values {
		found[i] = p >= m.Threshold(i%k)
	}
	labels := measure.Found(found, targets, k)
	for i, c := range labels.Classes {
		t.Classes = append(t.Classes, report.LabelScore{Name: r.names[i], Images: c.Right + c.Missed,
			Threshold: m.Threshold(i), Precision: c.Precision(), Recall: c.Recall(), F1: c.F1(), AP: each[0][i], AUC: each[1][i]})
	}
	t.AP, t.AUC, t.MacroF1, t.MicroF1, t.Exact = &mean[0], &mean[1], &labels.MacroF1, &labels.MicroF1, &labels.Exact
}

// pairsOf and pairsEach bound the columns and the images of a record.
const pairsOf, pairsEach = 12, 500

// pairs lists the labels and predictions of a regression's columns for some images, evenly over the set.
func (r *Report) pairs() (list [][][2]float64) {
	values, targets, images := r.outputs.Values()
	stride := (len(images) + pairsEach - 1) / pairsEach
	for k := range min(len(r.Targets.Columns), pairsOf) {
		var column [][2]float64
		for i := 0; i < len(images); i += stride {
			x := [2]float64{targets[i*len(r.names)+k], values[i*len(r.names)+k]}
			if !math.IsNaN(x[1]) && !math.IsInf(x[1], 0) {
				column = append(column, x)
			}
		}
		list = append(list, column)
	}
	return list
}

// targeted describes the images of a list by their classes or numbers.
func (r *Report) targeted(w *worst) (list []report.EvaluatedImage) {
	values, targets, images := r.outputs.Values()
	k := len(r.names)
	for _, x := range w.list {
		i, found := slices.BinarySearch(images, x.Index)
		if !found {
			continue
		}
		e := report.EvaluatedImage{Index: x.Index, File: r.files[x.Index]}
		if !math.IsInf(x.Loss, 0) {
			e.Loss = &x.Loss
		}
		e.Label, e.Predicted, e.Right = r.words(values[i*k:][:k], targets[i*k:][:k])
		list = append(list, e)
	}
	return list
}

// words describes the targets of an image and the values predicted for it. right is false for numbers.
func (r *Report) words(values, targets []float64) (label, predicted string, right bool) {
	name := gallery.Namer(r.names, len(r.names))
	var labels, guesses []string
	if r.Targets.Score.Task == data.Regression {
		for k, v := range values {
			labels = append(labels, fmt.Sprintf("%s %.5g", name(k).Name, targets[k]))
			guesses = append(guesses, fmt.Sprintf("%s %.5g", name(k).Name, v))
		}
		return text.Some(labels), text.Some(guesses), false
	}
	right = true
	for k, p := range values {
		found := p >= r.Targets.Classes[k].Threshold
		right = right && found == (targets[k] > 0)
		if targets[k] > 0 {
			labels = append(labels, name(k).Name)
		}
		if found {
			guesses = append(guesses, fmt.Sprintf("%s %.1f %%", name(k).Name, math.Floor(1000*p)/10))
		}
	}
	return cmp.Or(text.Some(labels), "no class"), cmp.Or(text.Some(guesses), "no class"), right
}
