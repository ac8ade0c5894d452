package imaging

import (
	"fmt"
	"image"

	"onlinerna/data/imaging/internal/jpeg"
	"onlinerna/data/imaging/internal/kern"
)

// decodeJPEG fills dst with the pixels inside box.
func (d *Decoder) decodeJPEG(dst *Image, b []byte, box image.Rectangle) error {
	m, err := d.jpeg.Decode(b, box)
	if err != nil {
		return fmt.Errorf("jpeg: %w", err)
	}
	set := kern.Current()
	for y := range dst.Height {
		var rows [4][]uint8
		for i := range m.Planes {
			rows[i] = planeRow(set, &m.Planes[i], &d.rows[i], box.Min.Y+y, box.Min.X, box.Max.X)
		}
		if m.Space == jpeg.Gray {
			putGray(dst.row(y), rows[0])
			continue
		}
		out := dst.row(y)
		if dst.Channels == 1 {
			d.rgb = grow(d.rgb, 3*dst.Width)
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
		if dst.Channels == 1 {
			grayFromRGB(dst.row(y), out)
		}
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

// addBlack makes RGB of three inks and black, all as 255 − ink: that is how Adobe writes them, and PIL takes every
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
