package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"onlinerna/internal/text"
)

// array reads the messages of an array.
func (f *file) array(list []message) (Array, error) {
	var a Array
	var err error
	if a.Shape, err = shapeOf(find(list, msgSpace)); err != nil {
		return a, err
	}
	if a.Kind, a.Size, err = typeOf(find(list, msgType)); err != nil {
		return a, err
	}
	n := uint64(a.Size)
	for _, d := range a.Shape {
		if d > 0 && n > math.MaxInt64/uint64(d) {
			return a, fmt.Errorf("shape %v", a.Shape)
		}
		n *= uint64(d)
	}
	switch {
	case has(list, msgExternal):
		return a, errors.New("its numbers are in another file, which is not read")
	case has(list, msgFilters):
		return a, errors.New("it is compressed or filtered: write it without, as Keras does")
	}
	if a.Off, err = f.layout(find(list, msgLayout), n); err != nil {
		return a, err
	}
	for _, m := range list {
		if m.kind == msgAttribute && m.data != nil {
			if name, value, ok := f.attribute(m.data); ok {
				if a.Text == nil {
					a.Text = map[string]string{}
				}
				a.Text[name] = value
			}
		}
	}
	return a, nil
}

func shapeOf(b []byte) ([]int, error) {
	r := &reader{b: b}
	version, rank := r.byte(), int(r.byte())
	r.byte() // whether extents of later growth follow
	switch {
	case r.err != nil:
		return nil, errors.New("it has no shape")
	case version == 1:
		r.bytes(5)
	case version == 2:
		if kind := r.byte(); kind > 1 {
			return nil, errors.New("it is empty")
		}
	default:
		return nil, fmt.Errorf("a shape of version %d", version)
	}
	if rank > maxRank {
		return nil, fmt.Errorf("%d dimensions", rank)
	}
	shape := make([]int, rank)
	for i := range shape {
		d := r.u64()
		if d > math.MaxInt32*1024 {
			return nil, fmt.Errorf("an extent of %d", d)
		}
		shape[i] = int(d)
	}
	return shape, r.err
}

// classes are the names of classes of types.
var classes = []string{"integers", "floating-point numbers", "times", "text", "bit fields", "opaque bytes", "records",
	"references", "enumerations", "lists", "arrays"}

func typeOf(b []byte) (Kind, int, error) {
	r := &reader{b: b}
	if b == nil {
		return "", 0, errors.New("its type is in another header, which is not read")
	}
	head, bits, size := r.byte(), r.bytes(3), int(r.u32())
	class := int(head & 15)
	refused := func() (Kind, int, error) {
		if r.err != nil || class >= len(classes) {
			return "", 0, errors.New("its type is damaged")
		}
		return "", 0, fmt.Errorf("elements of %d bytes, %s: little-endian numbers are read", size, classes[class])
	}
	if r.err != nil || size <= 0 || size > 8 {
		return refused()
	}
	switch class {
	case 0:
		offset, precision := int(r.u16()), int(r.u16())
		if bits[0]&1 != 0 && size > 1 || offset != 0 || precision != 8*size || size&(size-1) != 0 || r.err != nil {
			return refused()
		}
		if bits[0]&8 != 0 {
			return Int, size, nil
		}
		return Uint, size, nil
	case 1:
		offset, precision := int(r.u16()), int(r.u16())
		at, exponent, from, mantissa, bias := r.byte(), r.byte(), r.byte(), r.byte(), r.u32()
		if bits[0]&1 != 0 || bits[0]>>4&3 != 2 || int(bits[1]) != 8*size-1 || offset != 0 || precision != 8*size ||
			from != 0 || at != mantissa || int(exponent)+int(mantissa)+1 != 8*size || r.err != nil {
			return refused()
		}
		switch {
		case size == 2 && exponent == 8 && bias == 127:
			return Brain, 2, nil
		case size == 2 && exponent == 5 && bias == 15, size == 4 && exponent == 8 && bias == 127,
			size == 8 && exponent == 11 && bias == 1023:
			return Float, size, nil
		}
	case 5:
		return Opaque, size, nil
	case 8:
		if size == 1 && bytes.Contains(r.b, []byte("FALSE\x00")) && bytes.Contains(r.b, []byte("TRUE\x00")) {
			return Bool, 1, nil
		}
	}
	return refused()
}

