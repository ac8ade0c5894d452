package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
)

// tableLayout is a table of files and their classes: train.csv beside val.csv, or labels.csv alone. Class folders in
// train/ or val/ go before it.
var tableLayout = layout{
	want: "train.csv with val.csv, of rows file,class",
	find: func(dir *listing) (Splits, error) {
		var s Splits
		opener := func(folders []string, tables ...string) (Opener, error) {
			path := dir.file(tables...)
			if path == "" {
				return nil, nil
			}
			if inside := dir.folder(folders...); inside != "" {
				if plain, err := ClassFolders(inside); plain || err != nil {
					return nil, err
				}
			}
			return func(classes []string) (Set, error) { return openTable(path, classes, dir.task) }, nil
		}
		var evals []string
		for _, name := range evalNames {
			evals = append(evals, name+".csv")
		}
		var err, err2 error
		s.Train, err = opener([]string{"train"}, "train.csv", "labels.csv")
		if s.Train != nil {
			s.Eval, err2 = opener(evalNames, evals...)
		}
		return s, errors.Join(err, err2)
	},
}

// Names of the columns in a table's first line; without one a row is a file and its class.
var (
	fileColumns  = []string{"file", "filename", "file_name", "path", "image"}
	labelColumns = []string{"label", "labels", "class", "class_name"}
)

// openTable reads a table of images, with paths relative to its folder, and their classes or, for regression, their
// numbers. Classes are mapped to classes by name; nil makes their sorted names the classes. A cell of several classes
// separates them by semicolons, and makes the set multi-label unless it is to be for classification.
func openTable(path string, classes []string, task Task) (Set, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	t := &table{folder: &folder{root: filepath.Dir(path)}, path: path, task: task, file: 0, class: 1, width: 2,
		classes: classes, seen: map[string]int{}}
	r := csv.NewReader(f)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	for first := true; ; first = false {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		t.line, _ = r.FieldPos(0)
		if first {
			row[0] = strings.TrimPrefix(row[0], "\ufeff")
			head, err := t.head(row)
			if err != nil {
				return nil, t.wrong(err)
			}
			if head {
				continue
			}
		}
		if err := t.row(row); err != nil {
			return nil, t.wrong(err)
		}
	}
	if len(t.lines) == 0 {
		return nil, fmt.Errorf("%s: no images: want a row file,class for each", path)
	}
	return t.finish()
}

// table is a table that is being read.
type table struct {
	*folder
	path               string
	task               Task
	line               int
	file, class, width int            // columns of the file and its class, cells of a row
	columns            []int          // of regression: by target
	classes            []string       // as asked for
	found              []string       // classes by image
	numbers            []float64      // by image
	lines              []int          // by image
	seen               map[string]int // line by file
	unlabelled         error          // of the first image without a class
	several            bool           // an image has several classes
}

func (t *table) wrong(err error) error { return fmt.Errorf("%s, line %d: %w", t.path, t.line, err) }

// head takes the first row, and reports whether it has the names of the columns.
func (t *table) head(row []string) (bool, error) {
	t.width = len(row)
	named := !slices.ContainsFunc(row, IsImage)
	if t.task == Regression {
		return named, t.numberColumns(row, named)
	}
	if !named {
		t.width = 2
		return false, nil
	}
	if t.file, t.class = column(row, fileColumns), column(row, labelColumns); t.file < 0 || t.class < 0 {
		return true, fmt.Errorf("want the columns file and label, or a file and its class in each row: found %s",
			strings.Join(row, ","))
	}
	return true, nil
}

// numberColumns finds the columns of a regression's targets: those that are asked for, or all but the file's.
func (t *table) numberColumns(row []string, named bool) error {
	if named {
		if t.file = column(row, fileColumns); t.file < 0 {
			return fmt.Errorf("want a column file, and others of numbers: found %s", strings.Join(row, ","))
		}
	}
	var names []string
	for i, cell := range row {
		if i == t.file {
			continue
		}
		name := strings.Clone(strings.TrimSpace(cell))
		if !named {
			name = fmt.Sprintf("target %d", len(names)+1)
		}
		names = append(names, name)
		t.columns = append(t.columns, i)
	}
	if len(names) == 0 {
		return errors.New("want a column of numbers beside that of files")
	}
	if t.classes == nil {
		t.folder.classes = names
		return nil
	}
	all := t.columns
	t.folder.classes, t.columns = t.classes, nil
	for _, name := range t.classes {
		k := slices.Index(names, name)
		if k < 0 {
			return fmt.Errorf("there is no column %s: found %s", name, strings.Join(names, ","))
		}
		t.columns = append(t.columns, all[k])
	}
	return nil
}

