package main

import (
	"errors"
	"fmt"
	"os"

	"onlinerna/data"
	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/network"
)

// place finds the images that the command line leaves out: those of the weights.
func (f *evalFlags) place(meta *network.Meta) error {
	if f.data != "" {
		return nil
	}
	s := meta.Split
	if s == nil {
		f.data = "glyphs"
		return nil
	}
	f.data = s.Data
	if s.ValData != "" {
		f.data = s.ValData
	}
	at, err := catalogue.Locate(f.data, catalogue.Images)
	if err != nil {
		return err
	}
	if _, err := os.Stat(at); err != nil && f.data != "glyphs" {
		return fmt.Errorf("the images of the weights' run are not at %s: name their place by --data", f.data)
	}
	return nil
}

// openPart opens the images that are evaluated: of those that weights were trained on the ones that their run left out, unless the options say others.
func (f *evalFlags) openPart(meta *network.Meta, classes []string) (data.Dataset, error) {
	f.note = ""
	set, err := data.OpenEval(f.data, classes)
	if err != nil && (f.valSplit > 0 || meta.Split != nil && meta.Split.ValSplit > 0 && !f.allImages) {
		if whole, err2 := data.OpenUndivided(f.data, classes); err2 == nil {
			set, err = whole, nil
		}
	}
	if err != nil {
		return nil, err
	}
	part, err := f.divide(set, meta)
	if err != nil {
		return nil, errors.Join(err, closeData(set))
	}
	return part, nil
}

// divide is the part of a set that is evaluated, and notes which it is.
func (f *evalFlags) divide(set data.Dataset, meta *network.Meta) (part data.Dataset, err error) {
	s := meta.Split
	switch {
	case f.valSplit > 0:
		return data.HeldByClass(set, f.valSplit)
	case s == nil:
		if meta.Kind != "" && f.data != "glyphs" {
			f.note = fmt.Sprintf("%s does not say on which images it was trained: all of %s are evaluated; for a run with --val-split, give the same share here", f.weights, f.data)
		}
		return set, nil
	}
	same := s.Is(set)
	changed := !same && s.ValSplit > 0 && files.Same(f.data, s.Data) // images came or went, or weights are old
	all, images := set.Len(), text.Count(set.Len(), "image")
	switch {
	case !same && !changed:
		if s.ValSplit > 0 {
			f.note = fmt.Sprintf("%s has other images than %s, where the weights' run had --val-split %g: all of them are evaluated; if the run was trained on some, give it here, too",
				f.data, s.Data, s.ValSplit)
		}
		return set, nil
	case f.allImages:
		f.note = fmt.Sprintf("all %s of %s, also those that the weights were trained on", images, f.data)
		return set, nil
	case s.ValSplit > 0:
		part, err = data.HeldByClass(set, s.ValSplit)
		f.note = fmt.Sprintf("--val-split %g, as the weights' run had it", s.ValSplit)
	case s.Holdout > 0:
		part, err = train.Held(set, s.Holdout, s.Seed)
		f.note = fmt.Sprintf("--holdout %g, as the weights' run had it", s.Holdout)
	default:
		f.note = fmt.Sprintf("the weights were trained on all %s of %s: only other images say how good they are", images, f.data)
		return set, nil
	}
	if err != nil {
		return nil, err
	}
	f.note += fmt.Sprintf(": the %d of %s of %s that were not trained on; --all-images evaluates all", part.Len(), text.Thousands(all)+" images", f.data)
	if changed && s.Names != "" {
		f.note += ". Images have been added, removed or renamed since: some of these may have been trained on"
	}
	return part, nil
}
