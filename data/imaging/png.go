package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"

	"onlinerna/data/imaging/internal/kern"
)

// Offsets in the file: the signature is followed by the length and the name of the header chunk, then by its fields.
const (
	pngHeader    = len(pngMagic) + 8
	pngColorType = pngHeader + 9
)

func pngSize(b []byte) (width, height int, err error) {
	if len(b) < pngHeader+13 || string(b[pngHeader-4:pngHeader]) != "IHDR" {
		return 0, 0, errors.New("the header is cut short or missing")
	}
	w, h := binary.BigEndian.Uint32(b[pngHeader:]), binary.BigEndian.Uint32(b[pngHeader+4:])
	return int(min(w, math.MaxInt32)), int(min(h, math.MaxInt32)), nil
}

// decodePNG fills dst with the pixels inside box. Alpha and transparent colours are dropped, as PIL does.
func (d *Decoder) decodePNG(dst *Image, b []byte, box image.Rectangle) error {
	m, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("png: %w", err)
	}
	var fill func(out []uint8, y int) // writes a row in three channels
	switch m := m.(type) {
	case *image.Gray:
		for y := range dst.Height {
			from := m.Pix[m.PixOffset(box.Min.X, box.Min.Y+y):]
			putGray(dst.row(y), from[:dst.Width])
		}
		return nil
	case *image.Paletted:
		fill = paletteRows(m, box)
	case *image.RGBA: // opaque
		fill = rgbaRows(m.Pix, m.Stride, 4, box)
	case *image.NRGBA:
		fill = rgbaRows(m.Pix, m.Stride, 4, box)
	case *image.Gray16:
		fill = gray16Rows(m.Pix, m.Stride, 2, box)
	case *image.RGBA64:
		fill = rgba64Rows(m.Pix, m.Stride, box)
	case *image.NRGBA64:
		fill = rgba64Rows(m.Pix, m.Stride, box)
		if b[pngColorType] == 0 { // gray with a transparent value
			fill = gray16Rows(m.Pix, m.Stride, 8, box)
		}
	default:
		return fmt.Errorf("png: cannot read pixels of a %T", m)
	}
	d.rgb = kern.Grow(d.rgb, 3*dst.Width)
	for y := range dst.Height {
		if dst.Channels == 3 {
			fill(dst.row(y), box.Min.Y+y)
			continue
		}
		fill(d.rgb, box.Min.Y+y)
		grayFromRGB(dst.row(y), d.rgb)
	}
	return nil
}

func rgbaRows(pix []uint8, stride, step int, box image.Rectangle) func(out []uint8, y int) {
	return func(out []uint8, y int) {
		from := pix[y*stride+box.Min.X*step : y*stride+box.Max.X*step]
		for i := range box.Dx() {
			p, q := out[3*i:3*i+3:3*i+3], from[i*step:i*step+3]
			p[0], p[1], p[2] = q[0], q[1], q[2]
		}
	}
}

// rgba64Rows keeps the high byte of each sample.
func rgba64Rows(pix []uint8, stride int, box image.Rectangle) func(out []uint8, y int) {
	return func(out []uint8, y int) {
		from := pix[y*stride+box.Min.X*8 : y*stride+box.Max.X*8]
		for i := range box.Dx() {
			p, q := out[3*i:3*i+3:3*i+3], from[8*i:8*i+5]
			p[0], p[1], p[2] = q[0], q[2], q[4]
		}
	}
}

// gray16Rows clips 16-bit gray at 255: PIL reads it as integers and does not rescale them.
func gray16Rows(pix []uint8, stride, step int, box image.Rectangle) func(out []uint8, y int) {
	return func(out []uint8, y int) {
		from := pix[y*stride+box.Min.X*step : y*stride+box.Max.X*step]
		for i := range box.Dx() {
			v := from[i*step+1]
			if from[i*step] != 0 {
				v = 255
			}
			p := out[3*i : 3*i+3 : 3*i+3]
			p[0], p[1], p[2] = v, v, v
		}
	}
}

// paletteRows looks colours up. image/png makes an index past the palette black.
func paletteRows(m *image.Paletted, box image.Rectangle) func(out []uint8, y int) {
	var table [256][3]uint8
	for i, c := range m.Palette[:min(len(m.Palette), 256)] {
		switch c := c.(type) {
		case color.RGBA:
			table[i] = [3]uint8{c.R, c.G, c.B}
		case color.NRGBA:
			table[i] = [3]uint8{c.R, c.G, c.B}
		}
	}
	return func(out []uint8, y int) {
		from := m.Pix[y*m.Stride+box.Min.X : y*m.Stride+box.Max.X]
		for i, v := range from {
			copy(out[3*i:3*i+3], table[v][:])
		}
	}
}
