package kern

import (
	"math"
	"unsafe"
)

// A float32 is the sum of three numbers of bfloat16: each part is the rest that those before it leave, rounded. A
// product of float32 in parts sums products of bfloat16: see [Tiles.Terms].
//
// Parts below 2^-126 are 0, and otherwise they sum to the number exactly. So numbers from 2^-103 on keep all bits;
// those below 2^-109 lose the third part, those below 2^-117 the second, and those below 2^-126 all. A number that is
// not finite, or that is so near the largest float32 that its first part is infinite, makes sums that are not finite.

// MostParts is the largest number of parts.
const MostParts = 3

// SplitRows splits rows of width numbers into their parts, float32 with zeros in the lower halves: part p goes to
// p·part bytes behind dst. Strides are in bytes. It writes whole vectors and fills the end of a row with zeros. It sets
// a bit of bad if a first part is not finite.
type SplitRows func(dst, src *float32, rows, width, dstStride, srcStride, part int, bad *uint32)

// InParts returns t for products of float32 in parts, 2 or 3.
func (t *Tiles) InParts(parts int) *Tiles {
	p := *t
	p.Parts = parts
	return &p
}

// Planes is the number of parts of each operand, 1 for bfloat16.
func (t *Tiles) Planes() int { return max(1, t.Parts) }

// Planes is the number of parts of an operand.
func (s *Set) Planes() int {
	if s.Tiles == nil {
		return 1
	}
	return s.Tiles.Planes()
}

// Terms lists the parts of A and of B that are multiplied. The products that are left out are smaller than the rounding
// of float32 with three parts, and than 2^-16 with two. The last one, of the first parts, is the largest: summed behind
// all others, it alone is rounded as coarsely as the result.
func (t *Tiles) Terms() [][2]int { return terms[t.Planes()] }

var terms = [MostParts + 1][][2]int{
	1: {{0, 0}},
	2: {{0, 1}, {1, 0}, {0, 0}},
	3: {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}},
}

// Steps lists the steps of products: step is the number of steps of a part, and at the place of a step in parts a and
// b. The small terms of all steps come first.
func (t *Tiles) Steps(steps int, at func(step, a, b int) TileStep) (list []TileStep) {
	all := t.Terms()
	last := len(all) - 1
	for _, terms := range [][][2]int{all[:last], all[last:]} {
		for i := range steps {
			for _, term := range terms {
				list = append(list, at(i, term[0], term[1]))
			}
		}
	}
	return list
}

// Split returns the parts of x.
func Split(x float32) (parts [MostParts]float32) {
	for i := range parts {
		parts[i] = Round(x)
		x -= parts[i]
	}
	return parts
}

func splitPlain(parts int) SplitRows {
	return func(dst, src *float32, rows, width, dstStride, srcStride, part int, bad *uint32) {
		for r := range rows {
			for i, x := range unsafe.Slice(at(src, r*srcStride), width) {
				list := Split(x)
				if !Finite(list[0]) {
					*bad |= 1
				}
				for p, v := range list[:parts] {
					*at(dst, r*dstStride+4*i+p*part) = v
				}
			}
			for i := width; i%TileWidth != 0; i++ {
				for p := range parts {
					*at(dst, r*dstStride+4*i+p*part) = 0
				}
			}
		}
	}
}

// Finite reports whether x is neither infinite nor NaN.
func Finite(x float32) bool { return math.Float32bits(x)>>23&0xff != 0xff }
