package statedict

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"onlinerna/internal/hdf5"
	"onlinerna/train/safetensors"
)

const (
	hdf5Magic = "\x89HDF"

	// kerasWeights is the entry of an archive .keras with the numbers, and kerasFirst the first entry.
	kerasWeights = "model.weights.h5"
	kerasFirst   = "metadata.json"

	// kerasIndex ends the names of indexes of Keras's shards.
	kerasIndex = ".weights.json"
)

var (
	// kerasState are the groups in which Keras keeps an optimiser's state.
	kerasState = regexp.MustCompile(`^(optimizer/|optimizer_weights/)`)

	kerasShard = regexp.MustCompile(`^(.*)_\d{5}\.weights\.h5$`)
)

// hdf5Types are the element types of arrays by kind and size.
var hdf5Types = map[string]safetensors.DType{
	"float8": safetensors.F64, "float4": safetensors.F32, "float2": safetensors.F16, "bfloat162": safetensors.BF16,
	"int8": safetensors.I64, "int4": safetensors.I32, "int2": "I16", "int1": "I8",
	"uint8": "U64", "uint4": "U32", "uint2": "U16", "uint1": "U8", "bool1": "BOOL",
}

// openHDF5 opens a file of HDF5 with the arrays under key, which is a path of groups.
func (f *File) openHDF5(fd *os.File, key string) error {
	st, err := fd.Stat()
	if err != nil {
		return err
	}
	states, _, err := f.readHDF5(fd, 0, st.Size(), key)
	if err == nil && len(f.Tensors) == 0 {
		err = noWeights(states, key)
	}
	return err
}

// noWeights is the error for a file without tensors.
func noWeights(states int, key string) error {
	switch {
	case states > 0:
		return fmt.Errorf("it holds the state of an optimiser alone, %d tensors, not weights", states)
	case key != "":
		return fmt.Errorf("there is no tensor under key %q", key)
	}
	return errNoTensor
}

// readHDF5 adds the arrays of the last file, in which HDF5 begins at byte base. The state of an optimiser is passed
// over; its tensors and bytes are counted.
func (f *File) readHDF5(fd *os.File, base, size int64, key string) (states int, bytes int64, err error) {
	f.Form = HDF5
	list, err := hdf5.Read(io.NewSectionReader(fd, base, size), size)
	if err != nil {
		return 0, 0, err
	}
	for _, a := range list {
		name := a.Path
		if key != "" {
			ok := false
			if name, ok = strings.CutPrefix(a.Path, strings.TrimSuffix(key, "/")+"/"); !ok {
				continue
			}
		}
		if kerasState.MatchString(a.Path) {
			states++
			bytes += int64(a.Size) * int64(product(a.Shape))
			continue
		}
		t := Tensor{Name: name, DType: hdf5Types[fmt.Sprint(a.Kind, a.Size)], Shape: a.Shape,
			pieces: []piece{{file: len(f.files) - 1, off: base + a.Off}}}
		if a.Kind == hdf5.Opaque && a.Size == 2 && a.Text["dtype"] == "bfloat16" {
			t.DType = safetensors.BF16
		}
		if t.DType == "" {
			return 0, 0, fmt.Errorf("tensor %q: elements of %d bytes, %s, which are not known", a.Path, a.Size, a.Kind)
		}
		if err := safetensors.Check(t.DType, t.Shape); err != nil {
			return 0, 0, fmt.Errorf("tensor %q: %w", a.Path, err)
		}
		f.Tensors = append(f.Tensors, t)
	}
	f.Key = key
	return states, bytes, nil
}

// openKeras opens an archive .keras, which holds its numbers as a file of HDF5 without compression.
func (f *File) openKeras(fd *os.File, key string) error {
	f.Form = HDF5
	st, err := fd.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(fd, st.Size())
	if err != nil {
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	i := slices.IndexFunc(z.File, func(e *zip.File) bool { return e.Name == kerasWeights })
	if i < 0 {
		return fmt.Errorf("an archive without %s", kerasWeights)
	}
	e := z.File[i]
	off, err := e.DataOffset()
	if err != nil {
		return err
	}
	size := int64(e.UncompressedSize64)
	if e.Method != zip.Store || size < 0 || size != int64(e.CompressedSize64) || off < 0 || off > st.Size()-size {
		return fmt.Errorf("%s in the archive is compressed or cut short: unzip it, and name it", kerasWeights)
	}
	states, _, err := f.readHDF5(fd, off, size, key)
	if err == nil && len(f.Tensors) == 0 {
		err = noWeights(states, key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kerasWeights, err)
	}
	return nil
}

// openKerasIndex opens Keras's shards, which all lie beside their index. It names the groups that each one holds a part
// of.
func (f *File) openKerasIndex(path, key string) error {
	list, size, err := readIndex(path)
	if err != nil {
		return err
	}
	held := map[indexEntry]bool{} // groups by shard
	var shards []string
	for _, e := range list {
		held[indexEntry{strings.Trim(e.tensor, "/"), e.file}] = false
		shards = append(shards, e.file)
	}
	slices.Sort(shards)
	states, bytes := 0, int64(0)
	for _, name := range slices.Compact(shards) {
		from, before := filepath.Join(filepath.Dir(path), name), len(f.Tensors)
		fd, err := f.add(from)
		if err != nil {
			return fmt.Errorf("%w (a shard that %s names)", err, path)
		}
		n, own, err := f.readHDF5(fd, 0, f.infos[len(f.infos)-1].Size(), "")
		if err != nil {
			return fmt.Errorf("%s: %w (a shard that %s names)", from, err, path)
		}
		states, bytes = states+n, bytes+own
		for _, t := range f.Tensors[before:] {
			group := indexEntry{t.Name[:max(strings.LastIndex(t.Name, "/"), 0)], name}
			if _, ok := held[group]; !ok {
				return fmt.Errorf("tensor %q is in %s, and %s does not name it", t.Name, from, path)
			}
			held[group] = true
			bytes += int64(t.Len()) * int64(t.DType.Size())
		}
	}
	for _, e := range list {
		if group := strings.Trim(e.tensor, "/"); !held[indexEntry{group, e.file}] && !kerasState.MatchString(group+"/") {
			return fmt.Errorf("%s says that tensors of %q are in %s, which lacks them", path, group, e.file)
		}
	}
	if size > 0 && size != float64(bytes) {
		return fmt.Errorf("%s says that the tensors of its shards have %.0f bytes, they have %d", path, size, bytes)
	}
	if key != "" {
		var under []Tensor
		for _, t := range f.Tensors {
			var ok bool
			if t.Name, ok = strings.CutPrefix(t.Name, strings.TrimSuffix(key, "/")+"/"); ok {
				under = append(under, t)
			}
		}
		f.Tensors, f.Key = under, key
	}
	if len(f.Tensors) == 0 {
		return fmt.Errorf("%s: %w", path, noWeights(states, key))
	}
	return nil
}

// kerasWhole is the index of a Keras shard's siblings; empty if the file is none.
func kerasWhole(path string) string {
	m := kerasShard.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return ""
	}
	if index := filepath.Join(filepath.Dir(path), m[1]+kerasIndex); isFile(index) {
		return index
	}
	return ""
}

var errNoTensor = errors.New("it names no tensor")
