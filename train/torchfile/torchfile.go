// Package torchfile reads the tensors of a state dict from a file that PyTorch's torch.save wrote: a zip
// archive that holds a pickle and the bytes of each storage.
//
// The pickle is read by a machine of its own that knows the opcodes and the few classes that a state
// dict consists of. It calls nothing and imports nothing; an opcode or a class beyond these is an error
// that names it. The archive's names are compared, never used as paths. What a file may make
// the reader allocate is bounded, whatever the file says.
package torchfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"onlinerna/train/safetensors"
)

// Magic begins every file of the format, as it does every zip archive.
const Magic = "PK\x03\x04"

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

// wrappers are the keys under which training scripts keep the state dict beside other things.
var wrappers = []string{"state_dict", "model", "model_state_dict"}

// prefixes are what DataParallel and torch.compile put before all names.
var prefixes = []string{"module.", "_orig_mod."}

// Read reads the names, types and places of the tensors of a state dict, in its order. The dict is the whole of what
// was saved, or what is under the key state_dict, model or model_state_dict of it; module. or _orig_mod. before
// all names is left out.
func Read(path string) ([]Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tensors, err := read(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tensors, nil
}

func read(r io.ReaderAt, size int64) ([]Tensor, error) {
	a, err := openArchive(r, size)
	if err != nil {
		return nil, err
	}
	name := ""
	for n := range a.entries {
		if dir, ok := strings.CutSuffix(n, "data.pkl"); ok && strings.Count(n, "/") == 1 && strings.HasSuffix(dir, "/") {
			if name != "" {
				return nil, errors.New("the archive holds two data.pkl")
			}
			name = n
		}
	}
	if name == "" {
		return nil, errors.New("a zip archive without data.pkl: not a file of torch.save")
	}
	dir := strings.TrimSuffix(name, "data.pkl")
	if _, ok := a.entries[dir+"constants.pkl"]; ok {
		return nil, errors.New("a TorchScript archive: save its state_dict() by torch.save")
	}
	if _, ok := a.entries[dir+"byteorder"]; ok {
		order, err := a.read(dir+"byteorder", 16)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(order, []byte("little")) {
			return nil, fmt.Errorf("byte order %q: only little is read", order)
		}
	}
	pickle, err := a.read(name, maxPickle)
	if err != nil {
		return nil, err
	}
	m := &machine{in: pickle, storage: func(key string) (int64, int64, error) { return a.section(dir + "data/" + key) }}
	top, err := m.run()
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	tensors, err := stateDict(top)
	if err != nil {
		return nil, err
	}
	return tensors, checkSum(tensors, size)
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

// stateDict finds the tensors in what was saved.
func stateDict(top any) ([]Tensor, error) {
	d, ok := top.(*dict)
	for range 4 {
		if !ok {
			return nil, fmt.Errorf("%s was saved, not a state dict", kind(top))
		}
		inner := d.lookup(wrappers)
		if inner == nil {
			break
		}
		top = inner
		d, ok = inner.(*dict)
	}
	if !ok {
		return nil, fmt.Errorf("%s is where the state dict was expected", kind(top))
	}
	var tensors []Tensor
	seen := map[string]bool{}
	for _, it := range d.items {
		name, ok := it.key.(string)
		t, is := it.value.(*Tensor)
		if !ok || !is {
			return nil, fmt.Errorf("key %s holds %s: the state dict must be what was saved, or be under the key %s",
				shown(it.key), kind(it.value), strings.Join(wrappers, " or "))
		}
		if seen[name] {
			return nil, fmt.Errorf("tensor %q occurs twice", name)
		}
		seen[name] = true
		named := *t
		named.Name = name
		tensors = append(tensors, named)
	}
	if len(tensors) == 0 {
		return nil, errors.New("an empty state dict")
	}
	for _, p := range prefixes {
		unprefix(tensors, p)
	}
	return tensors, nil
}

// unprefix takes p from all names if all have it.
func unprefix(tensors []Tensor, p string) {
	for _, t := range tensors {
		if !strings.HasPrefix(t.Name, p) {
			return
		}
	}
	for i := range tensors {
		tensors[i].Name = tensors[i].Name[len(p):]
	}
}
