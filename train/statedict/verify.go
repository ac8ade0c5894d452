package statedict

import (
	"archive/zip"
	"fmt"
	"io"
	"os"

	"onlinerna/train/safetensors"
)

// Verify reads all files and compares them with their checksums, from this program's safetensors or a zip archive. ok
// is false for files without checksums.
func (f *File) Verify() (ok bool, err error) {
	for _, fd := range f.files[:len(f.infos)] {
		var one bool
		switch f.Form {
		case Torch, Numpy:
			one, err = verifyZip(fd)
		case Safetensors:
			one, err = verifySafetensors(fd.Name())
		}
		if err != nil {
			return false, err
		}
		ok = ok || one
	}
	return ok, nil
}

func verifySafetensors(path string) (ok bool, err error) {
	s, err := safetensors.Open(path)
	if err != nil {
		return false, err
	}
	defer s.Close()
	return s.Verify()
}

func verifyZip(fd *os.File) (ok bool, err error) {
	st, err := fd.Stat()
	if err != nil {
		return false, err
	}
	z, err := zip.NewReader(fd, st.Size())
	if err != nil { // the format before zip has no checksums
		return false, nil
	}
	for _, e := range z.File {
		if e.CRC32 == 0 { // PyTorch can be told to compute none
			continue
		}
		r, err := e.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil {
			return false, fmt.Errorf("%s: damaged: entry %s: %w", fd.Name(), e.Name, err)
		}
		ok = true
	}
	return ok, nil
}
