package format

import (
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/files"
)

// CIFAR's images: three channels, one after the other.
const (
	cifarSide  = 32
	cifarImage = 3 * cifarSide * cifarSide
)

// cifarForm is one of the forms in which CIFAR-10 and CIFAR-100 are distributed.
type cifarForm struct {
	train  []string
	test   string
	names  string // the file that names the classes
	labels int    // bytes before an image of the binary form, the last of them its class; 0 for the Python form
	key    string // of the labels in the Python form
	title  string // of the classes in the file of names
	count  int    // of classes
}

var cifarForms = []cifarForm{
	{train: batches(".bin"), test: "test_batch.bin", names: "batches.meta.txt", labels: 1, count: 10},
	{train: []string{"train.bin"}, test: "test.bin", names: "fine_label_names.txt", labels: 2, count: 100},
	{train: batches(""), test: "test_batch", names: "batches.meta", key: "labels", title: "label_names", count: 10},
	{train: []string{"train"}, test: "test", names: "meta", key: "fine_labels", title: "fine_label_names", count: 100},
}

func batches(extension string) (names []string) {
	for i := range 5 {
		names = append(names, fmt.Sprintf("data_batch_%d%s", i+1, extension))
	}
	return names
}

// cifarLayout is CIFAR's, also in a folder in which torchvision keeps it.
var cifarLayout = layout{
	want: "CIFAR's data_batch_1 … or train with test, binary or Python",
	find: func(dir *listing) (Splits, error) {
		inner, err := dir.nested("cifar-10-batches-py", "cifar-10-batches-bin", "cifar-100-python", "cifar-100-binary")
		if err != nil {
			return Splits{}, err
		}
		if inner != "" {
			dir = &listing{path: inner}
		}
		for _, form := range cifarForms {
			s, err := form.find(dir)
			if err != nil || s.Train != nil || s.Eval != nil {
				return s, err
			}
		}
		return Splits{}, nil
	},
}

func (form cifarForm) find(dir *listing) (Splits, error) {
	train, test := dir.file(form.train...) != "", dir.file(form.test) != ""
	if form.key != "" && !isPickle(dir.file(append(slices.Clone(form.train), form.test)...)) {
		return Splits{}, nil // "train" and "test" are common names of other files
	}
	for _, name := range form.train {
		if train && dir.file(name) == "" {
			return Splits{}, fmt.Errorf("%s: %s is missing, one of the files of CIFAR-%d", dir.path, name, form.count)
		}
	}
	open := func(there bool, names ...string) Opener {
		if !there {
			return nil
		}
		return func(classes []string) (Set, error) { return asSet(form.open(dir.path, names, classes)) }
	}
	return Splits{Train: open(train, form.train...), Eval: open(test, form.test)}, nil
}

// isPickle reports whether a file begins like a pickle of protocol 2 or later.
func isPickle(path string) bool {
	f, err := files.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5
}

// cifar is a set whose files store images channel after channel.
type cifar struct {
	archive
	turned map[*shardFile][]byte // images of files that hold them column by column
}

var _ Pixels = (*cifar)(nil)

// open opens some files of a folder.
func (form cifarForm) open(dir string, names, classes []string) (*cifar, error) {
	d := &cifar{turned: map[*shardFile][]byte{}}
	own, err := form.classes(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		file := &shardFile{path: filepath.Join(dir, name), keep: true}
		d.files, d.first = append(d.files, file), append(d.first, len(d.labels))
		add := d.addBinary
		if form.key != "" {
			add = d.addPython
		}
		if err := add(form, file); err != nil {
			return nil, fmt.Errorf("%s: %w", file.path, err)
		}
	}
	for i, label := range d.labels {
		if int(label) >= len(own) {
			return nil, fmt.Errorf("%s: label %d is outside [0, %d)", d.Name(i), label, len(own))
		}
	}
	if d.classes = classes; classes == nil {
		d.classes = own
	}
	if i, err := remap(d.labels, own, d.classes); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return d, nil
}

// classes returns the names of the classes, or numbers if their file is missing.
func (form cifarForm) classes(dir string) (names []string, err error) {
	path := filepath.Join(dir, form.names)
	if form.key != "" {
		names, err = pickledNames(path, form.title)
	} else {
		var b []byte
		b, err = files.ReadAtMost(path, maxClassesFile)
		names = strings.Fields(string(b))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return numbered(form.count), nil
	case err == nil && len(names) != form.count:
		err = fmt.Errorf("%d names of classes in place of %d", len(names), form.count)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return names, nil
}

// addBinary adds the images of a file of records: labels, then an image.
func (d *cifar) addBinary(form cifarForm, file *shardFile) error {
	f, size, err := files.OpenSized(file.path)
	if err != nil {
		return err
	}
	defer f.Close()
	record := int64(form.labels + cifarImage)
	if size == 0 || size%record != 0 {
		return fmt.Errorf("%d bytes are no whole number of images of %d bytes", size, record)
	}
	for k := range size / record {
		var label [1]byte
		if _, err := f.ReadAt(label[:], k*record+int64(form.labels)-1); err != nil {
			return err
		}
		d.add(strconv.FormatInt(k, 10), k*record+int64(form.labels), cifarImage, int32(label[0]))
	}
	return nil
}

// Pixels implements Pixels.
func (d *cifar) Pixels(i int, region func(width, height int) image.Rectangle, b *Buffer) (Part, error) {
	file := d.file(i)
	var planes []byte
	if whole := d.turned[file]; whole != nil {
		planes = whole[d.offsets[i]:][:cifarImage]
	} else {
		var err error
		if planes, err = d.read(i, b); err != nil {
			return Part{}, err
		}
	}
	if b.pix == nil {
		b.pix = make([]uint8, cifarImage)
	}
	const plane = cifarSide * cifarSide
	for k := range plane {
		b.pix[3*k], b.pix[3*k+1], b.pix[3*k+2] = planes[k], planes[plane+k], planes[2*plane+k]
	}
	return part(b.pix, cifarSide, cifarSide, region), nil
}
