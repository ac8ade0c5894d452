package mat

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
)

// Types of data elements.
const (
	miInt8       = 1
	miUint8      = 2
	miInt16      = 3
	miUint16     = 4
	miInt32      = 5
	miUint32     = 6
	miSingle     = 7
	miDouble     = 9
	miInt64      = 12
	miUint64     = 13
	miMatrix     = 14
	miCompressed = 15
	miUTF8       = 16
	miUTF16      = 17
	miUTF32      = 18
)

// reader reads data elements from memory.
type reader struct {
	b      []byte
	order  binary.ByteOrder
	depth  int
	memory *budget
}

// element takes the next data element. Of four bytes at most it may be in its own tag.
func (r *reader) element() (kind uint32, body []byte, err error) {
	if len(r.b) < 8 {
		return 0, nil, errDamaged
	}
	kind = r.order.Uint32(r.b)
	if size := kind >> 16; size != 0 {
		if size > 4 {
			return 0, nil, errDamaged
		}
		body, r.b = r.b[4:4+size], r.b[8:]
		return kind & 0xffff, body, nil
	}
	size := uint64(r.order.Uint32(r.b[4:]))
	if size > uint64(len(r.b)-8) {
		return 0, nil, errDamaged
	}
	body, r.b = r.b[8:8+size], r.b[8+size:]
	if pad := int(-size & 7); pad > 0 {
		r.b = r.b[min(pad, len(r.b)):]
	}
	return kind, body, nil
}

