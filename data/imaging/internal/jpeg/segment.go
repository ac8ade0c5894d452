package jpeg

import (
	"bytes"
	"errors"
	"fmt"
	"image"

	"onlinerna/data/imaging/internal/kern"
)

const (
	markerSOF0  = 0xc0
	markerSOF1  = 0xc1
	markerSOF2  = 0xc2
	markerDHT   = 0xc4
	markerJPG   = 0xc8
	markerDAC   = 0xcc
	markerRST0  = 0xd0
	markerRST7  = 0xd7
	markerSOI   = 0xd8
	markerEOI   = 0xd9
	markerSOS   = 0xda
	markerDQT   = 0xdb
	markerDRI   = 0xdd
	markerAPP0  = 0xe0
	markerAPP14 = 0xee
)

var (
	errShort = errors.New("the file is cut short: it has no end marker")
	errFrame = errors.New("the frame header is cut short")
)

func isFrame(marker uint8) bool {
	return 0xc0 <= marker && marker <= 0xcf && marker != markerDHT && marker != markerJPG && marker != markerDAC
}

// segment finds the next marker at or after p and its data; next is the offset after that. Other bytes before a
// marker are skipped, as libjpeg does.
func segment(b []byte, p int) (marker uint8, seg []byte, next int, err error) {
	for {
		i := bytes.IndexByte(b[min(p, len(b)):], 0xff)
		if i < 0 || p+i+2 > len(b) {
			return 0, nil, 0, errShort
		}
		p += i
		marker = b[p+1]
		switch {
		case marker == 0xff: // fill
			p++
			continue
		case marker <= 0x01 || markerRST0 <= marker && marker <= markerSOI: // stand alone
			p += 2
			continue
		case marker == markerEOI:
			return marker, nil, p + 2, nil
		}
		if p+4 > len(b) {
			return 0, nil, 0, errShort
		}
		n := int(b[p+2])<<8 | int(b[p+3])
		if n < 2 {
			return 0, nil, 0, fmt.Errorf("segment %#02x has the length %d", marker, n)
		}
		next = p + 2 + n
		if next > len(b) {
			return 0, nil, 0, errShort
		}
		return marker, b[p+4 : next], next, nil
	}
}

func (d *Decoder) readFrame(marker uint8, seg []byte) error {
	f := &d.frame
	if f.comps != nil {
		return errors.New("the file has two frame headers")
	}
	n, err := f.read(marker, seg)
	if err != nil {
		return err
	}
	f.comps = f.all[:n]
	for i := range f.comps {
		c := &f.comps[i]
		c.seen = false
		c.pix = kern.Grow(c.pix, c.samples())
		if f.progressive {
			c.coef = kern.Grow(c.coef, c.samples())
			clear(c.coef)
		}
	}
	return nil
}

// samples counts the samples of a component's whole MCUs.
func (c *component) samples() int { return 64 * c.blocksX * c.blocksY }

// bytes is the memory of a component's samples and, in a progressive file, its coefficients.
func (f *frame) bytes(c *component) int64 {
	if f.progressive {
		return 3 * int64(c.samples())
	}
	return int64(c.samples())
}

// read parses the frame header, except comps, and returns the number of components.
func (f *frame) read(marker uint8, seg []byte) (n int, err error) {
	if marker > markerSOF2 {
		return 0, fmt.Errorf("frame type %#02x (lossless, hierarchical or arithmetic-coded) is not supported", marker)
	}
	if len(seg) < 6 || len(seg) < 6+3*int(seg[5]) {
		return 0, errFrame
	}
	if seg[0] != 8 {
		return 0, fmt.Errorf("samples of %d bits are not supported, only 8", seg[0])
	}
	f.progressive = marker == markerSOF2
	f.height, f.width = int(seg[1])<<8|int(seg[2]), int(seg[3])<<8|int(seg[4])
	if f.width == 0 || f.height == 0 {
		return 0, fmt.Errorf("the frame header gives a size of %dx%d pixels", f.width, f.height)
	}
	n = int(seg[5])
	if n != 1 && n != 3 && n != 4 {
		return 0, fmt.Errorf("%d components: want 1 (gray), 3 (YCbCr or RGB) or 4 (CMYK or YCCK)", n)
	}
	f.hmax, f.vmax = 1, 1
	for i := range n {
		c, s := &f.all[i], seg[6+3*i:]
		c.id, c.h, c.v, c.tq = s[0], int(s[1]>>4), int(s[1]&15), s[2]
		if n == 1 {
			c.h, c.v = 1, 1 // a lone component is never interleaved: its sampling means nothing
		}
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.tq > 3 {
			return 0, fmt.Errorf("component %d has sampling factors %dx%d and quantisation table %d", i, c.h, c.v, c.tq)
		}
		for _, other := range f.all[:i] {
			if other.id == c.id {
				return 0, fmt.Errorf("two components have the identifier %d", c.id)
			}
		}
		f.hmax, f.vmax = max(f.hmax, c.h), max(f.vmax, c.v)
	}
	f.mcusX, f.mcusY = ceilDiv(f.width, 8*f.hmax), ceilDiv(f.height, 8*f.vmax)
	for i := range n {
		c := &f.all[i]
		if f.hmax%c.h != 0 || f.vmax%c.v != 0 {
			return 0, fmt.Errorf("component %d is sampled %dx%d where the densest has %dx%d: fractional ratios are "+
				"not supported", i, c.h, c.v, f.hmax, f.vmax)
		}
		c.blocksX, c.blocksY = f.mcusX*c.h, f.mcusY*c.v
	}
	return n, nil
}

// blocksOf returns the blocks with the samples of box and one more on each side, for interpolation.
func (c *component) blocksOf(box image.Rectangle, hx, vx int) image.Rectangle {
	return image.Rect(
		max(box.Min.X/hx-1, 0)/c.size, max(box.Min.Y/vx-1, 0)/c.size,
		ceilDiv(ceilDiv(box.Max.X, hx)+1, c.size), ceilDiv(ceilDiv(box.Max.Y, vx)+1, c.size),
	).Intersect(image.Rect(0, 0, c.blocksX, c.blocksY))
}

func (d *Decoder) readQuant(seg []byte) error {
	for len(seg) > 0 {
		wide, i := seg[0]>>4, seg[0]&15
		n := 64 << wide
		if wide > 1 || i > 3 || len(seg) < 1+n {
			return errors.New("a quantisation table is invalid or cut short")
		}
		for k := range d.quant[i] {
			if wide == 0 {
				d.quant[i][k] = uint16(seg[1+k])
			} else {
				d.quant[i][k] = uint16(seg[1+2*k])<<8 | uint16(seg[2+2*k])
			}
		}
		d.known[i] = true
		seg = seg[1+n:]
	}
	return nil
}

func (d *Decoder) readHuffman(seg []byte) error {
	for len(seg) > 0 {
		class, i := seg[0]>>4, seg[0]&15
		if class > 1 || i > 3 || len(seg) < 17 {
			return errors.New("a Huffman table is invalid or cut short")
		}
		t := &d.dc[i]
		if class == 1 {
			t = &d.ac[i]
		}
		n, err := t.read(seg[1:], class == 1)
		if err != nil {
			return err
		}
		seg = seg[1+n:]
	}
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
