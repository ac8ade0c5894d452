package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"onlinerna/internal/simd/convert"
)

// Size is the number of bytes of an element, 0 for an unknown type.
func (t DType) Size() int { return int(sizes[t]) }

// Format is the kernels' name of a floating-point type.
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

// Number reports whether Decode and Encode support the type: those of Float, and the two 8-bit types.
func (t DType) Number() bool { return t.Float() || t == F8E4M3 || t == F8E5M2 }

// Swapped is true on big-endian machines; files are little-endian.
var Swapped = binary.NativeEndian.Uint16([]byte{1, 0}) != 1

// Swap reverses the bytes of each element of b.
func Swap(b []byte, t DType) {
	size := t.Size()
	for ; len(b) >= size; b = b[size:] {
		for i := range size / 2 {
			b[i], b[size-1-i] = b[size-1-i], b[i]
		}
	}
}

// Decode sets dst to b's little-endian elements of a floating-point type. It is exact.
func Decode(dst []float64, b []byte, t DType) error {
	if values := float8[t]; values != nil && len(b) == len(dst) {
		for i, c := range b {
			dst[i] = values[c]
		}
		return nil
	}
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

// Encode writes src to b as little-endian elements of a floating-point type. Each is rounded once, to the nearest, ties
// to even; values beyond the type's largest finite value become infinite. overflow is the index of the first such
// element, or of one that was not finite before, and -1 if there is none.
func Encode(b []byte, src []float64, t DType) (overflow int, err error) {
	if float8[t] != nil && len(b) == len(src) {
		return encode8(b, src, t), nil
	}
	if !t.Float() || len(b) != len(src)*t.Size() {
		return -1, fmt.Errorf("%d bytes of %s do not hold %d floating-point numbers", len(b), t, len(src))
	}
	overflow = convert.RoundFinite(b, src, t.Format())
	if Swapped {
		Swap(b, t)
	}
	return overflow, nil
}

// float8 are the values of the 8-bit types by code: sign, exponent, mantissa.
var float8 = map[DType]*[256]float64{F8E4M3: values8(4, 3, 0x7e), F8E5M2: values8(5, 2, 0x7b)}

// values8 lists a type's values; the largest finite one has the code last. After it come F8E5M2's infinity, and NaN.
func values8(exponent, mantissa int, last byte) *[256]float64 {
	var v [256]float64
	bias := 1<<(exponent-1) - 1
	for c := range 128 {
		e, m := c>>mantissa, float64(c&(1<<mantissa-1))/float64(int(1)<<mantissa)
		switch {
		case c > int(last) && c == int(last)+1 && exponent == 5:
			v[c] = math.Inf(1)
		case c > int(last):
			v[c] = math.NaN()
		case e == 0:
			v[c] = math.Ldexp(m, 1-bias)
		default:
			v[c] = math.Ldexp(1+m, e-bias)
		}
		v[c|0x80] = -v[c]
	}
	return &v
}

// encode8 rounds to the nearest value, ties to the even code.
func encode8(b []byte, src []float64, t DType) (overflow int) {
	overflow = -1
	mantissa, bias, last := 3, 7, 0x7e
	if t == F8E5M2 {
		mantissa, bias, last = 2, 15, 0x7b
	}
	values := float8[t]
	least := math.Ldexp(1, 1-bias) // the smallest normal number
	unit := 1 / values[1]
	most := values[last] + (values[last]-values[last-1])/2
	shift := 52 - mantissa
	for i, x := range src {
		a := math.Abs(x)
		c := last + 1
		switch {
		case a < least:
			c = int(math.RoundToEven(a * unit))
		case a < most || a == most && last%2 == 0:
			bits := math.Float64bits(a)
			bits += 1<<(shift-1) - 1 + bits>>shift&1
			c = int(bits>>shift) - (1023-bias)<<mantissa
		case overflow < 0:
			overflow = i
		}
		if math.IsNaN(x) {
			c = 0x7f
		}
		if b[i] = byte(c); math.Signbit(x) {
			b[i] |= 0x80
		}
	}
	return overflow
}