// array reads the content of a miMatrix element.
func (r *reader) array() (*Array, error) {
	const deepest = 32
	if r.depth > deepest {
		return nil, errDamaged
	}
	a := new(Array)
	if len(r.b) == 0 { // an empty cell
		a.Class, a.Dims = Double, []int{0, 0}
		return a, nil
	}
	_, flags, err := r.element()
	if err != nil || len(flags) != 8 {
		return nil, errDamaged
	}
	word := r.order.Uint32(flags)
	a.Class, a.Logical = Class(word), word&0x200 != 0
	complex := word&0x800 != 0
	dims, err := r.numbers()
	if err == nil && len(dims) < 2 {
		err = errDamaged
	}
	if err != nil {
		return nil, err
	}
	n := 1
	for _, d := range dims {
		if d != math.Trunc(d) || d < 0 || d > 0 && float64(n)*d > maxElements {
			return nil, fmt.Errorf("dimensions %v: negative, or beyond the limit", dims)
		}
		a.Dims = append(a.Dims, int(d))
		n *= int(d)
	}
	_, name, err := r.element()
	if err != nil {
		return nil, err
	}
	a.Name = string(name)
	switch a.Class {
	case Cell:
		a.Cells, err = r.arrays(n)
	case Struct:
		err = r.structs(a, n)
	case Text:
		a.Text, err = r.text()
	case Sparse:
		err = r.sparse(a, complex)
	case Double, Single, Int8, Uint8, Int16, Uint16, Int32, Uint32, Int64, Uint64:
		if a.Real, err = r.numbers(); err == nil && complex {
			a.Imag, err = r.numbers()
		}
		if err == nil && (len(a.Real) != n || complex && len(a.Imag) != n) {
			err = fmt.Errorf("%s has %d values, its dimensions %v", a.Name, len(a.Real), a.Dims)
		}
	default:
		err = fmt.Errorf("%s is of the class %d, an object or a function, which cannot be read", a.Name, a.Class)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// arrayBytes is the memory of an Array and its dimensions.
const arrayBytes = 320

// arrays reads n arrays.
func (r *reader) arrays(n int) ([]*Array, error) {
	if n > len(r.b)/8 {
		return nil, errDamaged
	}
	if err := r.memory.take(arrayBytes * int64(n)); err != nil {
		return nil, err
	}
	list := make([]*Array, n)
	for i := range list {
		kind, body, err := r.element()
		if err != nil || kind != miMatrix {
			return nil, errDamaged
		}
		inner := reader{b: body, order: r.order, depth: r.depth + 1, memory: r.memory}
		if list[i], err = inner.array(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// structs reads the fields of n structs.
func (r *reader) structs(a *Array, n int) error {
	length, err := r.numbers()
	if err != nil || len(length) != 1 || length[0] < 1 {
		return errDamaged
	}
	_, names, err := r.element()
	if err != nil {
		return err
	}
	size := int(min(length[0], 1<<20))
	if err := r.memory.take(16 * int64(len(names)/size)); err != nil {
		return err
	}
	for ; len(names) >= size; names = names[size:] {
		name, _, _ := strings.Cut(string(names[:size]), "\x00")
		a.Fields = append(a.Fields, name)
	}
	if len(a.Fields) == 0 {
		if n > 1<<20 {
			return errDamaged
		}
		if err := r.memory.take(24 * int64(n)); err != nil {
			return err
		}
		a.Values = make([][]*Array, n)
		return nil
	}
	if n > len(r.b)/8 {
		return errDamaged
	}
	all, err := r.arrays(n * len(a.Fields))
	if err != nil {
		return err
	}
	for ; len(all) > 0; all = all[len(a.Fields):] {
		a.Values = append(a.Values, all[:len(a.Fields)])
	}
	return nil
}

// maxRows is a number of rows that any sparse array may have.
const maxRows = 1 << 22

func (r *reader) sparse(a *Array, complex bool) error {
	rows, err := r.numbers()
	if err != nil {
		return err
	}
	columns, err := r.numbers()
	if err != nil {
		return err
	}
	if a.Real, err = r.numbers(); err == nil && complex {
		a.Imag, err = r.numbers()
	}
	if err != nil {
		return err
	}
	if a.Dims[0] > max(maxRows, len(rows)) {
		return fmt.Errorf("%s: a sparse array of %d rows that stores %d values: at most %d rows, or as many as values",
			a.Name, a.Dims[0], len(rows), maxRows)
	}
	if len(a.Dims) != 2 || len(columns) != a.Dims[1]+1 || columns[0] != 0 {
		return fmt.Errorf("%s: a sparse array of %v with %d column starts", a.Name, a.Dims, len(columns))
	}
	if err := r.memory.take(16 * int64(len(rows)+len(columns))); err != nil {
		return err
	}
	for _, list := range [][]float64{rows, columns} {
		if slices.ContainsFunc(list, func(v float64) bool { return v != math.Trunc(v) }) { // NaN too
			return fmt.Errorf("%s: rows and columns of stored values that are no integers", a.Name)
		}
	}
	stored := columns[len(columns)-1]
	if stored > float64(len(rows)) || stored > float64(len(a.Real)) || complex && stored > float64(len(a.Imag)) {
		return fmt.Errorf("%s: %g stored values, but %d rows and %d values", a.Name, stored, len(rows), len(a.Real))
	}
	for j, c := range columns {
		if j > 0 && c < columns[j-1] {
			return fmt.Errorf("%s: column %d begins before the one before it", a.Name, j)
		}
		a.Columns = append(a.Columns, int(c))
	}
	for _, i := range rows[:int(stored)] {
		if i < 0 || i >= float64(a.Dims[0]) {
			return fmt.Errorf("%s: a value in row %g of %d", a.Name, i, a.Dims[0])
		}
		a.Rows = append(a.Rows, int(i))
	}
	if a.Real = a.Real[:int(stored)]; complex {
		a.Imag = a.Imag[:int(stored)]
	}
	return nil
}

// text reads characters in one of the format's encodings.
func (r *reader) text() (string, error) {
	if len(r.b) == 0 { // no characters
		return "", nil
	}
	kind, body, err := r.element()
	if err == nil {
		err = r.memory.take(8 * int64(len(body)))
	}
	if err != nil {
		return "", err
	}
	switch kind {
	case miUTF8, miInt8:
		return string(body), nil
	case miUint8:
		runes := make([]rune, len(body))
		for i, c := range body {
			runes[i] = rune(c)
		}
		return string(runes), nil
	case miUint16, miUTF16:
		units := make([]uint16, len(body)/2)
		for i := range units {
			units[i] = r.order.Uint16(body[2*i:])
		}
		return string(utf16.Decode(units)), nil
	case miUTF32, miUint32:
		runes := make([]rune, len(body)/4)
		for i := range runes {
			runes[i] = rune(r.order.Uint32(body[4*i:]))
		}
		return string(runes), nil
	}
	return "", fmt.Errorf("characters of type %d", kind)
}

// numbers reads an element of numbers; a file may store them in a smaller type than their class.
func (r *reader) numbers() ([]float64, error) {
	kind, b, err := r.element()
	if err != nil {
		return nil, err
	}
	width := map[uint32]int{miInt8: 1, miUint8: 1, miInt16: 2, miUint16: 2, miInt32: 4, miUint32: 4, miSingle: 4,
		miDouble: 8, miInt64: 8, miUint64: 8}[kind]
	if width == 0 || len(b)%width != 0 {
		return nil, errDamaged
	}
	if err := r.memory.take(8 * int64(len(b)/width)); err != nil {
		return nil, err
	}
	list := make([]float64, len(b)/width)
	for i := range list {
		p := b[i*width:]
		switch kind {
		case miInt8:
			list[i] = float64(int8(p[0]))
		case miUint8:
			list[i] = float64(p[0])
		case miInt16:
			list[i] = float64(int16(r.order.Uint16(p)))
		case miUint16:
			list[i] = float64(r.order.Uint16(p))
		case miInt32:
			list[i] = float64(int32(r.order.Uint32(p)))
		case miUint32:
			list[i] = float64(r.order.Uint32(p))
		case miSingle:
			list[i] = float64(math.Float32frombits(r.order.Uint32(p)))
		case miDouble:
			list[i] = math.Float64frombits(r.order.Uint64(p))
		case miInt64:
			list[i] = float64(int64(r.order.Uint64(p)))
		case miUint64:
			list[i] = float64(r.order.Uint64(p))
		}
	}
	return list, nil
}
