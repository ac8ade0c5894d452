package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

const (
	// maxTensors bounds a file's tensors.
	maxTensors = 1 << 20

	// maxEntries bounds metadata entries and skipped values.
	maxEntries = 1 << 15

	// maxDims bounds a shape's extents.
	maxDims = 64

	// maxDepth bounds the nesting of skipped values.
	maxDepth = 16
)

var errNotJSON = errors.New("the header is not JSON")

// header reads the JSON object that describes the tensors, in one pass that ends at the first mistake; its work is
// bounded by the header's bytes.
type header struct {
	b       []byte
	at      int
	skipped int // number of skipped values
}

// read reads all entries of a file whose data has size bytes.
func (h *header) read(f *File, size int64) error {
	h.space()
	if h.at == len(h.b) {
		return errNotJSON
	}
	if h.b[h.at] != '{' {
		if h.skip(0) != nil {
			return errNotJSON
		}
		return errors.New("the header is not a JSON object")
	}
	err := h.object(func(name string) (err error) {
		if name == "__metadata__" {
			if f.Metadata != nil {
				return errors.New("metadata occur twice")
			}
			if f.Metadata, err = h.metadata(); err != nil && err != errNotJSON {
				err = fmt.Errorf("metadata: %w", err)
			}
			return err
		}
		if _, seen := f.index[name]; seen {
			return fmt.Errorf("tensor %q occurs twice", name)
		}
		if f.index[name] = len(f.Tensors); len(f.Tensors) == maxTensors {
			return fmt.Errorf("more than %d tensors", maxTensors)
		}
		t, err := h.tensor(name)
		if err == errNotJSON {
			return err
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		want, err := t.size()
		if err != nil {
			return err
		}
		if t.off < 0 || t.bytes != want {
			return fmt.Errorf("tensor %q: offsets [%d %d] do not hold %s%v", name, t.off, t.off+t.bytes, t.DType, t.Shape)
		}
		if t.bytes > size || t.off > size-t.bytes {
			return fmt.Errorf("tensor %q lies behind the end of the data: cut short or overlong", name)
		}
		f.Tensors = append(f.Tensors, t)
		return nil
	})
	if err != nil {
		return err
	}
	if h.space(); h.at < len(h.b) {
		return errNotJSON
	}
	return nil
}

// metadata reads an object of strings.
func (h *header) metadata() (map[string]string, error) {
	m := map[string]string{}
	err := h.object(func(key string) error {
		if h.peek() != '"' {
			return h.mistaken("its values are strings")
		}
		v, err := h.text()
		if m[key] = v; err == nil && len(m) > maxEntries {
			err = fmt.Errorf("more than %d entries", maxEntries)
		}
		return err
	})
	return m, err
}

// tensor reads one tensor's entry.
func (h *header) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	err := h.object(func(key string) (err error) {
		switch key {
		case "dtype":
			if t.DType != "" {
				return errors.New("two types")
			}
			if h.peek() != '"' {
				return h.mistaken("dtype is a string")
			}
			var s string
			s, err = h.text()
			t.DType = DType(s)
		case "shape":
			if t.Shape != nil {
				return errors.New("two shapes")
			}
			t.Shape = []int{}
			err = h.numbers(maxDims, func(v int64) error {
				if int64(int(v)) != v {
					return fmt.Errorf("extent %d is too large", v)
				}
				t.Shape = append(t.Shape, int(v))
				return nil
			})
		case "data_offsets":
			if offsets != nil {
				return errors.New("offsets twice")
			}
			offsets = []int64{}
			err = h.numbers(maxDims, func(v int64) error {
				offsets = append(offsets, v)
				return nil
			})
		default:
			err = h.skip(0)
		}
		return err
	})
	if err != nil {
		return t, err
	}
	if t.Shape == nil || len(offsets) != 2 {
		return t, fmt.Errorf("a shape and two offsets are needed, got %v and %v", t.Shape, offsets)
	}
	t.off, t.bytes = offsets[0], offsets[1]-offsets[0]
	return t, nil
}

func (h *header) space() {
	for h.at < len(h.b) {
		switch h.b[h.at] {
		case ' ', '\t', '\n', '\r':
			h.at++
		default:
			return
		}
	}
}

// peek is the next non-space byte, 0 at the end.
func (h *header) peek() byte {
	if h.space(); h.at < len(h.b) {
		return h.b[h.at]
	}
	return 0
}

func (h *header) take(c byte) bool {
	if h.peek() != c {
		return false
	}
	h.at++
	return true
}

// mistaken is the error for a value of another type, or errNotJSON for invalid JSON.
func (h *header) mistaken(what string) error {
	if err := h.skip(0); err != nil {
		return err
	}
	return errors.New(what)
}

