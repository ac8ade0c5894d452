package data

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Options says how Open reads a place. The zero value reads it as it is.
type Options struct {
	// Val is the place of the validation set, read as OpenEval does, where it is not beside the
	// training set.
	Val string
	// ValSplit is the share of the training set that becomes the validation set, where the place has none: see SplitByClass. 0 for none.
	ValSplit float64
	// Classes gives the names of the classes by index in place of those that the training set has.
	// Images are mapped to it by name.
	Classes []string
}

// Open finds out the format of the place at path and returns its training and validation sets,
// which share their classes. The validation set is nil where the place has none. A folder of class folders alone is the training set
// where the options say what to validate on. An empty path and
// "glyphs" mean the generated set, whose validation set is Glyphs(GlyphTest).
func Open(path string, opt Options) (train, val Dataset, err error) {
	if opt.Val != "" && opt.ValSplit != 0 {
		return nil, nil, fmt.Errorf("validation images in %s and a validation split of %g: choose one", opt.Val, opt.ValSplit)
	}
	train, val, err = openSplits(path, opt)
	switch {
	case err != nil:
	case opt.Val != "":
		val, err = OpenEval(opt.Val, train.Classes())
	case opt.ValSplit != 0 && val != nil:
		err = errors.Join(fmt.Errorf("%s has validation images beside the training set: leave out the validation split", path), closeSet(val))
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
	found := splits{train: glyphOpener(GlyphTrain), eval: glyphOpener(GlyphTest)}
	if !generated(path) {
		if found, err = look(path); err != nil {
			return nil, nil, err
		}
	}
	if found.train == nil {
		dir, err := list(path)
		if err != nil {
			return nil, nil, err
		}
		if plain := classFolders(dir); plain && (opt.Val != "" || opt.ValSplit != 0) {
			found.train = func(classes []string) (Dataset, error) { return openFolder(path, classes) }
		} else if plain && found.eval == nil {
			return nil, nil, fmt.Errorf("%s: folders of images without a folder train: take them as classes and a fifth of each for validation by --val-split 0.2, "+
				"or name the validation images by --val-data", path)
		}
	}
	if found.train == nil {
		var want []string
		for _, l := range layouts {
			want = append(want, l.want)
		}
		return nil, nil, fmt.Errorf("%s: no training set found: want %s, or \"glyphs\"", path, strings.Join(want, "; "))
	}
	if train, err = found.train(opt.Classes); err == nil && opt.Val == "" && found.eval != nil {
		val, err = found.eval(train.Classes())
	}
	return train, val, err
}

// look finds the sets of a folder: those for training and evaluation by the first layout that has them.
func look(path string) (splits, error) {
	var found splits
	dir, err := list(path)
	if err != nil {
		return found, err
	}
	for _, l := range layouts {
		s, err := l.find(dir)
		if err != nil {
			return found, err
		}
		if found.train == nil {
			found.train = s.train
		}
		if found.eval == nil {
			found.eval = s.eval
		}
		if found.other == nil {
			found.other = s.other
		}
	}
	return found, nil
}

// OpenEval returns one set for evaluation: the validation or test set of a place as Open sees it, a
// folder of class folders, the shards of a folder, or one shard. Where only MNIST's t10k is present
// it is the part that Open validates on.
//
// Images are mapped to classes by name where the set names its classes, by index otherwise; a class
// that is not among classes is an error. If classes is nil the set's own are used.
func OpenEval(path string, classes []string) (Dataset, error) {
	if generated(path) {
		return glyphOpener(GlyphTest)(classes)
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return openFile(path, classes)
	}
	found, err := look(path)
	switch {
	case err != nil:
		return nil, err
	case found.eval != nil:
		return found.eval(classes)
	case found.other != nil:
		return found.other(classes)
	case found.train != nil && !slices.Contains(classes, "train"):
		return nil, fmt.Errorf("%s: holds a training set only; name the folder or shard to evaluate on", path)
	}
	return openFolder(path, classes)
}

// openFile opens one file of a kind that a set can consist of.
func openFile(path string, classes []string) (Dataset, error) {
	switch {
	case strings.HasSuffix(path, ".tar"):
		return openTar(path, classes)
	case strings.HasSuffix(path, ".parquet"):
		return openParquet([]string{path}, classes)
	case strings.HasSuffix(path, rawExtension):
		return openRaw([]string{path}, classes)
	case isRecordName(path):
		return openRecords([]string{path}, classes)
	}
	return nil, fmt.Errorf("%s: cannot tell what kind of data it is: want a folder, or a file *.tar, *.parquet, *.tfrecord or *%s", path, rawExtension)
}

func generated(path string) bool { return path == "" || path == "glyphs" }

func glyphOpener(split GlyphSplit) opener {
	return func(classes []string) (Dataset, error) { return withClasses(Glyphs(split), classes) }
}
