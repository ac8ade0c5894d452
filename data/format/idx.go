package format

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
)

// maxInflated bounds the memory of a gzipped IDX file, which must be inflated whole.
const maxInflated = 1 << 30

// idxLayout is MNIST's. If only t10k is present, its first four fifths are for training and the rest for evaluation.
var idxLayout = layout{
	want: "MNIST's IDX files",
	find: func(dir *listing) (Splits, error) {
		inner, err := dir.nested("MNIST/raw", "FashionMNIST/raw") // torchvision's
		if err != nil {
			return Splits{}, err
		}
		if inner != "" {
			dir = &listing{path: inner}
		}
		train, err := findIDX(dir.path, "train")
		test, errTest := findIDX(dir.path, "t10k")
		if err := errors.Join(err, errTest); err != nil {
			return Splits{}, err
		}
		open := func(files *idxFiles) Opener {
			return func(classes []string) (Set, error) { return asSet(openIDX(*files, classes)) }
		}
		part := func(first bool) Opener {
			return func(classes []string) (Set, error) {
				all, err := openIDX(*test, classes)
				if err != nil {
					return nil, err
				}
				if at := all.Len() * 4 / 5; first {
					return all.span(0, at), nil
				} else {
					return all.span(at, all.Len()), nil
				}
			}
		}
		switch {
		case train != nil && test != nil:
			return Splits{Train: open(train), Eval: open(test)}, nil
		case train != nil:
			return Splits{Train: open(train)}, nil
		case test != nil:
			return Splits{Train: part(true), Eval: part(false)}, nil
		}
		return Splits{}, nil
	},
}

// idxFiles are the two files of one IDX set.
type idxFiles struct{ images, labels string }

// findIDX finds <prefix>-images-idx3-ubyte[.gz] and its labels in dir; nil if there are none.
func findIDX(dir, prefix string) (*idxFiles, error) {
	images, err := findFile(dir, prefix+"-images-idx3-ubyte", prefix+"-images.idx3-ubyte")
	if err != nil || images == "" {
		return nil, err
	}
	labels, err := findFile(dir, prefix+"-labels-idx1-ubyte", prefix+"-labels.idx1-ubyte")
	if err != nil {
		return nil, err
	}
	if labels == "" {
		return nil, fmt.Errorf("%s: its labels are missing: want %s-labels-idx1-ubyte or .gz beside it", images, prefix)
	}
	return &idxFiles{images, labels}, nil
}

// findFile is the path of the first of some files, plain or .gz, that exists in dir, "" if none does.
func findFile(dir string, names ...string) (string, error) {
	for _, name := range names {
		for _, suffix := range []string{"", ".gz"} {
			path := filepath.Join(dir, name+suffix)
			info, err := os.Stat(path)
			switch {
			case err == nil && info.Mode().IsRegular():
				return path, nil
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return "", fmt.Errorf("data: %w", err)
			}
		}
	}
	return "", nil
}

// idx is a set of gray images in an IDX file.
type idx struct {
	name          string // of the images' file
	images        io.ReaderAt
	closer        io.Closer // nil if images are in memory
	start         int64     // of the first image
	first         int       // the number of the first image
	height, width int
	labels        []int32
	classes       []string
}

var (
	_ Pixels    = (*idx)(nil)
	_ io.Closer = (*idx)(nil)
)

// openIDX opens an IDX set. If classes is nil, they come from classes.txt beside it, or are "0", "1", … up to the
// largest label.
func openIDX(files idxFiles, classes []string) (*idx, error) {
	labels, err := readLabels(files.labels)
	if err != nil {
		return nil, err
	}
	if len(labels) == 0 {
		return nil, fmt.Errorf("%s: no labels", files.labels)
	}
	dir := filepath.Dir(files.labels)
	own, err := ownClasses(dir, int(slices.Max(labels)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files.labels, err)
	}
	if fashion, _ := catalogue.Find("fashion-mnist"); own == nil && filepath.Base(filepath.Dir(dir)) == "FashionMNIST" {
		own = fashion.Classes // torchvision's folder
	}
	if classes == nil {
		if classes = own; own == nil {
			classes = numbered(int(slices.Max(labels)) + 1)
		}
	}
	if i, err := remap(labels, own, classes); err != nil {
		return nil, fmt.Errorf("%s: image %d: %w", files.labels, i, err)
	}
	src, closer, size, err := openMaybeGzip(files.images)
	if err != nil {
		return nil, err
	}
	dims, start, err := readIDXHeader(src, size, 3)
	if err == nil && dims[0] != len(labels) {
		err = fmt.Errorf("%d images, but %d labels in %s", dims[0], len(labels), files.labels)
	}
	if err == nil && (dims[1] == 0 || dims[2] == 0) {
		err = fmt.Errorf("images of %d×%d", dims[1], dims[2])
	}
	if err != nil {
		if closer != nil {
			closer.Close()
		}
		return nil, fmt.Errorf("%s: %w", files.images, err)
	}
	return &idx{
		name: files.images, images: src, closer: closer, start: start,
		height: dims[1], width: dims[2], labels: labels, classes: classes,
	}, nil
}