// object calls value for each key to read its value.
func (h *header) object(value func(key string) error) error {
	if h.peek() != '{' {
		return h.mistaken("an object is expected")
	}
	h.at++
	if h.take('}') {
		return nil
	}
	for {
		if h.peek() != '"' {
			return errNotJSON
		}
		key, err := h.text()
		if err != nil {
			return err
		}
		if !h.take(':') {
			return errNotJSON
		}
		if err := value(key); err != nil {
			return err
		}
		if h.take('}') {
			return nil
		}
		if !h.take(',') {
			return errNotJSON
		}
	}
}

// numbers calls value for each element of an array of at most most integers.
func (h *header) numbers(most int, value func(int64) error) error {
	if h.peek() != '[' {
		return h.mistaken("an array of integers is expected")
	}
	h.at++
	if h.take(']') {
		return nil
	}
	for range most {
		v, err := h.integer()
		if err != nil {
			return err
		}
		if err := value(v); err != nil {
			return err
		}
		if h.take(']') {
			return nil
		}
		if !h.take(',') {
			return errNotJSON
		}
	}
	return fmt.Errorf("more than %d numbers in an array", most)
}

func (h *header) integer() (int64, error) {
	h.space()
	start := h.at
	if err := h.number(); err != nil {
		return 0, h.mistaken("an integer is expected")
	}
	digits := h.b[start:h.at]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	v := int64(0)
	for _, c := range digits {
		d := int64(c - '0')
		if d < 0 || d > 9 || v > (math.MaxInt64-d)/10 {
			return 0, fmt.Errorf("%.40s is no integer of 64 bits", h.b[start:h.at])
		}
		v = 10*v + d
	}
	if negative {
		v = -v
	}
	return v, nil
}

// number skips a JSON number, or stays in place.
func (h *header) number() error {
	at := h.at
	if at < len(h.b) && h.b[at] == '-' {
		at++
	}
	from := at
	if at = h.digits(at); at == from {
		return errNotJSON
	}
	if h.b[from] == '0' {
		at = from + 1
	}
	if at < len(h.b) && h.b[at] == '.' {
		from = at + 1
		if at = h.digits(from); at == from {
			return errNotJSON
		}
	}
	if at < len(h.b) && h.b[at]|0x20 == 'e' {
		if at++; at < len(h.b) && (h.b[at] == '+' || h.b[at] == '-') {
			at++
		}
		from = at
		if at = h.digits(from); at == from {
			return errNotJSON
		}
	}
	h.at = at
	return nil
}

// digits is the end of the digits from at on.
func (h *header) digits(at int) int {
	for at < len(h.b) && '0' <= h.b[at] && h.b[at] <= '9' {
		at++
	}
	return at
}

// raw skips a string and returns it with its quotes, and whether it has escapes.
func (h *header) raw() (s []byte, escapes bool, err error) {
	for i := h.at + 1; i < len(h.b); i++ {
		switch c := h.b[i]; {
		case c == '"':
			s, h.at = h.b[h.at:i+1], i+1
			return s, escapes, nil
		case c == '\\':
			escapes = true
			i++
		case c < ' ':
			return nil, false, errNotJSON
		}
	}
	return nil, false, errNotJSON
}

// text reads a string.
func (h *header) text() (string, error) {
	raw, escapes, err := h.raw()
	if err != nil {
		return "", err
	}
	if escapes {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", errNotJSON
		}
		return s, nil
	}
	s := string(raw[1 : len(raw)-1])
	if !utf8.ValidString(s) {
		return "", errors.New("the header has a string that is not UTF-8")
	}
	return s, nil
}

// skip skips a value of any type.
func (h *header) skip(depth int) error {
	if h.skipped++; depth > maxDepth || h.skipped > maxEntries {
		return fmt.Errorf("values of unknown meaning, more than %d or nested more than %d deep", maxEntries, maxDepth)
	}
	switch c := h.peek(); c {
	case '{':
		return h.object(func(string) error { return h.skip(depth + 1) })
	case '[':
		h.at++
		if h.take(']') {
			return nil
		}
		for {
			if err := h.skip(depth + 1); err != nil {
				return err
			}
			if h.take(']') {
				return nil
			}
			if !h.take(',') {
				return errNotJSON
			}
		}
	case '"':
		_, err := h.text()
		return err
	case 't', 'f', 'n':
		word := map[byte]string{'t': "true", 'f': "false", 'n': "null"}[c]
		if len(h.b)-h.at < len(word) || string(h.b[h.at:h.at+len(word)]) != word {
			return errNotJSON
		}
		h.at += len(word)
		return nil
	}
	return h.number()
}
