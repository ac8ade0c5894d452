package torchfile

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/internal/pickle"
	"onlinerna/train/safetensors"
)

type (
	// storage is a flat array of elements in the file.
	storage struct {
		dtype safetensors.DType // empty if its elements cannot be read
		place *place
		len   int
	}

	// place is the position of a storage in the file. Files of the old format give it after the pickle: until then bytes
	// is negative. need is the required number of bytes, and unit is the size of an element.
	place struct {
		off, bytes, need int64
		unit             int
	}

	// tensor is a view of a storage's elements, starting at element at.
	tensor struct {
		*storage
		at             int64
		shape, strides []int
	}

	// broken is a tensor that cannot be read, an error only if it is wanted.
	broken struct{ err error }
)

func (*storage) Kind() string { return "a storage" }
func (*tensor) Kind() string  { return "a tensor" }
func (*broken) Kind() string  { return "a tensor" }

func (t *tensor) exported(name string) Tensor {
	return Tensor{Name: name, DType: t.dtype, Shape: t.shape, Strides: t.strides,
		Offset: t.place.off + t.at*int64(t.dtype.Size())}
}

// storages gives the element type of each class of storage.
var storages = map[pickle.Global]safetensors.DType{
	"torch.FloatStorage": safetensors.F32, "torch.DoubleStorage": safetensors.F64,
	"torch.HalfStorage": safetensors.F16, "torch.BFloat16Storage": safetensors.BF16,
	"torch.LongStorage": safetensors.I64, "torch.IntStorage": safetensors.I32,
	"torch.ShortStorage": "I16", "torch.CharStorage": "I8", "torch.ByteStorage": "U8", "torch.BoolStorage": "BOOL",
	"torch.ComplexFloatStorage":    "C64",
	"torch.storage.UntypedStorage": "U8", "torch.UntypedStorage": "U8",
}

// odd gives the size of an element in bytes for storages whose elements cannot be read.
var odd = map[pickle.Global]int{
	"torch.ComplexDoubleStorage": 16, "torch.QInt8Storage": 1, "torch.QUInt8Storage": 1, "torch.QInt32Storage": 4,
	"torch.QUInt4x2Storage": 1, "torch.QUInt2x4Storage": 1,
}

// functions are the globals that may be called. Each only makes a value.
var functions = map[pickle.Global]pickle.Function{
	"torch._utils._rebuild_tensor":               rebuildTensor,
	"torch._utils._rebuild_tensor_v2":            rebuildTensor,
	"torch._utils._rebuild_tensor_v3":            rebuildTyped,
	"torch._utils._rebuild_parameter":            pickle.First,
	"torch._utils._rebuild_parameter_with_state": pickle.First,
	"torch._tensor._rebuild_from_type_v2":        rebuildFrom,
	"torch.Size":                                 pickle.First,
}

// rebuildFrom makes a tensor of a user's class from (function, class, arguments, state).
func rebuildFrom(m *pickle.Machine, args pickle.Tuple) (any, error) {
	if len(args) < 3 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	g, ok := args[0].(pickle.Global)
	own, ok2 := args[2].(pickle.Tuple)
	if !ok || !ok2 {
		return nil, fmt.Errorf("of %s with %s", pickle.Kind(args[0]), pickle.Kind(args[2]))
	}
	switch g {
	case "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2":
		return rebuildTensor(m, own)
	case "torch._utils._rebuild_parameter":
		return pickle.First(m, own)
	}
	return &pickle.Object{Class: g}, nil
}

// maxDims is the most dimensions of a tensor.
const maxDims = 64

// rebuildTensor makes a tensor from (storage, offset, shape, strides, …).
func rebuildTensor(m *pickle.Machine, args pickle.Tuple) (any, error) {
	if len(args) < 4 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	if _, is := args[0].(pickle.Inert); is { // its elements cannot be read
		return args[0], nil
	}
	s, ok := args[0].(*storage)
	at, ok2 := args[1].(int64)
	if !ok || !ok2 || at < 0 {
		return nil, fmt.Errorf("of %s at %s", pickle.Kind(args[0]), pickle.Shown(args[1]))
	}
	shape, err := Integers(args[2])
	if err != nil {
		return nil, fmt.Errorf("shape: %w", err)
	}
	strides, err := Integers(args[3])
	if err != nil {
		return nil, fmt.Errorf("strides: %w", err)
	}
	if len(shape) != len(strides) {
		return nil, fmt.Errorf("shape %v with strides %v", shape, strides)
	}
	if err := m.Charge(64 + 16*len(shape)); err != nil {
		return nil, err
	}
	if err := fits(s, at, shape, strides); err != nil {
		return &broken{err}, nil
	}
	return &tensor{s, at, shape, strides}, nil
}

