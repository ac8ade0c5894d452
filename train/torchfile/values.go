package torchfile

import (
	"fmt"
	"slices"

	"onlinerna/train/safetensors"
)

// The values that a pickle makes are nil, bool, int64, float64, string, bytes, tuple, and the types below.
type (
	tuple []any
	list  struct{ items []any }
	dict  struct{ items []item }
	item  struct{ key, value any }

	// global is a class or function, by its name alone.
	global string

	// inert is something that the tensors of a state dict do not depend on.
	inert string

	// object is what a class that is not known would have made, with the attributes that it would have got. Nothing is called.
	object struct {
		class global
		state any
	}

	// storage is a flat array of elements in the file.
	storage struct {
		dtype safetensors.DType // empty where its elements cannot be read
		place *place
		len   int
	}

	// place is where a storage lies in the file. Files of the old form say so behind the pickle: bytes is negative until then, need is
	// how many there have to be, and unit is the size of an element.
	place struct {
		off, bytes, need int64
		unit             int
	}

	// tensor is elements of a storage, from number at on.
	tensor struct {
		*storage
		at             int64
		shape, strides []int
	}

	// broken is a tensor that cannot be read, which matters if it is wanted.
	broken struct{ err error }

	mark struct{}
)

// lookup returns the value of a key, nil for none.
func (d *dict) lookup(key string) any {
	for _, it := range d.items {
		if k, ok := it.key.(string); ok && k == key {
			return it.value
		}
	}
	return nil
}

// storages gives the element type of each class of storage.
var storages = map[global]safetensors.DType{
	"torch.FloatStorage": safetensors.F32, "torch.DoubleStorage": safetensors.F64,
	"torch.HalfStorage": safetensors.F16, "torch.BFloat16Storage": safetensors.BF16,
	"torch.LongStorage": safetensors.I64, "torch.IntStorage": safetensors.I32,
	"torch.ShortStorage": "I16", "torch.CharStorage": "I8", "torch.ByteStorage": "U8", "torch.BoolStorage": "BOOL",
	"torch.ComplexFloatStorage": "C64",
}

// odd gives the bytes of an element of storages whose elements cannot be read.
var odd = map[global]int{
	"torch.ComplexDoubleStorage": 16, "torch.QInt8Storage": 1, "torch.QUInt8Storage": 1, "torch.QInt32Storage": 4,
	"torch.QUInt4x2Storage": 1, "torch.QUInt2x4Storage": 1, "torch.storage.UntypedStorage": 1, "torch.UntypedStorage": 1,
}

// dicts are the classes whose objects are dicts.
var dicts = map[global]bool{"collections.OrderedDict": true, "collections.Counter": true, "collections.defaultdict": true, "builtins.dict": true, "__builtin__.dict": true}

// function applies one of the known globals to its arguments.
type function func(m *machine, args tuple) (any, error)

// functions are the globals that may be called. None does more than make a value.
var functions = map[global]function{
	"collections.OrderedDict":                    makeDict,
	"collections.Counter":                        makeDict,
	"collections.defaultdict":                    noDict,
	"torch._utils._rebuild_tensor":               rebuildTensor,
	"torch._utils._rebuild_tensor_v2":            rebuildTensor,
	"torch._utils._rebuild_parameter":            first,
	"torch._utils._rebuild_parameter_with_state": first,
	"torch._tensor._rebuild_from_type_v2":        rebuildFrom,
	"torch.Size":                                 first,
}

// noDict is an empty dict, whatever would have made the values that are not in it.
func noDict(*machine, tuple) (any, error) { return &dict{}, nil }

// rebuildFrom makes a tensor of a class of its own, of (function, class, arguments, state).
func rebuildFrom(m *machine, args tuple) (any, error) {
	if len(args) < 3 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	g, ok := args[0].(global)
	own, ok2 := args[2].(tuple)
	if !ok || !ok2 {
		return nil, fmt.Errorf("of %s with %s", kind(args[0]), kind(args[2]))
	}
	switch g {
	case "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2":
		return rebuildTensor(m, own)
	case "torch._utils._rebuild_parameter":
		return first(m, own)
	}
	return &object{class: g}, nil
}

func first(_ *machine, args tuple) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("no argument")
	}
	return args[0], nil
}

