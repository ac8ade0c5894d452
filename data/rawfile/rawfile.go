// Package rawfile reads and writes images as plain pixels: they take more disk space, but need no decoding.
//
// A file is, in little-endian numbers:
//
//	offset 0    "RNARAW1\n"
//	8           uint64  n, the number of images
//	16          uint64  the offset of the index
//	24          uint64  the size of the index
//	32          32 bytes, the SHA-256 of the index
//	64          pixels, row by row, RGB interleaved; each image begins at a multiple of 64
//	index       n entries of 24 bytes: uint64 offset, uint32 width, uint32 height, uint32 label, uint32 end of its name
//	            the names, one after the other
//
// so that the file can be mapped into memory and used in place.
package rawfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	magic      = "RNARAW1\n"
	headerSize = 64
	entrySize  = 24
	align      = 64
	// Channels of each pixel.
	Channels = 3
	// MaxSide bounds the width and height of an image.
	MaxSide = 1 << 15
)

// Entry is an image of a file.
type Entry struct {
	Offset        int64
	Width, Height int
	Label         int32
	Name          string
}

// Size is the number of bytes of its pixels.
func (e Entry) Size() int64 { return int64(e.Width) * int64(e.Height) * Channels }

// Read reads the index of a file of the given size. Every entry lies within the file.
func Read(r io.ReaderAt, size int64) ([]Entry, error) {
	var header [headerSize]byte
	if size < headerSize {
		return nil, errors.New("not a file of raw images, or cut short")
	}
	if _, err := r.ReadAt(header[:], 0); err != nil {
		return nil, err
	}
	if string(header[:8]) != magic {
		return nil, errors.New("not a file of raw images: the first bytes are others")
	}
	n, at, length := binary.LittleEndian.Uint64(header[8:]), binary.LittleEndian.Uint64(header[16:]),
		binary.LittleEndian.Uint64(header[24:])
	if at < headerSize || at > uint64(size) || length > uint64(size)-at || n > length/entrySize {
		return nil, fmt.Errorf("its index of %d images would lie at [%d, +%d) of %d bytes: cut short, or damaged", n,
			at, length, size)
	}
	index := make([]byte, length)
	if m, err := r.ReadAt(index, int64(at)); m < len(index) {
		return nil, err
	}
	if sum := sha256.Sum256(index); !bytes.Equal(sum[:], header[32:]) {
		return nil, errors.New("its index does not match its checksum: damaged")
	}
	names := index[n*entrySize:]
	list := make([]Entry, n)
	from := uint32(0)
	for i := range list {
		b := index[i*entrySize:]
		offset, end := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[20:])
		width, height, label := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:]),
			binary.LittleEndian.Uint32(b[16:])
		if width < 1 || height < 1 || width > MaxSide || height > MaxSide || label > math.MaxInt32 || end < from ||
			uint64(end) > uint64(len(names)) ||
			offset < headerSize || offset > at || uint64(width)*uint64(height)*Channels > at-offset {
			return nil, fmt.Errorf("image %d: %dx%d pixels at offset %d of %d: damaged", i, width, height, offset, at)
		}
		list[i] = Entry{int64(offset), int(width), int(height), int32(label), string(names[from:end])}
		from = end
	}
	return list, nil
}

// Writer writes a file from its beginning to its end.
type Writer struct {
	w     io.WriteSeeker
	at    int64
	index []byte
	names []byte
	n     uint64
}

// NewWriter begins a file.
func NewWriter(w io.WriteSeeker) (*Writer, error) {
	_, err := w.Write(make([]byte, headerSize))
	return &Writer{w: w, at: headerSize}, err
}

// Size is the size of the file so far, without its index.
func (w *Writer) Size() int64 { return w.at }

// Add writes an image.
func (w *Writer) Add(pix []uint8, width, height int, label int32, name string) error {
	if width < 1 || height < 1 || width > MaxSide || height > MaxSide || len(pix) != width*height*Channels {
		return fmt.Errorf("%s: %d samples of %dx%d pixels: want three each, and sides of 1 to %d", name, len(pix),
			width, height, MaxSide)
	}
	w.names = append(w.names, name...)
	w.index = binary.LittleEndian.AppendUint64(w.index, uint64(w.at))
	for _, v := range []int{width, height, int(label), len(w.names)} {
		w.index = binary.LittleEndian.AppendUint32(w.index, uint32(v))
	}
	w.n++
	pad := -len(pix) & (align - 1)
	w.at += int64(len(pix) + pad)
	if _, err := w.w.Write(pix); err != nil {
		return err
	}
	_, err := w.w.Write(make([]byte, pad))
	return err
}

// Close writes the index and the header, which completes the file. It does not close the underlying writer.
func (w *Writer) Close() error {
	index := append(w.index, w.names...)
	if _, err := w.w.Write(index); err != nil {
		return err
	}
	header := append([]byte(magic), make([]byte, 24)...)
	for i, v := range []uint64{w.n, uint64(w.at), uint64(len(index))} {
		binary.LittleEndian.PutUint64(header[8+8*i:], v)
	}
	sum := sha256.Sum256(index)
	if _, err := w.w.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := w.w.Write(append(header, sum[:]...))
	return err
}
