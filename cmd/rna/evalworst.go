package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/canvas"
	"onlinerna/train/network"
	"onlinerna/train/report"
)

// worst keeps the images with the highest loss of those that it is given.
type worst struct {
	most, classes int
	list          []worstImage // the highest loss first; of equals the first in the dataset
	shape         data.Batch   // of an image
}

type worstImage struct {
	Loss   float64
	Index  int // in the dataset
	Pixels []uint8
	Crop   [3]int32
}

// worseFirst orders images.
func worseFirst(a, b worstImage) int {
	return cmp.Or(cmp.Compare(b.Loss, a.Loss), cmp.Compare(a.Index, b.Index))
}

// add takes the images of a batch with their logits.
func (w *worst) add(b *data.Batch, logits []float32) {
	w.shape = data.Batch{Height: b.Height, Width: b.Width, Channels: b.Channels}
	size := b.Height * b.Width * b.Channels
	for i, label := range b.Labels[:b.N] {
		loss := math.Inf(1) // also where it is no number
		if int(label) >= 0 && int(label) < w.classes {
			if p := network.Softmax(logits[i*w.classes : (i+1)*w.classes])[label]; !math.IsNaN(p) {
				loss = -math.Log(p)
			}
		}
		if len(w.list) == w.most && loss <= w.list[w.most-1].Loss {
			continue
		}
		x := worstImage{loss, b.Index[i], slices.Clone(b.Images[i*size : (i+1)*size]), [3]int32(b.Crops[3*i : 3*i+3])}
		at, _ := slices.BinarySearchFunc(w.list, x, worseFirst)
		w.list = slices.Insert(w.list, at, x)
		w.list = w.list[:min(len(w.list), w.most)]
	}
}

// batch is the images as one batch.
func (w *worst) batch() *data.Batch {
	b := w.shape
	b.N = len(w.list)
	for _, x := range w.list {
		b.Images = append(b.Images, x.Pixels...)
		b.Crops = append(b.Crops, x.Crop[:]...)
	}
	return &b
}

// checkPictures finds mistakes in what is to be drawn.
func (f *evalFlags) checkPictures() error {
	if f.worstCount < 1 || f.worstCount > 10000 {
		return fmt.Errorf("--worst-count %d: want 1 to 10000 images", f.worstCount)
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
func (f *evalFlags) writePictures(out io.Writer) error {
	var err error
	if f.confusionIsCSV() {
		err = writeFile(f.confusion, f.report.writeConfusion)
	} else {
		err = drawFile(f.confusion, func(w io.Writer, format string) error {
			return report.Confusion(w, format, fmt.Sprintf("%s on %s", f.report.Model, filepath.Base(f.data)), f.report.names, f.report.confusion)
		})
	}
	if err != nil || f.worstSheet == "" {
		return err
	}
	list := f.report.worst.list
	if len(list) == 0 {
		return errors.New("no image to draw")
	}
	if err := writeSheet(f.worstSheet, f.report.worst.batch()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %d images with losses from %.4g to %.4g\n", f.worstSheet, len(list), list[0].Loss, list[len(list)-1].Loss)
	return err
}
