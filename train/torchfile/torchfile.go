// Package torchfile reads the tensors of a state dict from a file of PyTorch's torch.save, and writes such files. A
// file is a zip archive with a pickle and the bytes of each storage, or, in the old format, pickles followed by the
// storages.
//
// Package internal/pickle reads the pickle with only the few functions that state dicts need. Names in the archive are
// only compared, never used as paths. The reader's memory is bounded for any file.
package torchfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/pickle"
	"onlinerna/train/safetensors"
)

const (
	// maxPickle bounds the pickle, which holds only names and shapes, some 100 bytes a tensor.
	maxPickle = 64 << 20

	// maxValues bounds the memory of its values; a shorter pickle has valueRatio times its bytes.
	maxValues  = 384 << 20
	valueRatio = 20

	// maxMetadata bounds this package's metadata.
	maxMetadata = 8 << 20
)

// Tensor is one tensor of the state dict. Element i of its storage is at byte Offset + i × the size of DType in the
// file, and element (k₀, k₁, …) of the tensor is element Σ kᵢ × Strides[i] of the storage. Tensors may share a storage.
type Tensor struct {
	Name    string
	DType   safetensors.DType
	Shape   []int
	Strides []int // in elements
	Offset  int64 // of the first element in the file
}

// Contiguous reports whether the elements lie in the file in the tensor's order.
func (t Tensor) Contiguous() bool {
	next := 1
	for i := len(t.Shape) - 1; i >= 0; i-- {
		if t.Shape[i] == 0 {
			return true
		}
		if t.Shape[i] != 1 && t.Strides[i] != next {
			return false
		}
		next *= t.Shape[i]
	}
	return true
}

// File is the content of a file.
type File struct {
	Tensors []Tensor // of the state dict, in its order
	Key     string   // of the state dict; empty if it is the saved value itself
	Others  []string // keys of other state dicts
	// Metadata is the metadata that this package wrote; for other files "model" and "epoch" if the file has them.
	Metadata map[string]string
}

// Is reports whether Read reads files with these first bytes, at least four.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, []byte(zipMagic)) || bytes.HasPrefix(head, []byte(oldMagic[:4]))
}

// NoStateError is the error for a file that is readable and holds no state dict that Read can choose and read.
type NoStateError struct{ Err error }

func (e NoStateError) Error() string { return e.Err.Error() }
func (e NoStateError) Unwrap() error { return e.Err }

// brokenError is the error for a tensor that does not fit its storage.
type brokenError struct{ error }

// Resembles reports whether a file with these first bytes, at least len(oldMagic), and these last ones may be of
// torch.save with its first four bytes damaged.
func Resembles(head, tail []byte) bool {
	return len(head) >= len(oldMagic) && string(head[4:len(oldMagic)]) == oldMagic[4:] ||
		bytes.Contains(tail, []byte("PK\x05\x06"))
}

const (
	zipMagic = "PK\x03\x04"
	oldMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
)

// Read finds the names, types and places of a state dict's tensors. key selects the state dict, such as "model_ema" or
// "ema.model". Without a key it is the saved value itself, or its entry state_dict, model_state_dict or model, or its
// only state dict.
func Read(path, key string) (*File, error) {
	fd, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	return Of(fd, key)
}

// Of is Read of an open file, whose position stays.
func Of(fd *os.File, key string) (*File, error) {
	st, err := fd.Stat()
	if err != nil {
		return nil, err
	}
	f, err := read(fd, st.Size(), key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fd.Name(), err)
	}
	return f, nil
}

func read(r io.ReaderAt, size int64, key string) (*File, error) {
	head := make([]byte, min(size, int64(len(oldMagic))))
	if err := readAt(r, head, 0); err != nil {
		return nil, err
	}
	var top any
	var metadata map[string]string
	var err error
	if string(head) == oldMagic {
		top, err = readOld(r, size)
	} else {
		top, metadata, err = readZip(r, size)
	}
	if err != nil {
		return nil, err
	}
	f, err := find(top, key)
	if bad := new(brokenError); errors.As(err, bad) && string(head) == oldMagic { // it may be damage: there are no checksums
		return nil, err
	} else if err != nil {
		return nil, NoStateError{err}
	}
	if metadata != nil {
		f.Metadata = metadata
	}
	return f, checkSum(f.Tensors, size)
}

