// Package safetensors reads and writes the safetensors format: named tensors and string metadata in
// one file, a JSON header in front of the little-endian data.
//
// Reading checks the whole header before anything else happens: lengths against the size of the file,
// offsets against each other, sizes against shapes. Writing is all or nothing: the data goes to a
// temporary file beside the target, which takes its name when it is complete.
package safetensors

import "fmt"

// DType is an element type, by the name that the format gives it.
type DType string

// The element types whose values can be read; all but F16 and BF16 can be written too. Files may hold tensors of
// every other type of the format whose elements fill whole bytes.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
)

// sizes holds the bytes of an element of every type of the format.
var sizes = map[DType]int64{
	F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4,
	"I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "C64": 8,
}

// Float says whether Float32s and Float64s read the type.
func (t DType) Float() bool { return t == F64 || t == F32 || t == F16 || t == BF16 }

// Integer says whether Int64s reads the type.
func (t DType) Integer() bool { return t == I64 || t == I32 }

// Tensor describes one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int

	off, bytes int64 // within the data section
}

// Len is the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// size computes the number of bytes with checks against overflow and negative extents.
func (t Tensor) size() (int64, error) {
	unit, ok := sizes[t.DType]
	if !ok {
		return 0, fmt.Errorf("tensor %q: unknown element type %q", t.Name, t.DType)
	}
	n := unit
	zero := false
	for _, d := range t.Shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("tensor %q: negative extent in shape %v", t.Name, t.Shape)
		case d == 0:
			zero = true
		case n > (1<<62)/int64(d):
			return 0, fmt.Errorf("tensor %q: shape %v is too large", t.Name, t.Shape)
		default:
			n *= int64(d)
		}
	}
	if zero {
		n = 0
	}
	return n, nil
}
