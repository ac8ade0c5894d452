package nn

import (
	"hash/fnv"
	"math"
)

// Random numbers here have no state: number i of a stream is a hash of (stream, i), output i of a SplitMix64
// generator that starts at the stream's number. So each tensor, and each element, can be drawn alone.

// stream numbers the random numbers of a name under a seed.
func stream(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(mix(seed) ^ h.Sum64())
}

// mix is SplitMix64's output function (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// uniform is number i of stream s, in [0,1), a multiple of 2⁻⁵³.
func uniform(s, i uint64) float64 {
	return float64(mix(s+i*0x9e3779b97f4a7c15)>>11) * 0x1p-53
}

// normalPair makes two independent standard normal numbers of numbers i and i+1 by the Box–Muller transform.
func normalPair(s, i uint64) (float64, float64) {
	r := math.Sqrt(-2 * math.Log(1-uniform(s, i)))
	sin, cos := math.Sincos(2 * math.Pi * uniform(s, i+1))
	return r * cos, r * sin
}
