// Package mat reads MAT-files of level 5, which MATLAB (save -v6, -v7) and scipy.io.savemat write: numeric, sparse,
// text, cell and struct arrays, compressed or not, of either byte order. Files of -v7.3 are HDF5 and an error.
package mat

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Class is the type of an Array's elements.
type Class uint8

// The classes, with the numbers of the format.
const (
	Cell   Class = 1
	Struct Class = 2
	Text   Class = 4
	Sparse Class = 5
	Double Class = 6
	Single Class = 7
	Int8   Class = 8
	Uint8  Class = 9
	Int16  Class = 10
	Uint16 Class = 11
	Int32  Class = 12
	Uint32 Class = 13
	Int64  Class = 14
	Uint64 Class = 15
)

// Array is a variable, or an element of one. Elements go down the columns first.
type Array struct {
	Name    string
	Class   Class
	Dims    []int // two at least
	Logical bool
	// Real are the numbers of numeric classes as float64 (Int64 and Uint64 lose digits beyond 53 bits), and the
	// values that a sparse array stores. Imag is nil without imaginary parts.
	Real, Imag []float64
	// Text holds the characters of a Text array.
	Text string
	// A sparse array stores the rows Rows[Columns[j]:Columns[j+1]] of column j.
	Rows, Columns []int
	// Cells are the elements of a Cell array.
	Cells []*Array
	// Fields are the names of a struct's fields, Values[i][k] is field k of element i.
	Fields []string
	Values [][]*Array
}

// Len is the number of elements: the product of Dims.
func (a *Array) Len() int {
	n := 1
	for _, d := range a.Dims {
		n *= d
	}
	return n
}

// Field is the named field of element i of a Struct, nil if there is none.
func (a *Array) Field(i int, name string) *Array {
	for k, field := range a.Fields {
		if field == name && i < len(a.Values) {
			return a.Values[i][k]
		}
	}
	return nil
}

// maxElements bounds the product of an array's dimensions.
const maxElements = 1 << 32

var errDamaged = errors.New("the file is damaged or cut short")

// budget is the memory that is left for variables.
type budget struct{ most, left int64 }

func (b *budget) take(bytes int64) error {
	if bytes > b.left {
		return fmt.Errorf("takes, with those before it, more than the limit of %d bytes", b.most)
	}
	b.left -= bytes
	return nil
}

// Read reads all variables of a MAT-file, which may take the given number of bytes of memory.
func Read(r io.Reader, most int64) ([]*Array, error) {
	var header [128]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, fmt.Errorf("mat: not a MAT-file of level 5: %w", err)
	}
	var order binary.ByteOrder
	switch string(header[126:]) {
	case "IM":
		order = binary.LittleEndian
	case "MI":
		order = binary.BigEndian
	default:
		return nil, errors.New("mat: not a MAT-file of level 5")
	}
	if version := order.Uint16(header[124:]); version != 0x0100 {
		if version == 0x0200 {
			return nil, errors.New("mat: a file of MATLAB 7.3 (HDF5) cannot be read: save it with -v7")
		}
		return nil, fmt.Errorf("mat: version %#x, want 0x0100", version)
	}
	var list []*Array
	memory := &budget{most, most}
	for {
		var tag [8]byte
		switch _, err := io.ReadFull(r, tag[:]); {
		case err == io.EOF:
			return list, nil
		case err != nil:
			return nil, fmt.Errorf("mat: %w", errDamaged)
		}
		kind, size := order.Uint32(tag[:]), int64(order.Uint32(tag[4:]))
		err := memory.take(size)
		var body []byte
		if err == nil {
			body, err = take(io.LimitReader(r, size), size)
		}
		if err == nil && kind == miCompressed {
			body, kind, err = inflate(body, order, memory)
		}
		if err != nil {
			return nil, fmt.Errorf("mat: variable %d: %w", len(list)+1, err)
		}
		if kind != miMatrix {
			continue
		}
		a, err := (&reader{b: body, order: order, memory: memory}).array()
		if err != nil {
			return nil, fmt.Errorf("mat: variable %d: %w", len(list)+1, err)
		}
		list = append(list, a)
	}
}

// take reads exactly size bytes; its allocations are bounded by the input.
func take(r io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	n, err := b.ReadFrom(r)
	if err == nil && n != size {
		err = errDamaged
	}
	return b.Bytes(), err
}

func inflate(b []byte, order binary.ByteOrder, memory *budget) ([]byte, uint32, error) {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	var tag [8]byte
	if _, err := io.ReadFull(z, tag[:]); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	size := int64(order.Uint32(tag[4:]))
	if err := memory.take(size); err != nil {
		return nil, 0, err
	}
	body, err := take(io.LimitReader(z, size), size)
	return body, order.Uint32(tag[:]), err
}
