package evaluate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"

	"onlinerna/data"
	"onlinerna/data/gallery"
	"onlinerna/train"
	"onlinerna/train/network"
	"onlinerna/train/ranks"
	"onlinerna/train/report"
)

// extremes is the number of images with the highest, and with the lowest losses in a record.
const extremes = 12

// OfRun are the options that evaluate a run's best weights as the run did. Open is left to the caller.
func OfRun(dir string, c *train.Spec) *Options {
	o := &Options{Weights: dir, Batch: c.Batch, Workers: c.Workers, Threads: c.Threads, Limit: c.ValLimit,
		FastDecode: c.FastDecode, DecodeMemory: c.DecodeMemory, TestFlip: c.TestFlip, MaxBad: data.UsualBad,
		extremes: extremes}
	if c.MaxBad != nil {
		o.MaxBad = *c.MaxBad
	}
	return o
}

// Record evaluates a run's best weights on all ranks with the options of OfRun. The first rank writes the result into
// the run's folder and returns it.
func (o *Options) Record(ctx context.Context, g *ranks.Group, log io.Writer) (*report.Evaluation, error) {
	dir := o.Weights
	r, err := o.Run(ctx, g, io.Discard, log)
	if err != nil || !g.First() {
		return nil, err
	}
	meta, err := network.ReadMeta(o.Weights) // the file in the folder by now
	if err != nil {
		return nil, err
	}
	e := &report.Evaluation{Kind: meta.Kind, Snapshots: meta.Snapshots, Epoch: meta.Epoch, Note: o.note, Score: r.Score,
		Interval: r.Interval, Calibration: r.Calibration, Balanced: r.BalancedAccuracy, MacroF1: r.MacroF1,
		Worst: o.listed(r.worst), Best: o.listed(r.best)}
	if r.Targets != nil {
		e.Score, e.Targets, e.Pairs = r.Targets.Score, r.Targets, r.pairs()
		return e, e.Write(dir)
	}
	name := gallery.Namer(r.names, len(r.names))
	for i := range r.names {
		e.Names = append(e.Names, name(i).Name)
	}
	at := 0
	for _, c := range r.Classes {
		for r.names[at] != c.Name {
			at++
		}
		e.Classes = append(e.Classes, report.EvaluatedClass{Name: e.Names[at], Images: c.Images, Recall: c.Recall,
			Precision: c.Precision, F1: c.F1})
		at++
	}
	for i, row := range r.confusion {
		for k, n := range row {
			if n > 0 {
				e.Confusion = append(e.Confusion, [3]int{i, k, n})
			}
		}
	}
	return e, e.Write(dir)
}

// listed describes the images of a list. Their files are found by Pictures.
func (o *Options) listed(w *worst) (list []report.EvaluatedImage) {
	if o.report.Targets != nil {
		return o.report.targeted(w)
	}
	name := gallery.Namer(o.report.names, len(o.report.names))
	for _, x := range w.list {
		i := report.EvaluatedImage{Index: x.Index, File: o.report.files[x.Index], Label: name(x.Label).Name,
			Predicted: "no number", Probability: x.Probability, Right: x.Label == x.Predicted}
		if x.Predicted >= 0 {
			i.Predicted = name(x.Predicted).Name
		}
		if !math.IsInf(x.Loss, 0) {
			i.Loss = &x.Loss
		}
		list = append(list, i)
	}
	return list
}

// name remembers the files of the listed images while their set is open.
func (r *Report) name(set data.Dataset, place string) {
	r.files = map[int]string{}
	for _, l := range r.lists() {
		for _, x := range l.list {
			r.files[x.Index] = fileIn(set, place, x.Index)
		}
	}
}

// fileIn is the name of an image within its place.
func fileIn(set data.Dataset, place string, index int) string {
	return filepath.ToSlash(strings.TrimPrefix(set.Name(index), filepath.Clean(place)+string(filepath.Separator)))
}

// errOther means that the images are others than those that were evaluated.
var errOther = errors.New("the images have changed since the run's weights were evaluated")

// Pictures reads the pictures of an evaluation's images. The options are those of OfRun.
func (o *Options) Pictures(ctx context.Context, e *report.Evaluation) (err error) {
	file, meta, err := o.OpenWeights(io.Discard)
	if err != nil {
		return err
	}
	if err = cmp.Or(o.place(&meta), file.Close()); err != nil {
		return err
	}
	set, err := o.openPart(&meta, meta.Classes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeData(set)) }()
	var list []gallery.Image
	var images []*report.EvaluatedImage
	for _, part := range [][]report.EvaluatedImage{e.Worst, e.Best} {
		for i := range part {
			x := &part[i]
			if x.Index < 0 || x.Index >= set.Len() || fileIn(set, o.Data, x.Index) != x.File {
				return errOther
			}
			list, images = append(list, gallery.Image{Index: x.Index}), append(images, x)
		}
	}
	g := gallery.Gallery{Set: set, Budget: data.NewBudget(o.DecodeMemory, 1)}
	pictures, err := g.Pictures(ctx, list)
	for i, m := range pictures {
		if m == nil {
			continue
		}
		var p, j bytes.Buffer
		if err := cmp.Or(png.Encode(&p, m), jpeg.Encode(&j, m, &jpeg.Options{Quality: 82})); err != nil {
			return err
		}
		images[i].Picture = p.Bytes()
		if j.Len() < p.Len() {
			images[i].Picture = j.Bytes()
		}
	}
	return err
}
