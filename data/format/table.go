package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
			return func(classes []string) (Set, error) { return openTable(path, classes) }, nil
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

// openTable reads a table of images, with paths relative to its folder, and their classes. Classes are mapped to
// classes by name; nil makes their sorted names the classes.
func openTable(path string, classes []string) (Set, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	d := &folder{root: filepath.Dir(path)}
	var found []string // classes by image
	var lines []int
	seen := map[string]int{}
	r := csv.NewReader(f)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	file, class, width := 0, 1, 2
	for first := true; ; first = false {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		line, _ := r.FieldPos(0)
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("%s, line %d: "+format, append([]any{path, line}, args...)...)
		}
		if first {
			row[0] = strings.TrimPrefix(row[0], "\ufeff")
			if !slices.ContainsFunc(row, IsImage) {
				if file, class = column(row, fileColumns), column(row, labelColumns); file < 0 || class < 0 {
					return nil, wrong("want the columns file and label, or a file and its class in each row: found %s",
						strings.Join(row, ","))
				}
				width = len(row)
				continue
			}
		}
		if len(row) != width {
			return nil, wrong("%s in place of %d: quote what has a comma in it", text.Count(len(row), "cell"), width)
		}
		name, label := strings.TrimSpace(row[file]), strings.TrimSpace(row[class])
		if err := d.checkRow(name, label); err != nil {
			return nil, wrong("%w", err)
		}
		clean := filepath.ToSlash(filepath.Clean(filepath.FromSlash(name)))
		if before, twice := seen[clean]; twice {
			return nil, wrong("%s is in line %d, too: remove one of the rows", name, before)
		}
		seen[clean] = line
		d.files.add(clean)
		found, lines = append(found, strings.Clone(label)), append(lines, line)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no images: want a row file,class for each", path)
	}
	d.classes, d.labels, err = label(found, classes, &d.notes)
	if u := (*unmatched)(nil); errors.As(err, &u) {
		return nil, fmt.Errorf("%s, line %d: %w: correct the name, or add images of it to the training set", path,
			lines[slices.Index(found, u.name)], err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// column is the first column with one of the names, -1 for none.
func column(head, names []string) int {
	return slices.IndexFunc(head, func(cell string) bool {
		return slices.Contains(names, strings.ToLower(strings.TrimSpace(cell)))
	})
}

// checkRow checks the file and the class of a row.
func (d *folder) checkRow(name, label string) error {
	switch {
	case !IsImage(name):
		return fmt.Errorf("%q is no image: want a name that ends in %s", name, strings.Join(imageExtensions, ", "))
	case filepath.IsAbs(filepath.FromSlash(name)):
		return fmt.Errorf("%s: want a path relative to the folder of the table", name)
	case label == "":
		return fmt.Errorf("%s has no class: name it, or remove the row", name)
	case strings.Contains(label, ";"):
		return fmt.Errorf("%s has several classes, %s: a net here tells classes of which an image has one", name, label)
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
