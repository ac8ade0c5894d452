package data

import (
	"fmt"
	"io"

	"onlinerna/internal/files"
)

// Encoded returns image i of ds as it is stored: the bytes of a JPEG or another image file. They are valid until the next
// use of s. ok is false for sets that store pixels.
func Encoded(ds Dataset, i int, s *Scratch) (b []byte, ok bool, err error) {
	switch d := ds.(type) {
	case *subset:
		return Encoded(d.Dataset, d.indices[i], s)
	case *renamed:
		return Encoded(d.Dataset, i, s)
	case *raw:
		return nil, false, nil
	case interface {
		encoded(i int, s *Scratch) ([]byte, error)
	}:
		if b, err = d.encoded(i, s); err != nil {
			err = fmt.Errorf("%s: %w", ds.Name(i), err)
		}
		return b, true, err
	}
	return nil, false, nil
}

func (d *archive) encoded(i int, s *Scratch) ([]byte, error) {
	return s.read(d.file(i), d.offsets[i], int64(d.sizes[i]))
}

func (d *folder) encoded(i int, s *Scratch) ([]byte, error) {
	f, size, err := files.OpenSized(d.Name(i))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s.read(f, 0, size)
}

func (d *parquet) encoded(i int, s *Scratch) ([]byte, error) {
	if d.slots[i] < 0 {
		return d.archive.encoded(i, s)
	}
	return d.pageValue(i, s)
}

// read reads the size bytes of f at offset, the file of an image.
func (s *Scratch) read(f io.ReaderAt, offset, size int64) ([]byte, error) {
	if size > maxFile {
		return nil, fmt.Errorf("%d bytes are too many for an image, the limit is %d", size, maxFile)
	}
	if int64(cap(s.file)) < size {
		s.file = make([]byte, size+size/4)
	}
	b := s.file[:size]
	if n, err := f.ReadAt(b, offset); n < len(b) {
		return nil, fmt.Errorf("read %d of %d bytes: %w", n, size, err)
	}
	return b, nil
}
