package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

// Size is the number of bytes of an element, 0 for a type that the format does not know.
func (t DType) Size() int { return int(sizes[t]) }

// halves holds the value of each F16. Arithmetic on subnormal ones is slow on many processors.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = halfToFloat(uint16(i))
	}
	return t
})

// Decode sets dst to the elements that b holds, little-endian, of a floating-point type. It is exact.
func Decode(dst []float64, b []byte, t DType) error {
	if !t.Float() || len(b) != len(dst)*t.Size() {
		return fmt.Errorf("%d bytes of %s do not hold %d floating-point numbers", len(b), t, len(dst))
	}
	switch t {
	case F32:
		for len(dst) >= 4 && len(b) >= 16 {
			dst[0] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
			dst[1] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4:])))
			dst[2] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[8:])))
			dst[3] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[12:])))
			dst, b = dst[4:], b[16:]
		}
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
	case F64:
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case BF16:
		for len(dst) >= 4 && len(b) >= 8 {
			v := binary.LittleEndian.Uint64(b)
			dst[0] = float64(math.Float32frombits(uint32(v) << 16))
			dst[1] = float64(math.Float32frombits(uint32(v) & 0xffff0000))
			dst[2] = float64(math.Float32frombits(uint32(v>>32) << 16))
			dst[3] = float64(math.Float32frombits(uint32(v>>32) & 0xffff0000))
			dst, b = dst[4:], b[8:]
		}
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16))
		}
	case F16:
		values := halves()
		for len(dst) >= 4 && len(b) >= 8 {
			v := binary.LittleEndian.Uint64(b)
			dst[0] = float64(values[uint16(v)])
			dst[1] = float64(values[uint16(v>>16)])
			dst[2] = float64(values[uint16(v>>32)])
			dst[3] = float64(values[uint16(v>>48)])
			dst, b = dst[4:], b[8:]
		}
		for i := range dst {
			dst[i] = float64(values[binary.LittleEndian.Uint16(b[2*i:])])
		}
	}
	return nil
}

// Encode writes src to b, little-endian, as elements of a floating-point type. Each is rounded once, to the
// nearest, ties to even; what exceeds the type's largest finite value becomes infinite. Overflow is the
// first such element, or one that was not finite before, and -1 when there is none.
func Encode(b []byte, src []float64, t DType) (overflow int, err error) {
	if !t.Float() || len(b) != len(src)*t.Size() {
		return -1, fmt.Errorf("%d bytes of %s do not hold %d floating-point numbers", len(b), t, len(src))
	}
	overflow = -1
	note := func(i int) {
		if overflow < 0 {
			overflow = i
		}
	}
	switch t {
	case F32:
		for i, v := range src {
			f := math.Float32bits(float32(v))
			if f&0x7f800000 == 0x7f800000 {
				note(i)
			}
			binary.LittleEndian.PutUint32(b[4*i:], f)
		}
	case F64:
		for i, v := range src {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				note(i)
			}
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
		}
	case F16, BF16:
		f := half
		if t == BF16 {
			f = brain
		}
		overflow = f.encode(b, src)
	}
	return overflow, nil
}

// narrow is a binary format of 16 bits.
type narrow struct {
	fraction uint // bits of it
	bias     uint64
	infinity uint16
	normal   float64 // the smallest normal number
	unit     float64 // one over the smallest number
}

var (
	half  = narrow{fraction: 10, bias: 15, infinity: 0x7c00, normal: 0x1p-14, unit: 0x1p24}
	brain = narrow{fraction: 7, bias: 127, infinity: 0x7f80, normal: 0x1p-126, unit: 0x1p133}
)

// encode is Encode for the format.
func (f narrow) encode(b []byte, src []float64) (overflow int) {
	overflow = -1
	drop := (52 - f.fraction) & 63
	below := uint64(1)<<(drop-1) - 1
	rebias := (1023 - f.bias) << (f.fraction & 63)
	infinity, normal := uint64(f.infinity), math.Float64bits(f.normal)
	b = b[:2*len(src)]
	for i, v := range src {
		bits := math.Float64bits(v)
		sign := uint16(bits>>63) << 15
		bits &^= 1 << 63
		// A carry of the fraction goes into the exponent.
		r := (bits+below+bits>>drop&1)>>drop - rebias
		if bits < normal { // one that rounds up to the smallest normal number has its bits
			r = uint64(math.RoundToEven(math.Float64frombits(bits) * f.unit))
		} else if r >= infinity {
			r = infinity
			if v != v {
				r |= 1 << (f.fraction - 1)
			}
			if overflow < 0 {
				overflow = i
			}
		}
		binary.LittleEndian.PutUint16(b[2*i:], sign|uint16(r))
	}
	return overflow
}
