package format

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Wanted lists the files of each form, for an error about a place without any.
func Wanted() []string {
	var list []string
	for _, l := range layouts {
		list = append(list, l.want)
	}
	return list
}

// Find finds the training and evaluation sets of a folder, by the first layout that matches. The empty path and
// "glyphs" mean the generated set. An empty task means that of the data; sets of forms that have classes alone are for
// classification whatever the task.
func Find(path string, task Task) (Splits, error) {
	var found Splits
	if generated(path) {
		return Splits{Train: glyphOpener(GlyphTrain), Eval: glyphOpener(GlyphTest)}, nil
	}
	dir, err := list(path)
	if err != nil {
		return found, err
	}
	dir.task = task
	for _, l := range layouts {
		s, err := l.find(dir)
		if err != nil {
			return found, err
		}
		if found.Train == nil {
			found.Train = s.Train
		}
		if found.Eval == nil {
			found.Eval = s.Eval
		}
		if found.Other == nil {
			found.Other = s.Other
		}
	}
	return found, nil
}

// OpenEval returns one set for evaluation: the validation or test set of a place as Find sees it, a folder of class
// folders, the shards of a folder, or one shard. If only MNIST's t10k is present, it is the evaluation part of that.
//
// Images are mapped to classes by name if the set names its classes, otherwise by index; a class that is not in
// classes is an error. If classes is nil the set's own are used. The task is as for Find.
func OpenEval(path string, classes []string, task Task) (Set, error) {
	if generated(path) {
		return glyphOpener(GlyphTest)(classes)
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return openFile(path, classes, task)
	}
	found, err := Find(path, task)
	switch {
	case err != nil:
		return nil, err
	case found.Eval != nil:
		return found.Eval(classes)
	case found.Other != nil:
		return found.Other(classes)
	case found.Train != nil && !slices.Contains(classes, "train"):
		return nil, fmt.Errorf("%s: holds a training set only; name the folder or shard to evaluate on", path)
	}
	return OpenFolder(path, classes)
}

// openFile opens a set that is one file.
func openFile(path string, classes []string, task Task) (Set, error) {
	switch {
	case strings.HasSuffix(path, ".tar"):
		return openTar(path, classes)
	case strings.HasSuffix(path, ".parquet"):
		return openParquet([]string{path}, classes)
	case strings.HasSuffix(path, rawExtension):
		return openRaw([]string{path}, classes)
	case strings.HasSuffix(path, ".csv"):
		return openTable(path, classes, task)
	case isRecordName(path):
		return openRecords([]string{path}, classes)
	}
	return nil, fmt.Errorf("%s: unknown kind of data: want a folder, or a file *.tar, *.parquet, "+
		"*.csv, *.tfrecord or *%s", path, rawExtension)
}

func generated(path string) bool { return path == "" || path == "glyphs" }

func glyphOpener(split GlyphSplit) Opener {
	return func(classes []string) (Set, error) { return asSet(NewGlyphs(split, classes)) }
}
