// Package safetensors reads and writes the safetensors format: named tensors and string metadata in one file, a JSON
// header before the little-endian data.
//
// Reading first checks the whole header: lengths against the size of the file, offsets against each other, sizes
// against shapes. Writing is atomic: the data goes to a temporary file beside the target, which is renamed when it is
// complete.
package safetensors

import "fmt"

// DType is an element type by its name in the format.
type DType string

// The element types whose values can be read; all but F16 and BF16 can be written too. Files may hold tensors of every
// other type of the format whose elements fill whole bytes.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"

	// F8E4M3 has no infinity, like PyTorch's float8_e4m3fn; F8E5M2 is float8_e5m2.
	F8E4M3 DType = "F8_E4M3"
	F8E5M2 DType = "F8_E5M2"
)

// sizes holds the bytes of an element for every type of the format.
var sizes = map[DType]int64{
	F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4,
	"I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
	"C64": 8,
}

// Float reports whether Float32s and Float64s read the type.
func (t DType) Float() bool { return t == F64 || t == F32 || t == F16 || t == BF16 }

// Integer reports whether Int64s reads the type.
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

// Check returns an error for an unknown type and for a shape with negative extents or too many elements.
func Check(t DType, shape []int) error {
	_, err := bytesOf(t, shape)
	return err
}

// size computes the number of bytes, checked against overflow and negative extents.
func (t Tensor) size() (int64, error) {
	n, err := bytesOf(t.DType, t.Shape)
	if err != nil {
		return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return n, nil
}

func bytesOf(t DType, shape []int) (int64, error) {
	n, ok := sizes[t]
	if !ok {
		return 0, fmt.Errorf("unknown element type %q", t)
	}
	zero := false
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("negative extent in shape %v", shape)
		case d == 0:
			zero = true
		case n > (1<<62)/int64(d):
			return 0, fmt.Errorf("shape %v is too large", shape)
		default:
			n *= int64(d)
		}
	}
	if zero {
		n = 0
	}
	return n, nil
}