// ReadTensor finds the tensor in a file of torch.save that holds a single tensor; a distributed checkpoint has several
// such files in one. Its Offset counts from the start of r.
func ReadTensor(r io.ReaderAt, size int64) (Tensor, error) {
	top, _, err := readZip(r, size)
	if err != nil {
		return Tensor{}, err
	}
	switch t := top.(type) {
	case *tensor:
		return t.exported(""), nil
	case *broken:
		return Tensor{}, t.err
	}
	return Tensor{}, fmt.Errorf("%s, not a tensor", pickle.Kind(top))
}

// readZip reads an archive's pickle and this package's metadata.
func readZip(r io.ReaderAt, size int64) (top any, metadata map[string]string, err error) {
	a, err := openArchive(r, size)
	if err != nil {
		return nil, nil, err
	}
	name := ""
	for n := range a.entries {
		if dir, ok := strings.CutSuffix(n, "data.pkl"); ok && strings.Count(n, "/") == 1 && strings.HasSuffix(dir, "/") {
			if name != "" {
				return nil, nil, errors.New("the archive holds two data.pkl")
			}
			name = n
		}
	}
	if name == "" {
		return nil, nil, errors.New("a zip archive without data.pkl: not a file of torch.save")
	}
	dir := strings.TrimSuffix(name, "data.pkl")
	if _, ok := a.entries[dir+"constants.pkl"]; ok {
		return nil, nil, NoStateError{errors.New("a TorchScript archive: save its state_dict() by torch.save")}
	}
	if _, ok := a.entries[dir+"byteorder"]; ok {
		order, err := a.read(dir+"byteorder", 16)
		if err != nil {
			return nil, nil, err
		}
		if !bytes.Equal(order, []byte("little")) {
			return nil, nil, fmt.Errorf("byte order %q: only little is read", order)
		}
	}
	in, err := a.read(name, maxPickle)
	if err != nil {
		return nil, nil, err
	}
	m := machine(in, 0, func(key string) (*place, error) {
		off, n, err := a.section(dir + "data/" + key)
		return &place{off: off, bytes: n}, err
	})
	if top, err = m.Run(); err != nil {
		return nil, nil, fmt.Errorf("data.pkl: %w", err)
	}
	if _, ok := a.entries[dir+metadataEntry]; ok {
		b, err := a.read(dir+metadataEntry, maxMetadata)
		if err != nil {
			return nil, nil, err
		}
		if err := json.Unmarshal(b, &metadata); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", metadataEntry, err)
		}
	}
	return top, metadata, nil
}

// machine prepares to read pickles from byte at of in; where finds a storage's place.
func machine(in []byte, at int, where func(key string) (*place, error)) *pickle.Machine {
	return &pickle.Machine{In: in, At: at, Functions: functions, Persistent: storageOf(where), Limit: valuesOf(len(in))}
}

// valuesOf bounds the memory of the values of a pickle with the given number of bytes.
func valuesOf(bytes int) int { return min(max(valueRatio*bytes, pickle.MaxMemory), maxValues) }

func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return errTruncated
	}
	return err
}

// checkSum rejects tensors that share storages so much that they hold many times the file's data.
func checkSum(tensors []Tensor, size int64) error {
	sum := int64(0)
	for _, t := range tensors {
		n := int64(t.DType.Size())
		for _, d := range t.Shape {
			n *= int64(d)
		}
		if sum += n; sum > 16*size {
			return fmt.Errorf("tensors of more than %d bytes in a file of %d: too many share a storage", sum, size)
		}
	}
	return nil
}
