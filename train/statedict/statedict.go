// Package statedict opens checkpoints that hold a model's tensors by name: safetensors; torch.save's files of a state
// dict or of a training script's checkpoint (see package torchfile); both as one file or as a folder's shards with an
// index; PyTorch's distributed checkpoints; numpy's .npz; GGUF; Orbax's; and Keras's HDF5. The first bytes of a file
// decide its format.
// Nothing in a file is executed, paths in indexes cannot leave their folder, and memory is bounded by the number of
// tensors.
//
// The prefixes of PyTorch's wrappers, "module." and "_orig_mod.", are removed from names.
package statedict

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

	pieces []piece // at least one; a piece without extents is the whole tensor
}

// Len is the number of elements.
func (t Tensor) Len() int { return product(t.Shape) }

// Form is a checkpoint format.
type Form string

// The formats.
const (
	Safetensors Form = "safetensors"
	Torch       Form = "torch.save"
	Distributed Form = "PyTorch distributed checkpoint"
	Numpy       Form = "npz"
	Orbax       Form = "Orbax"
	HDF5        Form = "HDF5"
	GGUF        Form = "GGUF"
)

// File is an open checkpoint. Its methods may be called concurrently.
type File struct {
	Path     string
	Tensors  []Tensor // in the file's order
	Metadata map[string]string
	Form     Form
	Shards   int // number of files that hold the tensors

	// Key is the state dict's key in a file of torch.save or a distributed checkpoint, empty if it is the saved value
	// itself, and Others are the keys of further state dicts.
	Key    string
	Others []string

	index  map[string]int
	files  []*os.File
	infos  []os.FileInfo // of the files when they were opened; a temporary file behind them has none
	remove string        // the name of the temporary file, if it still has one

	sums     []sums // of each file
	inflated int64  // bytes of the temporary file that pieces have
}

