package imaging

import (
	"bytes"
	"errors"
	"fmt"
)

// colorSpace is what the components of a JPEG mean.
type colorSpace uint8

const (
	spaceGray colorSpace = iota
	spaceYCbCr
	spaceRGB
	spaceCMYK
	spaceYCCK
)

// jpegHeader is what the segments before the first scan say, as far as it is needed.
type jpegHeader struct {
	width, height int
	space         colorSpace
	subsampled    bool // 4 components only: the second and third are sampled at half the rate
	scan          int  // offset of the marker of the first scan
}

var errJPEGShort = errors.New("jpeg: the file ends within its header")

// readJPEGHeader walks the segments up to the first scan.
func readJPEGHeader(b []byte) (jpegHeader, error) {
	var (
		h     jpegHeader
		ids   [4]uint8
		n     int // components
		jfif  bool
		adobe = -1 // the colour transform, where there is an Adobe segment
	)
	for p := 2; ; {
		// Extraneous bytes and fill bytes before a marker are skipped, as libjpeg does.
		i := bytes.IndexByte(b[p:], 0xff)
		if i < 0 || p+i+4 > len(b) {
			return h, errJPEGShort
		}
		p += i
		marker := b[p+1]
		switch {
		case marker == 0xff:
			p++
			continue
		case marker == 0x00 || marker == 0x01 || 0xd0 <= marker && marker <= 0xd8:
			p += 2 // no segment follows
			continue
		case marker == 0xd9:
			return h, errors.New("jpeg: the file ends before any scan")
		case marker == 0xda:
			if n == 0 {
				return h, errors.New("jpeg: a scan comes before the frame header")
			}
			h.scan, h.space = p, jpegSpace(n, ids, jfif, adobe)
			return h, nil
		}
		size := int(b[p+2])<<8 | int(b[p+3])
		if size < 2 {
			return h, fmt.Errorf("jpeg: segment %#02x has the length %d", marker, size)
		}
		if p+2+size > len(b) {
			return h, errJPEGShort
		}
		seg := b[p+4 : p+2+size]
		switch {
		case marker == 0xe0 && len(seg) >= 14 && string(seg[:5]) == "JFIF\x00":
			jfif = true
		case marker == 0xee && len(seg) >= 12 && string(seg[:5]) == "Adobe":
			adobe = int(seg[11])
		case 0xc0 <= marker && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if len(seg) < 6 || len(seg) < 6+3*int(seg[5]) {
				return h, fmt.Errorf("jpeg: the frame header has %d bytes, too few for its components", len(seg))
			}
			h.height, h.width, n = int(seg[1])<<8|int(seg[2]), int(seg[3])<<8|int(seg[4]), int(seg[5])
			if err := checkSize("jpeg", uint64(h.width), uint64(h.height)); err != nil {
				return h, err
			}
			if n != 1 && n != 3 && n != 4 {
				return h, fmt.Errorf("jpeg: %d components: want 1 (gray), 3 (YCbCr or RGB) or 4 (CMYK or YCCK)", n)
			}
			for i := range n {
				ids[i] = seg[6+3*i]
			}
			h.subsampled = n == 4 && seg[7] == 0x22
		}
		p += 2 + size
	}
}

// jpegSpace decides as libjpeg's default_decompress_parms.
func jpegSpace(components int, ids [4]uint8, jfif bool, adobe int) colorSpace {
	switch components {
	case 1:
		return spaceGray
	case 4:
		if adobe <= 0 {
			return spaceCMYK
		}
		return spaceYCCK
	}
	switch {
	case jfif:
		return spaceYCbCr
	case adobe >= 0:
		if adobe == 0 {
			return spaceRGB
		}
	case ids == [4]uint8{'R', 'G', 'B'}:
		return spaceRGB
	}
	return spaceYCbCr
}
