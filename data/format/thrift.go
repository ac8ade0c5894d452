package format

import (
	"errors"
	"math"
)

// thrift reads the compact protocol of Apache Thrift, in which parquet keeps its metadata. Its allocations are
// bounded by its input. After an error all reads return zero.
type thrift struct {
	b     []byte
	p     int
	depth int
	err   error
}

// Types of values.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt16  = 4
	thriftInt32  = 5
	thriftInt64  = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

var (
	errThrift    = errors.New("its metadata is damaged")
	errThriftEnd = errors.New("its metadata is cut short")
)

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *thrift) byte() byte {
	if t.err != nil || t.p >= len(t.b) {
		t.fail(errThriftEnd)
		return 0
	}
	t.p++
	return t.b[t.p-1]
}

func (t *thrift) uvarint() uint64 {
	v := uint64(0)
	for shift := 0; shift < 64; shift += 7 {
		b := t.byte()
		if v |= uint64(b&0x7f) << shift; b < 0x80 {
			return v
		}
	}
	t.fail(errThrift)
	return 0
}

// integer is a signed number of any width.
func (t *thrift) integer() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thrift) binary() []byte {
	n := t.uvarint()
	if t.err == nil && n > uint64(len(t.b)-t.p) {
		t.fail(errThriftEnd)
	}
	if t.err != nil {
		return nil
	}
	t.p += int(n)
	return t.b[t.p-int(n) : t.p]
}

// structure visits the fields of a struct. field reads the value, or returns false to skip it.
func (t *thrift) structure(field func(id int, kind byte) bool) {
	const deepest = 64
	if t.depth++; t.depth > deepest {
		t.fail(errThrift)
	}
	id := 0
	for t.err == nil {
		head := t.byte()
		kind := head & 15
		if kind == 0 {
			break
		}
		if delta := int(head >> 4); delta > 0 {
			id += delta
		} else {
			id = int(int16(t.integer()))
		}
		if t.err == nil && !field(id, kind) {
			t.skip(kind)
		}
	}
	t.depth--
}

// list visits the elements of a list that has at most the given number of them.
func (t *thrift) list(most uint64, element func(kind byte)) {
	head := t.byte()
	n, kind := uint64(head>>4), head&15
	if n == 15 {
		n = t.uvarint()
	}
	if n > most {
		t.fail(errThrift)
	}
	for ; n > 0 && t.err == nil; n-- {
		element(kind)
	}
}

func (t *thrift) skip(kind byte) {
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftInt16, thriftInt32, thriftInt64:
		t.uvarint()
	case thriftDouble:
		for range 8 {
			t.byte()
		}
	case thriftBinary:
		t.binary()
	case thriftList, thriftSet:
		t.list(math.MaxUint64, t.skipElement)
	case thriftMap:
		n := t.uvarint()
		if n == 0 {
			return
		}
		kinds := t.byte()
		for ; n > 0 && t.err == nil; n-- {
			t.skipElement(kinds >> 4)
			t.skipElement(kinds & 15)
		}
	case thriftStruct:
		t.structure(func(int, byte) bool { return false })
	default:
		t.fail(errThrift)
	}
}

// skipElement skips an element of a container, in which a boolean takes a byte.
func (t *thrift) skipElement(kind byte) {
	if kind == thriftTrue || kind == thriftFalse {
		kind = thriftByte
	}
	t.skip(kind)
}
