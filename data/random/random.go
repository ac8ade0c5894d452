// Package random is the source of randomness for images: their order, their augmentation and the generated glyphs.
package random

import "math/bits"

// Rand is a counter-based source of randomness: number k of the source with the given key words is
// a function of the words and of k alone, the finaliser of splitmix64 applied to key + k·γ. Any
// source can be made anywhere, in any order, without state that would have to be saved.
type Rand struct {
	state uint64
}

// The splitmix64 increment: 2⁶⁴ divided by the golden ratio.
const gamma = 0x9e3779b97f4a7c15

// New returns the source that belongs to the words, such as (seed, stream, epoch, index). Each
// word passes through the mixer, so neighbouring words give unrelated sources.
func New(words ...uint64) Rand {
	h := uint64(len(words))
	for _, w := range words {
		h = Mix(h + gamma ^ Mix(w+gamma))
	}
	return Rand{h}
}

// Mix is the finaliser of splitmix64: a bijection that spreads every bit over all.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	r.state += gamma
	return Mix(r.state)
}

// Float64 returns a number in [0, 1), a multiple of 2⁻⁵³.
func (r *Rand) Float64() float64 {
	return float64(r.Uint64()>>11) * (1.0 / (1 << 53))
}

// Uniform returns a number in [lo, hi).
func (r *Rand) Uniform(lo, hi float64) float64 {
	return lo + float64((hi-lo)*r.Float64()) // the conversion keeps the sum from being fused
}

// IntN returns an integer in [0, n), for n > 0.
func (r *Rand) IntN(n int) int {
	hi, lo := bits.Mul64(r.Uint64(), uint64(n))
	if lo < uint64(n) { // Lemire's rejection, so that every value is as likely
		for least := -uint64(n) % uint64(n); lo < least; {
			hi, lo = bits.Mul64(r.Uint64(), uint64(n))
		}
	}
	return int(hi)
}

// Normal returns a number of mean 0 and variance 1: the centred sum of twelve uniform ones. It is
// made of integers, so it is the same on every platform; it stays within ±6.
func (r *Rand) Normal() float64 {
	const lanes = 0x0000ffff0000ffff
	var sum uint64
	for range 3 {
		u := r.Uint64()
		sum += u&lanes + u>>16&lanes // two pairs of 16-bit lanes
	}
	total := sum&0xffffffff + sum>>32
	return (float64(total) - 12*65535/2) / 65536
}

// Perm fills p with a random permutation of 0, …, len(p)-1 (Fisher and Yates).
func (r *Rand) Perm(p []int32) {
	for i := range p {
		j := r.IntN(i + 1)
		p[i] = p[j]
		p[j] = int32(i)
	}
}
