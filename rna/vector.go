package rna

import "fmt"

// A Source is a vector that can be read in parts. ReadAt fills dst with the
// elements off, off+1, …, off+len(dst)-1, or fails.
type Source interface {
	Len() int
	ReadAt(dst []float32, off int) error
}

// A Source64 can also be read in float64. A float64 [Space] prefers it; from a
// plain [Source] it widens float32 values.
type Source64 interface {
	Source
	ReadAt64(dst []float64, off int) error
}

// A Sink is a vector that can be written in parts, the mirror image of [Source].
type Sink interface {
	Len() int
	WriteAt(src []float32, off int) error
}

// A Sink64 can also be written in float64. A float64 [Space] prefers it; into a
// plain [Sink] it writes values rounded to float32.
type Sink64 interface {
	Sink
	WriteAt64(src []float64, off int) error
}

// A Point is a vector that can be read and written: [Slice32], [Slice64], or one of a device.
type Point interface {
	Source
	Sink
}

// Float32Memory is implemented by a [Source] or [Sink] that lies in host memory, to save
// a copy. Float32s returns the elements [off, off+n) themselves, or nil when
// they cannot be reached; parts that do not overlap may be used concurrently.
type Float32Memory interface {
	Float32s(off, n int) []float32
}

// Float64Memory is [Float32Memory] for float64 vectors.
type Float64Memory interface {
	Float64s(off, n int) []float64
}

// Slice32 makes a []float32 a [Source] and a [Sink] that share its memory.
type Slice32 []float32

// Slice64 makes a []float64 a [Source64] and a [Sink64] that share its memory.
// Its float32 methods round.
type Slice64 []float64

var (
	_ Source64      = Slice32(nil)
	_ Sink64        = Slice32(nil)
	_ Float32Memory = Slice32(nil)
	_ Source64      = Slice64(nil)
	_ Sink64        = Slice64(nil)
	_ Float64Memory = Slice64(nil)
)

// Len returns the number of elements.
func (s Slice32) Len() int { return len(s) }

// ReadAt copies elements from off on into dst.
func (s Slice32) ReadAt(dst []float32, off int) error { return get(dst, s, off) }

// ReadAt64 copies elements from off on into dst, widened.
func (s Slice32) ReadAt64(dst []float64, off int) error { return get(dst, s, off) }

// WriteAt copies src over the elements from off on.
func (s Slice32) WriteAt(src []float32, off int) error { return put(s, src, off) }

// WriteAt64 copies src, rounded, over the elements from off on.
func (s Slice32) WriteAt64(src []float64, off int) error { return put(s, src, off) }

// Float32s returns the elements [off, off+n), or nil when they are out of range.
func (s Slice32) Float32s(off, n int) []float32 { return part(s, off, n) }

// Len returns the number of elements.
func (s Slice64) Len() int { return len(s) }

// ReadAt copies elements from off on into dst, rounded.
func (s Slice64) ReadAt(dst []float32, off int) error { return get(dst, s, off) }

// ReadAt64 copies elements from off on into dst.
func (s Slice64) ReadAt64(dst []float64, off int) error { return get(dst, s, off) }

// WriteAt copies src, widened, over the elements from off on.
func (s Slice64) WriteAt(src []float32, off int) error { return put(s, src, off) }

// WriteAt64 copies src over the elements from off on.
func (s Slice64) WriteAt64(src []float64, off int) error { return put(s, src, off) }

// Float64s returns the elements [off, off+n), or nil when they are out of range.
func (s Slice64) Float64s(off, n int) []float64 { return part(s, off, n) }

type float interface{ float32 | float64 }

func part[T float](s []T, off, n int) []T {
	if off < 0 || n < 0 || off > len(s)-n {
		return nil
	}
	return s[off : off+n : off+n]
}

func get[D, S float](dst []D, s []S, off int) error {
	from := part(s, off, len(dst))
	if from == nil {
		return rangeError("read", len(s), len(dst), off)
	}
	cast(dst, from)
	return nil
}

func put[D, S float](s []D, src []S, off int) error {
	to := part(s, off, len(src))
	if to == nil {
		return rangeError("write", len(s), len(src), off)
	}
	cast(to, src)
	return nil
}

// cast writes src over dst, which is as long, rounding or widening.
func cast[D, S float](dst []D, src []S) {
	if same, ok := any(src).([]D); ok {
		copy(dst, same)
		return
	}
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = D(v)
	}
}

func rangeError(verb string, length, n, off int) error {
	return fmt.Errorf("rna: %s of %d elements at offset %d of a vector of %d", verb, n, off, length)
}
