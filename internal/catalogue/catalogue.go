// Package catalogue lists the sets of images and the weights that can be downloaded: their addresses, sizes and
// checksums, and the place of each in the cache folder, in which --data and --init look by name. Package fetch
// downloads them.
package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/nearest"
	"onlinerna/internal/text"
)

// Variable is the environment variable that names the cache folder.
const Variable = "RNA_CACHE"

// Kind is the purpose of an item.
type Kind string

// The kinds of items.
const (
	Images  Kind = "images"
	Weights Kind = "weights"
)

// Item is something that can be downloaded.
type Item struct {
	Name  string
	Kind  Kind
	About string // in a few words
	// Files are its files. For an item with Archives they are the contents of one of them: the first is downloaded, any
	// one that exists is used.
	Files, Archives []File
	Unpacked        int64    // bytes at most, of archives
	Classes         []string // of images whose files do not name them
	Net             string   // that the weights are of

	// Folder is the item's own folder in the cache folder, of a repository. Record is a file that it gets when it is
	// whole.
	Folder string
	Record []byte
}

// File is one file at several addresses.
type File struct {
	Name      string
	Addresses []string // tried in turn
	Size      int64    // in bytes
	Rough     bool     // Size is within a percent
	SHA256    string   // in hexadecimal, or its first digits
	Git       string   // the SHA-1 of Git's blob, of a file without SHA256
}

// Sum names the checksum.
func (f File) Sum() string {
	if f.SHA256 == "" {
		return "Git's SHA-1 " + f.Git
	}
	if len(f.SHA256) < 64 {
		return "SHA-256 begins with " + f.SHA256
	}
	return "SHA-256 " + f.SHA256
}

// Dir is the cache folder: that of [Variable], or rna in the user's own.
func Dir() (string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for downloads: %w; name one by %s", err, Variable)
	}
	return filepath.Join(dir, "rna"), nil
}

// Path is where the item is in a cache folder: a folder of images or of a repository, or a file of weights.
func (it Item) Path(dir string) string {
	if it.Folder != "" {
		return filepath.Join(dir, it.Folder)
	}
	if it.Kind == Weights {
		return filepath.Join(dir, "weights", it.Files[0].Name)
	}
	return filepath.Join(dir, "data", it.Name)
}

// Place is where a file of the item belongs in a cache folder.
func (it Item) Place(dir string, f File) string {
	switch {
	case it.Folder != "":
		return filepath.Join(dir, it.Folder, f.Name)
	case it.Kind == Weights:
		return filepath.Join(dir, "weights", f.Name)
	case it.Archives != nil:
		return filepath.Join(dir, "data", f.Name)
	}
	return filepath.Join(dir, "data", it.Name, f.Name)
}

// Needed are the files to download.
func (it Item) Needed() []File {
	if it.Archives != nil {
		return it.Archives[:1]
	}
	return it.Files
}

// Size is the size of the files to download.
func (it Item) Size() (n int64) {
	for _, f := range it.Needed() {
		n += f.Size
	}
	return n
}

// Here reports whether the item is in a cache folder.
func (it Item) Here(dir string) bool {
	if it.Archives != nil {
		st, err := os.Stat(it.Path(dir)) // whole, or absent
		return err == nil && st.IsDir()
	}
	for _, f := range it.Files {
		if st, err := os.Stat(it.Place(dir, f)); err != nil || !st.Mode().IsRegular() || !f.Rough &&
			st.Size() != f.Size {
			return false
		}
	}
	return true
}

var items []Item

// Register adds items. A later one of the same name takes the place of an earlier one.
func Register(list ...Item) {
	for _, it := range list {
		if i := slices.IndexFunc(items, func(o Item) bool { return o.Name == it.Name }); i >= 0 {
			items[i] = it
		} else {
			items = append(items, it)
		}
	}
}

// All lists the items.
func All() []Item { return slices.Clone(items) }

// Find finds an item by its name, in upper or lower case, with - or _; of images also without: CIFAR-10 is cifar10.
// Weights of a net without a version are torchvision's default ones.
func Find(name string) (Item, bool) {
	alike := func(it Item) bool { return dashed.Replace(it.Name) == dashed.Replace(strings.ToLower(name)) }
	joint := func(it Item) bool {
		return it.Kind == Images && joined.Replace(it.Name) == joined.Replace(strings.ToLower(name))
	}
	for _, same := range []func(Item) bool{alike, joint} {
		if i := slices.IndexFunc(items, same); i >= 0 {
			return items[i], true
		}
	}
	return Item{}, false
}

var (
	dashed = strings.NewReplacer("_", "-")
	joined = strings.NewReplacer("_", "", "-", "")
)

// NamesWeights reports whether a path that is not here is the name of weights to download.
func NamesWeights(path string) bool {
	it, ok := Find(path)
	_, _, repo := repoOf(path)
	return ok && it.Kind == Weights || repo
}

// Locate returns a path unchanged if it exists or names no item of the kind. For the name of an item or of a [Repo] of
// weights it returns the path in the cache folder; if it is missing the error says how to get it. A word that is
// neither, but near an item's name, is an error, too.
func Locate(path string, kind Kind) (string, error) {
	if _, err := os.Stat(path); err == nil || path == "" {
		return path, nil
	}
	if kind == Weights {
		if r, at, ok := repoOf(path); ok && at == "" {
			return "", r.missing()
		} else if ok {
			return at, nil
		}
	}
	it, ok := Find(path)
	if !ok || it.Kind != kind {
		return path, mistyped(path, kind)
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	if !it.Here(dir) {
		return "", fmt.Errorf("%s is not here: \"rna get %s\" downloads it (%s) to %s",
			path, it.Name, text.Bytes(it.Size()), it.Path(dir))
	}
	return it.Path(dir), nil
}

// mistyped returns an error for a word that names no file here, but nearly an item of the kind.
func mistyped(path string, kind Kind) error {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Base(path) != path || filepath.Ext(path) != "" {
		return nil
	}
	var names []string
	for _, it := range items {
		if it.Kind == kind {
			names = append(names, it.Name)
		}
	}
	near := nearest.To(path, names)
	if near == "" {
		return nil
	}
	return fmt.Errorf("%s: %w, did you mean %s of \"rna get\"?", path, errors.Unwrap(err), near)
}
