package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/canvas"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train/network"
	"onlinerna/train/report"
)

// worst keeps the images with the highest loss of those that it is given.
type worst struct {
	most, classes int
	list          []worstImage // the highest loss first; of equals the first in the dataset
}

type worstImage struct {
	Loss             float64 // infinite where it is no number
	Index            int     // in the dataset
	Label, Predicted int     // -1 where nothing is predicted
	Probability      float64 // of the predicted class
}

// worseFirst orders images.
func worseFirst(a, b worstImage) int {
	return cmp.Or(cmp.Compare(b.Loss, a.Loss), cmp.Compare(a.Index, b.Index))
}

// add takes the images of a batch with their logits.
func (w *worst) add(b *data.Batch, logits []float32) {
	for i, label := range b.Labels[:b.N] {
		row := logits[i*w.classes : (i+1)*w.classes]
		p := network.Softmax(row)
		x := worstImage{Loss: math.Inf(1), Index: b.Index[i], Label: int(label), Predicted: largest(row)}
		if x.Predicted >= 0 {
			x.Probability = p[x.Predicted]
		}
		if x.Label >= 0 && x.Label < w.classes && !math.IsNaN(p[x.Label]) {
			x.Loss = -math.Log(p[x.Label])
		}
		if len(w.list) == w.most && x.Loss <= w.list[w.most-1].Loss {
			continue
		}
		at, _ := slices.BinarySearchFunc(w.list, x, worseFirst)
		w.list = slices.Insert(w.list, at, x)
		w.list = w.list[:min(len(w.list), w.most)]
	}
}

// images are those for a sheet. name names classes.
func (w *worst) images(name func(class int) guess) (list []sheetImage) {
	for _, x := range w.list {
		s := sheetImage{index: x.Index, label: x.Label, loss: x.Loss}
		if x.Predicted >= 0 {
			g := name(x.Predicted)
			g.Probability = x.Probability
			s.guesses = []guess{g}
		}
		list = append(list, s)
	}
	return list
}

// checkPictures finds mistakes in what is to be drawn.
func (f *evalFlags) checkPictures() error {
	if err := f.sheet.check("worst-count", byClass, byPrediction); err != nil {
		return err
	}
	if f.confusion == "" || f.confusionIsCSV() {
		return nil
	}
	_, err := canvas.FormatOf(f.confusion)
	return err
}

func (f *evalFlags) confusionIsCSV() bool {
	return strings.EqualFold(filepath.Ext(f.confusion), ".csv")
}

// writePictures writes the confusion matrix and the sheet of the worst images, where they are asked for.
func (f *evalFlags) writePictures(ctx context.Context, e *evaluation, out io.Writer) error {
	var err error
	if f.confusionIsCSV() {
		err = files.WriteTo(f.confusion, f.report.writeConfusion)
	} else {
		err = canvas.Draw(f.confusion, func(w io.Writer, format string) error {
			return report.Confusion(w, format, fmt.Sprintf("%s on %s", f.report.Model, filepath.Base(f.data)), f.report.names, f.report.confusion)
		})
	}
	if err != nil || f.sheet.path == "" {
		return err
	}
	list := f.report.worst.list
	name := namer(f.report.names, len(f.report.names))
	g := gallery{sheetFlags: &f.sheet, title: fmt.Sprintf("%s on %s: the highest losses of %s", f.report.Model, f.data, text.Count(f.report.Score.Images, "image")),
		place: f.data, set: e.set, name: name, budget: data.NewBudget(f.decoding, 1)}
	if err := g.draw(ctx, out, f.report.worst.images(name)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s with losses from %.4g to %.4g\n", f.sheet.path, text.Count(len(list), "image"), list[0].Loss, list[len(list)-1].Loss)
	return err
}
