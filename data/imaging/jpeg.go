package imaging

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"io"
)

// Segments put before the first scan so that image/jpeg returns the components as they are coded, whatever the file
// says of them: the upsampling and the colours are done here.
const (
	asYCbCr = "\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
	asCMYK  = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
)

// component is one plane of a JPEG, which may have fewer samples than the image has pixels.
type component struct {
	pix           []uint8
	stride        int
	width, height int
	hx, vx        int // expansion: pixels per sample
}

// decodeJPEG fills dst with the pixels inside box.
func (d *Decoder) decodeJPEG(dst *Image, b []byte, h jpegHeader, box image.Rectangle) error {
	comps, err := d.jpegComponents(b, h)
	if err != nil {
		return fmt.Errorf("jpeg: %w", err)
	}
	if h.space == spaceGray {
		for y := range dst.Height {
			from := comps[0].pix[(box.Min.Y+y)*comps[0].stride:]
			putGray(dst.row(y), from[box.Min.X:box.Max.X])
		}
		return nil
	}
	n := 3 * dst.Width
	d.rgb = grow(d.rgb, n)
	for y := range dst.Height {
		out := d.rgb
		if dst.Channels == 3 {
			out = dst.row(y)
		}
		var rows [4][]uint8
		for i := range comps {
			var scratch *[]uint8
			if i > 0 && i < 3 {
				scratch = &d.chroma[i-1]
			}
			rows[i] = comps[i].row(scratch, box.Min.Y+y, box.Min.X, box.Max.X)
		}
		switch h.space {
		case spaceRGB:
			interleave(out, rows[0], rows[1], rows[2])
		case spaceYCbCr, spaceYCCK:
			ycbcrToRGB(out, rows[0], rows[1], rows[2])
		case spaceCMYK:
			// The planes hold 255 − ink, as Adobe writes them: PIL inverts every CMYK JPEG.
			interleave(out, rows[0], rows[1], rows[2])
		}
		if len(comps) == 4 {
			addBlack(out, rows[3])
		}
		if dst.Channels == 1 {
			grayFromRGB(dst.row(y), out)
		}
	}
	return nil
}

// jpegComponents returns the planes as they are coded.
func (d *Decoder) jpegComponents(b []byte, h jpegHeader) ([]component, error) {
	splice := asYCbCr
	if h.space == spaceCMYK || h.space == spaceYCCK {
		splice = asCMYK
	}
	m, err := jpeg.Decode(io.MultiReader(bytes.NewReader(b[:h.scan]), bytes.NewReader([]byte(splice)), bytes.NewReader(b[h.scan:])))
	if err != nil {
		return nil, err
	}
	if got := m.Bounds(); got != image.Rect(0, 0, h.width, h.height) {
		return nil, fmt.Errorf("the image has %dx%d pixels, its header says %dx%d", got.Dx(), got.Dy(), h.width, h.height)
	}
	full := component{width: h.width, height: h.height, hx: 1, vx: 1}
	switch m := m.(type) {
	case *image.Gray:
		if h.space == spaceGray {
			full.pix, full.stride = m.Pix, m.Stride
			return []component{full}, nil
		}
	case *image.YCbCr:
		if h.space == spaceYCbCr || h.space == spaceRGB {
			return ycbcrComponents(m, full), nil
		}
	case *image.CMYK:
		if h.space == spaceCMYK || h.space == spaceYCCK {
			return d.cmykComponents(m, full, h.subsampled), nil
		}
	}
	return nil, fmt.Errorf("the components change their meaning between scans (%T)", m)
}

func ycbcrComponents(m *image.YCbCr, full component) []component {
	luma, cb := full, full
	luma.pix, luma.stride = m.Y, m.YStride
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio422:
		cb.hx = 2
	case image.YCbCrSubsampleRatio420:
		cb.hx, cb.vx = 2, 2
	case image.YCbCrSubsampleRatio440:
		cb.vx = 2
	case image.YCbCrSubsampleRatio411:
		cb.hx = 4
	case image.YCbCrSubsampleRatio410:
		cb.hx, cb.vx = 4, 2
	}
	cb.width, cb.height = ceilDiv(full.width, cb.hx), ceilDiv(full.height, cb.vx)
	cb.stride = m.CStride
	cr := cb
	cb.pix, cr.pix = m.Cb, m.Cr
	return []component{luma, cb, cr}
}

// cmykComponents takes the four planes apart and undoes image/jpeg's inversion and its repetition of subsampled ones.
func (d *Decoder) cmykComponents(m *image.CMYK, full component, subsampled bool) []component {
	comps := []component{full, full, full, full}
	for i := range comps {
		c := &comps[i]
		if subsampled && (i == 1 || i == 2) {
			c.hx, c.vx = 2, 2
			c.width, c.height = ceilDiv(full.width, 2), ceilDiv(full.height, 2)
		}
		d.plane[i] = grow(d.plane[i], c.width*c.height)
		c.pix, c.stride = d.plane[i], c.width
		for y := range c.height {
			from := m.Pix[y*c.vx*m.Stride+i:]
			for x := range c.width {
				c.pix[y*c.width+x] = 255 - from[x*c.hx*4]
			}
		}
	}
	return comps
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func interleave(dst, r, g, b []uint8) {
	g, b = g[:len(r)], b[:len(r)]
	for i := range r {
		p := dst[3*i : 3*i+3 : 3*i+3]
		p[0], p[1], p[2] = r[i], g[i], b[i]
	}
}

// ycbcrToRGB is JFIF's conversion with libjpeg's 16-bit fixed point and rounding.
func ycbcrToRGB(dst, luma, cb, cr []uint8) {
	const half = 1 << 15
	cb, cr = cb[:len(luma)], cr[:len(luma)]
	for i := range luma {
		y, u, v := int32(luma[i]), int32(cb[i])-128, int32(cr[i])-128
		p := dst[3*i : 3*i+3 : 3*i+3]
		p[0] = clip(y + (91881*v+half)>>16)
		p[1] = clip(y + (half-22554*u-46802*v)>>16)
		p[2] = clip(y + (116130*u+half)>>16)
	}
}

func clip(v int32) uint8 {
	if uint32(v) > 255 {
		v = ^(v >> 31)
	}
	return uint8(v)
}

// addBlack turns samples of 255 − ink into RGB: each is scaled by 255 − black, in PIL's rounding.
func addBlack(rgb, black []uint8) {
	for i, nk := range black {
		p := rgb[3*i : 3*i+3 : 3*i+3]
		for c, v := range p {
			t := uint32(255-v)*uint32(nk) + 128
			p[c] = nk - uint8((t>>8+t)>>8)
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
