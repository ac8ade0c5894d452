package format

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// layout is a form of a data set in a folder; each has its own source file.
type layout struct {
	want string // its files, for errors
	find func(dir *listing) (Splits, error)
}

// layouts are tried in this order, special ones first.
var layouts = []layout{
	imageNetLayout, kaggleLayout, rawLayout, parquetLayout, recordLayout, shardLayout, tableLayout, folderLayout,
	cifarLayout, idxLayout,
}

// Splits are the sets of a place; nil if it has no such set.
type Splits struct {
	Train, Eval Opener
	Other       Opener // images of unknown purpose
}

// Opener opens a set and maps its images to classes; nil keeps the set's own classes.
type Opener func(classes []string) (Set, error)

// listing is a folder and its entries.
type listing struct {
	path    string
	entries []fs.DirEntry // sorted by name
	task    Task          // empty: by the data
}

func list(path string) (*listing, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return &listing{path: path, entries: entries}, nil
}

// file is the path of the first of the names that is a file, "" if there is none.
func (l *listing) file(names ...string) string {
	for _, name := range names {
		full := filepath.Join(l.path, name)
		if info, err := os.Stat(full); err == nil && !info.IsDir() {
			return full
		}
	}
	return ""
}

// folder is the path of the first of the names that is a folder, "" if there is none.
func (l *listing) folder(names ...string) string {
	for _, name := range names {
		full := filepath.Join(l.path, name)
		if info, err := os.Stat(full); err == nil && info.IsDir() {
			return full
		}
	}
	return ""
}

// nested returns the only existing one of some folders within this one, "" for none.
func (l *listing) nested(names ...string) (found string, err error) {
	for _, name := range names {
		path := l.folder(name)
		if path != "" && found != "" {
			return "", fmt.Errorf("%s holds several data sets: name %s or %s", l.path, found, path)
		}
		if path != "" {
			found = path
		}
	}
	return found, nil
}

// evalNames are common names of validation sets, in the order of preference.
var evalNames = []string{"val", "valid", "validation", "test"}

// sharded divides the files with matching names into those for training, for evaluation (the first of evalNames that
// occurs) and others.
func (l *listing) sharded(match func(name string) bool) (train, eval, other []string) {
	byName := map[string][]string{}
	for _, e := range l.entries {
		if name := e.Name(); !e.IsDir() && !strings.HasPrefix(name, ".") && match(name) {
			split := splitOf(name)
			byName[split] = append(byName[split], filepath.Join(l.path, name))
		}
	}
	for _, name := range evalNames {
		if eval = byName[name]; len(eval) > 0 {
			break
		}
	}
	return byName["train"], eval, byName[""]
}

// splitOf is "train" or one of evalNames, the first of them that is a word of the file name, else "".
func splitOf(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	for _, word := range words {
		if word == "train" {
			return word
		}
		for _, eval := range evalNames {
			if word == eval {
				return word
			}
		}
	}
	return ""
}

// openers makes splits of sharded files.
func openers(train, eval, other []string, open func(paths, classes []string) (Set, error)) Splits {
	opener := func(paths []string) Opener {
		if len(paths) == 0 {
			return nil
		}
		return func(classes []string) (Set, error) { return open(paths, classes) }
	}
	return Splits{opener(train), opener(eval), opener(other)}
}
