package kern

import (
	"math"
	"unsafe"
)

// The tile sizes of AVX-512.
const (
	dotLanes = 16
	dotRows  = 14
)

// PlainNarrow returns bfloat16 kernels with the tiles of AVX-512, in plain Go. They follow the definition of
// AVX512_BF16, with words of two steps, or of one step. They are slow and serve tests, also on processors without the
// instruction.
func PlainNarrow(step int) *Set {
	s := &Set{
		Lanes: dotLanes, Rows: dotRows, Registers: 32,
		Copy: copyPlain, Pack: packPlain, Fetch: fetchNothing, Add: addPlain,
		Narrow: &Narrow{Step: 2, Copy: copyPaired, Stored: storedWith(2), PairRows: pairRowsPlain},
	}
	multiply := Dot
	if step == 1 {
		s.Narrow, multiply = &Narrow{Step: 1, Copy: copyRounded, Stored: storedWith(1)}, dotStep
	}
	for vectors := 1; vectors <= 2; vectors++ {
		s.Products[vectors], s.Sums[vectors] = []Kernel{nil}, []Kernel{nil}
		for rows := 1; rows <= dotRows; rows++ {
			s.Products[vectors] = append(s.Products[vectors], func(a *Args) {
				a.tile(multiply, rows, vectors*dotLanes, 4, func(m int) int { return row(m, a.StepA, a.JumpA) })
			})
			s.Sums[vectors] = append(s.Sums[vectors], func(a *Args) {
				a.tile(multiply, rows, vectors*dotLanes, a.StepA, func(m int) int { return 4 * m })
			})
		}
	}
	return s
}

// row is the offset of row m of a tile.
func row(m, step, jump int) int {
	if m >= Half {
		return jump + (m-Half)*step
	}
	return m * step
}

// at is the element bytes behind p.
func at[T any](p *T, bytes int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), bytes)) }

// tile computes a tile: the words of row m of A begin at rowA(m), stepA apart.
func (a *Args) tile(multiply func(z, x, y float32) float32, rows, columns, stepA int, rowA func(m int) int) {
	for m := range rows {
		for j := range columns {
			sum, b := *at(a.Init, 4*j), 4*j
			for t := range a.Taps {
				for k := range a.Depth {
					x := *at(a.A, *at(a.Offs, 8*t)+rowA(m)+k*stepA)
					sum = multiply(sum, x, *at(a.B, b))
					b += 4 * columns
				}
			}
			c := row(m, a.StepC, a.JumpC) + 4*j
			if *at(a.Mask, 4*j) == 0 {
				continue
			}
			if a.From != nil {
				sum += *at(a.From, c)
			}
			if a.ReLU != 0 && sum < 0 {
				sum = 0
			}
			*at(a.C, c) = sum
		}
	}
}

// Dot is z + x·y for pairs of bfloat16, as VDPBF16PS computes it: first the upper halves, then the lower ones.
func Dot(z, x, y float32) float32 {
	u, v := math.Float32bits(x), math.Float32bits(y)
	z = dotStep(z, math.Float32frombits(u&^0xffff), math.Float32frombits(v&^0xffff))
	return dotStep(z, math.Float32frombits(u<<16), math.Float32frombits(v<<16))
}

// dotStep is z + x·y for factors in bfloat16, rounded once, with numbers below 2^-126 flushed to 0. Rounding to
// float64 first changes nothing: the product has 16 bits, so a sum of more than 53 lies near no tie of float32.
func dotStep(z, x, y float32) float32 {
	return flushed(float32(float64(flushed(x))*float64(flushed(y)) + float64(flushed(z))))
}

// Fused is z + x·y, rounded once.
func Fused(x, y, z float32) float32 {
	a, b := float64(x)*float64(y), float64(z)
	s := a + b
	if math.IsInf(s, 0) {
		return float32(s)
	}
	v := s - a
	if e := a - (s - v) + (b - v); e != 0 && math.Float64bits(s)&1 == 0 { // round to odd: the next rounding sees no tie
		if e > 0 == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

func flushed(x float32) float32 {
	if math.Float32bits(x)>>23&0xff == 0 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// copyWith writes rows of words, one for each step elements, padded with zeros to a whole vector.
func copyWith(dst, src *float32, rows, width, dstStride, srcStride, step int, word func(x []float32) float32) {
	for r := range rows {
		from := unsafe.Slice(at(src, r*srcStride), width)
		words := (width + step - 1) / step
		to := unsafe.Slice(at(dst, r*dstStride), (words+dotLanes-1)/dotLanes*dotLanes)
		for i := range words {
			to[i] = word(from[i*step : min((i+1)*step, width)])
		}
		clear(to[words:])
	}
}

func copyPlain(dst, src *float32, rows, width, dstStride, srcStride int) {
	copyWith(dst, src, rows, width, dstStride, srcStride, 1, func(x []float32) float32 { return x[0] })
}

func copyRounded(dst, src *float32, rows, width, dstStride, srcStride int) {
	copyWith(dst, src, rows, width, dstStride, srcStride, 1, func(x []float32) float32 { return Round(x[0]) })
}

func copyPaired(dst, src *float32, rows, width, dstStride, srcStride int) {
	copyWith(dst, src, rows, width, dstStride, srcStride, 2, func(x []float32) float32 {
		if len(x) == 1 {
			return Round(x[0])
		}
		return pair(x[0], x[1])
	})
}

// storedWith is Copy in plain Go for sources stored as bfloat16.
func storedWith(step int) func(dst *float32, src *uint16, rows, width, dstStride, srcStride int) {
	return func(dst *float32, src *uint16, rows, width, dstStride, srcStride int) {
		for r := range rows {
			from := unsafe.Slice(at(src, r*srcStride), width)
			words := (width + step - 1) / step
			to := unsafe.Slice(at(dst, r*dstStride), (words+dotLanes-1)/dotLanes*dotLanes)
			for i := range words {
				u := uint32(from[i*step]) << 16
				if k := i*step + 1; step == 2 && k < width {
					u |= uint32(from[k])
				}
				to[i] = math.Float32frombits(u)
			}
			clear(to[words:])
		}
	}
}

// pair packs two factors into a word.
func pair(first, second float32) float32 {
	return math.Float32frombits(math.Float32bits(Round(first)) | math.Float32bits(Round(second))>>16)
}

func pairRowsPlain(dst, first, second *float32, rows, width, dstStride, srcStride int) {
	for r := range rows {
		for i := range width {
			*at(dst, r*dstStride+4*i) = pair(*at(first, r*srcStride+4*i), *at(second, r*srcStride+4*i))
		}
	}
}

func packPlain(dst, src *float32, rows, panels, panelStride, srcStride int) {
	const size = 4 * 2 * dotLanes
	for r := range rows {
		for p := range panels {
			copyPlain(at(dst, r*size+p*panelStride), at(src, r*srcStride+p*size), 1, 2*dotLanes, 0, 0)
		}
	}
}

func fetchNothing(*byte, int) {}

func addPlain(dst, src *float32, n int) {
	x, y := unsafe.Slice(dst, n), unsafe.Slice(src, n)
	for i, v := range y {
		x[i] += v
	}
}
