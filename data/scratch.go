package data

import (
	"image"

	"onlinerna/data/augment"
	"onlinerna/data/format"
	"onlinerna/data/imaging"
)

// Scratch is the memory that reading and transforming an image needs, kept from one image to the
// next. The zero value is ready. A Scratch serves one goroutine at a time.
type Scratch struct {
	file    format.Buffer
	open    bool // images are opened but not decoded: see imaging.Decoder.Open
	decoder imaging.Decoder
	image   imaging.Image
	stored  imaging.Image // a view of pixels that are kept elsewhere
	augment augment.Scratch

	budget *Budget // memory for decoding, or nil for no limit
	claim  int64   // the share of it that the image has
	keep   int64   // most bytes to keep for the next image
	kept   int64   // bytes kept
	gone   int64   // bytes given back to the garbage collector
}

// NewScratch returns the memory of one of several workers that share a budget for decoding.
func NewScratch(b *Budget, workers int) *Scratch {
	// Half of the memory that workers keep is for images, half for pages of values.
	keep := b.bytes / 8 / int64(max(1, workers))
	return &Scratch{budget: b, keep: keep, file: format.Buffer{Room: room{b, keep}}}
}

// room is the part of a budget that reading pages of values may take.
type room struct {
	*Budget
	keep int64
}

var _ format.Room = room{}

func (r room) Claim(bytes int64) error { return r.claim(bytes) }
func (r room) Release(bytes int64)     { r.release(bytes) }
func (r room) Keeps(bytes int64) bool  { return bytes <= r.keep }

// Decode decodes the file of an image, as [Encoded] gives it. The image is valid until the next use of s, or Release,
// and must not be changed.
func (s *Scratch) Decode(b []byte, channels int) (*imaging.Image, error) {
	return s.decode(b, channels, nil)
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

// Release gives back the share of the budget of the image that was read last, which is no longer needed, and the
// memory itself if it is large.
func (s *Scratch) Release() {
	if s.claim == 0 {
		return
	}
	s.drop(s.keep)
	s.budget.release(s.claim)
	s.claim = 0
}

// drop gives back the memory of images if it exceeds a limit.
func (s *Scratch) drop(most int64) {
	if s.kept > most {
		s.gone += s.kept
		s.decoder, s.image, s.kept = imaging.Decoder{}, imaging.Image{}, 0
		s.augment.Drop()
	}
}

// decode decodes the region of the encoded image b.
func (s *Scratch) decode(b []byte, channels int, region Region) (*imaging.Image, error) {
	width, height, err := imaging.Dimensions(b)
	if err != nil {
		return nil, err
	}
	box := image.Rect(0, 0, width, height)
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

// pixels is the region of an image that is stored as its pixels.
func (s *Scratch) pixels(pix []uint8, width, height, channels int, region Region) (*imaging.Image, error) {
	box := image.Rect(0, 0, width, height)
	if region != nil {
		box = region(width, height)
	}
	return s.crop(pix, width, height, channels, box)
}

// crop is the box of an image that is stored as its pixels.
func (s *Scratch) crop(pix []uint8, width, height, channels int, box image.Rectangle) (*imaging.Image, error) {
	s.stored = imaging.Image{Width: width, Height: height, Channels: channels, Pix: pix}
	if box == s.stored.Bounds() {
		return &s.stored, nil
	}
	return &s.image, imaging.Crop(&s.image, &s.stored, box)
}
