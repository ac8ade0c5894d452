package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
)

// MaxPixels is the size above which an image is refused before anything of its size is allocated. PIL raises its
// decompression bomb error above the same size.
const MaxPixels = 178_956_970

const (
	jpegMagic = "\xff\xd8\xff"
	pngMagic  = "\x89PNG\r\n\x1a\n"
)

var errFormat = errors.New("neither a JPEG nor a PNG: the first bytes are those of another format, or the file is empty")

// Dimensions reads the width and height of a JPEG or PNG from its header. Content decides, not a file's name.
// An image of more than MaxPixels is an error.
func Dimensions(b []byte) (width, height int, err error) {
	switch {
	case isJPEG(b):
		h, err := readJPEGHeader(b)
		if err != nil {
			return 0, 0, err
		}
		return h.width, h.height, nil
	case isPNG(b):
		h, err := readPNGHeader(b)
		if err != nil {
			return 0, 0, err
		}
		return h.width, h.height, nil
	}
	return 0, 0, errFormat
}

// Decode decodes a JPEG or PNG to a new image; see Decoder.Decode.
func Decode(b []byte, channels int) (*Image, error) {
	m := new(Image)
	var d Decoder
	if err := d.Decode(m, b, channels); err != nil {
		return nil, err
	}
	return m, nil
}

// Decoder decodes one image after another and keeps its scratch memory between them. The zero value is ready;
// a Decoder is for one goroutine.
type Decoder struct {
	rgb    []uint8    // a row before it becomes gray
	chroma [3][]uint8 // rows of components after upsampling
	plane  [4][]uint8 // components of a CMYK image, one after the other
}

// Decode decodes the JPEG or PNG in b to dst, whose memory is reused: 3 channels as PIL's convert("RGB"), 1 as
// convert("L"). After an error dst is undefined. b is not kept.
func (d *Decoder) Decode(dst *Image, b []byte, channels int) error {
	return d.decode(dst, b, channels, nil)
}

// DecodeBox decodes the pixels inside box only: the same as Decode followed by Crop, and faster. The box must lie
// inside the image, whose size Dimensions gives.
func (d *Decoder) DecodeBox(dst *Image, b []byte, channels int, box image.Rectangle) error {
	return d.decode(dst, b, channels, &box)
}

// decode decodes the whole image where box is nil.
func (d *Decoder) decode(dst *Image, b []byte, channels int, box *image.Rectangle) error {
	if err := checkChannels(channels); err != nil {
		return err
	}
	var (
		size image.Rectangle
		fill func(dst *Image, box image.Rectangle) error
	)
	switch {
	case isJPEG(b):
		h, err := readJPEGHeader(b)
		if err != nil {
			return err
		}
		size = image.Rect(0, 0, h.width, h.height)
		fill = func(dst *Image, box image.Rectangle) error { return d.decodeJPEG(dst, b, h, box) }
	case isPNG(b):
		h, err := readPNGHeader(b)
		if err != nil {
			return err
		}
		size = image.Rect(0, 0, h.width, h.height)
		fill = func(dst *Image, box image.Rectangle) error { return d.decodePNG(dst, b, h, box) }
	default:
		return errFormat
	}
	if box == nil {
		box = &size
	} else if box.Empty() || !box.In(size) {
		return fmt.Errorf("box %v is empty or not inside the image of %dx%d pixels", *box, size.Dx(), size.Dy())
	}
	dst.Reset(box.Dx(), box.Dy(), channels)
	return fill(dst, *box)
}

func isJPEG(b []byte) bool {
	return len(b) >= len(jpegMagic) && string(b[:len(jpegMagic)]) == jpegMagic
}
func isPNG(b []byte) bool { return bytes.HasPrefix(b, []byte(pngMagic)) }

// pngHeader is what the IHDR chunk says, as far as it is needed.
type pngHeader struct {
	width, height    int
	depth, colorType uint8
}

func readPNGHeader(b []byte) (pngHeader, error) {
	const ihdr = len(pngMagic) + 8 // after the chunk's length and type
	if len(b) < ihdr+13 || string(b[ihdr-4:ihdr]) != "IHDR" {
		return pngHeader{}, errors.New("png: the header is cut short or missing")
	}
	w, h := binary.BigEndian.Uint32(b[ihdr:]), binary.BigEndian.Uint32(b[ihdr+4:])
	if err := checkSize("png", uint64(w), uint64(h)); err != nil {
		return pngHeader{}, err
	}
	return pngHeader{width: int(w), height: int(h), depth: b[ihdr+8], colorType: b[ihdr+9]}, nil
}

func checkSize(format string, w, h uint64) error {
	if w == 0 || h == 0 {
		return fmt.Errorf("%s: the header gives a size of %dx%d pixels", format, w, h)
	}
	if w*h > MaxPixels { // both are below 2³²
		return fmt.Errorf("%s: the header gives %dx%d pixels, more than the limit of %d: a damaged file or a decompression bomb", format, w, h, MaxPixels)
	}
	return nil
}

// grow returns b with length n, its contents undefined.
func grow[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}
