package files

import (
	"bytes"
	"io"
)

// Copy writes a file with the content of another, or of several one after the other, which appears whole or not at all.
// One that has that content already is left alone.
func Copy(to string, from ...string) error {
	var list []io.Reader
	for _, path := range from {
		src, size, err := OpenSized(path)
		if err != nil {
			return err
		}
		defer src.Close()
		list = append(list, io.NewSectionReader(src, 0, size))
	}
	if same, err := sameContent(to, io.MultiReader(list...)); err != nil || same {
		return err
	}
	for _, r := range list {
		if _, err := r.(io.Seeker).Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return writeFrom(to, io.MultiReader(list...))
}

// CopyPart writes a file with part k, counted from 0, of the content of another that is divided into n equal parts.
func CopyPart(to, from string, k, n int) error {
	src, size, err := OpenSized(from)
	if err != nil {
		return err
	}
	defer src.Close()
	chunk := (size + int64(n) - 1) / int64(n)
	lo := min(size, int64(k)*chunk)
	return writeFrom(to, io.NewSectionReader(src, lo, min(size, lo+chunk)-lo))
}

// writeFrom writes a file that appears whole or not at all.
func writeFrom(path string, r io.Reader) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	return f.Commit()
}

// sameContent compares a file, which may be missing, with the content of a reader.
func sameContent(path string, with io.Reader) (bool, error) {
	f, err := Open(path)
	if err != nil {
		return false, nil // Create says why, where it matters
	}
	defer f.Close()
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, end := io.ReadFull(f, a)
		m, err := io.ReadFull(with, b)
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if err != nil && err != io.EOF {
			return false, err
		}
		if !bytes.Equal(a[:n], b[:m]) || (end == nil) != (err == nil) {
			return false, nil
		}
		if err == io.EOF {
			return true, nil
		}
	}
}