// fits checks that all elements lie in the storage and are no more than the storage has.
func fits(s *storage, at int64, shape, strides []int) error {
	if slices.Contains(shape, 0) {
		return nil
	}
	n, last := 1, at
	for i, d := range shape {
		if d > s.len/n {
			return fmt.Errorf("shape %v with strides %v in a storage of %d elements: "+
				"expanded tensors are not read, save a clone", shape, strides, s.len)
		}
		n *= d
		if step := int64(strides[i]); step > 0 && int64(d-1) > (int64(s.len)-last)/step {
			return fmt.Errorf("shape %v with strides %v from element %d on leaves its storage of %d elements", shape, strides,
				at, s.len)
		}
		last += int64(d-1) * int64(strides[i])
	}
	if last >= int64(s.len) {
		return fmt.Errorf("shape %v with strides %v from element %d on leaves its storage of %d elements", shape, strides, at,
			s.len)
	}
	return nil
}

// Integers converts a pickled tuple of a tensor's extents, strides or indices.
func Integers(v any) ([]int, error) {
	t, ok := v.(pickle.Tuple)
	if !ok || len(t) > maxDims {
		return nil, fmt.Errorf("%s, not a tuple of up to %d integers", pickle.Kind(v), maxDims)
	}
	out := make([]int, len(t))
	for i, e := range t {
		n, ok := e.(int64)
		if !ok || n < 0 || int64(int(n)) != n {
			return nil, fmt.Errorf("%s in place of an extent", pickle.Shown(e))
		}
		out[i] = int(n)
	}
	return out, nil
}

// typed gives the element types of tensors with untyped storages.
var typed = map[pickle.Global]safetensors.DType{
	"torch.float8_e4m3fn": "F8_E4M3", "torch.float8_e5m2": "F8_E5M2", "torch.float8_e8m0fnu": "F8_E8M0",
	"torch.uint16": "U16", "torch.uint32": "U32", "torch.uint64": "U64",
}

// rebuildTyped makes a tensor from (storage of bytes, offset in elements, shape, strides, requires_grad, hooks, type,
// …).
func rebuildTyped(m *pickle.Machine, args pickle.Tuple) (any, error) {
	if len(args) < 7 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	g, _ := args[6].(pickle.Global)
	s, ok := args[0].(*storage)
	dtype := typed[g]
	if !ok || dtype == "" {
		return pickle.Inert("a tensor of " + pickle.Kind(args[6])), nil
	}
	own := &storage{dtype, s.place, s.len / dtype.Size()}
	return rebuildTensor(m, append(pickle.Tuple{own}, args[1:4]...))
}

// storageOf gives a machine the function that makes the storage for ('storage', class, key, device, elements, …).
func storageOf(where func(key string) (*place, error)) func(v any) (any, error) {
	return func(v any) (any, error) { return makeStorage(v, where) }
}

func makeStorage(v any, where func(key string) (*place, error)) (any, error) {
	id, ok := v.(pickle.Tuple)
	if ok && len(id) > 0 && id[0] == any("module") { // a module's class with its source
		return &pickle.Object{Class: "a module"}, nil
	}
	if !ok || len(id) < 5 || id[0] != any("storage") {
		return nil, fmt.Errorf("%s does not name a storage", pickle.Kind(v))
	}
	class, isClass := id[1].(pickle.Global)
	key, isKey := id[2].(string)
	n, isLen := id[4].(int64)
	if !isKey || !isLen || !isClass {
		return nil, fmt.Errorf("a storage of class %s", pickle.Kind(id[1]))
	}
	dtype, known := storages[class]
	size := dtype.Size()
	if !known {
		if size = odd[class]; size == 0 {
			return nil, fmt.Errorf("a storage of class %s, whose elements are not known", pickle.Kind(class))
		}
	}
	if len(id) > 5 && id[5] != nil {
		return nil, errors.New("a storage that is a part of another")
	}
	p, err := where(key)
	if err != nil {
		return nil, err
	}
	if n < 0 || int64(int(n)) != n || n > math.MaxInt64/int64(size) || p.bytes >= 0 && n*int64(size) > p.bytes {
		return nil, fmt.Errorf("storage %.100q of %d elements of %s has %d bytes", key, n, dtype, p.bytes)
	}
	if p.bytes < 0 { // in the old format the size follows later in the file
		p.need, p.unit = max(p.need, n*int64(size)), size
	}
	if !known {
		return pickle.Inert("a storage of " + string(class)), nil
	}
	return &storage{dtype, p, int(n)}, nil
}
