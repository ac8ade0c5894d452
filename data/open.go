package data

import (
	"errors"
	"fmt"
	"strings"

	"onlinerna/data/format"
	"onlinerna/internal/catalogue"
)

// Options says how Open reads a place. The zero value reads it as it is.
type Options struct {
	// Val is the place of the validation set, read as OpenEval does, where it is not beside the
	// training set.
	Val string
	// ValSplit is the share of the training set that becomes the validation set, where the place has none: see
	// SplitByClass. 0 for none.
	ValSplit float64
	// NoVal opens a folder of class folders alone as the training set although nothing says what to validate on.
	NoVal bool
	// Classes gives the names of the classes by index in place of those that the training set has.
	// Images are mapped to it by name.
	Classes []string
}

// Open finds out the format of the place at path and returns its training and validation sets, which share their
// classes. The validation set is nil where the place has none. A folder of class folders alone is the training set
// where the options say what to validate on, or that nothing is to be. An empty path and "glyphs" mean the generated
// set, whose validation set is Glyphs(format.GlyphTest); the name of a set that can be downloaded means the one of the
// cache folder, where no such folder is here: see [catalogue.Locate].
func Open(path string, opt Options) (train, val Dataset, err error) {
	if opt.Val != "" && opt.ValSplit != 0 {
		return nil, nil, fmt.Errorf("validation images in %s and a validation split of %g: choose one", opt.Val,
			opt.ValSplit)
	}
	train, val, err = openSplits(path, opt)
	switch {
	case err != nil:
	case opt.Val != "":
		val, err = OpenEval(opt.Val, train.Classes())
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
	found, err := format.Find(path)
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
		return nil, nil, fmt.Errorf("%s: no training set found: want %s, or \"glyphs\"", path,
			strings.Join(format.Wanted(), "; "))
	}
	if train, err = opened(found.Train(opt.Classes)); err == nil && opt.Val == "" && found.Eval != nil {
		val, err = opened(found.Eval(train.Classes()))
	}
	return train, val, err
}

// OpenEval returns one set for evaluation: the validation or test set of a place as Open sees it, a
// folder of class folders, the shards of a folder, or one shard. Where only MNIST's t10k is present
// it is the part that Open validates on.
//
// Images are mapped to classes by name where the set names its classes, by index otherwise; a class
// that is not among classes is an error. If classes is nil the set's own are used.
func OpenEval(path string, classes []string) (Dataset, error) {
	path, err := catalogue.Locate(path, catalogue.Images)
	if err != nil {
		return nil, err
	}
	return opened(format.OpenEval(path, classes))
}

// Glyphs returns one of the generated sets.
func Glyphs(split format.GlyphSplit) Dataset {
	set, _ := format.NewGlyphs(split, nil) // its own classes are among themselves
	return stored{set}
}