// Open opens a checkpoint: a file, the index of shards, a folder with either, or weights in the cache folder by their
// name: see [catalogue.Locate]. A name with ".index.json" behind it stands for the shards of that index. key selects one
// of torch.save's state dicts, such as "model_ema"; if it is empty, Open chooses. In Orbax's and Keras's files it is the
// first part of the names, such as "params".
func Open(path, key string) (_ *File, err error) {
	name := path
	if !isFile(path + ".index.json") {
		if path, err = catalogue.Locate(name, catalogue.Weights); err != nil {
			return nil, err
		}
	}
	f := &File{Path: path, index: map[string]int{}}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if st, e := os.Stat(path); e == nil && st.IsDir() {
		err = f.openFolder(key)
	} else if strings.HasSuffix(path, kerasIndex) {
		err = f.openKerasIndex(path, key)
	} else if strings.EqualFold(filepath.Ext(path), ".json") {
		err = f.openIndex(path, key)
	} else if index := path + ".index.json"; os.IsNotExist(e) && isFile(index) {
		err = f.openIndex(index, key)
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
	f.Shards = len(f.infos)
	f.unwrap()
	for i, t := range f.Tensors {
		if _, twice := f.index[t.Name]; twice {
			return nil, fmt.Errorf("%s: tensor %q occurs twice", path, t.Name)
		}
		f.index[t.Name] = i
	}
	return f, nil
}

// openFile opens a single file with all tensors, or a shard.
func (f *File) openFile(path, key string) error {
	fd, err := f.add(path)
	if err != nil {
		return err
	}
	var head [4]byte
	n, _ := io.ReadFull(fd, head[:])
	zipped := ""
	if torchfile.Is(head[:n]) {
		zipped = firstEntry(fd)
	}
	switch {
	case strings.HasSuffix(zipped, ".npy"):
		f.Form = Numpy
		f.sums[len(f.sums)-1].kind = zipSums
	case zipped == kerasFirst || string(head[:n]) == hdf5Magic:
		read := f.openHDF5
		if zipped != "" {
			read, f.sums[len(f.sums)-1].kind = f.openKeras, zipSums
		}
		if err := read(fd, key); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	case torchfile.Is(head[:n]):
		f.Form = Torch
		return f.openTorch(fd, key)
	case string(head[:n]) == ggufMagic:
		f.Form = GGUF
	default:
		f.Form = Safetensors
		return f.openSafetensors(fd, key)
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

// add opens one more file with tensors.
func (f *File) add(path string) (*os.File, error) {
	fd, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	f.files = append(f.files, fd)
	info, err := fd.Stat()
	f.infos, f.sums = append(f.infos, info), append(f.sums, sums{})
	return fd, err
}

// inFolder adds a folder's weights files to the error for opening it.
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

func (f *File) openSafetensors(fd *os.File, key string) error {
	if key != "" {
		return fmt.Errorf("%s: key %q: a safetensors file has none", fd.Name(), key)
	}
	s, err := safetensors.Of(fd)
	if err != nil {
		return err
	}
	if own := s.Sums(); own != (safetensors.Sums{}) {
		f.sums[len(f.sums)-1] = sums{ownSums, own}
	}
	if f.Metadata == nil {
		f.Metadata = s.Metadata
	}
	for _, t := range s.Tensors {
		off, _ := s.Section(t)
		f.Tensors = append(f.Tensors, Tensor{t.Name, t.DType, t.Shape, []piece{{file: len(f.files) - 1, off: off}}})
	}
	return nil
}

func (f *File) openTorch(fd *os.File, key string) error {
	p, err := torchfile.Of(fd, key)
	if err != nil {
		return err
	}
	if f.Metadata == nil {
		f.Metadata = p.Metadata
	}
	f.Key, f.Others = p.Key, p.Others
	f.sums[len(f.sums)-1].kind = zipSums
	for _, t := range p.Tensors {
		f.Tensors = append(f.Tensors, Tensor{t.Name, t.DType, t.Shape, []piece{f.whole(t)}})
	}
	return nil
}

// whole is a tensor of torch.save in the last file.
func (f *File) whole(t torchfile.Tensor) piece {
	p := piece{file: len(f.files) - 1, off: t.Offset}
	if !t.Contiguous() {
		p.at, p.size, p.strides = make([]int, len(t.Shape)), t.Shape, t.Strides
	}
	return p
}

// wrappers are the prefixes that DataParallel and torch.compile put before all names.
var wrappers = []string{"module.", "_orig_mod."}

// averaged is AveragedModel's counter beside the module.
const averaged = "n_averaged"

// unwrap removes wrappers' prefixes from all names as long as all names have one.
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

// strip removes the prefix p from all names if all have it.
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

// Under is a view of the file with only the tensors under a prefix, such as "model." in Lightning's checkpoints. It
// shares the open file.
func (f *File) Under(prefix string) *File {
	g := f.view(0)
	for _, t := range f.Tensors {
		if rest, ok := strings.CutPrefix(t.Name, prefix); ok && rest != "" {
			t.Name = rest
			g.append(t)
		}
	}
	return g
}

// Renamed is a view of the file with other tensor names: rename gives the new name, or "" to drop the tensor. If two
// tensors would get the same name, the second keeps its own. It shares the open file.
func (f *File) Renamed(rename func(name string) string) *File {
	g := f.view(len(f.Tensors))
	for _, t := range f.Tensors {
		name := rename(t.Name)
		if _, taken := g.index[name]; taken {
			name = t.Name
		}
		if name == "" {
			continue
		}
		t.Name = name
		g.append(t)
	}
	return g
}

// view is the file without its tensors, with room for n.
func (f *File) view(n int) *File {
	return &File{Path: f.Path, Metadata: f.Metadata, Form: f.Form, Shards: f.Shards, Key: f.Key, Others: f.Others,
		Tensors: make([]Tensor, 0, n), index: make(map[string]int, n),
		files: f.files, infos: f.infos, sums: f.sums}
}

func (f *File) append(t Tensor) {
	f.index[t.Name] = len(f.Tensors)
	f.Tensors = append(f.Tensors, t)
}

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Found names the state dict that was chosen among several, empty if there is one.
func (f *File) Found() string {
	if len(f.Others) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: the state dict under %s; there are also %s: see --key",
		f.Path, f.Key, strings.Join(f.Others, ", "))
}

// Close releases the files.
func (f *File) Close() error {
	var errs []error
	for _, fd := range f.files {
		errs = append(errs, fd.Close())
	}
	if f.remove != "" {
		errs = append(errs, os.Remove(f.remove))
	}
	return errors.Join(errs...)
}

// Same reports whether two checkpoints consist of the same files, whatever their names.
func (f *File) Same(as *File) bool {
	return len(f.infos) > 0 && slices.EqualFunc(f.infos, as.infos, os.SameFile)
}

// CheckOutput returns an error for a path that names one of the open files, which may be a link.
func (f *File) CheckOutput(path string) error {
	to, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for i, info := range f.infos {
		if os.SameFile(info, to) {
			return fmt.Errorf("%s would write over the input %s: name another output", path, f.files[i].Name())
		}
	}
	return nil
}

// Unchanged returns an error if a file has been replaced or written to since it was opened.
func (f *File) Unchanged() error {
	for i, was := range f.infos {
		fd := f.files[i]
		now, err := os.Stat(fd.Name())
		if err != nil {
			return fmt.Errorf("%s was removed while it was read: %w", fd.Name(), err)
		}
		if !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) {
			return fmt.Errorf("%s was changed while it was read: start again when it is whole", fd.Name())
		}
	}
	return nil
}

// Stamp identifies the files and their versions: their names, sizes and modification times.
func (f *File) Stamp() string {
	var s strings.Builder
	for i, info := range f.infos {
		fmt.Fprintf(&s, "%s %d %d\n", f.files[i].Name(), info.Size(), info.ModTime().UnixNano())
	}
	return s.String()
}
