package imaging

import (
	"errors"
	"fmt"
	"image"
)

// Image holds 8-bit pixels, row-major and interleaved: the sample of channel c at column x and row y
// is Pix[(y*Width+x)*Channels+c]. Channels is 1 (gray) or 3 (RGB).
type Image struct {
	Width, Height, Channels int
	Pix                     []uint8

	later *Decoder // makes the pixels, which are not yet there
}

// New returns a black image.
func New(width, height, channels int) *Image {
	return &Image{Width: width, Height: height, Channels: channels, Pix: make([]uint8, width*height*channels)}
}

// Reset gives m another shape. It reuses the memory if it is large enough; the pixels are then undefined.
func (m *Image) Reset(width, height, channels int) {
	n := width * height * channels
	if cap(m.Pix) < n {
		m.Pix = make([]uint8, n)
	}
	*m = Image{width, height, channels, m.Pix[:n], nil}
}

// Bounds returns the rectangle of all pixels, from (0, 0).
func (m *Image) Bounds() image.Rectangle { return image.Rect(0, 0, m.Width, m.Height) }

// row returns the samples of row y.
func (m *Image) row(y int) []uint8 {
	n := m.Width * m.Channels
	return m.Pix[y*n : (y+1)*n]
}

// check returns an error for an invalid image that a caller built by hand.
func (m *Image) check() error {
	if m.later != nil {
		return errors.New("the pixels of an opened image have not been made")
	}
	if m.Width < 1 || m.Height < 1 || m.Channels != 1 && m.Channels != 3 {
		return fmt.Errorf("image of %dx%d pixels and %d channels: want at least 1x1 and 1 or 3 channels", m.Width,
			m.Height, m.Channels)
	}
	if n := m.Width * m.Height * m.Channels; len(m.Pix) != n {
		return fmt.Errorf("image of %dx%d pixels and %d channels has %d samples, want %d", m.Width, m.Height,
			m.Channels, len(m.Pix), n)
	}
	return nil
}

// FlipHorizontal mirrors m in place, left to right.
func (m *Image) FlipHorizontal() {
	for y := range m.Height {
		row := m.row(y)
		if m.Channels == 1 {
			for i, j := 0, len(row)-1; i < j; i, j = i+1, j-1 {
				row[i], row[j] = row[j], row[i]
			}
			continue
		}
		for i, j := 0, len(row)-3; i < j; i, j = i+3, j-3 {
			row[i], row[i+1], row[i+2], row[j], row[j+1], row[j+2] = row[j], row[j+1], row[j+2], row[i], row[i+1],
				row[i+2]
		}
	}
}

// Convert writes src in the given number of channels to dst, as PIL's convert("L") and convert("RGB"):
// gray is (19595 R + 38470 G + 7471 B + 2¹⁵) / 2¹⁶, RGB of gray repeats it. dst must not be src.
func Convert(dst, src *Image, channels int) error {
	if err := src.check(); err != nil {
		return err
	}
	if err := checkChannels(channels); err != nil {
		return err
	}
	dst.Reset(src.Width, src.Height, channels)
	switch {
	case channels == src.Channels:
		copy(dst.Pix, src.Pix)
	case channels == 1:
		grayFromRGB(dst.Pix, src.Pix)
	default:
		for i, v := range src.Pix {
			p := dst.Pix[3*i : 3*i+3 : 3*i+3]
			p[0], p[1], p[2] = v, v, v
		}
	}
	return nil
}

// grayFromRGB writes the luma of interleaved RGB samples; dst may be the front of src.
func grayFromRGB(dst, src []uint8) {
	for i := range dst {
		p := src[3*i : 3*i+3 : 3*i+3]
		dst[i] = luma(p[0], p[1], p[2])
	}
}

// luma is PIL's fixed-point ITU-R 601 weighting.
func luma(r, g, b uint8) uint8 {
	return uint8((19595*uint32(r) + 38470*uint32(g) + 7471*uint32(b) + 1<<15) >> 16)
}

func checkChannels(channels int) error {
	if channels != 1 && channels != 3 {
		return fmt.Errorf("%d channels asked for: want 1 (gray) or 3 (RGB)", channels)
	}
	return nil
}
