package format

import (
	"fmt"
	"image"
	"sync"

	"onlinerna/data/random"
)

// GlyphSplit is one of the three sets of glyphs, which have no image in common.
type GlyphSplit int

const (
	GlyphTrain GlyphSplit = iota // 8,000 images
	GlyphVal                     // 1,000 images, kept apart for choosing hyperparameters
	GlyphTest                    // 4,000 images, which training validates on
)

const glyphSize = 28 // height and width

// Glyphs is a generated set of 28×28 gray images of ten stroke shapes: distorted by an affine
// map and by jitter of their vertices, with up to two distractor strokes, a gradient and noise. It
// needs no file. It is the same on every platform, and an image is generated when it is first read.
type Glyphs struct {
	split   GlyphSplit
	pix     []uint8
	once    []sync.Once
	classes []string
	labels  []int32 // by class of the glyphs: the index into classes
}

var _ Pixels = (*Glyphs)(nil)

// glyphSource keeps the randomness of glyphs apart from that of loaders.
const glyphSource = 3

// NewGlyphs makes the set. Its classes are mapped to others by name; nil keeps its own.
func NewGlyphs(split GlyphSplit, classes []string) (*Glyphs, error) {
	n := 0
	switch split {
	case GlyphTrain:
		n = 8000
	case GlyphVal:
		n = 1000
	case GlyphTest:
		n = 4000
	}
	if classes == nil {
		classes = glyphClasses
	}
	labels := make([]int32, len(glyphClasses))
	for i := range labels {
		labels[i] = int32(i)
	}
	if i, err := remap(labels, glyphClasses, classes); err != nil {
		return nil, fmt.Errorf("class %q of the dataset: %w", glyphClasses[i], err)
	}
	return &Glyphs{
		split: split, classes: classes, labels: labels,
		pix:  make([]uint8, n*glyphSize*glyphSize),
		once: make([]sync.Once, n),
	}, nil
}

func (d *Glyphs) Len() int          { return len(d.once) }
func (d *Glyphs) Classes() []string { return d.classes }
func (d *Glyphs) Channels() int     { return 1 }
func (d *Glyphs) Name(i int) string {
	return fmt.Sprintf("glyphs/%s/%04d", [...]string{"train", "val", "test"}[d.split], i)
}

// source returns the random numbers of image i; the first one gives the label.
func (d *Glyphs) source(i int) random.Rand {
	return random.New(glyphSource, uint64(d.split), uint64(i))
}

func (d *Glyphs) Label(i int) int {
	r := d.source(i)
	return int(d.labels[r.IntN(len(glyphClasses))])
}

func (d *Glyphs) Pixels(i int, region func(width, height int) image.Rectangle, _ *Buffer) (Part, error) {
	const size = glyphSize * glyphSize
	pix := d.pix[i*size : (i+1)*size : (i+1)*size]
	d.once[i].Do(func() {
		r := d.source(i)
		label := r.IntN(len(glyphClasses))
		drawGlyph(pix, label, &r)
	})
	return part(pix, glyphSize, glyphSize, region), nil
}
