package expr

import "math/bits"

// Random is a leaf of random numbers in [0,1), multiples of 2⁻²⁴ and so exact in float32. They have no state: each is
// a function of the key, of the numbers (step, first) that operand counter holds, an int32 [2], and of the element's
// position. The number of element e of sample n is that of Uniform(key, step, first+n, e), with n the index along the
// first dimension of the result and e = pixel·C + channel, which counts as channels-last layouts do (channel being
// the index along the second dimension, C its extent, and pixel the row-major index along those behind). So it does
// not depend on the device, nor on how samples are split into batches that count on, and a backward pass draws the
// same numbers again.
//
// With perSample, e is 0: all elements of a sample have the same number.
func Random(key uint64, counter int, perSample bool) Expr {
	Arg(counter) // panics if there is none
	return intern(node{kind: KindRandom, bits: key, index: counter, whole: perSample})
}

// Uniform is a random number in [0,1): 2⁻²⁴·⌊w/256⌋ where w is word element mod 4 of Philox's output for the counter
// (⌊element/4⌋, sample, step, 0) and the halves of key, the lower first.
func Uniform(key uint64, step, sample, element uint32) float32 {
	w := Philox([4]uint32{element / 4, sample, step, 0}, [2]uint32{uint32(key), uint32(key >> 32)})
	return float32(w[element%4]>>8) * 0x1p-24
}

// Philox is Philox-4x32-10, the generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
// 3" (2011).
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	c, k := counter, key
	for range 10 {
		h0, l0 := bits.Mul32(0xd2511f53, c[0])
		h1, l1 := bits.Mul32(0xcd9e8d57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0}
		k[0] += 0x9e3779b9
		k[1] += 0xbb67ae85
	}
	return c
}

// Chance is true with probability p, for a Random number u: u < p, p being rounded up to a multiple of 2⁻²⁴ so that
// float32 decides as float64 does. For p ≤ 0 it is false and for p ≥ 1 true.
func Chance(u Expr, p float64) Cond {
	t := Const(ceil24(p))
	if t.is(0) {
		return Cond{Const(0)}
	}
	if t.is(1) {
		return Cond{Const(1)}
	}
	return u.Less(t)
}

// ceil24 rounds p up to a multiple of 2⁻²⁴, from 0 to 1.
func ceil24(p float64) float64 {
	t := float64(int64(min(max(p, 0), 1) * 0x1p24))
	if t*0x1p-24 < p && t < 0x1p24 {
		t++
	}
	return t * 0x1p-24
}
