package imaging

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"onlinerna/data/imaging/internal/kern"
)

// foreign is a format that another package decodes.
type foreign struct {
	name   string
	is     func(b []byte) bool
	config func(b []byte) (image.Config, error)
	decode func(b []byte) (image.Image, error)
}

func prefixed(prefixes ...string) func(b []byte) bool {
	return func(b []byte) bool {
		for _, p := range prefixes {
			if bytes.HasPrefix(b, []byte(p)) {
				return true
			}
		}
		return false
	}
}

var foreigners = []foreign{
	{
		"webp", func(b []byte) bool { return len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP" },
		func(b []byte) (image.Config, error) { return webp.DecodeConfig(bytes.NewReader(b)) },
		func(b []byte) (image.Image, error) { return webp.Decode(bytes.NewReader(b)) },
	}, {
		"bmp", prefixed("BM"),
		func(b []byte) (image.Config, error) { return bmp.DecodeConfig(bytes.NewReader(b)) },
		func(b []byte) (image.Image, error) { return bmp.Decode(bytes.NewReader(b)) },
	}, {
		"gif", prefixed("GIF87a", "GIF89a"),
		func(b []byte) (image.Config, error) { return gif.DecodeConfig(bytes.NewReader(b)) },
		func(b []byte) (image.Image, error) { return gif.Decode(bytes.NewReader(b)) },
	}, {
		"tiff", prefixed("II*\x00", "MM\x00*"),
		func(b []byte) (image.Config, error) { return tiff.DecodeConfig(bytes.NewReader(b)) },
		func(b []byte) (image.Image, error) { return tiff.Decode(bytes.NewReader(b)) },
	},
}

func foreignOf(b []byte) *foreign {
	for i := range foreigners {
		if foreigners[i].is(b) {
			return &foreigners[i]
		}
	}
	return nil
}

// size reads the size from the header. The decoders panic at some damaged files.
func (f *foreign) size(b []byte) (width, height int, err error) {
	defer f.recover(&err)
	c, err := f.config(b)
	return c.Width, c.Height, err
}

func (f *foreign) recover(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the file is damaged: %v", r)
	}
}

// decodeForeign fills dst with the pixels inside box. Alpha is dropped, as PIL's convert does.
func (d *Decoder) decodeForeign(dst *Image, b []byte, box image.Rectangle, f *foreign) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", f.name, err)
		}
	}()
	defer f.recover(&err)
	m, err := f.decode(b)
	if err != nil {
		return err
	}
	if f.name != "gif" && !box.In(m.Bounds().Sub(m.Bounds().Min)) {
		return fmt.Errorf("an image of %v, whose header gives another size", m.Bounds())
	}
	fill := d.foreignRows(m, box)
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

// foreignRows returns a function that writes a row of box in three channels.
func (d *Decoder) foreignRows(m image.Image, box image.Rectangle) func(out []uint8, y int) {
	switch m := m.(type) {
	case *image.YCbCr:
		return webpRows(m, box)
	case *image.NYCbCrA:
		return webpRows(&m.YCbCr, box)
	case *image.NRGBA:
		return rgbaRows(m.Pix, m.Stride, 4, box)
	case *image.RGBA:
		return rgbaRows(m.Pix, m.Stride, 4, box)
	}
	bounds := m.Bounds() // of a GIF's first frame, which may be smaller than the image
	return func(out []uint8, y int) {
		for i := range box.Dx() {
			p := out[3*i : 3*i+3 : 3*i+3]
			at := image.Pt(box.Min.X+i, y)
			if !at.In(bounds) {
				p[0], p[1], p[2] = 0, 0, 0
				continue
			}
			c := color.NRGBAModel.Convert(m.At(at.X, at.Y)).(color.NRGBA)
			p[0], p[1], p[2] = c.R, c.G, c.B
		}
	}
}

// webpRows converts a lossy WebP as libwebp: "fancy" upsampling of the chroma, with weights 9, 3, 3 and 1, and BT.601
// of the video range in its fixed point.
func webpRows(m *image.YCbCr, box image.Rectangle) func(out []uint8, y int) {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	cw, ch := (w+1)/2, (h+1)/2
	// chroma is the sample at pixel (x, y): of the four nearest samples with libwebp's rounding.
	chroma := func(plane []uint8, x, y int) int {
		cx, cy := x/2, y/2
		nx, ny := cx-1+x%2*2, cy-1+y%2*2 // the neighbours across and down
		nx, ny = min(max(nx, 0), cw-1), min(max(ny, 0), ch-1)
		at := func(x, y int) int { return int(plane[y*m.CStride+x]) }
		near, across, down, far := at(cx, cy), at(nx, cy), at(cx, ny), at(nx, ny)
		if x == 0 || x == w-1 && w%2 == 0 { // the borders have vertical neighbours only
			return (3*near + down + 2) >> 2
		}
		return ((near+across+down+far+8+2*(across+down))>>3 + near) >> 1
	}
	return func(out []uint8, y int) {
		for i := range box.Dx() {
			x := box.Min.X + i
			luma, u, v := int(m.Y[y*m.YStride+x]), chroma(m.Cb, x, y), chroma(m.Cr, x, y)
			p := out[3*i : 3*i+3 : 3*i+3]
			base := luma * 19077 >> 8
			p[0] = clip(int32(base+v*26149>>8-14234) >> 6)
			p[1] = clip(int32(base-u*6419>>8-v*13320>>8+8708) >> 6)
			p[2] = clip(int32(base+u*33050>>8-17685) >> 6)
		}
	}
}
