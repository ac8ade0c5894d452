package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// layouts names what Open looks for, for errors.
const layouts = "want train/<class>/*.jpg with val/ or test/, train-*.tar with val-*.tar or test-*.tar, MNIST's IDX files, or \"glyphs\""

// Options says how Open reads a place. The zero value reads it as it is.
type Options struct {
	// Val is the place of the validation set, read as OpenEval does, where it is not beside the
	// training set.
	Val string
	// Classes gives the names of the classes by index in place of those that the training set has.
	// Images are mapped to it by name.
	Classes []string
}

// Open finds out the format of the place at path and returns its training and validation sets,
// which share their classes. The validation set is nil where the place has none. An empty path and
// "glyphs" mean the generated set, whose validation set is Glyphs(GlyphTest).
func Open(path string, opt Options) (train, val Dataset, err error) {
	train, val, err = openSplits(path, opt.Classes)
	if err == nil && opt.Val != "" {
		val, err = OpenEval(opt.Val, train.Classes())
	}
	if err != nil {
		return nil, nil, err
	}
	return train, val, nil
}

func openSplits(path string, classes []string) (train, val Dataset, err error) {
	if generated(path) {
		train, err = withClasses(Glyphs(GlyphTrain), classes)
		if err != nil {
			return nil, nil, err
		}
		val, err = withClasses(Glyphs(GlyphTest), train.Classes())
		return train, val, err
	}
	p, err := look(path)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(p.trainShards) > 0:
		if train, err = openShards(p.trainShards, classes); err == nil && len(p.evalShards) > 0 {
			val, err = openShards(p.evalShards, train.Classes())
		}
	case p.trainDir != "":
		if train, err = openFolder(p.trainDir, classes); err == nil && p.evalDir != "" {
			val, err = openFolder(p.evalDir, train.Classes())
		}
	case p.trainIDX != nil:
		if train, err = openIDX(*p.trainIDX, classes); err == nil && p.testIDX != nil {
			val, err = openIDX(*p.testIDX, train.Classes())
		}
	case p.testIDX != nil:
		var all Dataset
		if all, err = openIDX(*p.testIDX, classes); err == nil {
			train, val = span(all, 0, splitAt(all)), span(all, splitAt(all), all.Len())
		}
	default:
		err = fmt.Errorf("%s: no training set found: %s", path, layouts)
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
	if generated(path) {
		return withClasses(Glyphs(GlyphTest), classes)
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() && strings.HasSuffix(path, ".tar") {
		return openShards([]string{path}, classes)
	}
	p, err := look(path)
	if err != nil {
		return nil, err
	}
	switch {
	case len(p.evalShards) > 0:
		return openShards(p.evalShards, classes)
	case len(p.otherShards) > 0:
		return openShards(p.otherShards, classes)
	case p.evalDir != "":
		return openFolder(p.evalDir, classes)
	case p.testIDX != nil:
		all, err := openIDX(*p.testIDX, classes)
		if err != nil || p.trainIDX != nil {
			return all, err
		}
		return span(all, splitAt(all), all.Len()), nil
	case len(p.trainShards) > 0 || p.trainIDX != nil || p.trainDir != "" && !slices.Contains(classes, "train"):
		return nil, fmt.Errorf("%s: holds a training set only; name the folder or shard to evaluate on", path)
	}
	return openFolder(path, classes)
}

func generated(path string) bool { return path == "" || path == "glyphs" }

// place is what a folder holds.
type place struct {
	trainShards, evalShards, otherShards []string
	trainDir, evalDir                    string
	trainIDX, testIDX                    *idxFiles
}

func look(path string) (place, error) {
	var p place
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return p, fmt.Errorf("data: %w", err)
	}
	var val, test []string
	for _, e := range entries {
		full := filepath.Join(path, e.Name())
		if !strings.HasSuffix(e.Name(), ".tar") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		switch {
		case strings.HasPrefix(e.Name(), "train-"):
			p.trainShards = append(p.trainShards, full)
		case strings.HasPrefix(e.Name(), "val-"):
			val = append(val, full)
		case strings.HasPrefix(e.Name(), "test-"):
			test = append(test, full)
		default:
			p.otherShards = append(p.otherShards, full)
		}
	}
	if p.evalShards = val; len(val) == 0 {
		p.evalShards = test
	}
	p.trainDir = subfolder(path, "train")
	if p.evalDir = subfolder(path, "val"); p.evalDir == "" {
		p.evalDir = subfolder(path, "test")
	}
	var errTrain, errTest error
	p.trainIDX, errTrain = findIDX(path, "train")
	p.testIDX, errTest = findIDX(path, "t10k")
	return p, errors.Join(errTrain, errTest)
}

// subfolder is the path of a folder inside dir, "" if there is none.
func subfolder(dir, name string) string {
	full := filepath.Join(dir, name)
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		return ""
	}
	return full
}
