// Package format reads the forms in which people keep labelled images, a file for each: it knows the place of every
// image and its label, and decodes none. [Find] and [OpenEval] detect the form of a place. A new form is a file with
// its layout, named in the list of layouts.
//
// # Formats
//
//   - ImageNet's official archives, read in place: ILSVRC2012_img_train.tar beside ILSVRC2012_img_val.tar and
//     ILSVRC2012_devkit_t12.tar.gz.
//   - Kaggle's ILSVRC/Data/CLS-LOC with LOC_val_solution.csv.
//   - Hugging Face's parquet: data/train-*.parquet beside data/validation-*.parquet, a struct image of bytes (or a
//     column of bytes) and an integer label or a list of them. Images in pages without compression and dictionary are read in place.
//   - TFRecord: train-00000-of-01024 and so on, tf.train.Example with image/encoded and image/class/label, which
//     counts from 1 unless one is 0.
//   - WebDataset: train-*.tar beside val-*.tar or test-*.tar, in which an image <key>.jpg (or another format) and
//     <key>.cls make a sample; a <key>.json with "label" may replace the .cls. timm's names are known too. A
//     classes.txt beside the shards gives the names of the classes, one a line.
//   - The output of package pack: such shards with an index beside each, or pixels (package
//     rawfile), train-*.rnaraw beside val-*.rnaraw.
//   - Tables: train.csv beside val.csv, or labels.csv alone, with a row file,class for each image, file,class;class
//     for several classes, or columns of numbers for regression.
//   - ImageFolder: train/<class>/…/x.JPEG beside val/, valid/, validation/ or test/. Classes and
//     files have torchvision's order. A flat val/ of ImageNet has its labels in Kaggle's file or the
//     devkit, beside it or above.
//   - CIFAR-10 and CIFAR-100, in the binary and the Python form, read in place; no pickle in it runs.
//   - IDX: the four files of MNIST and Fashion-MNIST, gzip or not. If only t10k is present, its first four fifths
//     are for training and the rest for validation. A classes.txt names the classes.
//   - A folder in which torchvision keeps one of the last two.
//   - "glyphs" or the empty path: ten stroke shapes, generated; see [Glyphs].
//
// Only the index of a set is held in memory, not its images. Exceptions are gzipped IDX files, which allow no random
// access, and the generated glyphs.
package format

import (
	"fmt"
	"image"
	"io"
)

// Set is a finite, indexed set of labelled images in one form: it is [Encoded] or [Pixels]. Its methods are safe for
// concurrent use. A Set that keeps files open is an io.Closer too.
type Set interface {
	// Len is the number of images.
	Len() int
	// Classes gives the names of the classes by index. The caller must not change it.
	Classes() []string
	// Channels is the number of channels of every image: 1 or 3.
	Channels() int
	// Label is the class of image i, in [0, len(Classes())); −1 in a Targeted set.
	Label(i int) int
	// Name is the source of image i: a path, or shard.tar/key.
	Name(i int) string
}

// Encoded is a set of image files.
type Encoded interface {
	Set
	// Encoded reads the file of image i, which is valid until the next use of b. An error names the image.
	Encoded(i int, b *Buffer) ([]byte, error)
}

// Pixels is a set of images that are stored as their pixels.
type Pixels interface {
	Set
	// Pixels reads the part of image i that region picks, or the whole image if region is nil. It is valid until the
	// next use of b and must not be changed. An error names the image.
	Pixels(i int, region func(width, height int) image.Rectangle, b *Buffer) (Part, error)
}

// Part is some rows of an image, interleaved channels, and the requested box within them.
type Part struct {
	Pix           []uint8
	Width, Height int
	Box           image.Rectangle
}

// part is the region of a whole image.
func part(pix []uint8, width, height int, region func(width, height int) image.Rectangle) Part {
	p := Part{pix, width, height, image.Rect(0, 0, width, height)}
	if region != nil {
		p.Box = region(width, height)
	}
	return p
}

// asSet is a set or an error, never a nil pointer within a Set.
func asSet[T Set](s T, err error) (Set, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Expecter is a set that can ask the system to read image i ahead. It does not wait.
type Expecter interface{ Expect(i int) }

// Noted is a set with notes for the user, a sentence each.
type Noted interface{ Notes() []string }

// Buffer is the memory that reading images needs, kept from one image to the next. The zero value is ready. A Buffer
// serves one goroutine at a time.
type Buffer struct {
	// Room bounds the memory of pages of values that are decoded whole; without it, a page has 512 MiB at most.
	Room Room

	file []byte
	pix  []uint8 // of an image stored channel after channel
	page pageCache
}

// Room is memory that several Buffers share.
type Room interface {
	// Claim waits for memory, which Release gives back. It is an error to claim more than there is.
	Claim(bytes int64) error
	Release(bytes int64)
	// Keeps reports whether a Buffer may keep that much memory for later images.
	Keeps(bytes int64) bool
}

// maxFile bounds the size of an image file in memory.
const maxFile = 1 << 28

// Read reads the size bytes of r at offset, the file of an image.
func (b *Buffer) Read(r io.ReaderAt, offset, size int64) ([]byte, error) {
	if size > maxFile {
		return nil, fmt.Errorf("%d bytes are too many for an image, the limit is %d", size, maxFile)
	}
	if int64(cap(b.file)) < size {
		b.file = make([]byte, size+size/4)
	}
	p := b.file[:size]
	if n, err := r.ReadAt(p, offset); n < len(p) {
		return nil, fmt.Errorf("read %d of %d bytes: %w", n, size, err)
	}
	return p, nil
}

// notes are the notes of a set.
type notes struct{ list []string }

func (n *notes) note(format string, args ...any) {
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

// Notes implements Noted.
func (n *notes) Notes() []string { return n.list }
