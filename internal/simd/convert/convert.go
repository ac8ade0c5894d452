package convert

import (
	"math"
	"sync"
	"unsafe"
)

// Widen sets dst to the elements of src. It is exact.
func Widen(dst []float64, src []byte, f Format) {
	k, size := &active[f], f.Size()
	var next [4]uintptr
	if uintptr(unsafe.Pointer(unsafe.SliceData(src)))%uintptr(size) != 0 {
		widenUnaligned(dst, src, f)
		return
	}
	whole := len(dst) / group * group
	for at := 0; at < whole; at += chunk {
		k.set(dst[at:min(at+chunk, whole)], &[5]*byte{address(src, at, size)}, &next, 0)
	}
	if whole < len(dst) {
		var row, rest [group]float64
		copy(bytesOf(rest[:]), src[whole*size:len(dst)*size])
		k.set(row[:], &[5]*byte{(*byte)(unsafe.Pointer(&rest))}, &next, 0)
		copy(dst[whole:], row[:])
	}
}

func widenUnaligned(dst []float64, src []byte, f Format) {
	var aligned [chunk]float64
	for len(dst) > 0 {
		n := min(chunk, len(dst))
		Widen(dst[:n], bytesOf(aligned[:])[:copy(bytesOf(aligned[:]), src[:n*f.Size()])], f)
		dst, src = dst[n:], src[n*f.Size():]
	}
}

// Round rounds src to the elements of dst once, to nearest, ties to even. Numbers beyond the largest finite value
// become infinite. past stores dst past the caches, for a large dst that is not read soon.
func Round(dst []byte, src []float64, f Format, past bool) {
	round(dst, src, f, past)
}

// RoundFinite is Round that returns the index of the first element of dst that is infinite or NaN, or -1 for none.
func RoundFinite(dst []byte, src []float64, f Format) int {
	bad := round(dst, src, f, false)
	if f.Size() == 2 {
		return bad
	}
	_, bad = Largest(nil, dst, f, false)
	return bad
}

func round(dst []byte, src []float64, f Format, past bool) (overflow int) {
	k, size := &active[f], f.Size()
	dst = dst[:len(src)*size]
	overflow = -1
	p := unsafe.SliceData(dst)
	aligned := uintptr(unsafe.Pointer(p))%uintptr(size) == 0
	if past && k.narrowPast != nil && uintptr(unsafe.Pointer(p))%64 == 0 {
		done := k.narrowPast(p, src[:len(src)/group*group])
		dst, src = dst[done*size:], src[done:]
	}
	at := 0
	for at < len(src) {
		if n := (len(src) - at) / group * group; n > 0 && aligned {
			if at += k.narrow(address(dst, at, size), src[at:at+n]); at == len(src) {
				break
			}
		}
		n := min(group, len(src)-at)
		if i := roundOne(dst[at*size:], src[at:at+n], f); i >= 0 && overflow < 0 {
			overflow = at + i
		}
		at += n
	}
	return overflow
}

// roundOne is round, element by element.
func roundOne(dst []byte, src []float64, f Format) (overflow int) {
	overflow = -1
	size := f.Size()
	for i, v := range src {
		var b [8]byte
		finite := true
		switch p := unsafe.Pointer(&b); f {
		case Float32:
			*(*float32)(p) = float32(v)
			finite = !math.IsInf(float64(float32(v)), 0)
		case Float64:
			*(*float64)(p) = v
			finite = !math.IsInf(v, 0)
		case Float16:
			*(*uint16)(p), finite = half.round(v)
		case BFloat16:
			*(*uint16)(p), finite = brain.round(v)
		}
		if copy(dst[i*size:], b[:size]); (!finite || v != v) && overflow < 0 {
			overflow = i
		}
	}
	return overflow
}

// narrow16 is a binary format of 16 bits.
type narrow16 struct {
	fraction uint // its bits
	bias     uint64
	infinity uint16
	normal   float64 // the smallest normal number
	unit     float64 // one over the smallest number
}

