package data

import (
	"fmt"
	"image"
	"io"

	"onlinerna/data/format"
	"onlinerna/data/imaging"
)

// Dataset is a finite, indexed set of labelled images. Its methods are safe for concurrent use. A
// Dataset that keeps files open is an io.Closer too.
type Dataset interface {
	// Len is the number of images.
	Len() int
	// Classes gives the names of the classes by index. The caller must not change it.
	Classes() []string
	// Channels is the number of channels of every image: 1 or 3.
	Channels() int
	// Label is the class of image i, in [0, len(Classes())); −1 in a Targeted set of another task.
	Label(i int) int
	// Name is the source of image i: a path, or shard.tar/key.
	Name(i int) string
	// Read decodes the part of image i that region picks, or the whole image if region is nil. The image is valid
	// until the next use of s and must not be changed. An error names the image.
	Read(i int, region Region, s *Scratch) (*imaging.Image, error)
}

// Region picks a part of an image of width×height, inside its bounds. Decoding a part is faster
// than decoding the whole.
type Region func(width, height int) image.Rectangle

// Subset returns the images of ds listed in indices, in that order. It keeps indices, which the caller must not
// change.
func Subset(ds Dataset, indices []int) (Dataset, error) {
	for k, i := range indices {
		if i < 0 || i >= ds.Len() {
			return nil, fmt.Errorf("subset: index %d at position %d is outside [0, %d)", i, k, ds.Len())
		}
	}
	return &subset{Dataset: ds, indices: indices}, nil
}

// stored is the Dataset of a set in one of the forms of package format.
type stored struct{ format.Set }

var _ Dataset = stored{}

// opened is the Dataset of a set that was opened, or the error.
func opened(set format.Set, err error) (Dataset, error) {
	if err != nil {
		return nil, err
	}
	return stored{set}, nil
}

// Read implements Dataset.
func (d stored) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	var m *imaging.Image
	s.Release()
	switch set := d.Set.(type) {
	case format.Encoded:
		b, err := set.Encoded(i, &s.file)
		if err != nil {
			return nil, err
		}
		if m, err = s.decode(b, d.Channels(), region); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name(i), err)
		}
	case format.Pixels:
		p, err := set.Pixels(i, region, &s.file)
		if err != nil {
			return nil, err
		}
		if m, err = s.crop(p.Pix, p.Width, p.Height, d.Channels(), p.Box); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name(i), err)
		}
	}
	return m, nil
}

// Close closes the files of the set.
func (d stored) Close() error {
	if c, ok := d.Set.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

type subset struct {
	Dataset
	indices []int
	shared  bool      // another part closes the set and returns its notes
	several [][]int32 // classes by image, in place of the set's labels; nil: these
	note    string

	input string      // an input that it adds
	rows  [][]float32 // of input by image; nil: it adds none
}

var _ Dataset = (*subset)(nil)

func (d *subset) Len() int { return len(d.indices) }
func (d *subset) Label(i int) int {
	if d.several != nil {
		return -1
	}
	return d.Dataset.Label(d.indices[i])
}
func (d *subset) Name(i int) string { return d.Dataset.Name(d.indices[i]) }
func (d *subset) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	return d.Dataset.Read(d.indices[i], region, s)
}

// Close closes the files of the set that it is part of.
func (d *subset) Close() error {
	if d.shared {
		return nil
	}
	return closeSet(d.Dataset)
}

func closeSet(ds Dataset) error {
	if c, ok := ds.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