func readLabels(path string) ([]int32, error) {
	src, closer, size, err := openMaybeGzip(path)
	if err != nil {
		return nil, err
	}
	if closer != nil {
		defer closer.Close()
	}
	dims, start, err := readIDXHeader(src, size, 1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	raw := make([]byte, dims[0])
	if _, err := io.ReadFull(io.NewSectionReader(src, start, size-start), raw); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	labels := make([]int32, len(raw))
	for i, b := range raw {
		labels[i] = int32(b)
	}
	return labels, nil
}

// readIDXHeader reads the magic number and the dimensions of a file of unsigned bytes of the given
// rank, and compares them with its size. It returns where the bytes start.
func readIDXHeader(r io.ReaderAt, size int64, rank int) (dims []int, start int64, err error) {
	start = int64(4 + 4*rank)
	if size < start {
		return nil, 0, fmt.Errorf("%d bytes are too few for an IDX header of %d", size, start)
	}
	head := make([]byte, start)
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return nil, 0, err
	}
	if got, want := binary.BigEndian.Uint32(head), uint32(0x800+rank); got != want {
		return nil, 0, fmt.Errorf("magic number is %#08x, an IDX file of unsigned bytes with %d dimensions has %#08x",
			got, rank, want)
	}
	dims = make([]int, rank)
	want := start
	count := int64(1)
	for k := range dims {
		d := int64(binary.BigEndian.Uint32(head[4+4*k:]))
		if d > 0 && count > (1<<40)/d {
			return nil, 0, fmt.Errorf("dimension %d is %d: too large", k, d)
		}
		count *= d
		dims[k] = int(d)
	}
	want += count
	if size != want {
		return nil, 0, fmt.Errorf("has %d bytes, its header with dimensions %v asks for %d", size, dims, want)
	}
	return dims, start, nil
}

// openMaybeGzip opens a file for random access. A file with gzip content is inflated to memory and needs no closing:
// its closer is nil.
func openMaybeGzip(path string) (_ io.ReaderAt, _ io.Closer, size int64, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("data: %w", err)
	}
	var magic [2]byte
	if n, _ := f.ReadAt(magic[:], 0); n == 2 && magic == [2]byte{0x1f, 0x8b} {
		defer f.Close()
		b, err := inflate(bufio.NewReader(f))
		if err != nil {
			return nil, nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		return bytes.NewReader(b), nil, int64(len(b)), nil
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, 0, fmt.Errorf("data: %w", err)
	}
	return f, f, info.Size(), nil
}

func inflate(r io.Reader) ([]byte, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(z, maxInflated+1))
	if err == nil && len(b) > maxInflated {
		err = fmt.Errorf("inflates to more than %d bytes; gunzip it, then it is read at random", maxInflated)
	}
	return b, err
}

func (d *idx) Len() int          { return len(d.labels) }
func (d *idx) Classes() []string { return d.classes }
func (d *idx) Channels() int     { return 1 }
func (d *idx) Label(i int) int   { return int(d.labels[i]) }
func (d *idx) Name(i int) string { return fmt.Sprintf("%s/%d", d.name, d.first+i) }

// span keeps the images [lo, hi).
func (d *idx) span(lo, hi int) *idx {
	d.start += int64(lo) * int64(d.height*d.width)
	d.first, d.labels = lo, d.labels[lo:hi]
	return d
}

// Pixels implements Pixels.
func (d *idx) Pixels(i int, region func(width, height int) image.Rectangle, b *Buffer) (Part, error) {
	size := int64(d.height * d.width)
	pix, err := b.Read(d.images, d.start+int64(i)*size, size)
	if err != nil {
		return Part{}, fmt.Errorf("%s: %w", d.Name(i), err)
	}
	return part(pix, d.width, d.height, region), nil
}

func (d *idx) Close() error {
	if d.closer == nil {
		return nil
	}
	if err := d.closer.Close(); !errors.Is(err, fs.ErrClosed) { // parts of a set share its file
		return err
	}
	return nil
}