// makeDict makes a dict of nothing, of a dict or of pairs.
func makeDict(m *machine, args tuple) (any, error) {
	d := &dict{}
	if len(args) == 0 {
		return d, nil
	}
	switch from := args[0].(type) {
	case *dict:
		if err := m.charge(len(from.items) * itemCost); err != nil {
			return nil, err
		}
		d.items = slices.Clone(from.items)
	case *list:
		for _, v := range from.items {
			pair, err := pairOf(v)
			if err != nil {
				return nil, err
			}
			if err := m.charge(itemCost); err != nil {
				return nil, err
			}
			d.items = append(d.items, item{pair[0], pair[1]})
		}
	default:
		return nil, fmt.Errorf("of %s", kind(from))
	}
	return d, nil
}

func pairOf(v any) ([]any, error) {
	var p []any
	switch v := v.(type) {
	case tuple:
		p = v
	case *list:
		p = v.items
	}
	if len(p) != 2 {
		return nil, fmt.Errorf("of %s where a pair was expected", kind(v))
	}
	return p, nil
}

// maxDims is the most dimensions of a tensor.
const maxDims = 64

// rebuildTensor makes a tensor of (storage, offset, shape, strides, …).
func rebuildTensor(m *machine, args tuple) (any, error) {
	if len(args) < 4 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	if _, is := args[0].(inert); is { // of elements that cannot be read
		return args[0], nil
	}
	s, ok := args[0].(*storage)
	at, ok2 := args[1].(int64)
	if !ok || !ok2 || at < 0 {
		return nil, fmt.Errorf("of %s at %s", kind(args[0]), shown(args[1]))
	}
	shape, err := integers(args[2])
	if err != nil {
		return nil, fmt.Errorf("shape: %w", err)
	}
	strides, err := integers(args[3])
	if err != nil {
		return nil, fmt.Errorf("strides: %w", err)
	}
	if len(shape) != len(strides) {
		return nil, fmt.Errorf("shape %v with strides %v", shape, strides)
	}
	if err := m.charge(64 + 16*len(shape)); err != nil {
		return nil, err
	}
	if err := fits(s, at, shape, strides); err != nil {
		return &broken{err}, nil
	}
	return &tensor{s, at, shape, strides}, nil
}

// fits checks that all elements lie in the storage, and that they are no more than it has.
func fits(s *storage, at int64, shape, strides []int) error {
	if slices.Contains(shape, 0) {
		return nil
	}
	n, last := 1, at
	for i, d := range shape {
		if d > s.len/n {
			return fmt.Errorf("shape %v with strides %v in a storage of %d elements: expanded tensors are not read, save a clone", shape, strides, s.len)
		}
		n *= d
		if step := int64(strides[i]); step > 0 && int64(d-1) > (int64(s.len)-last)/step {
			return fmt.Errorf("shape %v with strides %v from element %d on leaves its storage of %d elements", shape, strides, at, s.len)
		}
		last += int64(d-1) * int64(strides[i])
	}
	if last >= int64(s.len) {
		return fmt.Errorf("shape %v with strides %v from element %d on leaves its storage of %d elements", shape, strides, at, s.len)
	}
	return nil
}

func integers(v any) ([]int, error) {
	t, ok := v.(tuple)
	if !ok || len(t) > maxDims {
		return nil, fmt.Errorf("%s, not a tuple of up to %d integers", kind(v), maxDims)
	}
	out := make([]int, len(t))
	for i, e := range t {
		n, ok := e.(int64)
		if !ok || n < 0 || int64(int(n)) != n {
			return nil, fmt.Errorf("%s in place of an extent", shown(e))
		}
		out[i] = int(n)
	}
	return out, nil
}

// shown is a value for messages. What holds others is named only: it may be endless to write.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%.100q", v)
	case bool, int64, float64:
		return fmt.Sprint(v)
	}
	return kind(v)
}

// kind names a value for messages.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case inert:
		return string(v)
	case int64:
		return "a number or constant"
	case float64:
		return "a number"
	case string:
		return "a string"
	case tuple:
		return "a tuple"
	case *list:
		return "a list"
	case *dict:
		return "a dict"
	case *tensor, *broken:
		return "a tensor"
	case global:
		return fmt.Sprintf("%.100s", string(v))
	case *object:
		return fmt.Sprintf("an object of %.100s", string(v.class))
	case *storage:
		return "a storage"
	}
	return "an unknown value"
}
