package convert

import "unsafe"

// element is the element type of plain Go; 16-bit elements are widened first.
type element interface{ float32 | float64 }

// of is n elements from p on.
func of[T any](p *byte, n int) []T { return unsafe.Slice((*T)(unsafe.Pointer(p)), n) }

// at is n elements from byte off after p on.
func at[T any](p *byte, off, n int) []T { return of[T]((*byte)(unsafe.Add(unsafe.Pointer(p), off)), n) }

// plain has the kernels in Go. They do not prefetch.
var plain = set{
	Float32:  plainOps[float32](),
	Float64:  plainOps[float64](),
	Float16:  plainOps16(widenHalves, half),
	BFloat16: plainOps16(widenBrains, brain),
}

func plainOps[T element]() ops {
	return ops{
		set:        func(row []float64, v *[5]*byte, _ *[4]uintptr, off int) { widen(row, at[T](v[0], off, len(row))) },
		narrow:     plainNarrow[T],
		narrowPast: plainNarrow[T],
		largest:    plainLargest[T],
		copyLargest: func(top *[8]uint64, dst, x *byte, n int) {
			copy(of[T](dst, n), of[T](x, n))
			plainLargest[T](top, x, n)
		},
	}
}

// plainOps16 widens to float32 first, which is exact.
func plainOps16(single func(dst []float32, src []uint16), f narrow16) ops {
	return ops{
		set: func(row []float64, v *[5]*byte, _ *[4]uintptr, off int) {
			var wide [chunk]float32
			for at := 0; at < len(row); at += chunk {
				part := row[at:min(at+chunk, len(row))]
				single(wide[:len(part)], of[uint16]((*byte)(unsafe.Add(unsafe.Pointer(v[0]), off+2*at)), len(part)))
				widen(part, wide[:len(part)])
			}
		},
		narrow: func(dst *byte, row []float64) int { return f.plain(of[uint16](dst, len(row)), row) },
	}
}

func widen[T element](row []float64, x []T) {
	x = x[:len(row)]
	for i := range row {
		row[i] = float64(x[i])
	}
}

func plainNarrow[T element](dst *byte, row []float64) int {
	to := of[T](dst, len(row))
	for i, v := range row {
		to[i] = T(v)
	}
	return len(row)
}

func plainLargest[T element](top *[8]uint64, x *byte, n int) {
	switch unsafe.Sizeof(*new(T)) {
	case 4:
		m := uint32(0)
		for _, b := range of[uint32](x, n) {
			m = max(m, b&^(1<<31))
		}
		lanes := of[uint32]((*byte)(unsafe.Pointer(top)), 16)
		lanes[0] = max(lanes[0], m)
	case 8:
		for _, b := range of[uint64](x, n) {
			top[0] = max(top[0], b&^(1<<63))
		}
	}
}
