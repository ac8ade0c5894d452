package data

import (
	"fmt"
	"sync"

	"onlinerna/data/imaging"
)

// GlyphSplit is one of the three sets of glyphs, which have no image in common.
type GlyphSplit int

const (
	GlyphTrain GlyphSplit = iota // 8,000 images
	GlyphVal                     // 1,000 images, kept apart for choosing hyperparameters
	GlyphTest                    // 4,000 images, which training validates on
)

const glyphSize = 28

// Glyphs returns a generated set of 28×28 gray images of ten stroke shapes: distorted by an affine
// map and by jitter of their vertices, with up to two distractor strokes, a gradient and noise. It
// needs no file. It is the same on every platform, and an image is generated when it is first read.
func Glyphs(split GlyphSplit) Dataset {
	n := 0
	switch split {
	case GlyphTrain:
		n = 8000
	case GlyphVal:
		n = 1000
	case GlyphTest:
		n = 4000
	}
	return &glyphs{
		split: split,
		pix:   make([]uint8, n*glyphSize*glyphSize),
		once:  make([]sync.Once, n),
	}
}

type glyphs struct {
	split GlyphSplit
	pix   []uint8
	once  []sync.Once
}

var _ Dataset = (*glyphs)(nil)

func (d *glyphs) Len() int          { return len(d.once) }
func (d *glyphs) Classes() []string { return glyphClasses }
func (d *glyphs) Channels() int     { return 1 }
func (d *glyphs) Name(i int) string {
	return fmt.Sprintf("glyphs/%s/%04d", [...]string{"train", "val", "test"}[d.split], i)
}

// source is the randomness of image i, of which the label is the first number.
func (d *glyphs) source(i int) Rand { return NewRand(glyphSource, uint64(d.split), uint64(i)) }

func (d *glyphs) Label(i int) int {
	r := d.source(i)
	return r.IntN(len(glyphClasses))
}

func (d *glyphs) Read(i int, region Region, s *Scratch) (*imaging.Image, error) {
	const size = glyphSize * glyphSize
	pix := d.pix[i*size : (i+1)*size : (i+1)*size]
	d.once[i].Do(func() {
		r := d.source(i)
		label := r.IntN(len(glyphClasses))
		drawGlyph(pix, label, &r)
	})
	return s.pixels(pix, glyphSize, glyphSize, 1, region)
}
