package evaluate

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
	"onlinerna/data/gallery"
	"onlinerna/internal/canvas"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train/network"
	"onlinerna/train/report"
)

// worst keeps the images with the highest loss or, if lowest is set, with the lowest.
type worst struct {
	most, classes int
	lowest        bool
	net           *network.Network // for losses of other tasks than classification; nil: that
	list          []worstImage     // by loss; equal ones in the order of the dataset
}

type worstImage struct {
	Loss             float64 // infinite if it is NaN
	Index            int     // in the dataset
	Label, Predicted int     // -1 if nothing is predicted
	Probability      float64 // of the predicted class
}

// order orders images by how much they belong on the list.
func (w *worst) order(a, b worstImage) int {
	loss := cmp.Compare(b.Loss, a.Loss)
	if w.lowest {
		loss = -loss
	}
	return cmp.Or(loss, cmp.Compare(a.Index, b.Index))
}

// add adds the images of a batch with their logits.
func (w *worst) add(b *data.Batch, logits []float32) {
	var losses []float64
	if w.net != nil && !w.net.Meaning.Classifies() {
		losses = w.net.BatchLosses(b, logits)
	}
	for i, label := range b.Labels[:b.N] {
		row := logits[i*w.classes : (i+1)*w.classes]
		p := network.Softmax(row)
		x := worstImage{Loss: math.Inf(1), Index: b.Index[i], Label: int(label), Predicted: largest(row)}
		if x.Predicted >= 0 {
			x.Probability = p[x.Predicted]
		}
		switch {
		case losses != nil:
			if x.Predicted = -1; !math.IsNaN(losses[i]) {
				x.Loss = losses[i]
			}
		case x.Label >= 0 && x.Label < w.classes && !math.IsNaN(p[x.Label]):
			x.Loss = 0 - math.Log(p[x.Label]) // not -0
		}
		at, _ := slices.BinarySearchFunc(w.list, x, w.order)
		w.list = slices.Insert(w.list, at, x)
		w.list = w.list[:min(len(w.list), w.most)]
	}
}

// images returns the images of a sheet. name returns the name of a class.
func (w *worst) images(name func(class int) gallery.Guess) (list []gallery.Image) {
	for _, x := range w.list {
		s := gallery.Image{Index: x.Index, Label: x.Label, Loss: x.Loss}
		if x.Predicted >= 0 {
			g := name(x.Predicted)
			g.Probability = x.Probability
			s.Guesses = []gallery.Guess{g}
		}
		list = append(list, s)
	}
	return list
}

// CheckPictures finds mistakes in the names and sizes of pictures.
func (o *Options) CheckPictures() error {
	if err := o.Sheet.Check("worst-count", gallery.ByClass, gallery.ByPrediction); err != nil {
		return err
	}
	if o.Confusion == "" || o.confusionIsCSV() {
		return nil
	}
	_, err := canvas.FormatOf(o.Confusion)
	return err
}

func (o *Options) confusionIsCSV() bool {
	return strings.EqualFold(filepath.Ext(o.Confusion), ".csv")
}

// writePictures writes the confusion matrix and the sheet of the worst images, if requested.
func (o *Options) writePictures(ctx context.Context, e *evaluation, out io.Writer) error {
	var err error
	if o.confusionIsCSV() {
		err = files.WriteTo(o.Confusion, o.report.writeConfusion)
	} else {
		err = canvas.Draw(o.Confusion, func(w io.Writer, format string) error {
			return report.Confusion(w, format, fmt.Sprintf("%s on %s", o.report.Model, filepath.Base(o.Data)), o.report.names,
				o.report.confusion)
		})
	}
	if err != nil || o.Sheet.Path == "" {
		return err
	}
	list := o.report.worst.list
	name := gallery.Namer(o.report.names, len(o.report.names))
	g := gallery.Gallery{Options: &o.Sheet, Title: fmt.Sprintf("%s on %s: the highest losses of %s", o.report.Model,
		o.Data, text.Count(o.report.Score.Images, "image")),
		Place: o.Data, Set: e.set, Name: name, Budget: data.NewBudget(o.DecodeMemory, 1)}
	if err := g.Draw(ctx, out, o.report.worst.images(name)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s with losses from %.4g to %.4g\n", o.Sheet.Path, text.Count(len(list), "image"),
		list[0].Loss, list[len(list)-1].Loss)
	return err
}
