package kern

import (
	"math"

	"onlinerna/internal/simd"
)

// Narrow describes how a set multiplies bfloat16: A and B consist of words of 32 bits, each of which holds the factors
// of Step steps along the depth, and Depth counts words.
//
// With one step the word is a rounded float32. The product of two is exact, so the sum is rounded step by step as in
// float32. With two steps, the first in the upper half, AVX512_BF16 makes the same sums in the same order. It takes
// numbers below 2^-126 for 0, including sums; apart from that the bits are the same. Words for [Tiles] have the first
// step in the lower half, as it is stored.
type Narrow struct {
	Step  int
	Block int // words of each tap and chunk of channels come in multiples of it; 0 means 1

	// Copy is the Copy of a Set that writes words, each row by itself: a row that ends inside a word is padded with 0, and
	// so is the rest of its last vector.
	Copy func(dst, src *float32, rows, width, dstStride, srcStride int)
	// Stored is Copy for sources stored as bfloat16.
	Stored func(dst *float32, src *uint16, rows, width, dstStride, srcStride int)
	// PairRows, for Step 2, writes rows of words that combine the element of first and the element of second at the same
	// place. Their width is a whole number of vectors, strides are in bytes, and dst may be first.
	PairRows func(dst, first, second *float32, rows, width, dstStride, srcStride int)
}

// ForBFloat16 returns the kernels of a level for products of bfloat16, or nil for plain Go.
func ForBFloat16(l simd.Level) *Set {
	if l == simd.AVX512BF16 {
		return dotSet
	}
	return narrowSets[l.Vectors()]
}

// Words is the number of words for the given steps along the depth. For float32, with n nil, each step is a word.
func (n *Narrow) Words(steps int) int {
	if n == nil {
		return steps
	}
	words, block := (steps+n.Step-1)/n.Step, max(1, n.Block)
	return (words + block - 1) / block * block
}

// Whole rounds a number of steps up to whole words.
func (n *Narrow) Whole(steps int) int {
	if n == nil {
		return steps
	}
	return n.Words(steps) * n.Step
}

// narrow returns s with products of rounded float32.
func (s Set) narrow(
	round func(dst, src *float32, rows, width, dstStride, srcStride int),
	widen func(dst *float32, src *uint16, rows, width, dstStride, srcStride int),
) *Set {
	s.Narrow = &Narrow{Step: 1, Copy: round, Stored: widen}
	return &s
}

// Round rounds x to bfloat16, to nearest, ties to even. Numbers below 2^-126 become 0 with the sign of x.
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
