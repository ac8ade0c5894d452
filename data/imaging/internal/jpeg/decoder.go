// Package jpeg decodes JPEG files to the planes of their components, with libjpeg's inverse DCT, bit for bit.
//
// The standard library's image/jpeg rounds its inverse DCT differently from one release to the next, and never as
// libjpeg does; colour conversion then widens a difference of one level to three. This decoder also reuses its memory
// and skips unneeded blocks.
//
// It reads 8-bit sequential and progressive Huffman-coded frames of one, three or four components, with or without
// restart intervals, interleaved or not, at any sampling whose ratios are whole. Arithmetic coding, lossless and
// hierarchical frames and 12-bit samples are errors, as are a missing end marker and entropy-coded data that is invalid
// or too short.
package jpeg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"onlinerna/data/imaging/internal/kern"
)

// Space is the colour space of a JPEG.
type Space uint8

const (
	Gray Space = iota
	YCbCr
	RGB
	CMYK
	YCCK
)

// Plane is one component. One sample stands for HX×VX pixels of the image.
type Plane struct {
	Pix           []uint8
	Stride        int
	Width, Height int // in samples: the image's size over HX and VX, rounded up
	HX, VX        int
}

// Image is a decoded JPEG before upsampling and colour conversion.
type Image struct {
	Width, Height int
	Space         Space
	Planes        []Plane
	Plain         bool // upsampling repeats samples, without interpolation
}

// Decoder keeps its memory from one image to the next. The zero value is ready.
type Decoder struct {
	Kernels *kern.Set // nil: those of the default level

	data  []byte
	plain []byte // entropy-coded data without stuffed bytes
	frame frame
	quant [4][64]uint16 // in zigzag order
	known [4]bool       // quant[i] has been read
	dc    [4]table
	ac    [4]table

	restart int // MCUs between restart markers, 0 for none
	jfif    bool
	adobe   int // the colour transform, −1 without an Adobe segment

	set   *kern.Set
	image Image

	at       int  // offset of the next segment
	scanning bool // a scan has begun
	scans    int  // begun
	scan     scan
	block    [kern.Room]int16 // 0 between blocks
}

// frame is the frame header.
type frame struct {
	width, height int
	progressive   bool
	hmax, vmax    int
	mcusX, mcusY  int
	comps         []component
	all           [4]component
}

type component struct {
	id, tq  uint8
	h, v    int
	width   int // in samples
	height  int
	blocksX int // whole MCUs
	blocksY int
	size    int       // width and height of a block in samples: 8, less where the image is scaled
	seen    bool      // in a scan
	quant   [64]int16 // in natural order
	pix     []uint8
	coef    []int16         // progressive: all blocks, in natural order
	wanted  image.Rectangle // in blocks
}

// Size reads the width and height from the frame header.
func Size(b []byte) (width, height int, err error) {
	_, seg, err := frameHeader(b)
	if err != nil {
		return 0, 0, err
	}
	return int(seg[3])<<8 | int(seg[4]), int(seg[1])<<8 | int(seg[2]), nil
}

// Components reads the number of components from the frame header.
func Components(b []byte) (int, error) {
	_, seg, err := frameHeader(b)
	if err != nil {
		return 0, err
	}
	return int(seg[5]), nil
}

// Memory is the number of bytes that Open takes for the samples and coefficients declared in the frame header.
func Memory(b []byte) (int64, error) {
	marker, seg, err := frameHeader(b)
	if err != nil {
		return 0, err
	}
	var f frame
	n, err := f.read(marker, seg)
	if err != nil {
		return 0, err
	}
	bytes := int64(0)
	for i := range n {
		bytes += f.bytes(&f.all[i])
	}
	return bytes, nil
}

// frameHeader finds the frame header, of six bytes at least.
func frameHeader(b []byte) (marker uint8, seg []byte, err error) {
	for p := 2; ; {
		marker, seg, next, err := segment(b, p)
		if err != nil {
			return 0, nil, err
		}
		if isFrame(marker) {
			if len(seg) < 6 {
				return 0, nil, errFrame
			}
			return marker, seg, nil
		}
		if marker == markerSOS || marker == markerEOI {
			return 0, nil, errors.New("no frame header comes before the first scan")
		}
		p = next
	}
}

// Open reads b up to its first scan. The result is the decoder's and valid until the next call; Rows gives it samples.
func (d *Decoder) Open(b []byte) (*Image, error) {
	d.data, d.set = b, kern.Or(d.Kernels)
	d.frame.comps = nil
	d.known = [4]bool{}
	for i := range d.dc {
		d.dc[i].defined, d.ac[i].defined = false, false
	}
	d.restart, d.jfif, d.adobe = 0, false, -1
	d.block = [kern.Room]int16{}
	d.scanning, d.scans, d.at = false, 0, 2
	if err := d.segments(); err != nil {
		return nil, err
	}
	f := &d.frame
	if f.comps == nil {
		return nil, errors.New("the file has no frame header")
	}
	d.Scale(1)
	return &d.image, nil
}

