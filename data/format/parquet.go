package format

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
)

// parquetLayout is Hugging Face's: train-00000-of-00294.parquet and validation-*.parquet, here or in data/.
var parquetLayout = layout{
	want: "Hugging Face's data/train-*.parquet with data/validation-*.parquet",
	find: func(dir *listing) (Splits, error) {
		for _, path := range []string{dir.path, filepath.Join(dir.path, "data")} {
			here, err := list(path)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return Splits{}, err
			}
			train, eval, other := here.sharded(func(name string) bool { return strings.HasSuffix(name, ".parquet") })
			if len(train)+len(eval)+len(other) > 0 {
				return openers(train, eval, other, openParquet), nil
			}
		}
		return Splits{}, nil
	},
}

// parquet is a set of parquet files with a column of encoded images and one of labels. Images in pages that are
// neither compressed nor coded by a dictionary are read in place.
type parquet struct {
	archive
	pages []pageRef // with images that are not read in place
	slots []int32   // by image: −1, or the index into pages
}

var _ Encoded = (*parquet)(nil)

// pageRef locates a page of images that can't be read in place.
type pageRef struct {
	page, dictionary int64 // offsets of the pages' headers; dictionary 0: none
	end, values      int64 // of the column's chunk
	first            int   // index of the first image of the page
	column           *parquetColumn
}

// openParquet indexes parquet files. Classes are those of Hugging Face's ClassLabel, "0", "1", … without it.
func openParquet(paths []string, classes []string) (Set, error) {
	d := new(parquet)
	complete(paths, &d.notes)
	parts, err := inParallel(len(paths), func(k int) (*parquetPart, error) {
		part, err := indexParquet(paths[k])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[k], err)
		}
		return part, nil
	})
	if err != nil {
		return nil, err
	}
	own, coded := parts[0].classes, 0
	var texts []string // labels that are names
	several := targets{task: MultiLabel}
	for k, p := range parts {
		if !slices.Equal(p.classes, own) {
			return nil, fmt.Errorf("%s: its classes differ from those of %s", paths[k], paths[0])
		}
		if p.listed != parts[0].listed {
			return nil, fmt.Errorf("%s: it has lists of labels and %s has not, or the other way round", paths[k], paths[0])
		}
		for _, end := range p.ends {
			several.ends = append(several.ends, len(several.shown)+end)
		}
		several.shown = append(several.shown, p.shown...)
		before := len(d.labels)
		d.append(&p.archive, &shardFile{path: paths[k], keep: k < maxOpenShards})
		for _, slot := range p.slots {
			if slot >= 0 {
				slot += int32(len(d.pages))
				coded++
			}
			d.slots = append(d.slots, slot)
		}
		for _, ref := range p.pages {
			ref.first += before
			d.pages = append(d.pages, ref)
		}
		texts = append(texts, p.texts...)
	}
	where := filepath.Dir(paths[0])
	if len(d.labels) == 0 {
		return nil, fmt.Errorf("%s: the files hold no rows", where)
	}
	labels, name := d.labels, d.Name
	if parts[0].listed {
		if labels = several.shown; len(labels) == 0 {
			return nil, fmt.Errorf("%s: no image has a class", where)
		}
		name = func(k int) string {
			i, _ := slices.BinarySearch(several.ends, k+1)
			return d.Name(i)
		}
	}
	finish := func() (Set, error) {
		if !parts[0].listed {
			d.labels = labels
			return d, nil
		}
		several.shown = labels
		return &targetedParquet{d, several}, nil
	}
	if len(texts) > 0 {
		if d.classes, labels, err = label(texts, classes, &d.notes); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		return finish()
	}
	if d.classes = classes; classes == nil {
		if d.classes = own; own == nil {
			if d.classes, err = counted(labels); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
		}
	}
	if err := d.rename(labels, own, name); err != nil {
		return nil, err
	}
	if coded > 0 {
		d.note("%s: %d of %d images lie in pages that are compressed, have a dictionary or a checksum, a whole one of "+
			"which is decoded for each: \"rna data pack\" makes that faster",
			where, coded, d.Len())
	}
	return finish()
}

