package kern

import (
	"math"

	"onlinerna/internal/simd"
)

// Narrow is how a set multiplies bfloat16: A and B are of words of 32 bits, which have the factors of Step steps along the
// depth, and Depth counts words.
//
// Of one step the word is a float32 that was rounded. The product of two is exact, so that the sum is rounded as a float32 is,
// step by step. Of two steps, the first one in the upper half, AVX512_BF16 makes the same sums in the same order. It
// takes numbers below 2^-126 for 0, sums too; that apart, the bits are the same.
type Narrow struct {
	Step int

	// Copy is the Copy of a Set with words for what it reads, each row for itself: a row that ends within a word is filled
	// up with 0, and so is the rest of a vector.
	Copy func(dst, src *float32, rows, width, dstStride, srcStride int)
	// Stored is Copy for what is stored as bfloat16.
	Stored func(dst *float32, src *uint16, rows, width, dstStride, srcStride int)
	// PairRows, where Step is 2, writes rows of words: each an element of first and the one of second in its place. Their
	// width is of whole vectors, strides are in bytes, and dst may be first.
	PairRows func(dst, first, second *float32, rows, width, dstStride, srcStride int)
}

// ForBFloat16 is the set of a level for products of bfloat16, or nil where that is plain Go.
func ForBFloat16(l simd.Level) *Set {
	if l.BFloat16() {
		return dotSet
	}
	return narrowSets[l]
}

// Words is how many words so many steps along the depth have; of float32, for which n is nil, each is one.
func (n *Narrow) Words(steps int) int {
	if n == nil {
		return steps
	}
	return (steps + n.Step - 1) / n.Step
}

// Whole is so many steps, filled up to whole words.
func (n *Narrow) Whole(steps int) int {
	if n == nil {
		return steps
	}
	return n.Words(steps) * n.Step
}

// narrow is s for products of rounded float32.
func (s Set) narrow(
	round func(dst, src *float32, rows, width, dstStride, srcStride int),
	widen func(dst *float32, src *uint16, rows, width, dstStride, srcStride int),
) *Set {
	s.Narrow = &Narrow{Step: 1, Copy: round, Stored: widen}
	return &s
}

// Round is x as a bfloat16: rounded to the nearest, ties to even. What is below 2^-126 is 0, with the sign of x.
func Round(x float32) float32 {
	u := math.Float32bits(x)
	switch {
	case x != x:
		u |= 1 << 22
	case u>>23&0xff == 0:
		u &= 1 << 31
	default:
		u += 0x7fff + u>>16&1
	}
	return math.Float32frombits(u &^ 0xffff)
}

// RoundAll rounds the elements of x.
func RoundAll(x []float32) {
	for i, v := range x {
		x[i] = Round(v)
	}
}