// layout finds n bytes of elements.
func (f *file) layout(b []byte, n uint64) (int64, error) {
	r := &reader{b: b}
	version, class := r.byte(), r.byte()
	if version != 3 && version != 4 {
		return 0, fmt.Errorf("a layout of version %d: 3 and 4 are read", version)
	}
	switch class {
	case 0:
		return 0, errors.New("its numbers are in its header, which is not read")
	case 1:
	case 2:
		return 0, errors.New("it is in chunks: write it without chunks and compression, as Keras does")
	default:
		return 0, errors.New("it is made of other arrays, which is not read")
	}
	at, size := r.u64(), r.u64()
	switch {
	case r.err != nil:
		return 0, r.err
	case n == 0:
		return 0, nil
	case at == undefined:
		return 0, errors.New("it was never written")
	case size != n:
		return 0, fmt.Errorf("%d bytes of numbers, want %d", size, n)
	case at > f.size || f.base > f.size-at || n > f.size-at-f.base:
		return 0, fmt.Errorf("%d bytes at %d of %d: it was cut short", n, at, f.size)
	}
	return int64(at + f.base), nil
}

// attribute reads an attribute of text.
func (f *file) attribute(b []byte) (name, value string, ok bool) {
	r := &reader{b: b}
	version := r.byte()
	r.byte()
	names, types, spaces := int(r.u16()), int(r.u16()), int(r.u16())
	pad := func(n int) int { return n }
	switch version {
	case 1:
		pad = func(n int) int { return (n + 7) &^ 7 }
	case 2:
	case 3:
		r.byte()
	default:
		return "", "", false
	}
	own, kind := r.bytes(pad(names)), &reader{b: r.bytes(pad(types))}
	r.bytes(pad(spaces))
	if r.err != nil || names > len(own) {
		return "", "", false
	}
	name = string(bytes.TrimRight(own[:names], "\x00"))
	head := kind.byte()
	bits := kind.byte()
	kind.bytes(2)
	size := int(kind.u32())
	switch {
	case kind.err != nil || size > maxName:
		return "", "", false
	case head&15 == 3: // of a fixed length
		value = string(bytes.TrimRight(r.bytes(size), "\x00 "))
	case head&15 == 9 && bits&15 == 1: // in the global heap
		n, at, index := r.u32(), r.u64(), r.u32()
		if r.err != nil || n > maxName {
			return "", "", false
		}
		b, err := f.global(at, index)
		if err != nil || int(n) > len(b) {
			return "", "", false
		}
		value = string(b[:n])
	default:
		return "", "", false
	}
	return name, value, r.err == nil && text.Printable(name+value) == name+value
}

// maxGlobal bounds a part of the global heap.
const maxGlobal = 1 << 20

// global reads an object of the global heap.
func (f *file) global(addr uint64, index uint32) ([]byte, error) {
	r, err := f.at(addr, 16)
	if err != nil {
		return nil, err
	}
	sign := string(r.bytes(4))
	r.bytes(4)
	n := r.u64()
	if sign != "GCOL" || n < 16 || n > maxGlobal {
		return nil, errors.New("a heap is damaged")
	}
	if r, err = f.at(addr+16, n-16); err != nil {
		return nil, err
	}
	for r.err == nil && len(r.b) >= 16 {
		own := uint32(r.u16())
		r.bytes(6)
		size := r.u64()
		if size > maxGlobal {
			break
		}
		b := r.bytes(int(size+7) &^ 7)
		if own == index && r.err == nil {
			return b[:size], nil
		}
		if own == 0 {
			break
		}
	}
	return nil, errors.New("not in the heap")
}
