package pickle

import (
	"fmt"
	"slices"
)

// The values that a pickle makes are nil, bool, int64, float64, string, [Bytes], [Tuple], and the types below, and
// those of functions.
type (
	Tuple []any
	List  struct{ Items []any }
	Dict  struct{ Items []Item }
	Item  struct{ Key, Value any }

	// Bytes are a part of the input, which begins at byte At.
	Bytes struct {
		At   int
		Data []byte
	}

	// Global is a class or function, by its name alone.
	Global string

	// Inert is something that is not read, by its name.
	Inert string

	// Object stands for an instance of an unknown class, with its attributes. Nothing is called.
	Object struct {
		Class Global
		State any
	}

	mark struct{}
)

// Lookup returns the value of a key, nil for none. A key of Python 2 may be Bytes.
func (d *Dict) Lookup(key string) any {
	for _, it := range d.Items {
		if k, ok := Text(it.Key); ok && k == key {
			return it.Value
		}
	}
	return nil
}

// Text is a string, or a string of Python 2.
func Text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case Bytes:
		return string(v.Data), true
	}
	return "", false
}

// dicts are the classes whose objects are dicts.
var dicts = map[Global]bool{
	"collections.OrderedDict": true, "collections.Counter": true, "collections.defaultdict": true,
	"builtins.dict": true, "__builtin__.dict": true,
}

// functions are those that every machine may call.
var functions = map[Global]Function{
	"collections.OrderedDict": makeDict,
	"collections.Counter":     makeDict,
	"collections.defaultdict": noDict,
}

// noDict makes an empty dict and ignores its arguments, such as a function for missing values.
func noDict(*Machine, Tuple) (any, error) { return &Dict{}, nil }

// makeDict makes a dict of nothing, of a dict or of pairs.
func makeDict(m *Machine, args Tuple) (any, error) {
	d := &Dict{}
	if len(args) == 0 {
		return d, nil
	}
	switch from := args[0].(type) {
	case *Dict:
		if err := m.Charge(len(from.Items) * ItemCost); err != nil {
			return nil, err
		}
		d.Items = slices.Clone(from.Items)
	case *List:
		for _, v := range from.Items {
			pair, err := pairOf(v)
			if err != nil {
				return nil, err
			}
			if err := m.Charge(ItemCost); err != nil {
				return nil, err
			}
			d.Items = append(d.Items, Item{pair[0], pair[1]})
		}
	default:
		return nil, fmt.Errorf("of %s", Kind(from))
	}
	return d, nil
}

func pairOf(v any) ([]any, error) {
	var p []any
	switch v := v.(type) {
	case Tuple:
		p = v
	case *List:
		p = v.Items
	}
	if len(p) != 2 {
		return nil, fmt.Errorf("of %s where a pair was expected", Kind(v))
	}
	return p, nil
}

// First is the function that gives back its first argument.
func First(_ *Machine, args Tuple) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("no argument")
	}
	return args[0], nil
}

// Shown is a value for messages. Containers are only named: they may be endless.
func Shown(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%.100q", v)
	case bool, int64, float64:
		return fmt.Sprint(v)
	}
	return Kind(v)
}

// Kind names a value for messages; one of a function is named by its method Kind.
func Kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case Inert:
		return string(v)
	case int64:
		return "a number or constant"
	case float64:
		return "a number"
	case string:
		return "a string"
	case Bytes:
		return "bytes"
	case Tuple:
		return "a tuple"
	case *List:
		return "a list"
	case *Dict:
		return "a dict"
	case Global:
		return fmt.Sprintf("%.100s", string(v))
	case *Object:
		return fmt.Sprintf("an object of %.100s", string(v.Class))
	case interface{ Kind() string }:
		return v.Kind()
	}
	return "an unknown value"
}
