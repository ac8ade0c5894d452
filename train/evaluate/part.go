package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"onlinerna/data"
	"onlinerna/data/pack"
	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/network"
)

// ownImages is Data for Options.Images.
const ownImages = "images of the program's"

// place sets Data, if empty, to the images recorded in the weights.
func (o *Options) place(meta *network.Meta) error {
	switch {
	case o.Images != nil && o.Data != "" && o.Data != ownImages:
		return fmt.Errorf("images in %s beside Options.Images: give one of both", o.Data)
	case o.Images != nil:
		o.Data = ownImages
		return nil
	case o.Data != "":
		return nil
	}
	s := meta.Split
	if s == nil {
		o.Data = "glyphs"
		return nil
	}
	o.Data = s.Data
	if s.ValData != "" {
		o.Data = s.ValData
	}
	at, err := catalogue.Locate(o.Data, catalogue.Images)
	if err != nil {
		return err
	}
	if _, err := os.Stat(at); err != nil && o.Data != "glyphs" {
		return fmt.Errorf("the images of the weights' run are not at %s: name their place by --data", o.Data)
	}
	return nil
}

// openPart opens the images to evaluate: of training images only those that the run held out, unless the options choose
// others.
func (o *Options) openPart(meta *network.Meta, classes []string) (data.Dataset, error) {
	o.note = ""
	if o.Images != nil {
		return o.given(meta, classes)
	}
	task := meta.Task
	if meta.Kind != "" && meta.Classifies() {
		task = data.Classification
	}
	set, err := data.OpenEval(o.Data, classes, task)
	if err != nil && (o.ValSplit > 0 || meta.Split != nil && meta.Split.ValSplit > 0 && !o.AllImages) {
		if whole, err2 := data.OpenUndivided(o.Data, classes, task); err2 == nil {
			set, err = whole, nil
		}
	}
	if err != nil {
		return nil, err
	}
	meta.Task = data.TaskOf(set) // of weights that do not say it
	part, err := o.divide(set, meta)
	if err != nil {
		return nil, errors.Join(err, closeData(set))
	}
	return part, nil
}

// given returns the program's images, if they are of the weights' task and classes.
func (o *Options) given(meta *network.Meta, classes []string) (data.Dataset, error) {
	task := data.TaskOf(o.Images)
	if of := cmp.Or(meta.Task, data.Classification); meta.Kind != "" && task != of {
		return nil, fmt.Errorf("Options.Images are for the task %s, and %s for %s", task, o.Weights, of)
	}
	have := o.Images.Classes()
	if classes != nil && len(have) != len(classes) {
		return nil, fmt.Errorf("Options.Images have %d classes, and %s has %d", len(have), o.Weights, len(classes))
	}
	for k := range classes {
		if have[k] != classes[k] {
			return nil, fmt.Errorf("class %d of Options.Images is %q, and that of %s is %q", k, have[k], o.Weights, classes[k])
		}
	}
	meta.Task = task
	return o.Images, nil
}

// divide returns the part of a set to evaluate, and notes which part it is.
func (o *Options) divide(set data.Dataset, meta *network.Meta) (part data.Dataset, err error) {
	s := meta.Split
	switch {
	case o.ValSplit > 0:
		return data.HeldByClass(set, o.ValSplit)
	case s == nil:
		if meta.Kind != "" && o.Data != "glyphs" {
			o.note = fmt.Sprintf("%s does not say on which images it was trained: all of %s are evaluated; for a run with "+
				"--val-split, give the same share here", o.Weights, o.Data)
		}
		return set, nil
	}
	same := s.Is(set)
	// images were added or removed, or the weights are old
	changed := !same && s.ValSplit > 0 && files.Same(o.Data, s.Data)
	all, images := set.Len(), text.Count(set.Len(), "image")
	switch {
	case !same && !changed:
		switch {
		case packedFrom(s.Data, set, meta.Classes):
			o.note = fmt.Sprintf("%s has as many images of the same classes as %s was packed from: the weights were probably "+
				"trained on most of them; evaluate on %[2]s",
				o.Data, s.Data)
		case s.ValSplit > 0:
			o.note = fmt.Sprintf("%s has other images than %s, where the weights' run had --val-split %g: all of them are "+
				"evaluated; if the run was trained on some, give --val-split %[3]g here, too",
				o.Data, s.Data, s.ValSplit)
		}
		return set, nil
	case o.AllImages:
		o.note = fmt.Sprintf("all %s of %s, also those that the weights were trained on", images, o.Data)
		return set, nil
	case s.ValSplit > 0:
		part, err = data.HeldByClass(set, s.ValSplit)
		o.note = fmt.Sprintf("--val-split %g, as the weights' run had it", s.ValSplit)
	case s.Holdout > 0:
		part, err = train.Held(set, s.Holdout, s.Seed)
		o.note = fmt.Sprintf("--holdout %g, as the weights' run had it", s.Holdout)
	default:
		o.note = fmt.Sprintf("the weights were trained on all %s of %s: only other images say how good they are", images,
			o.Data)
		return set, nil
	}
	if err != nil {
		return nil, err
	}
	o.note += fmt.Sprintf(": the %d of %s of %s that were not trained on; --all-images evaluates all", part.Len(),
		text.Thousands(all)+" images", o.Data)
	if changed && s.Names != "" {
		o.note += ". Images have been added, removed or renamed since: some of these may have been trained on"
	}
	return part, nil
}

// packedFrom reports whether a set looks like the source of the packed set at a place.
func packedFrom(place string, set data.Dataset, classes []string) bool {
	r, err := pack.ReadReport(place)
	if err != nil {
		return false
	}
	images := 0
	for _, s := range r.Splits {
		images += s.Images
	}
	return images == set.Len() && slices.Equal(classes, set.Classes())
}
