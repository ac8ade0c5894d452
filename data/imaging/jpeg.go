package imaging

import (
	"fmt"
	"image"

	"onlinerna/data/imaging/internal/jpeg"
	"onlinerna/data/imaging/internal/kern"
)

// openJPEG prepares the pixels of b inside box for rowJPEG.
func (d *Decoder) openJPEG(b []byte, box image.Rectangle) (err error) {
	if d.planes, err = d.jpeg.Open(b); err != nil {
		return fmt.Errorf("jpeg: %w", err)
	}
	d.box = box
	d.jpeg.Want(box)
	return nil
}

// Make decodes the pixels of an image opened by Decoder.Open. Other images stay unchanged.
func (m *Image) Make() error {
	d := m.later
	if d == nil {
		return nil
	}
	m.Reset(m.Width, m.Height, m.Channels)
	for y := range m.Height {
		if err := d.rowJPEG(m.row(y), d.box.Min.Y+y, d.box.Min.X, d.box.Max.X, m.Channels); err != nil {
			return err
		}
	}
	return d.closeJPEG()
}

// closeJPEG checks the end of the file.
func (d *Decoder) closeJPEG() error {
	if err := d.jpeg.Close(); err != nil {
		return fmt.Errorf("jpeg: %w", err)
	}
	return nil
}

// rowJPEG writes the columns [x0, x1) of row y.
func (d *Decoder) rowJPEG(dst []uint8, y, x0, x1, channels int) error {
	if err := d.jpeg.Rows(y + 1); err != nil {
		return fmt.Errorf("jpeg: %w", err)
	}
	m, set := d.planes, kern.Or(d.jpeg.Kernels)
	var rows [4][]uint8
	for i := range m.Planes {
		rows[i] = planeRow(set, &m.Planes[i], m.Plain, &d.rows[i], y, x0, x1)
	}
	if m.Space == jpeg.Gray {
		putGray(dst, rows[0])
		return nil
	}
	out := dst
	if channels == 1 {
		d.rgb = kern.Grow(d.rgb, 3*(x1-x0))
		out = d.rgb
	}
	switch m.Space {
	case jpeg.YCbCr, jpeg.YCCK:
		set.YCbCrToRGB(out, rows[0], rows[1], rows[2])
	case jpeg.RGB, jpeg.CMYK:
		interleave(out, rows[0], rows[1], rows[2])
	}
	if m.Space == jpeg.YCCK {
		for i := range out {
			out[i] = 255 - out[i] // libjpeg's YCCK stands for the complement of RGB
		}
	}
	if len(m.Planes) == 4 {
		addBlack(out, rows[3])
	}
	if channels == 1 {
		grayFromRGB(dst, out)
	}
	return nil
}

func interleave(dst, r, g, b []uint8) {
	g, b = g[:len(r)], b[:len(r)]
	for i := range r {
		p := dst[3*i : 3*i+3 : 3*i+3]
		p[0], p[1], p[2] = r[i], g[i], b[i]
	}
}

func clip(v int32) uint8 {
	if uint32(v) > 255 {
		v = ^(v >> 31)
	}
	return uint8(v)
}

// addBlack converts three inks and black, all stored as 255 − ink, to RGB: Adobe writes them so, and PIL reads every
// CMYK JPEG so. Each colour is scaled by 255 − black in PIL's rounding.
func addBlack(rgb, black []uint8) {
	for i, k := range black {
		p := rgb[3*i : 3*i+3 : 3*i+3]
		for c, v := range p {
			t := uint32(255-v)*uint32(k) + 128
			p[c] = k - uint8((t>>8+t)>>8)
		}
	}
}

// putGray writes a row of gray samples in one or three channels.
func putGray(dst, gray []uint8) {
	if len(dst) == len(gray) {
		copy(dst, gray)
		return
	}
	interleave(dst, gray, gray, gray)
}
