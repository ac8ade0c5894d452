package statedict

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"onlinerna/internal/checksum"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train/safetensors"
	"onlinerna/train/torchfile"
)

// Verify reads all files and compares them with their checksums, from this program's safetensors or a zip archive. ok
// is false for files without checksums.
func (f *File) Verify() (ok bool, err error) { return f.VerifyWith(nil) }

// VerifyWith is [File.Verify]. read, unless it is nil, receives the bytes that were read since its last call, of
// [File.Summed]; its error ends the work.
func (f *File) VerifyWith(read func(bytes int64) error) (ok bool, err error) {
	for i, fd := range f.files[:len(f.infos)] {
		var one bool
		switch f.sums[i].kind {
		case noSums:
			continue
		case zipSums:
			one, err = verifyZip(fd, read, f.Form == Torch)
		case ownSums:
			one, err = f.sums[i].own.VerifyWith(fd, read)
		}
		if err != nil {
			return false, err
		}
		ok = ok || one
	}
	return ok, nil
}

// Summed is the bytes of the files with checksums.
func (f *File) Summed() int64 {
	n := int64(0)
	for i, info := range f.infos {
		if f.sums[i].kind != noSums {
			n += info.Size()
		}
	}
	return n
}

// sums are a file's checksums.
type sums struct {
	kind sumKind
	own  safetensors.Sums
}

type sumKind int

const (
	noSums  sumKind = iota
	zipSums         // of the entries of an archive, as far as they have some
	ownSums         // in the metadata of safetensors
)

func verifyZip(fd *os.File, read func(bytes int64) error, torch bool) (ok bool, err error) {
	st, err := fd.Stat()
	if err != nil {
		return false, err
	}
	r := checksum.Metered(fd, read)
	if torch {
		if ok, err = torchfile.Sealed(r, st.Size()); err != nil {
			return ok, fmt.Errorf("%s: %w", fd.Name(), err)
		}
	}
	z, err := zip.NewReader(r, st.Size())
	if err != nil {
		var head [2]byte
		if _, e := fd.ReadAt(head[:], 0); e == nil && torch && string(head[:]) != "PK" { // the format before zip has none
			return false, nil
		}
		return false, fmt.Errorf("%s: %w", fd.Name(), err)
	}
	for _, e := range z.File {
		if e.CRC32 == 0 && !ok { // PyTorch can be told to compute none
			continue
		}
		in, err := e.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, in)
			in.Close()
		}
		if err != nil {
			return false, fmt.Errorf("%s: damaged: entry %s: %w", fd.Name(), text.Printable(e.Name), err)
		}
		ok = true
	}
	return ok, nil
}

// VerifyTorch compares a file of torch.save with its checksums, whether or not Open reads it. ok is false for files
// without checksums.
func VerifyTorch(path string) (ok bool, err error) {
	fd, err := files.Open(path)
	if err != nil {
		return false, err
	}
	defer fd.Close()
	return verifyZip(fd, nil, true)
}

// Foreign reports whether a file begins as no file of weights does. Empty files, those that begin with zeros, and
// those of torch.save with a damaged beginning are not foreign: they may be damaged weights.
func Foreign(path string) bool {
	fd, err := files.Open(path)
	if err != nil {
		return false
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		return false
	}
	head, tail := make([]byte, min(st.Size(), 16)), make([]byte, min(st.Size(), 22+1<<16))
	if _, err := fd.ReadAt(head, 0); err != nil && err != io.EOF {
		return false
	}
	if _, err := fd.ReadAt(tail, st.Size()-int64(len(tail))); err != nil && err != io.EOF {
		return false
	}
	begin := head[:min(len(head), 8)]
	known := len(head) > 8 && head[8] == '{' || torchfile.Is(head) ||
		len(head) > 0 && head[0] == 0x80 || bytes.HasPrefix(head, []byte(ggufMagic)) || bytes.HasPrefix(head, []byte(hdf5Magic))
	return !known && len(bytes.Trim(begin, "\x00")) > 0 && !torchfile.Resembles(head, tail)
}

// Index is the JSON map from tensors to shards of the given number of bytes, as Hugging Face's libraries read it.
func Index(where map[string]string, size int64) []byte {
	b, _ := json.MarshalIndent(map[string]any{"metadata": map[string]int64{"total_size": size}, "weight_map": where}, "",
		"  ")
	return append(b, '\n')
}

// VerifyIndex compares an index with its shards. ok is false unless rna merge wrote them.
func VerifyIndex(path string) (ok bool, err error) {
	f, err := Open(path, "")
	if err != nil {
		return false, err
	}
	defer f.Close()
	if f.Metadata["merge"] == "" {
		return false, nil
	}
	where, size := map[string]string{}, int64(0)
	for _, t := range f.Tensors {
		where[t.Name] = filepath.Base(f.files[t.pieces[0].file].Name())
		size += int64(t.Len()) * int64(t.DType.Size())
	}
	b, err := files.Read(path)
	if err == nil && !bytes.Equal(b, Index(where, size)) {
		err = fmt.Errorf("%s: damaged: it is not the index that was written for its shards", path)
	}
	return true, err
}
