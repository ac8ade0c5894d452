// Package statedict opens files that hold the tensors of a model by name: safetensors, and what torch.save wrote of a state dict or of a
// training script's checkpoint (see package torchfile). Which of them a file is, its first bytes say.
//
// What PyTorch's wrappers put before all names, "module." and "_orig_mod.", is left out.
package statedict

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
	"onlinerna/train/safetensors"
	"onlinerna/train/torchfile"
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int

	// Strides are in elements, nil where these lie in order. Offset is where in the file the first one lies.
	Strides []int
	Offset  int64
}

// Len is the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is an open file. Its methods may be called concurrently.
type File struct {
	Path     string
	Tensors  []Tensor // in the file's order
	Metadata map[string]string

	// Torch says that torch.save, or what writes the same, wrote the file. Key is then where in it the state dict is, empty where it
	// is all that was saved, and Others are keys of further ones.
	Torch  bool
	Key    string
	Others []string

	index map[string]int
	file  *os.File
}

// Open opens a file, or weights of the cache folder by their name: see [catalogue.Locate]. A key chooses among the state dicts
// of one of torch.save, as "model_ema"; without, it is found.
func Open(path, key string) (*File, error) {
	name := path
	path, err := catalogue.Locate(name, catalogue.Weights)
	if err != nil {
		return nil, err
	}
	fd, err := files.Open(path)
	if err != nil {
		return nil, inFolder(path, err)
	}
	f := &File{Path: path, file: fd, index: map[string]int{}}
	var head [4]byte
	n, _ := io.ReadFull(fd, head[:])
	if f.Torch = torchfile.Is(head[:n]); f.Torch {
		err = f.openTorch(key)
	} else if strings.EqualFold(filepath.Ext(path), ".json") {
		err = notTensors(path)
	} else {
		err = f.openSafetensors(key)
	}
	if err != nil {
		fd.Close()
		return nil, err
	}
	if it, ok := catalogue.Find(name); ok && path != name && f.Metadata["model"] == "" {
		if f.Metadata == nil {
			f.Metadata = map[string]string{}
		}
		f.Metadata["model"] = it.Net
	}
	f.unwrap()
	for i, t := range f.Tensors {
		f.index[t.Name] = i
	}
	return f, nil
}

// inFolder adds to the error of a file that is a folder which weights are in it.
func inFolder(path string, err error) error {
	within, _ := os.ReadDir(path)
	var names []string
	for _, e := range within {
		switch filepath.Ext(e.Name()) {
		case ".safetensors", ".pt", ".pth", ".bin":
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	if names == nil {
		return err
	}
	if what := sharded(names); what != "" {
		return fmt.Errorf("%w: %s", err, what)
	}
	more := ""
	if most := 6; len(names) > most {
		names, more = names[:most], ", …"
	}
	return fmt.Errorf("%w: in it are %s%s", err, strings.Join(names, ", "), more)
}

func (f *File) openSafetensors(key string) error {
	if key != "" {
		return fmt.Errorf("%s: key %q: a safetensors file has none", f.Path, key)
	}
	s, err := safetensors.Open(f.Path)
	if err != nil {
		return err
	}
	defer s.Close()
	f.Metadata = s.Metadata
	for _, t := range s.Tensors {
		off, _ := s.Section(t)
		f.Tensors = append(f.Tensors, Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Offset: off})
	}
	return nil
}

func (f *File) openTorch(key string) error {
	p, err := torchfile.Read(f.Path, key)
	if err != nil {
		return err
	}
	f.Metadata, f.Key, f.Others = p.Metadata, p.Key, p.Others
	for _, t := range p.Tensors {
		own := Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Offset: t.Offset}
		if !t.Contiguous() {
			own.Strides = t.Strides
		}
		f.Tensors = append(f.Tensors, own)
	}
	return nil
}

// wrappers are what DataParallel and torch.compile put before all names.
var wrappers = []string{"module.", "_orig_mod."}

// averaged is the counter that AveragedModel keeps beside the module.
const averaged = "n_averaged"

// unwrap takes the prefixes of wrappers from all names, as often as all have one.
func (f *File) unwrap() {
	for again := true; again; {
		again = false
		for _, p := range wrappers {
			if f.strip(p) {
				again = true
			}
		}
	}
}

// strip takes p from all names, if all have it.
func (f *File) strip(p string) bool {
	rest := make([]Tensor, 0, len(f.Tensors))
	for _, t := range f.Tensors {
		name, ok := strings.CutPrefix(t.Name, p)
		switch {
		case ok && name != "":
			t.Name = name
			rest = append(rest, t)
		case t.Name != averaged:
			return false
		}
	}
	if len(rest) == 0 {
		return false
	}
	f.Tensors = rest
	return true
}

// Under is a view of the file with what lies under a prefix of names alone, as "model." of Lightning's checkpoints. It shares the open file.
func (f *File) Under(prefix string) *File {
	g := &File{Path: f.Path, Metadata: f.Metadata, Torch: f.Torch, Key: f.Key, Others: f.Others, index: map[string]int{}, file: f.file}
	for _, t := range f.Tensors {
		if name, ok := strings.CutPrefix(t.Name, prefix); ok && name != "" {
			t.Name = name
			g.index[name] = len(g.Tensors)
			g.Tensors = append(g.Tensors, t)
		}
	}
	return g
}

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Found says in which state dict of a file of several the tensors are, empty where there is one.
func (f *File) Found() string {
	if len(f.Others) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: the state dict under %s; there are also %s: see --key", f.Path, f.Key, strings.Join(f.Others, ", "))
}

// Close releases the file.
func (f *File) Close() error { return f.file.Close() }
