// Package kern contains the hot loops of decoding and resampling images: the reference in plain Go, and assembly with
// equal bits. The processor's level (package simd) chooses; AVX-512 has AVX2's kernels, NEON has plain Go.
package kern

import "onlinerna/internal/simd"

//go:generate go run -C ../../../../internal/simd/gen ./imaging

// Set is the kernels of a level.
type Set struct {
	// Block decodes a block of a sequential scan to blk, which is zero: the DC coefficient, which is pred plus its
	// difference, and the others from position k on. k is −1 before the DC coefficient. It returns the end of the
	// block: 63, or EndOfBlock plus the last position; other values are invalid. At a code longer than the table
	// index it returns a value that LongFirst recognises, or ^k for an AC code; the caller decodes that code and
	// calls Block again.
	Block func(r *Bits, first *Firsts, rest *Symbols, blk *[Room]int16, pred *int32, k int) int
	// Skip skips a block as Block decodes it; its result after an end of block is at least EndOfBlock.
	Skip func(r *Bits, first *Firsts, rest *Symbols, runs *Runs, pred *int32, k int) int
	// IDCT writes the 8×8 samples of a block to dst, whose rows are stride apart: libjpeg's accurate integer inverse
	// DCT of coef·quant, both in natural order; products wrap round to 16 bits, sums to 32.
	IDCT func(dst []uint8, stride int, coef, quant *[64]int16)
	// IDCT4 does the same for a block at half its width and height: 4×4 samples.
	IDCT4 func(dst []uint8, stride int, coef, quant *[64]int16)
	// UpsampleH2V1 writes two samples for each of near[first:last]: 3/4 of it and 1/4 of its neighbour.
	UpsampleH2V1 func(out, near []uint8, first, last int)
	// UpsampleH2V2 does the same on sums of 3/4 of the near row and 1/4 of the far one, which is as long.
	UpsampleH2V2 func(out, near, far []uint8, first, last int)
	// YCbCrToRGB is JFIF's conversion with libjpeg's 16-bit fixed point, to interleaved samples.
	YCbCrToRGB func(dst, luma, cb, cr []uint8)
	// Across resamples a row of three interleaved channels.
	Across func(out, in []uint8, f *Filter)
	// Down writes the weighted sum of rows of len(out) bytes, one after the other in `in`. It may read Slack bytes
	// beyond the last one and, where the taps are odd, one more row.
	Down func(out, in []uint8, taps *Taps)
}

// Slack is the number of bytes past the end that Across may read from its input and write to its output, and that Down
// may read.
const Slack = 32

// Precision is the number of fractional bits of coefficients.
const Precision = 22

// For returns the set of a level.
func For(l simd.Level) *Set { return sets[l.Vectors()] }

// Or returns s, or the set of the default level if s is nil.
func Or(s *Set) *Set {
	if s == nil {
		return For(simd.Default())
	}
	return s
}

var plain = &Set{block, skip, idct, idct4, upsampleH2V1, upsampleH2V2, ycbcrToRGB, across, down}

// Grow returns b with length n, its contents undefined.
func Grow[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}
