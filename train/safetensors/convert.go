package safetensors

import (
	"encoding/binary"
	"fmt"

	"onlinerna/internal/simd/convert"
)

// Size is the number of bytes of an element, 0 for a type that the format does not know.
func (t DType) Size() int { return int(sizes[t]) }

// Format is how the kernels know a floating-point type.
func (t DType) Format() convert.Format {
	switch t {
	case F64:
		return convert.Float64
	case F16:
		return convert.Float16
	case BF16:
		return convert.BFloat16
	}
	return convert.Float32
}

// Swapped says that the machine has another byte order than files.
var Swapped = binary.NativeEndian.Uint16([]byte{1, 0}) != 1

// Swap turns round the bytes of each element of b.
func Swap(b []byte, t DType) {
	size := t.Size()
	for ; len(b) >= size; b = b[size:] {
		for i := range size / 2 {
			b[i], b[size-1-i] = b[size-1-i], b[i]
		}
	}
}

// Decode sets dst to the elements that b holds, little-endian, of a floating-point type. It is exact.
func Decode(dst []float64, b []byte, t DType) error {
	if !t.Float() || len(b) != len(dst)*t.Size() {
		return fmt.Errorf("%d bytes of %s do not hold %d floating-point numbers", len(b), t, len(dst))
	}
	if Swapped {
		b = append([]byte(nil), b...)
		Swap(b, t)
	}
	convert.Widen(dst, b, t.Format())
	return nil
}

// Encode writes src to b, little-endian, as elements of a floating-point type. Each is rounded once, to the
// nearest, ties to even; what exceeds the type's largest finite value becomes infinite. Overflow is the
// first such element, or one that was not finite before, and -1 when there is none.
func Encode(b []byte, src []float64, t DType) (overflow int, err error) {
	if !t.Float() || len(b) != len(src)*t.Size() {
		return -1, fmt.Errorf("%d bytes of %s do not hold %d floating-point numbers", len(b), t, len(src))
	}
	overflow = convert.RoundFinite(b, src, t.Format())
	if Swapped {
		Swap(b, t)
	}
	return overflow, nil
}
