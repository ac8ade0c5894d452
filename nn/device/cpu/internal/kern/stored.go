package kern

import (
	"math"
	"unsafe"

	"onlinerna/internal/simd"
)

// BFloat16 converts between float32 and stored bfloat16, the upper half of a rounded float32.
type BFloat16 struct {
	// Widen converts rows of bfloat16 to float32. Strides are in bytes. It writes whole vectors and fills the end of a row
	// with zeros.
	Widen func(dst *float32, src *uint16, rows, width, dstStride, srcStride int)
	// Narrow converts rows of float32 to bfloat16 as Round does. It writes nothing behind a row.
	Narrow func(dst *uint16, src *float32, rows, width, dstStride, srcStride int)
	Lanes  int
}

// Stored returns the conversions of a level.
func Stored(l simd.Level) *BFloat16 {
	if l.BFloat16() {
		return dotStored
	}
	if s := stored[l.Vectors()]; s != nil {
		return s
	}
	return &plainStored
}

var plainStored = BFloat16{Widen: widenPlain, Narrow: narrowPlain, Lanes: 1}

// Widened converts len(dst) numbers and writes nothing else.
func (b *BFloat16) Widened(dst []float32, src []uint16) {
	n := len(dst)
	_ = src[:n]
	whole := n / b.Lanes * b.Lanes
	if whole > 0 {
		b.Widen(&dst[0], &src[0], 1, whole, 0, 0)
	}
	for i := whole; i < n; i++ {
		dst[i] = Float32(src[i])
	}
}

// Narrowed converts len(src) numbers.
func (b *BFloat16) Narrowed(dst []uint16, src []float32) {
	if n := len(src); n > 0 {
		_ = dst[:n]
		b.Narrow(&dst[0], &src[0], 1, n, 0, 0)
	}
}

// Float32 is the number stored as x.
func Float32(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// Bits is x, rounded, in storage.
func Bits(x float32) uint16 { return uint16(math.Float32bits(Round(x)) >> 16) }

func widenPlain(dst *float32, src *uint16, rows, width, dstStride, srcStride int) {
	for r := range rows {
		to := unsafe.Slice(at(dst, r*dstStride), width)
		for i, v := range unsafe.Slice(at(src, r*srcStride), width) {
			to[i] = Float32(v)
		}
	}
}

func narrowPlain(dst *uint16, src *float32, rows, width, dstStride, srcStride int) {
	for r := range rows {
		to := unsafe.Slice(at(dst, r*dstStride), width)
		for i, v := range unsafe.Slice(at(src, r*srcStride), width) {
			to[i] = Bits(v)
		}
	}
}
