package data

import (
	"fmt"
	"image"

	"onlinerna/data/imaging"
)

// Dataset is a finite, indexed set of labelled images. Its methods are safe
// for concurrent use. A Dataset that keeps files open is an io.Closer too.
type Dataset interface {
	// Len is the number of images.
	Len() int
	// Classes gives the names of the classes by index. The caller must not change it.
	Classes() []string
	// Channels is the number of channels of every image: 1 or 3.
	Channels() int
	// Label is the class of image i, in [0, len(Classes())).
	Label(i int) int
	// Name says where image i comes from: a path, or shard.tar/key.
	Name(i int) string
	// Read decodes the part of image i that region picks, the whole image where
	// region is nil. The image is valid until the next use of s and must not be
	// changed. An error names the image.
	Read(i int, region Region, s *Scratch) (*imaging.Image, error)
}

// Region picks a part of an image of width×height, inside its bounds. Decoding
// a part is faster than decoding the whole.
type Region func(width, height int) image.Rectangle

// Scratch is the memory that reading and transforming an image needs, kept from
// one image to the next. The zero value is ready. A Scratch serves one
// goroutine at a time.
type Scratch struct {
	file    []byte
	decoder imaging.Decoder
	resizer imaging.Resizer
	image   imaging.Image
	resized imaging.Image
}

// Options says how Open reads a place. The zero value reads it as it is.
type Options struct {
	// Val is the place of the validation set, read as OpenEval does, where
	// it is not beside the training set.
	Val string
	// Classes gives the names of the classes by index in place of those that
	// the training set has. Images are mapped to it by name.
	Classes []string
}

// Subset is the images of ds that indices lists, in that order. It keeps
// indices, which the caller must not change.
func Subset(ds Dataset, indices []int) (Dataset, error) {
	for k, i := range indices {
		if i < 0 || i >= ds.Len() {
			return nil, fmt.Errorf("subset: index %d at position %d is outside [0, %d)", i, k, ds.Len())
		}
	}
	return &subset{Dataset: ds, indices: indices}, nil
}

type subset struct {
	Dataset
	indices []int
}

var _ Dataset = (*subset)(nil)

func (d *subset) Len() int          { return len(d.indices) }
func (d *subset) Label(i int) int   { return d.Dataset.Label(d.indices[i]) }
func (d *subset) Name(i int) string { return d.Dataset.Name(d.indices[i]) }
func (d *subset) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	return d.Dataset.Read(d.indices[i], region, s)
}
