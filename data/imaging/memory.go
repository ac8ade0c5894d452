package imaging

import (
	"bytes"
	"image"

	"onlinerna/data/imaging/internal/jpeg"
)

// Memory estimates, from the header, the bytes that a Decoder takes for the pixels of b inside box, in channels. It
// excludes b itself and some rows. Dimensions has accepted the header.
func Memory(b []byte, channels int, box image.Rectangle) (int64, error) {
	pixels := int64(box.Dx()) * int64(box.Dy()) * int64(channels)
	if bytes.HasPrefix(b, []byte(jpegMagic)) {
		n, err := jpeg.Memory(b)
		return pixels + n, err
	}
	w, h, err := Dimensions(b)
	if err != nil {
		return 0, err
	}
	each := int64(8) // bytes a pixel in the decoders of packages image and x/image: the most that any has
	if bytes.HasPrefix(b, []byte(pngMagic)) {
		each = pngBytes(b)
	}
	return pixels + each*int64(w)*int64(h), nil
}

// pngBytes is the most that package image/png takes for a pixel, rounded up: a gray image with a transparent value is
// decoded in colour. Dimensions has accepted the header.
func pngBytes(b []byte) int64 {
	depth, kind, interlaced := b[pngColorType-1], b[pngColorType], b[pngColorType+3] != 0
	n := int64(4)
	switch {
	case depth == 16:
		n = 8
	case kind == 3: // by a palette
		n = 1
	}
	if interlaced {
		n += (n + 1) / 2 // the last pass has half of the pixels
	}
	return n
}
