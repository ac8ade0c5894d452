package data

import (
	"errors"
	"fmt"
	"strings"

	"onlinerna/data/format"
	"onlinerna/internal/catalogue"
)

// Options are the parameters of Open. The zero value reads a place as it is.
type Options struct {
	// Val is the place of the validation set, read as by OpenEval, if it is not beside the training set.
	Val string
	// ValSplit is the share of the training set that becomes the validation set if the place has none: see
	// SplitByClass. 0 is no split.
	ValSplit float64
	// NoVal opens a folder of class folders as the training set without a validation set.
	NoVal bool
	// Classes replaces the names of the training set's classes, by index. Images are mapped to it by name.
	Classes []string
	// Task is that of the sets; empty: the training set's own. Sets of one class an image become multi-label ones.
	Task Task
}

// Open detects the format of the place at path and returns its training and validation sets, which share their
// classes. The validation set is nil if the place has none. A folder of class folders alone is a training set if the
// options give a validation set, a split, or NoVal. An empty path and "glyphs" mean the generated set, whose
// validation set is Glyphs(format.GlyphTest). The name of a downloadable set means its copy in the cache folder,
// unless a folder of that name exists here: see [catalogue.Locate].
func Open(path string, opt Options) (train, val Dataset, err error) {
	if opt.Val != "" && opt.ValSplit != 0 {
		return nil, nil, fmt.Errorf("validation images in %s and a validation split of %g: choose one", opt.Val,
			opt.ValSplit)
	}
	train, val, err = openSplits(path, opt)
	switch {
	case err != nil:
	case opt.Val != "":
		val, err = OpenEval(opt.Val, train.Classes(), TaskOf(train))
	case opt.ValSplit != 0 && val != nil:
		err = errors.Join(fmt.Errorf("%s has validation images beside the training set: leave out the validation split",
			path), closeSet(val))
	case opt.ValSplit != 0:
		var part Dataset
		if part, val, err = SplitByClass(train, opt.ValSplit); err == nil {
			train = part
		}
	}
	if err != nil {
		if train != nil {
			err = errors.Join(err, closeSet(train))
		}
		return nil, nil, err
	}
	return train, val, nil
}

func openSplits(path string, opt Options) (train, val Dataset, err error) {
	if path, err = catalogue.Locate(path, catalogue.Images); err != nil {
		return nil, nil, err
	}
	found, err := format.Find(path, opt.Task)
	if err != nil {
		return nil, nil, err
	}
	if found.Train == nil {
		plain, err := format.ClassFolders(path)
		if err != nil {
			return nil, nil, err
		}
		if plain && (opt.Val != "" || opt.ValSplit != 0 || opt.NoVal) {
			found.Train = func(classes []string) (format.Set, error) { return format.OpenFolder(path, classes) }
		} else if plain && found.Eval == nil {
			return nil, nil, fmt.Errorf("%s: folders of images without a folder train: take them as classes and a "+
				"fifth of each for validation by --val-split 0.2, "+
				"or name the validation images by --val-data", path)
		}
	}
	if found.Train == nil {
		return nil, nil, fmt.Errorf("%s: %s: want <class>/*.jpg with a validation split, as --val-split 0.2; %s; or "+
			"\"glyphs\"", path, format.Lack(path), strings.Join(format.Wanted(), "; "))
	}
	if train, err = openedAs(path, opt.Task)(found.Train(opt.Classes)); err != nil || opt.Val != "" || found.Eval == nil {
		return train, nil, err
	}
	if task := TaskOf(train); task != opt.Task { // the evaluation set is read as one of the same task
		if found, err = format.Find(path, task); err != nil {
			return train, nil, err
		}
	}
	val, err = openedAs(path, TaskOf(train))(found.Eval(train.Classes()))
	return train, val, err
}

// openedAs returns opened for sets of a place that are to be of a task.
func openedAs(path string, task Task) func(set format.Set, err error) (Dataset, error) {
	return func(set format.Set, err error) (Dataset, error) {
		ds, err := opened(set, err)
		if err != nil {
			return nil, err
		}
		to, err := as(ds, task)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), closeSet(ds))
		}
		return to, nil
	}
}

// OpenEval returns one set for evaluation: the validation or test set of a place as Open sees it, a folder of class
// folders, the shards of a folder, or one shard. If only MNIST's t10k is present, that is the set.
//
// Images are mapped to classes by name if the set names its classes, otherwise by index; a class that is not in
// classes is an error. If classes is nil the set's own are used. The task is as in [Options].
func OpenEval(path string, classes []string, task Task) (Dataset, error) {
	path, err := catalogue.Locate(path, catalogue.Images)
	if err != nil {
		return nil, err
	}
	return openedAs(path, task)(format.OpenEval(path, classes, task))
}

// Glyphs returns one of the generated sets.
func Glyphs(split format.GlyphSplit) Dataset {
	set, _ := format.NewGlyphs(split, nil) // cannot fail: a set's classes map to themselves
	return stored{set}
}
