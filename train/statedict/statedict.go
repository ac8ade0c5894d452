// Package statedict opens checkpoints that hold the tensors of a model by name: safetensors, and what torch.save wrote of a state dict or of a
// training script's checkpoint (see package torchfile), one file or the shards of a folder with an index; PyTorch's distributed checkpoints;
// numpy's .npz; and GGUF. Which of them a file is, its first bytes say. Nothing that a file holds is run, paths in indexes do not leave
// their folder, and memory is bounded by the number of tensors.
//
// What PyTorch's wrappers put before all names, "module." and "_orig_mod.", is left out.
package statedict

import (
	"errors"
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

	pieces []piece // at least one; one without extents is all of the tensor
}

// Len is the number of elements.
func (t Tensor) Len() int { return product(t.Shape) }

// Form is a form of checkpoints.
type Form string

// The forms.
const (
	Safetensors Form = "safetensors"
	Torch       Form = "torch.save"
	Distributed Form = "PyTorch distributed checkpoint"
	Numpy       Form = "npz"
	GGUF        Form = "GGUF"
)

// File is an open file. Its methods may be called concurrently.
type File struct {
	Path     string
	Tensors  []Tensor // in the file's order
	Metadata map[string]string
	Form     Form
	Shards   int // files that hold the tensors

	// Key is where in a file of torch.save or a distributed checkpoint the state dict is, empty where it is all that was saved, and Others
	// are keys of further ones.
	Key    string
	Others []string

	index map[string]int
	files []*os.File
	infos []os.FileInfo // of the files as they were opened
}

// Open opens a checkpoint: a file, the index of shards, a folder with either, or weights of the cache folder by their name: see
// [catalogue.Locate]. A key chooses among the state dicts of one of torch.save, as "model_ema"; without, it is found.
func Open(path, key string) (_ *File, err error) {
	name := path
	if path, err = catalogue.Locate(name, catalogue.Weights); err != nil {
		return nil, err
	}
	f := &File{Path: path, index: map[string]int{}}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if st, e := os.Stat(path); e == nil && st.IsDir() {
		err = f.openFolder(key)
	} else if strings.EqualFold(filepath.Ext(path), ".json") {
		err = f.openIndex(path, key)
	} else {
		err = f.openFile(path, key)
	}
	if err != nil {
		return nil, err
	}
	if it, ok := catalogue.Find(name); ok && path != name && f.Metadata["model"] == "" {
		if f.Metadata == nil {
			f.Metadata = map[string]string{}
		}
		f.Metadata["model"] = it.Net
	}
	f.Shards = len(f.files)
	f.unwrap()
	for i, t := range f.Tensors {
		if _, twice := f.index[t.Name]; twice {
			return nil, fmt.Errorf("%s: tensor %q occurs twice", path, t.Name)
		}
		f.index[t.Name] = i
	}
	return f, nil
}

// openFile opens one file with all tensors in it, or a shard.
func (f *File) openFile(path, key string) error {
	fd, err := f.add(path)
	if err != nil {
		return err
	}
	var head [4]byte
	n, _ := io.ReadFull(fd, head[:])
	switch {
	case torchfile.Is(head[:n]) && isNumpy(fd):
		f.Form = Numpy
	case torchfile.Is(head[:n]):
		f.Form = Torch
		return f.openTorch(path, key)
	case string(head[:n]) == ggufMagic:
		f.Form = GGUF
	default:
		f.Form = Safetensors
		return f.openSafetensors(path, key)
	}
	if key != "" {
		return fmt.Errorf("%s: key %q: %s has none", path, key, f.Form)
	}
	if f.Form == Numpy {
		err = f.openNumpy(fd)
	} else {
		err = f.openGGUF(fd)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// add opens one more file that holds tensors.
func (f *File) add(path string) (*os.File, error) {
	fd, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	f.files = append(f.files, fd)
	info, err := fd.Stat()
	f.infos = append(f.infos, info)
	return fd, err
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

func (f *File) openSafetensors(path, key string) error {
	if key != "" {
		return fmt.Errorf("%s: key %q: a safetensors file has none", path, key)
	}
	s, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.Metadata == nil {
		f.Metadata = s.Metadata
	}
	for _, t := range s.Tensors {
		off, _ := s.Section(t)
		f.Tensors = append(f.Tensors, Tensor{t.Name, t.DType, t.Shape, []piece{{file: len(f.files) - 1, off: off}}})
	}
	return nil
}

func (f *File) openTorch(path, key string) error {
	p, err := torchfile.Read(path, key)
	if err != nil {
		return err
	}
	if f.Metadata == nil {
		f.Metadata = p.Metadata
	}
	f.Key, f.Others = p.Key, p.Others
	for _, t := range p.Tensors {
		f.Tensors = append(f.Tensors, Tensor{t.Name, t.DType, t.Shape, []piece{f.whole(t)}})
	}
	return nil
}

// whole is a tensor of torch.save, in the last file.
func (f *File) whole(t torchfile.Tensor) piece {
	p := piece{file: len(f.files) - 1, off: t.Offset}
	if !t.Contiguous() {
		p.at, p.size, p.strides = make([]int, len(t.Shape)), t.Shape, t.Strides
	}
	return p
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
	return f.Renamed(func(name string) string {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			return ""
		}
		return rest
	})
}

// Renamed is a view of the file whose tensors have other names, without those that have none: rename gives a new name for a tensor's.
// Of two that would have the same, the second keeps its own. It shares the open file.
func (f *File) Renamed(rename func(name string) string) *File {
	g := &File{Path: f.Path, Metadata: f.Metadata, Form: f.Form, Shards: f.Shards, Key: f.Key, Others: f.Others, index: map[string]int{},
		files: f.files, infos: f.infos}
	for _, t := range f.Tensors {
		name := rename(t.Name)
		if _, taken := g.index[name]; taken {
			name = t.Name
		}
		if name == "" {
			continue
		}
		t.Name = name
		g.index[name] = len(g.Tensors)
		g.Tensors = append(g.Tensors, t)
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

// Close releases the files.
func (f *File) Close() error {
	var errs []error
	for _, fd := range f.files {
		errs = append(errs, fd.Close())
	}
	return errors.Join(errs...)
}

// Unchanged finds files that are not those that were opened, or were written to since.
func (f *File) Unchanged() error {
	for i, fd := range f.files {
		now, err := os.Stat(fd.Name())
		if err != nil {
			return fmt.Errorf("%s was removed while it was read: %w", fd.Name(), err)
		}
		if was := f.infos[i]; !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) {
			return fmt.Errorf("%s was changed while it was read: start again when it is whole", fd.Name())
		}
	}
	return nil
}

// Stamp tells the files from others and from changed ones: their names, sizes and times of change.
func (f *File) Stamp() string {
	var s strings.Builder
	for i, info := range f.infos {
		fmt.Fprintf(&s, "%s %d %d\n", f.files[i].Name(), info.Size(), info.ModTime().UnixNano())
	}
	return s.String()
}