var (
	half  = narrow16{fraction: 10, bias: 15, infinity: 0x7c00, normal: 0x1p-14, unit: 0x1p24}
	brain = narrow16{fraction: 7, bias: 127, infinity: 0x7f80, normal: 0x1p-126, unit: 0x1p133}
)

// round rounds v and reports whether the result is finite.
func (f narrow16) round(v float64) (r uint16, finite bool) {
	bits := math.Float64bits(v)
	sign := uint16(bits>>63) << 15
	bits &^= 1 << 63
	if bits < math.Float64bits(f.normal) { // a number that rounds up to the smallest normal one has its bits
		return sign | uint16(math.RoundToEven(math.Float64frombits(bits)*f.unit)), true
	}
	// A carry of the fraction goes into the exponent.
	drop := (52 - f.fraction) & 63
	below := uint64(1)<<(drop-1) - 1
	wide := (bits+below+bits>>drop&1)>>drop - (1023-f.bias)<<(f.fraction&63)
	if wide < uint64(f.infinity) {
		return sign | uint16(wide), true
	}
	r = sign | f.infinity
	if v != v {
		r |= 1 << (f.fraction - 1)
	}
	return r, false
}

// plain rounds src up to the first number that is neither normal nor 0.
func (f narrow16) plain(dst []uint16, src []float64) int {
	drop := (52 - f.fraction) & 63
	below := uint64(1)<<(drop-1) - 1
	rebias := (1023 - f.bias) << (f.fraction & 63)
	infinity, normal := uint64(f.infinity), math.Float64bits(f.normal)
	dst = dst[:len(src)]
	for i, v := range src {
		bits := math.Float64bits(v)
		sign := uint16(bits>>63) << 15
		bits &^= 1 << 63
		r := (bits+below+bits>>drop&1)>>drop - rebias
		if bits < normal || r >= infinity {
			if bits != 0 {
				return i / group * group
			}
			r = 0
		}
		dst[i] = sign | uint16(r)
	}
	return len(src)
}

func widenBrains(dst []float32, src []uint16) {
	for i, b := range src {
		dst[i] = math.Float32frombits(uint32(b) << 16)
	}
}

// halves holds the value of each Float16.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = halfToFloat(uint16(i))
	}
	return t
})

func widenHalves(dst []float32, src []uint16) {
	values := halves()
	for i, h := range src {
		dst[i] = values[h]
	}
}

func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0: // zero or subnormal
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// Largest returns the largest absolute value of the elements of src, float32 or float64, and the index of the first
// element that is NaN or infinite, or -1. It also copies src to dst unless dst is nil; past is as for [Round].
func Largest(dst, src []byte, f Format, past bool) (m float64, bad int) {
	k, size := &active[f], f.Size()
	n := len(src) / size
	whole := n / group * group
	var top [8]uint64
	p := unsafe.SliceData(src)
	switch d := unsafe.SliceData(dst); {
	case uintptr(unsafe.Pointer(p))%uintptr(size) != 0:
		whole = 0
	case dst != nil && past && uintptr(unsafe.Pointer(d))%64 == 0:
		k.copyLargest(&top, d, p, whole)
		copy(dst[whole*size:], src[whole*size:])
		dst = nil
	default:
		k.largest(&top, p, whole)
	}
	if dst != nil {
		copy(dst, src)
	}
	if f == Float32 {
		for _, b := range of[uint32]((*byte)(unsafe.Pointer(&top)), 16) {
			m = max(m, float64(math.Float32frombits(b)))
		}
	} else {
		for _, b := range top {
			m = max(m, math.Float64frombits(b))
		}
	}
	at := whole
	if m-m != 0 { // NaN or infinite
		at = 0
	}
	for ; at < n; at++ {
		v := math.Abs(one(src[at*size:], f))
		if v-v != 0 {
			return m, at
		}
		m = max(m, v)
	}
	return m, -1
}

// one is the first element of b, which need not be aligned.
func one(b []byte, f Format) float64 {
	if f == Float32 {
		var v float32
		copy(of[byte]((*byte)(unsafe.Pointer(&v)), 4), b)
		return float64(v)
	}
	var v float64
	copy(of[byte]((*byte)(unsafe.Pointer(&v)), 8), b)
	return v
}
