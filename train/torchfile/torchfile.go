// Package torchfile reads the tensors of a state dict from a file that PyTorch's torch.save wrote, and writes such files. A file is a zip
// archive that holds a pickle and the bytes of each storage, or, of old, pickles with the storages behind them.
//
// The pickle is read by package internal/pickle, with the few functions that a state dict consists of. The archive's names are compared, never used as paths. What a file may make
// the reader allocate is bounded, whatever the file says.
package torchfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/pickle"
	"onlinerna/train/safetensors"
)

// maxPickle bounds the pickle, which holds names and shapes only.
const maxPickle = 8 << 20

// Tensor is one tensor of the state dict. Element i of its storage is at byte Offset + i × the size of DType in
// the file, and element (k₀, k₁, …) of the tensor is number Σ kᵢ × Strides[i] of these. Tensors may share a storage.
type Tensor struct {
	Name    string
	DType   safetensors.DType
	Shape   []int
	Strides []int // in elements
	Offset  int64 // in the file, of the first element
}

// Contiguous says whether the elements lie in the file in the order of the tensor.
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

// File is what a file holds.
type File struct {
	Tensors []Tensor // of the state dict, in its order
	Key     string   // under which the state dict is, empty where it is what was saved
	Others  []string // keys of other state dicts
	// Metadata is what this package wrote beside the tensors; of other files the model and the epoch, by these names, if they say so.
	Metadata map[string]string
}

// Is says whether the first bytes of a file are those of one that Read reads, four at least.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, []byte(zipMagic)) || bytes.HasPrefix(head, []byte(oldMagic[:4]))
}

const (
	zipMagic = "PK\x03\x04"
	oldMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
)

// Read finds the names, types and places of the tensors of a state dict. It is the one under the key, as "model_ema" or "ema.model". Without a
// key it is what was saved, or is under state_dict, model_state_dict or model of it, or the only one that is there.
func Read(path, key string) (*File, error) {
	fd, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		return nil, err
	}
	f, err := read(fd, st.Size(), key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
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
	if err != nil {
		return nil, err
	}
	if metadata != nil {
		f.Metadata = metadata
	}
	return f, checkSum(f.Tensors, size)
}

// ReadTensor finds the only tensor of what torch.save wrote of one, as a distributed checkpoint has it behind others in a file. Its Offset
// is from the beginning of r on.
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

// readZip reads the pickle of an archive, and what this package wrote beside.
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
		return nil, nil, errors.New("a TorchScript archive: save its state_dict() by torch.save")
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
		b, err := a.read(dir+metadataEntry, maxPickle)
		if err != nil {
			return nil, nil, err
		}
		if err := json.Unmarshal(b, &metadata); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", metadataEntry, err)
		}
	}
	return top, metadata, nil
}

// machine reads pickles of in from byte at on, whose storages lie at a place.
func machine(in []byte, at int, where func(key string) (*place, error)) *pickle.Machine {
	return &pickle.Machine{In: in, At: at, Functions: functions, Persistent: storageOf(where)}
}

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

// checkSum refuses tensors that share storages so much that they hold many times what the file does.
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