// rename maps labels, indices into own, to d.classes: by name, or by index if both lists are equally long and no name
// matches, since ImageNet's classes are wnids or words.
func (d *parquet) rename(labels []int32, own []string, name func(k int) string) error {
	if own != nil {
		if most := int(slices.Max(labels)); most >= len(own) {
			i := slices.Index(labels, int32(most))
			return fmt.Errorf("%s: label %d is outside [0, %d)", name(i), most, len(own))
		}
		index, known := newClassIndex(d.classes), 0
		for _, name := range own {
			if _, err := index.find(name); err == nil {
				known++
			}
		}
		if known == 0 && len(own) == len(d.classes) {
			d.note("none of the %d class names is known, labels stand for the known classes in their order: %s for %s",
				len(own), own[0], d.classes[0])
			own = nil
		}
	}
	if i, err := remap(labels, own, d.classes); err != nil {
		return fmt.Errorf("%s: %w", name(i), err)
	}
	return nil
}

// Encoded implements Encoded.
func (d *parquet) Encoded(i int, b *Buffer) ([]byte, error) {
	if d.slots[i] < 0 {
		return d.read(i, b)
	}
	value, err := d.pageValue(i, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return value, nil
}

// Expect implements Expecter.
func (d *parquet) Expect(i int) {
	if d.slots[i] < 0 {
		d.archive.Expect(i)
	}
}

// pageValue is an image that is not read in place.
func (d *parquet) pageValue(i int, b *Buffer) ([]byte, error) {
	ref, file := &d.pages[d.slots[i]], d.file(i)
	k := i - ref.first
	if b.page.file == file && b.page.at == ref.page {
		return ref.value(b.page.values, k)
	}
	var last words
	if b.page.file == file {
		last = b.page.words
	}
	b.page = pageCache{}
	values, taken, err := ref.decode(file, b.Room, &last)
	if err != nil {
		return nil, err
	}
	if b.Room != nil && !b.Room.Keeps(taken) {
		v, err := ref.value(values, k)
		if int64(len(v)) > taken/4 { // a copy would take nearly as much again, and stay
			return v, err
		}
		b.file = append(b.file[:0], v...)
		return b.file, err
	}
	b.page = pageCache{file, ref.page, values, last}
	return ref.value(values, k)
}

// value is value k of a page.
func (ref *pageRef) value(values [][]byte, k int) ([]byte, error) {
	if k >= len(values) {
		return nil, fmt.Errorf("the page at offset %d has %d values, not %d", ref.page, len(values), k+1)
	}
	return values[k], nil
}

// pageCache holds the values of the page that was read last, and of its dictionary.
type pageCache struct {
	file   *shardFile
	at     int64
	values [][]byte
	words  words
}

// parquetPart is one file.
type parquetPart struct {
	archive
	pages   []pageRef
	slots   []int32
	texts   []string
	classes []string
	listed  bool // with lists of labels: those of all images, and the end of each image's
	shown   []int32
	ends    []int
}

// indexParquet finds the images and labels of one file.
func indexParquet(path string) (*parquetPart, error) {
	f, size, err := files.OpenSized(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	footer, err := readFooter(f, size)
	if err != nil {
		return nil, err
	}
	columns, err := footer.columns()
	if err != nil {
		return nil, err
	}
	image, label, err := imageColumns(columns)
	if err != nil {
		return nil, err
	}
	part := &parquetPart{classes: huggingFaceClasses(footer, label.path[0]), listed: label.maxRep > 0}
	row, left, lengths := 0, size, &blockReader{r: f}
	for g := range footer.groups {
		for _, c := range []parquetColumn{label, image} {
			chunk, err := footer.chunk(g, c)
			if err == nil {
				if left -= chunk.size; left < 0 || chunk.values > maxRows(size)-int64(row) {
					err = fmt.Errorf("more rows or bytes than a file of %d bytes has: damaged", size)
				}
			}
			if err != nil {
				return nil, fmt.Errorf("row group %d, column %s: %w", g, c.name(), err)
			}
		}
		labels, texts, err := part.labelsOf(footer, f, g, label)
		if err != nil {
			return nil, fmt.Errorf("row group %d, column %s: %w", g, label.name(), err)
		}
		part.texts = append(part.texts, texts...)
		n, err := footer.images(lengths, g, image, func(k int, offset, size int64, ref *pageRef) error {
			if k >= len(labels) {
				return fmt.Errorf("%d values, but %d labels", k+1, len(labels))
			}
			slot := int32(-1)
			if ref != nil {
				if n := len(part.pages); n == 0 || part.pages[n-1].page != ref.page {
					ref.first = row + k
					part.pages = append(part.pages, *ref)
				}
				slot = int32(len(part.pages) - 1)
			}
			part.slots = append(part.slots, slot)
			part.add("row "+strconv.Itoa(row+k), offset, size, labels[k])
			return nil
		})
		if err == nil && n != len(labels) {
			err = fmt.Errorf("%d values, but %d labels", n, len(labels))
		}
		if err != nil {
			return nil, fmt.Errorf("row group %d, column %s: %w", g, image.name(), err)
		}
		row += n
	}
	return part, nil
}

// labelsOf reads the labels of a row group: one for each row, −1 where they are lists.
func (part *parquetPart) labelsOf(f *parquetFooter, r io.ReaderAt, g int, c parquetColumn) ([]int32, []string, error) {
	if !part.listed {
		return f.labels(r, g, c)
	}
	shown, texts, ends, err := f.lists(r, g, c)
	for _, end := range ends {
		part.ends = append(part.ends, len(part.shown)+end)
	}
	part.shown = append(part.shown, shown...)
	return slices.Repeat([]int32{-1}, len(ends)), texts, err
}

// imageColumns finds the columns of encoded images and of labels.
func imageColumns(columns []parquetColumn) (image, label parquetColumn, err error) {
	find := func(kinds []string, names ...string) (parquetColumn, bool) {
		for _, name := range names {
			for _, c := range columns {
				if (c.name() == name || c.maxRep > 0 && c.path[0] == name) && slices.Contains(kinds, c.kind()) {
					return c, true
				}
			}
		}
		return parquetColumn{}, false
	}
	image, okImage := find([]string{"bytes"}, "image.bytes", "img.bytes", "image", "img", "jpg", "jpeg", "webp", "png")
	label, okLabel := find([]string{"integer", "bytes", "list of integer", "list of bytes"}, "label", "labels",
		"fine_label", "cls", "class", "classes")
	if okImage && okLabel {
		return image, label, nil
	}
	var have []string
	for _, c := range columns {
		have = append(have, c.name()+" ("+c.kind()+")")
	}
	slices.SortFunc(have, cmp.Compare[string])
	return image, label, fmt.Errorf("want a column image.bytes (or image, img, jpg) of encoded images and an integer "+
		"column label (or cls), has %s", text.Some(have))
}

// huggingFaceClasses are the names of the ClassLabel in the metadata that Hugging Face's datasets write, nil if there
// are none.
func huggingFaceClasses(f *parquetFooter, column string) []string {
	for _, kv := range f.metadata {
		if kv.key != "huggingface" {
			continue
		}
		var info struct {
			Info struct {
				Features map[string]json.RawMessage
			}
		}
		if json.Unmarshal([]byte(kv.value), &info) == nil {
			type named struct{ Names []string }
			var own named
			var list struct{ Feature named }
			var short []named
			b := info.Info.Features[column]
			json.Unmarshal(b, &own)
			json.Unmarshal(b, &list)
			json.Unmarshal(b, &short)
			for _, x := range append(short, own, list.Feature) {
				if len(x.Names) > 0 {
					return x.Names
				}
			}
		}
	}
	return nil
}
