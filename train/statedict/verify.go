package statedict

import (
	"archive/zip"
	"fmt"
	"io"

	"onlinerna/train/safetensors"
)

// Verify reads the whole file and compares it with the checksums in it: those that this program's safetensors have, or a zip archive's. ok is false
// for a file without.
func (f *File) Verify() (ok bool, err error) {
	if f.Torch {
		return f.verifyZip()
	}
	s, err := safetensors.Open(f.Path)
	if err != nil {
		return false, err
	}
	defer s.Close()
	return s.Verify()
}

func (f *File) verifyZip() (ok bool, err error) {
	st, err := f.file.Stat()
	if err != nil {
		return false, err
	}
	z, err := zip.NewReader(f.file, st.Size())
	if err != nil { // the form before zip has no checksums
		return false, nil
	}
	for _, e := range z.File {
		if e.CRC32 == 0 { // PyTorch computes none if told so
			continue
		}
		r, err := e.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil {
			return false, fmt.Errorf("%s: damaged: entry %s: %w", f.Path, e.Name, err)
		}
		ok = true
	}
	return ok, nil
}
