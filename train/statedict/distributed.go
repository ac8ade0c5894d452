package statedict

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/pickle"
	"onlinerna/train/safetensors"
	"onlinerna/train/torchfile"
)

const (
	// maxMetadata bounds the metadata of a distributed checkpoint, some 200 bytes for each part of a tensor.
	maxMetadata = 64 << 20

	// metadataLimit bounds the memory of the values unpickled from it.
	metadataLimit = 384 << 20

	// maxParts bounds the parts of all tensors together.
	maxParts = 1 << 20
)

// distributedTypes are the element types by their names in the metadata.
var distributedTypes = map[pickle.Global]safetensors.DType{
	"torch.float64": safetensors.F64, "torch.float32": safetensors.F32, "torch.float16": safetensors.F16,
	"torch.bfloat16": safetensors.BF16,
	"torch.int64":    safetensors.I64, "torch.int32": safetensors.I32, "torch.int16": "I16", "torch.int8": "I8",
	"torch.uint8": "U8",
	"torch.bool":  "BOOL", "torch.uint16": "U16", "torch.uint32": "U32", "torch.uint64": "U64", "torch.complex64": "C64",
	"torch.float8_e4m3fn": safetensors.F8E4M3, "torch.float8_e5m2": safetensors.F8E5M2, "torch.float8_e8m0fnu": "F8_E8M0",
}

// optimizerPart is the part of a name under which training scripts keep an optimiser's state.
var optimizerPart = regexp.MustCompile(
	`(^|\.)(optim|optimizer|optimizers|optimizer_state_dict|optim_state_dict)\.(.*\.)?(state|param_groups)(\.|$)`)

// isMoment reports whether a tensor belongs to an optimiser's state by its name.
func isMoment(name string) bool { return moment.MatchString(name) || optimizerPart.MatchString(name) }

