package onnx

import (
	"encoding/binary"
	"math"
	"testing"

	"onlinerna/nn/op"
)

// field is one of a message: a number, or bytes.
type field struct {
	tag   int
	n     uint64
	bytes []byte
}

// fields takes a message apart.
func fields(t *testing.T, b []byte) (list []field) {
	t.Helper()
	varint := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatalf("no number at the start of % x", b[:min(len(b), 20)])
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		head := varint()
		f := field{tag: int(head >> 3)}
		switch head & 7 {
		case 0:
			f.n = varint()
		case 2:
			n := varint()
			if n > uint64(len(b)) {
				t.Fatalf("field %d has %d bytes of %d", f.tag, n, len(b))
			}
			f.bytes, b = b[:n], b[n:]
		case 5:
			f.n, b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		default:
			t.Fatalf("field %d is of wire type %d", f.tag, head&7)
		}
		list = append(list, f)
	}
	return list
}

// onnxFile is the content of a file.
type onnxFile struct {
	ir, opset uint64
	metadata  map[string]string
	name      string
	nodes     []node
	tensors   map[string]op.Tensor // float32
	integers  map[string][]int
	inputs    []valueInfo
	output    valueInfo
}

type valueInfo struct {
	name string
	dims []any // int or string
}

func decode(t *testing.T, b []byte) (m onnxFile) {
	t.Helper()
	m.metadata, m.tensors, m.integers = map[string]string{}, map[string]op.Tensor{}, map[string][]int{}
	for _, f := range fields(t, b) {
		switch f.tag {
		case 1:
			m.ir = f.n
		case 7:
			m.graph(t, f.bytes)
		case 8:
			m.opset = fields(t, f.bytes)[1].n
		case 14:
			e := fields(t, f.bytes)
			m.metadata[string(e[0].bytes)] = string(e[1].bytes)
		}
	}
	return m
}

func (m *onnxFile) graph(t *testing.T, b []byte) {
	for _, f := range fields(t, b) {
		switch f.tag {
		case 1:
			m.nodes = append(m.nodes, decodeNode(t, f.bytes))
		case 2:
			m.name = string(f.bytes)
		case 5:
			m.tensor(t, f.bytes)
		case 11:
			m.inputs = append(m.inputs, decodeInfo(t, f.bytes))
		case 12:
			m.output = decodeInfo(t, f.bytes)
		}
	}
}

func decodeNode(t *testing.T, b []byte) (n node) {
	for _, f := range fields(t, b) {
		switch f.tag {
		case 1:
			n.in = append(n.in, string(f.bytes))
		case 2:
			n.out = string(f.bytes)
		case 3:
			n.name = string(f.bytes)
		case 4:
			n.kind = string(f.bytes)
		case 5:
			a, kind := attribute{}, uint64(0)
			var ints []int
			for _, f := range fields(t, f.bytes) {
				switch f.tag {
				case 1:
					a.name = string(f.bytes)
				case 2:
					a.value = math.Float32frombits(uint32(f.n))
				case 3:
					a.value = int(f.n)
				case 8:
					ints = append(ints, int(f.n))
				case 20:
					kind = f.n
				}
			}
			if kind == attributeInts {
				a.value = ints
			}
			n.attributes = append(n.attributes, a)
		}
	}
	return n
}

func (m *onnxFile) tensor(t *testing.T, b []byte) {
	shape, kind, name := op.Shape{}, uint64(0), ""
	for _, f := range fields(t, b) {
		switch f.tag {
		case 1:
			shape = append(shape, int(f.n))
		case 2:
			kind = f.n
		case 8:
			name = string(f.bytes)
		case 9:
			switch {
			case kind == typeFloat && len(f.bytes) == 4*shape.Size():
				x := make([]float32, shape.Size())
				for i := range x {
					x[i] = math.Float32frombits(binary.LittleEndian.Uint32(f.bytes[4*i:]))
				}
				m.tensors[name] = op.Tensor{Shape: shape, Data: x}
			case kind == typeInt64 && len(shape) == 1 && len(f.bytes) == 8*shape[0]:
				x := make([]int, shape[0])
				for i := range x {
					x[i] = int(binary.LittleEndian.Uint64(f.bytes[8*i:]))
				}
				m.integers[name] = x
			default:
				t.Fatalf("tensor %s: %d bytes of type %d for shape %v", name, len(f.bytes), kind, shape)
			}
		}
	}
}

func decodeInfo(t *testing.T, b []byte) (v valueInfo) {
	for _, f := range fields(t, b) {
		switch f.tag {
		case 1:
			v.name = string(f.bytes)
		case 2:
			tensor := fields(t, fields(t, f.bytes)[0].bytes)
			if tensor[0].n != typeFloat {
				t.Errorf("%s is of type %d", v.name, tensor[0].n)
			}
			for _, d := range fields(t, tensor[1].bytes) {
				d := fields(t, d.bytes)[0]
				if d.bytes != nil {
					v.dims = append(v.dims, string(d.bytes))
				} else {
					v.dims = append(v.dims, int(d.n))
				}
			}
		}
	}
	return v
}
