package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"onlinerna/internal/protobuf"
	"onlinerna/nn/op"
)

// Element types of TensorProto.
const (
	typeFloat = 1
	typeInt64 = 7
)

// Types of AttributeProto.
const (
	attributeFloat = 1
	attributeInt   = 2
	attributeInts  = 7
)

// node is a NodeProto, named after its result.
type node struct {
	kind       string
	in         []string
	out, name  string
	attributes []attribute
}

// attribute has a float32, an int or a []int.
type attribute struct {
	name  string
	value any
}

func (n node) encode() []byte {
	var b []byte
	for _, in := range n.in {
		b = protobuf.Bytes(b, 1, in)
	}
	b = protobuf.Bytes(b, 2, n.out)
	b = protobuf.Bytes(b, 3, n.name)
	b = protobuf.Bytes(b, 4, n.kind)
	for _, a := range n.attributes {
		b = protobuf.Bytes(b, 5, a.encode())
	}
	return b
}

func (a attribute) encode() []byte {
	b := protobuf.Bytes(nil, 1, a.name)
	kind := uint64(0)
	switch v := a.value.(type) {
	case float32:
		b, kind = protobuf.Fixed32(b, 2, math.Float32bits(v)), attributeFloat
	case int:
		b, kind = protobuf.Varint(b, 3, uint64(v)), attributeInt
	case []int:
		for _, x := range v {
			b = protobuf.Varint(b, 8, uint64(x))
		}
		kind = attributeInts
	}
	return protobuf.Varint(b, 20, kind)
}

// tensor is a TensorProto: a weight or a constant, whose elements are float32 or int64.
type tensor struct {
	name   string
	shape  op.Shape
	ints   []int                     // elements, or
	floats func() ([]float32, error) // returns the elements
}

// bytes is the size of the elements.
func (t tensor) bytes() int {
	if t.floats == nil {
		return 8 * t.shape.Size()
	}
	return 4 * t.shape.Size()
}

// head encodes all but the elements, which follow.
func (t tensor) head() []byte {
	var b []byte
	for _, d := range t.shape {
		b = protobuf.Varint(b, 1, uint64(d))
	}
	kind := uint64(typeFloat)
	if t.floats == nil {
		kind = typeInt64
	}
	b = protobuf.Varint(b, 2, kind)
	b = protobuf.Bytes(b, 8, t.name)
	return protobuf.Head(b, 9, t.bytes())
}

// write writes the tensor as an initializer of a GraphProto.
func (t tensor) write(w io.Writer) error {
	h := t.head()
	b := append(protobuf.Head(make([]byte, 0, 16+len(h)+t.bytes()), 5, len(h)+t.bytes()), h...)
	for _, x := range t.ints {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	if t.floats != nil {
		list, err := t.floats()
		if err != nil {
			return err
		}
		if len(list) != t.shape.Size() {
			return fmt.Errorf("%s: %d values for the shape %v", t.name, len(list), t.shape)
		}
		for _, x := range list {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	_, err := w.Write(b)
	return err
}
