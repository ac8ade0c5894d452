package data

import (
	"fmt"
	"image"
	"io"

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
	// Label is the class of image i, in [0, len(Classes())).
	Label(i int) int
	// Name says where image i comes from: a path, or shard.tar/key.
	Name(i int) string
	// Read decodes the part of image i that region picks, the whole image where region is nil. The
	// image is valid until the next use of s and must not be changed. An error names the image.
	Read(i int, region Region, s *Scratch) (*imaging.Image, error)
}

// Region picks a part of an image of width×height, inside its bounds. Decoding a part is faster
// than decoding the whole.
type Region func(width, height int) image.Rectangle

// Scratch is the memory that reading and transforming an image needs, kept from one image to the
// next. The zero value is ready. A Scratch serves one goroutine at a time.
type Scratch struct {
	file    []byte
	open    bool // images are only opened: see imaging.Decoder.Open
	decoder imaging.Decoder
	resizer imaging.Resizer
	image   imaging.Image
	stored  imaging.Image // a view of pixels that are kept elsewhere
	resized imaging.Image
	page    pageCache
	work    imaging.Image // an image that is being augmented
	artist  artist

	budget *Budget // of what decoding takes, or nil for no limit
	claim  int64   // the share of it that the image has
	keep   int64   // bytes that may stay for the next image
	kept   int64   // that do
}

// NewScratch is the memory of one of so many workers that decode within a budget.
func NewScratch(b *Budget, workers int) *Scratch {
	return &Scratch{budget: b, keep: b.bytes / 4 / int64(max(1, workers))}
}

// Decode decodes the file of an image, as [Encoded] gives it. The image is valid until the next use of s, or Release, and must
// not be changed.
func (s *Scratch) Decode(b []byte, channels int) (*imaging.Image, error) {
	return s.decodeBytes(b, channels, nil)
}

// share waits for the memory that decoding a box of b takes.
func (s *Scratch) share(b []byte, channels int, box image.Rectangle) error {
	if s.budget == nil {
		return nil
	}
	s.Release()
	n, err := imaging.Memory(b, channels, box)
	if err == nil {
		err = s.budget.claim(n)
	}
	if err == nil {
		s.claim, s.kept = n, max(s.kept, n)
	}
	return err
}

// Release gives back the share of the budget of the image that was read last, which is no longer needed, and the memory itself where it is much.
func (s *Scratch) Release() {
	if s.claim == 0 {
		return
	}
	s.drop(s.keep)
	s.budget.release(s.claim)
	s.claim = 0
}

// drop gives back the memory of images if it is more than so much.
func (s *Scratch) drop(most int64) {
	if s.kept > most {
		s.decoder, s.image, s.work, s.kept = imaging.Decoder{}, imaging.Image{}, imaging.Image{}, 0
	}
}

// maxFile bounds what an image file may take in memory.
const maxFile = 1 << 28

// decode reads the size bytes of f at offset, an encoded image, and decodes the region.
func (s *Scratch) decode(f io.ReaderAt, offset, size int64, channels int, region Region) (*imaging.Image, error) {
	b, err := s.read(f, offset, size)
	if err != nil {
		return nil, err
	}
	return s.decodeBytes(b, channels, region)
}

// decodeBytes decodes the region of the encoded image b.
func (s *Scratch) decodeBytes(b []byte, channels int, region Region) (*imaging.Image, error) {
	width, height, err := imaging.Dimensions(b)
	if err != nil {
		return nil, err
	}
	box := whole(width, height)
	if region != nil {
		box = region(width, height)
	}
	if err := s.share(b, channels, box); err != nil {
		return nil, err
	}
	if region == nil {
		return &s.image, s.decoder.Decode(&s.image, b, channels)
	}
	if s.open {
		return &s.image, s.decoder.Open(&s.image, b, channels, box)
	}
	return &s.image, s.decoder.DecodeBox(&s.image, b, channels, box)
}

// pixels reads the region of an image that is stored as its pixels.
func (s *Scratch) pixels(pix []uint8, width, height, channels int, region Region) (*imaging.Image, error) {
	s.stored = imaging.Image{Width: width, Height: height, Channels: channels, Pix: pix}
	if region == nil {
		return &s.stored, nil
	}
	box := region(width, height)
	if box == s.stored.Bounds() {
		return &s.stored, nil
	}
	return &s.image, imaging.Crop(&s.image, &s.stored, box)
}

// Subset is the images of ds that indices lists, in that order. It keeps indices, which the caller
// must not change.
func Subset(ds Dataset, indices []int) (Dataset, error) {
	for k, i := range indices {
		if i < 0 || i >= ds.Len() {
			return nil, fmt.Errorf("subset: index %d at position %d is outside [0, %d)", i, k, ds.Len())
		}
	}
	return &subset{Dataset: ds, indices: indices}, nil
}

// span is the images [lo, hi) of ds.
func span(ds Dataset, lo, hi int) Dataset {
	indices := make([]int, hi-lo)
	for k := range indices {
		indices[k] = lo + k
	}
	return &subset{Dataset: ds, indices: indices}
}

type subset struct {
	Dataset
	indices []int
	shared  bool // with another part, which closes the set and gives its notes
}

var _ Dataset = (*subset)(nil)

func (d *subset) Len() int          { return len(d.indices) }
func (d *subset) Label(i int) int   { return d.Dataset.Label(d.indices[i]) }
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