// Scale decodes planes at 1/by of the image's size, rounded up, by libjpeg's smaller inverse DCTs; by is 1, 2, 4 or
// 8. As in libjpeg, subsampled planes are decoded larger if that saves their upsampling. Call it before Want, whose
// box refers to the scaled image, and before Rows.
func (d *Decoder) Scale(by int) {
	f, m := &d.frame, &d.image
	base := 8 / by
	m.Width, m.Height, m.Space, m.Planes, m.Plain = ceilDiv(f.width, by), ceilDiv(f.height, by), d.space(),
		m.Planes[:0], base == 1
	for i := range f.comps {
		c := &f.comps[i]
		c.size = base
		for c.size < 8 && f.hmax*base%(2*c.size*c.h) == 0 && f.vmax*base%(2*c.size*c.v) == 0 {
			c.size *= 2
		}
		c.width, c.height = ceilDiv(f.width*c.h*c.size, 8*f.hmax), ceilDiv(f.height*c.v*c.size, 8*f.vmax)
		hx, vx := f.hmax*base/(c.h*c.size), f.vmax*base/(c.v*c.size)
		m.Planes = append(m.Planes, Plane{Pix: c.pix, Stride: c.size * c.blocksX, Width: c.width, Height: c.height,
			HX: hx, VX: vx})
	}
	d.Want(image.Rect(0, 0, m.Width, m.Height))
}

// Want limits decoding to the pixels inside box and the samples that they depend on, including a border of one. Call
// it before Rows.
func (d *Decoder) Want(box image.Rectangle) {
	f := &d.frame
	for i := range f.comps {
		c := &f.comps[i]
		c.wanted = c.blocksOf(box, d.image.Planes[i].HX, d.image.Planes[i].VX)
	}
}

// Rows decodes the wanted samples that the rows of pixels above y depend on.
func (d *Decoder) Rows(y int) error {
	f := &d.frame
	if !d.scanning {
		return nil
	}
	if !d.whole(&d.scan) {
		return d.Close()
	}
	row := 0
	for i := range f.comps {
		c := &f.comps[i]
		row = max(row, ceilDiv(min(c.height, ceilDiv(y, d.image.Planes[i].VX)+1), c.size*c.v))
	}
	return d.scanTo(&d.scan, row)
}

// Close decodes the rest and checks the end of the file.
func (d *Decoder) Close() error {
	if d.data == nil {
		return nil
	}
	for d.scanning {
		next, err := d.endScan(&d.scan)
		if err != nil {
			return err
		}
		d.at = next
		if err := d.segments(); err != nil {
			return err
		}
	}
	for i := range d.frame.comps {
		c := &d.frame.comps[i]
		if !c.seen {
			return fmt.Errorf("component %d is in no scan", i)
		}
		if d.frame.progressive {
			c.reconstruct(d.set)
		}
	}
	d.data = nil
	return nil
}

// segments reads segments up to the next scan, or to the end.
func (d *Decoder) segments() error {
	d.scanning = false
	for !d.scanning {
		marker, seg, next, err := segment(d.data, d.at)
		if err != nil {
			return err
		}
		if marker == markerEOI {
			break
		}
		d.at = next
		switch {
		case isFrame(marker):
			err = d.readFrame(marker, seg)
		case marker == markerDHT:
			err = d.readHuffman(seg)
		case marker == markerDQT:
			err = d.readQuant(seg)
		case marker == markerDRI:
			if len(seg) < 2 {
				err = errors.New("the restart interval is cut short")
			} else {
				d.restart = int(seg[0])<<8 | int(seg[1])
			}
		case marker == markerAPP0 && len(seg) >= 14 && string(seg[:5]) == "JFIF\x00":
			d.jfif = true
		case marker == markerAPP14 && len(seg) >= 12 && string(seg[:5]) == "Adobe":
			d.adobe = int(seg[11])
		case marker == markerSOS:
			if d.scans++; d.scans > maxScans {
				return fmt.Errorf("more than %d scans, each of which passes over the whole image", maxScans)
			}
			err = d.beginScan(seg, next)
			d.scanning = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// space decides as libjpeg's default_decompress_parms.
func (d *Decoder) space() Space {
	comps := d.frame.comps
	switch {
	case len(comps) == 1:
		return Gray
	case len(comps) == 4 && d.adobe <= 0:
		return CMYK
	case len(comps) == 4:
		return YCCK
	case d.jfif || d.adobe > 0:
		return YCbCr
	case d.adobe == 0 || comps[0].id == 'R' && comps[1].id == 'G' && comps[2].id == 'B':
		return RGB
	}
	return YCbCr
}

// reconstruct transforms the wanted blocks of a progressive component.
func (c *component) reconstruct(set *kern.Set) {
	for y := c.wanted.Min.Y; y < c.wanted.Max.Y; y++ {
		for x := c.wanted.Min.X; x < c.wanted.Max.X; x++ {
			c.transform(set, (*[64]int16)(c.coef[(y*c.blocksX+x)*64:]), x, y)
		}
	}
}

// transform writes the samples of one block.
func (c *component) transform(set *kern.Set, coef *[64]int16, x, y int) {
	stride := c.size * c.blocksX
	dst := c.pix[c.size*(y*stride+x):]
	switch c.size {
	case 8:
		set.IDCT(dst, stride, coef, &c.quant)
	case 4:
		set.IDCT4(dst, stride, coef, &c.quant)
	case 2:
		kern.IDCT2(dst, stride, coef, &c.quant)
	default:
		dst[0] = kern.IDCT1(coef[0], c.quant[0])
	}
}

// flat writes the samples of a block whose coefficients are 0 except the first.
func (c *component) flat(dc int16, x, y int) {
	v := kern.IDCT1(dc, c.quant[0])
	stride := c.size * c.blocksX
	for row := range c.size {
		dst := c.pix[c.size*(y*stride+x)+row*stride:]
		if c.size == 8 {
			binary.LittleEndian.PutUint64(dst, uint64(v)*0x0101010101010101)
			continue
		}
		for i := range c.size {
			dst[i] = v
		}
	}
}
