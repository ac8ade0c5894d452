package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"image"

	"onlinerna/data/imaging/internal/jpeg"
)

// MaxPixels is the largest size of an image; larger ones are refused before their memory is allocated. PIL raises its
// decompression bomb error above the same size.
const MaxPixels = 178_956_970

// ErrPixels is the cause of an error for an image of more than MaxPixels.
var ErrPixels = fmt.Errorf("more than the limit of %d: a damaged file or a decompression bomb", MaxPixels)

const (
	jpegMagic = "\xff\xd8\xff"
	pngMagic  = "\x89PNG\r\n\x1a\n"
)

var errFormat = errors.New("neither a JPEG nor a PNG, nor WebP, BMP, GIF or TIFF: the first bytes are those of " +
	"another format, or the file is empty")

// Dimensions reads the width and height of an image from its header. Content decides, not a file's name.
// An image of more than MaxPixels is an error.
func Dimensions(b []byte) (width, height int, err error) {
	format, read := "jpeg", jpeg.Size
	switch {
	case bytes.HasPrefix(b, []byte(pngMagic)):
		format, read = "png", pngSize
	case !bytes.HasPrefix(b, []byte(jpegMagic)):
		f := foreignOf(b)
		if f == nil {
			return 0, 0, errFormat
		}
		format, read = f.name, f.size
	}
	if width, height, err = read(b); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", format, err)
	}
	if width < 1 || height < 1 {
		return 0, 0, fmt.Errorf("%s: the header gives a size of %dx%d pixels", format, width, height)
	}
	if width > MaxPixels/height {
		return 0, 0, fmt.Errorf("%s: the header gives %dx%d pixels, %w", format, width, height, ErrPixels)
	}
	return width, height, nil
}

// Decode decodes an image file to a new image; see Decoder.Decode.
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
	jpeg   jpeg.Decoder
	planes *jpeg.Image
	box    image.Rectangle
	rows   [4][]uint8 // rows of components after upsampling
	rgb    []uint8    // a row before it becomes gray
}

// Decode decodes the image file in b to dst, whose memory is reused: 3 channels as PIL's convert("RGB"), 1 as
// convert("L"). After an error dst is undefined. b is not kept.
func (d *Decoder) Decode(dst *Image, b []byte, channels int) error {
	return d.decode(dst, b, channels, nil, false)
}

// DecodeBox decodes the pixels inside box only: the same as Decode followed by Crop, and faster. The box must lie
// inside the image, whose size Dimensions gives. It checks only the end of the data below the box.
func (d *Decoder) DecodeBox(dst *Image, b []byte, channels int, box image.Rectangle) error {
	return d.decode(dst, b, channels, &box, false)
}

// Open is DecodeBox for an image that is resized next. It decodes no pixels of a JPEG: a Resizer decodes the rows
// that it needs and reports the errors that Decode would. Until then b and dst must not change and d must not be
// used. Image.Make decodes all pixels.
func (d *Decoder) Open(dst *Image, b []byte, channels int, box image.Rectangle) error {
	return d.decode(dst, b, channels, &box, true)
}

// decode decodes the box, or the whole image if box is nil.
func (d *Decoder) decode(dst *Image, b []byte, channels int, box *image.Rectangle, later bool) error {
	if err := checkChannels(channels); err != nil {
		return err
	}
	w, h, err := Dimensions(b)
	if err != nil {
		return err
	}
	size := image.Rect(0, 0, w, h)
	if box == nil {
		box = &size
	} else if box.Empty() || !box.In(size) {
		return fmt.Errorf("box %v is empty or not inside the image of %dx%d pixels", *box, w, h)
	}
	if bytes.HasPrefix(b, []byte(jpegMagic)) {
		if err := d.openJPEG(b, *box); err != nil {
			return err
		}
		*dst = Image{box.Dx(), box.Dy(), channels, dst.Pix[:0], d}
		if later {
			return nil
		}
		return dst.Make()
	}
	dst.Reset(box.Dx(), box.Dy(), channels)
	if bytes.HasPrefix(b, []byte(pngMagic)) {
		return d.decodePNG(dst, b, *box)
	}
	return d.decodeForeign(dst, b, *box, foreignOf(b))
}

// Extension is the usual file extension of b's format, such as ".jpg", or "" for a format not decoded here.
func Extension(b []byte) string {
	switch f := foreignOf(b); {
	case bytes.HasPrefix(b, []byte(jpegMagic)):
		return ".jpg"
	case bytes.HasPrefix(b, []byte(pngMagic)):
		return ".png"
	case f != nil:
		return "." + f.name
	}
	return ""
}

// IsCMYK reports whether b is a JPEG of four components: three inks and black.
func IsCMYK(b []byte) bool {
	n, err := 0, error(nil)
	if bytes.HasPrefix(b, []byte(jpegMagic)) {
		n, err = jpeg.Components(b)
	}
	return err == nil && n == 4
}