// row takes an image.
func (t *table) row(row []string) error {
	if len(row) != t.width {
		return fmt.Errorf("%s in place of %d: quote cells that contain a comma", text.Count(len(row), "cell"), t.width)
	}
	name := strings.TrimSpace(row[t.file])
	if err := t.checkFile(name); err != nil {
		return err
	}
	clean := filepath.ToSlash(filepath.Clean(filepath.FromSlash(name)))
	if before, twice := t.seen[clean]; twice {
		return fmt.Errorf("%s is in line %d, too: remove one of the rows", name, before)
	}
	for k, c := range t.columns {
		x, err := strconv.ParseFloat(strings.TrimSpace(row[c]), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s: %s is %q: want a finite number in each column but the file's", name,
				t.folder.classes[k], row[c])
		}
		t.numbers = append(t.numbers, x)
	}
	if t.task != Regression {
		if err := t.label(name, strings.TrimSpace(row[t.class])); err != nil {
			return err
		}
	}
	t.seen[clean] = t.line
	t.files.add(clean)
	t.lines = append(t.lines, t.line)
	return nil
}

// label takes the class of an image.
func (t *table) label(name, label string) error {
	switch {
	case label == "" && t.unlabelled == nil:
		t.unlabelled = t.wrong(fmt.Errorf("%s has no class: name it, or remove the row", name))
	case strings.Contains(label, ";") && t.task == Classification:
		return fmt.Errorf("%s has several classes, %s: that is of the task %s", name, label, MultiLabel)
	case strings.Contains(label, ";"):
		t.several = true
	}
	t.found = append(t.found, strings.Clone(label))
	return nil
}

// finish translates the classes.
func (t *table) finish() (Set, error) {
	d := t.folder
	if t.task == Regression {
		return &targetedFolder{d, targets{task: Regression, width: len(d.classes), numbers: t.numbers}}, nil
	}
	if t.several || t.task == MultiLabel {
		return t.multi()
	}
	if t.unlabelled != nil {
		return nil, t.unlabelled
	}
	var err error
	d.classes, d.labels, err = label(t.found, t.classes, &d.notes)
	if err != nil {
		return nil, t.unknown(err, func(cell string) []string { return []string{cell} })
	}
	return d, nil
}

// multi makes the multi-label set.
func (t *table) multi() (Set, error) {
	split := func(cell string) (names []string) {
		for name := range strings.SplitSeq(cell, ";") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	}
	var all []string
	set := &targetedFolder{folder: t.folder, targets: targets{task: MultiLabel}}
	for _, cell := range t.found {
		all = append(all, split(cell)...)
		set.ends = append(set.ends, len(all))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no image has a class", t.path)
	}
	var err error
	if t.folder.classes, set.shown, err = label(all, t.classes, &t.folder.notes); err != nil {
		return nil, t.unknown(err, split)
	}
	return set, nil
}

// unknown adds the line to the error of an unknown class.
func (t *table) unknown(err error, split func(cell string) []string) error {
	u := (*unmatched)(nil)
	if !errors.As(err, &u) {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	i := slices.IndexFunc(t.found, func(cell string) bool { return slices.Contains(split(cell), u.name) })
	return fmt.Errorf("%s, line %d: %w: correct the name, or add images of it to the training set", t.path, t.lines[i],
		err)
}

// column is the first column with one of the names, -1 for none.
func column(head, names []string) int {
	return slices.IndexFunc(head, func(cell string) bool {
		return slices.Contains(names, strings.ToLower(strings.TrimSpace(cell)))
	})
}

// checkFile checks the file of a row.
func (d *folder) checkFile(name string) error {
	switch {
	case !IsImage(name):
		return fmt.Errorf("%q is no image: want a name that ends in %s", name, strings.Join(imageExtensions, ", "))
	case filepath.IsAbs(filepath.FromSlash(name)):
		return fmt.Errorf("%s: want a path relative to the folder of the table", name)
	}
	full := filepath.Join(d.root, filepath.FromSlash(name))
	if info, err := os.Stat(full); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no file %s: add it, or remove the row", full)
	} else if err != nil {
		return err
	} else if info.IsDir() {
		return fmt.Errorf("%s is a folder: want an image", full)
	}
	return nil
}
