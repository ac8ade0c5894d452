package format

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
)

// The extensions of torchvision's IMG_EXTENSIONS and GIF: those decoded here, and the others.
var (
	imageExtensions = []string{".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif"}
	otherExtensions = []string{".ppm", ".pgm"}
)

// IsImage reports whether a file is named like an image that can be decoded.
func IsImage(name string) bool {
	return slices.Contains(imageExtensions, strings.ToLower(filepath.Ext(name)))
}

// folderLayout is torchvision's ImageFolder: train/<class>/*.jpg beside val/, which may be flat if its labels are
// known.
var folderLayout = layout{
	want: "train/<class>/*.jpg with val/, valid/ or test/",
	find: func(dir *listing) (Splits, error) {
		var s Splits
		if train := dir.folder("train"); train != "" {
			s.Train = func(classes []string) (Set, error) { return OpenFolder(train, classes) }
		}
		if eval := dir.folder(evalNames...); eval != "" {
			s.Eval = func(classes []string) (Set, error) { return OpenFolder(eval, classes) }
		}
		return s, nil
	},
}

// folder is a set of images in class folders, some of which may be empty, in torchvision's order, or in one flat
// folder.
type folder struct {
	root    string
	classes []string
	files   names // relative to root, with slashes
	labels  []int32
	notes
}

var _ Encoded = (*folder)(nil)

// OpenFolder indexes root/<class>/…. Class folders are mapped to classes by name; nil makes their sorted names the
// classes. Folders whose name begins with a dot are skipped. Without class folders root is a flat folder of images.
func OpenFolder(root string, classes []string) (Set, error) {
	entries, err := os.ReadDir(root) // sorted by name, byte-wise
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	var found []string
	for _, e := range entries {
		if isDir(root, e) && !strings.HasPrefix(e.Name(), ".") {
			found = append(found, e.Name())
		}
	}
	if len(found) == 0 {
		return openFlat(root, entries, classes)
	}
	d := &folder{root: root, classes: classes}
	if classes == nil {
		d.classes = found
		if len(found) > 10 && allNumbers(found) {
			d.note("classes called by numbers are in the order of text, as torchvision's: %s", text.Some(found))
		}
	}
	labels, note, err := match(found, d.classes)
	if u := (*unmatched)(nil); errors.As(err, &u) {
		return nil, fmt.Errorf("%s: %w", filepath.Join(root, u.name), err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	if note != "" {
		d.note("%s: %s", root, note)
	}
	passed := skippedImages{}
	for i, class := range found {
		if err := d.addClass(class, labels[i], passed); err != nil {
			return nil, err
		}
	}
	if len(d.labels) == 0 {
		return nil, fmt.Errorf("%s: no class folder has images (%s)", root, strings.Join(imageExtensions, ", "))
	}
	passed.note(&d.notes, root)
	return d, nil
}

// skippedImages counts images skipped for an extension that cannot be decoded.
type skippedImages map[string]int

func (p skippedImages) note(n *notes, where string) {
	for _, ext := range otherExtensions {
		if p[ext] > 0 {
			n.note("%s: %d files %s are passed over: that format cannot be decoded, convert them", where, p[ext], ext)
		}
	}
}

// addClass lists the images of one class as torchvision's make_dataset does: the folders below it
// sorted by path, the files of each sorted by name.
func (d *folder) addClass(class string, label int32, passed skippedImages) error {
	top := filepath.Join(d.root, class)
	byFolder := map[string][]string{}
	other := ""
	if err := walk(d.root, class, nil, func(dir, file string) {
		switch ext := strings.ToLower(filepath.Ext(file)); {
		case slices.Contains(imageExtensions, ext):
			byFolder[dir] = append(byFolder[dir], file)
		case slices.Contains(otherExtensions, ext):
			passed[ext]++
			if other == "" || dir+"/"+file < other {
				other = dir + "/" + file
			}
		}
	}); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	switch {
	case len(byFolder) == 0 && other != "":
		return fmt.Errorf("%s: the class has no image that can be decoded (%s); convert %s and the like", top,
			strings.Join(imageExtensions, ", "), filepath.Join(d.root, filepath.FromSlash(other)))
	}
	dirs := make([]string, 0, len(byFolder))
	for dir := range byFolder {
		dirs = append(dirs, dir)
	}
	slices.SortFunc(dirs, cmp.Compare[string])
	for _, dir := range dirs {
		for _, file := range byFolder[dir] {
			d.files.add(dir + "/" + file)
			d.labels = append(d.labels, label)
		}
	}
	return nil
}

// Images lists the image files below a folder, in the order of their names, following links as training does.
func Images(dir string) (files []string, err error) {
	err = walk(dir, ".", nil, func(sub, file string) {
		if IsImage(file) {
			files = append(files, filepath.Join(dir, filepath.FromSlash(sub), file))
		}
	})
	return files, err
}

// walk visits the files below root/dir, following links except into an enclosing folder.
func walk(root, dir string, within []os.FileInfo, visit func(dir, file string)) error {
	full := filepath.Join(root, filepath.FromSlash(dir))
	info, err := os.Stat(full)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(within, func(up os.FileInfo) bool { return os.SameFile(up, info) }) {
		return nil
	}
	within = append(within, info)
	entries, err := os.ReadDir(full)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isDir(full, e) {
			visit(dir, e.Name())
		} else if err := walk(root, dir+"/"+e.Name(), within, visit); err != nil {
			return err
		}
	}
	return nil
}

// ClassFolders reports whether the folder at path holds folders with images.
func ClassFolders(path string) (bool, error) {
	dir, err := list(path)
	if err != nil {
		return false, err
	}
	for _, e := range dir.entries {
		if !isDir(dir.path, e) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		inside, err := list(filepath.Join(dir.path, e.Name()))
		if err == nil && slices.ContainsFunc(inside.entries, func(f fs.DirEntry) bool {
			return IsImage(f.Name())
		}) {
			return true, nil
		}
	}
	return false, nil
}

// Lack says why no layout was found in a folder.
func Lack(path string) string {
	dir, err := list(path)
	if err != nil {
		return err.Error()
	}
	folders := false
	for _, e := range dir.entries {
		if IsImage(e.Name()) {
			return "images without class folders"
		}
		folders = folders || isDir(dir.path, e) && !strings.HasPrefix(e.Name(), ".")
	}
	if folders {
		return fmt.Sprintf("no class folder has images (%s)", strings.Join(imageExtensions, ", "))
	}
	return "no training set found"
}

// isDir reports whether an entry of dir is a folder or a link to one.
func isDir(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}

func (d *folder) Len() int          { return d.files.len() }
func (d *folder) Classes() []string { return d.classes }
func (d *folder) Channels() int     { return 3 }
func (d *folder) Label(i int) int   { return int(d.labels[i]) }
func (d *folder) Name(i int) string {
	return filepath.Join(d.root, filepath.FromSlash(d.files.at(i)))
}

// Size is the number of bytes of image i's file.
func (d *folder) Size(i int) (int64, error) {
	info, err := os.Stat(d.Name(i))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Encoded implements Encoded.
func (d *folder) Encoded(i int, b *Buffer) ([]byte, error) {
	name := d.Name(i)
	f, size, err := files.OpenSized(name)
	if err != nil {
		return nil, err // names the file
	}
	defer f.Close()
	p, err := b.Read(f, 0, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Expect implements Expecter.
func (d *folder) Expect(i int) {
	if f, _, err := files.OpenSized(d.Name(i)); err == nil {
		willNeed(f, 0, 0)
		f.Close()
	}
}