// openDistributed opens a checkpoint of torch.distributed.checkpoint: the pickle .metadata gives the place of each box
// of each tensor in the .distcp files, which hold boxes as torch.save writes tensors.
func (f *File) openDistributed(key string) error {
	f.Form = Distributed
	path := filepath.Join(f.Path, distributedName)
	m, err := readMetadata(path)
	if err == nil {
		err = f.take(m, key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// metadata is the content of .metadata.
type metadata struct {
	tensors *pickle.Dict   // TensorStorageMetadata by name, BytesStorageMetadata for other values
	paths   map[string]any // lists of keys by name; nil if the planner did not flatten
	stored  map[part]place
	parts   map[string]int // the number of stored parts by name
}

type (
	part struct{ name, at string }
	// place is a range in a file of the folder.
	place struct {
		file        string
		off, length int64
	}
)

func readMetadata(path string) (*metadata, error) {
	fd, size, err := files.OpenSized(path)
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	if size > maxMetadata {
		return nil, fmt.Errorf("metadata of %d bytes: at most %d are read", size, maxMetadata)
	}
	in, err := io.ReadAll(io.LimitReader(fd, maxMetadata))
	if err != nil {
		return nil, err
	}
	machine := &pickle.Machine{In: in, Limit: metadataLimit,
		Functions: map[pickle.Global]pickle.Function{"torch.Size": pickle.First}}
	top, err := machine.Run()
	if err != nil {
		return nil, err
	}
	m := &metadata{stored: map[part]place{}, parts: map[string]int{}}
	if m.tensors, err = dictOf(top, "state_dict_metadata"); err != nil {
		return nil, err
	}
	if paths, ok := attribute(top, "planner_data").(*pickle.Dict); ok {
		m.paths = make(map[string]any, len(paths.Items))
		for _, it := range paths.Items {
			if name, ok := pickle.Text(it.Key); ok {
				m.paths[name] = it.Value
			}
		}
	}
	stored, err := dictOf(top, "storage_data")
	if err != nil {
		return nil, err
	}
	if len(stored.Items) > maxParts {
		return nil, fmt.Errorf("%d parts of tensors: at most %d are read", len(stored.Items), maxParts)
	}
	for _, it := range stored.Items {
		name, ok := attribute(it.Key, "fqn").(string)
		file, ok2 := attribute(it.Value, "relative_path").(string)
		off, ok3 := attribute(it.Value, "offset").(int64)
		length, ok4 := attribute(it.Value, "length").(int64)
		if !ok || !ok2 || !ok3 || !ok4 {
			return nil, errors.New("storage_data: not a name with a file, an offset and a length")
		}
		if attribute(it.Value, "transform_descriptors") != nil {
			return nil, fmt.Errorf("tensor %q is compressed or transformed: save it without", name)
		}
		at := ""
		if v := attribute(it.Key, "offset"); v != nil {
			n, err := torchfile.Integers(v)
			if err != nil {
				return nil, fmt.Errorf("storage_data: %q: %w", name, err)
			}
			at = fmt.Sprint(n)
		}
		if _, twice := m.stored[part{name, at}]; twice {
			return nil, fmt.Errorf("tensor %q: the part at %s is stored twice", name, at)
		}
		m.stored[part{name, at}] = place{file, off, length}
		m.parts[name]++
	}
	return m, nil
}

// maxAttributes bounds the attributes of an object, which are looked up one by one: the classes of the metadata have
// ten at most.
const maxAttributes = 64

// attribute is an attribute of an object of an unknown class, nil for none.
func attribute(v any, name string) any {
	o, ok := v.(*pickle.Object)
	if !ok {
		return nil
	}
	d, ok := o.State.(*pickle.Dict)
	if !ok || len(d.Items) > maxAttributes {
		return nil
	}
	return d.Lookup(name)
}

func dictOf(v any, name string) (*pickle.Dict, error) {
	d, ok := attribute(v, name).(*pickle.Dict)
	if !ok {
		return nil, fmt.Errorf("%s without %s: not the metadata of torch.distributed.checkpoint", pickle.Kind(v), name)
	}
	return d, nil
}

// take selects the state dict and finds its tensors.
func (f *File) take(m *metadata, key string) error {
	type named struct {
		full, under, own string // the whole name; the keys before the last; the last
		value            any
	}
	var list []named
	states := 0
	for _, it := range m.tensors.Items {
		name, ok := it.Key.(string)
		if !ok {
			return fmt.Errorf("a tensor named by %s", pickle.Kind(it.Key))
		}
		if attribute(it.Value, "chunks") == nil { // bytes, not a tensor
			continue
		}
		if isMoment(name) {
			states++
			continue
		}
		n := named{name, "", name, it.Value}
		if m.paths != nil {
			n.under, n.own = split(m.paths[name], name)
		}
		list = append(list, n)
	}
	if len(list) == 0 && states > 0 {
		return fmt.Errorf("it holds the state of an optimiser alone, %d tensors, not weights", states)
	}
	var keys []string
	for _, n := range list {
		keys = append(keys, n.under)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	switch {
	case key != "" && !slices.Contains(keys, key):
		return fmt.Errorf("there is no key %q: there are %q", key, keys)
	case key == "":
		key = chosen(keys)
	}
	f.Key = key
	for _, k := range keys {
		if k != key {
			f.Others = append(f.Others, cmp.Or(k, "the top"))
		}
	}
	numbers := map[string]int{}
	for _, n := range list {
		if n.under == key {
			t, err := f.tensor(m, n.full, n.value, numbers)
			if err != nil {
				return fmt.Errorf("tensor %q: %w", n.full, err)
			}
			t.Name = n.own
			f.Tensors = append(f.Tensors, t)
		}
	}
	if len(f.Tensors) == 0 {
		return errors.New("it names no tensor")
	}
	return nil
}

// split separates the last key of a path in the planner's data from the keys before it.
func split(path any, name string) (under, own string) {
	var keys []string
	if t, ok := path.(pickle.Tuple); ok {
		for _, k := range t {
			s, ok := k.(string)
			if !ok {
				return "", name
			}
			keys = append(keys, s)
		}
	}
	if len(keys) < 2 {
		return "", name
	}
	return strings.Join(keys[:len(keys)-1], "."), keys[len(keys)-1]
}

// chosen is the usual key of weights.
func chosen(keys []string) string {
	for _, last := range []string{"", "state_dict", "model_state_dict", "model"} {
		for _, k := range keys {
			if k == last || last != "" && strings.HasSuffix(k, "."+last) {
				return k
			}
		}
	}
	if len(keys) > 0 {
		return keys[0]
	}
	return ""
}

// tensor finds the places of a tensor's parts.
func (f *File) tensor(m *metadata, name string, v any, numbers map[string]int) (Tensor, error) {
	t := Tensor{Name: name}
	var err error
	if t.Shape, err = torchfile.Integers(attribute(v, "size")); err != nil {
		return t, fmt.Errorf("size: %w", err)
	}
	dtype, ok := properties(v)
	if t.DType = distributedTypes[dtype]; !ok || t.DType == "" {
		return t, fmt.Errorf("elements of type %.50s, which is not known", string(dtype))
	}
	if err := safetensors.Check(t.DType, t.Shape); err != nil {
		return t, err
	}
	chunks, ok := attribute(v, "chunks").(*pickle.List)
	if !ok {
		return t, errors.New("without a list of chunks")
	}
	if n := m.parts[name]; n < len(chunks.Items) {
		return t, fmt.Errorf("it has %d parts, storage_data has %d of it", len(chunks.Items), n)
	}
	for _, c := range chunks.Items {
		at, err := torchfile.Integers(attribute(c, "offsets"))
		if err != nil {
			return t, fmt.Errorf("chunk: %w", err)
		}
		size, err := torchfile.Integers(attribute(c, "sizes"))
		if err != nil {
			return t, fmt.Errorf("chunk: %w", err)
		}
		t.pieces = append(t.pieces, piece{at: at, size: size})
	}
	if err := covered(t.Shape, t.pieces); err != nil {
		return t, err
	}
	for i := range t.pieces {
		p := &t.pieces[i]
		where, ok := m.stored[part{name, fmt.Sprint(p.at)}]
		if !ok {
			return t, fmt.Errorf("the part at %v is not in storage_data", p.at)
		}
		if err := f.locate(p, t.DType, where, numbers); err != nil {
			return t, err
		}
	}
	return t, nil
}

// properties is the element type of a TensorStorageMetadata: the first item of a tuple, or an attribute.
func properties(v any) (pickle.Global, bool) {
	o, ok := attribute(v, "properties").(*pickle.Object)
	if !ok {
		return "", false
	}
	var first any
	if t, is := o.State.(pickle.Tuple); is && len(t) > 0 {
		first = t[0]
	} else {
		first = attribute(o, "dtype")
	}
	g, ok := first.(pickle.Global)
	return g, ok
}

// locate opens a part's file unless it is open, and finds the elements in it.
func (f *File) locate(p *piece, dtype safetensors.DType, at place, numbers map[string]int) error {
	n, open := numbers[at.file]
	if !open {
		if !filepath.IsLocal(at.file) || at.file != filepath.Base(at.file) || strings.ContainsAny(at.file, `/\`) {
			return fmt.Errorf("it is in %q, which is not the name of a file in the folder: refused", at.file)
		}
		if _, err := f.add(filepath.Join(f.Path, at.file)); err != nil {
			return err
		}
		n = len(f.files) - 1
		numbers[at.file] = n
	}
	if p.file = n; product(p.size) == 0 {
		return nil
	}
	size := f.infos[n].Size()
	if at.off < 0 || at.length <= 0 || at.length > size || at.off > size-at.length {
		return fmt.Errorf("%s of %d bytes ends before the part at %v: it was cut short", f.files[n].Name(), size, p.at)
	}
	own, err := torchfile.ReadTensor(io.NewSectionReader(f.files[n], at.off, at.length), at.length)
	if err != nil {
		return fmt.Errorf("the part at %v in %s: %w", p.at, f.files[n].Name(), err)
	}
	if own.DType != dtype || !slices.Equal(own.Shape, p.size) {
		return fmt.Errorf("the part at %v is %s%v in %s, the metadata say %s%v", p.at, own.DType, own.Shape,
			f.files[n].Name(), dtype, p.size)
	}
	if p.off = at.off + own.Offset; !own.Contiguous() {
		p.strides = own.Strides
	}
	return nil
}
