package imaging

import (
	"errors"
	"image"
)

// MaxPixels is the size above which an image is refused before anything of its size is allocated. PIL raises its
// decompression bomb error at the same size.
const MaxPixels = 178_956_970

// Dimensions reads the width and height of a JPEG or PNG from its header. Content decides, not a file's name.
func Dimensions(b []byte) (width, height int, err error) {
	return 0, 0, errors.New("decode: not written yet")
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
}

// Decode decodes the JPEG or PNG in b to dst, whose memory is reused: 3 channels as PIL's convert("RGB"), 1 as convert("L").
// After an error the pixels of dst are undefined. b is not kept.
func (d *Decoder) Decode(dst *Image, b []byte, channels int) error {
	return errors.New("decode: not written yet")
}

// DecodeBox decodes the pixels inside box only: the same as Decode followed by Crop, and faster. The box must lie
// inside the image, whose size Dimensions gives.
func (d *Decoder) DecodeBox(dst *Image, b []byte, channels int, box image.Rectangle) error {
	return errors.New("decode: not written yet")
}
