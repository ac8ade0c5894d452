package imaging

import (
	"bytes"
	"encoding/binary"
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
	return pixels + each*int64(w)*int64(h) + tiffTile(b), nil
}

// tiffTile is the most bytes that a tile of a TIFF takes by the size that its first directory declares, 0 for other
// images. The decoder refuses sides that exceed both the image's by 16 and 1024.
func tiffTile(b []byte) int64 {
	if len(b) < 8 || foreignOf(b) == nil || foreignOf(b).name != "tiff" {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at > int64(len(b))-2 {
		return 0
	}
	n := int64(order.Uint16(b[at:]))
	bytes := int64(8)
	sides := 0
	for entry := b[at+2:]; n > 0 && len(entry) >= 12; n, entry = n-1, entry[12:] {
		if tag := order.Uint16(entry); tag != tiffTileWidth && tag != tiffTileLength {
			continue
		}
		side := tiffValue(b, entry, order)
		bytes *= min(side, MaxPixels)
		bytes = min(bytes, 8*MaxPixels)
		sides++
	}
	if sides < 2 {
		return 0
	}
	return bytes
}

// tiffValue is the first number of a directory's entry of 12 bytes: in the entry or, if its numbers take more than four
// bytes, at the offset that it holds. It is 0 where the decoder refuses the entry.
func tiffValue(b, entry []byte, order binary.ByteOrder) int64 {
	unit := map[uint16]int64{1: 1, 3: 2, 4: 4}[order.Uint16(entry[2:])]
	at := entry[8:12]
	if unit*int64(order.Uint32(entry[4:])) > 4 {
		from := int64(order.Uint32(at))
		if from > int64(len(b))-unit {
			return 0
		}
		at = b[from : from+unit]
	}
	switch unit {
	case 1:
		return int64(at[0])
	case 2:
		return int64(order.Uint16(at))
	case 4:
		return int64(order.Uint32(at))
	}
	return 0
}

const (
	tiffTileWidth  = 322
	tiffTileLength = 323
)

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
