package main

import (
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/neon"
)

// The transforms of Winograd's F(4×4, 3×3) with the points 0, ±a, ±b and ∞, in one dimension. With these points the
// errors are smaller than with the usual ±1 and ±2, and all numbers of the transforms of activations are exact.
const (
	pointA = 5. / 8
	pointB = 3. / 2

	squareA, squareB = pointA * pointA, pointB * pointB

	// The divisors of the polynomials that are 1 at one of the points and 0 at the others.
	divide0 = squareA * squareB
	divideA = 2 * squareA * (squareA - squareB)
	divideB = 2 * squareB * (squareB - squareA)
)

// line is a transform of vectors in one dimension, for each kind of registers. It may overwrite the registers of x.
type line struct {
	in, out int
	numbers []float64
	run     func(m arithmetic[reg.VecPhysical], x []reg.VecPhysical) []reg.VecPhysical
	neon    func(m arithmetic[neon.Vec], x []neon.Vec) []neon.Vec
}

// arithmetic has the operations of the transforms.
type arithmetic[V any] interface {
	copy(x V) V
	release(x ...V)               // frees registers
	add(y V, v float64, x V)      // y = y + v·x
	subtract(y V, v float64, x V) // y = y − v·x
	plus(y, x V)                  // y = y + x
	times(v float64, x V) V       // v·x
	scale(x V, v float64)         // x = v·x
	sums(x, y V) (sum, difference V)
}

// plusMinus is x + v·y and x − v·y, the latter in x.
func plusMinus[V any](m arithmetic[V], x V, v float64, y V) (plus, minus V) {
	plus = m.copy(x)
	m.add(plus, v, y)
	m.subtract(x, v, y)
	return plus, x
}

// both is plusMinus that frees y.
func both[V any](m arithmetic[V], x V, v float64, y V) (plus, minus V) {
	plus, minus = plusMinus(m, x, v, y)
	m.release(y)
	return plus, minus
}

// The number of values that a tile has in one dimension, in the plain and in the transformed domain.
const (
	window      = 6 // of the source, and transformed
	tileResults = 4
	tileTaps    = 3
)

// sourceLine is Bᵀ.
var sourceLine = line{window, window, []float64{
	squareA * squareB, squareA + squareB, squareA, squareB, pointA, pointB,
}, source[reg.VecPhysical], source[neon.Vec]}

func source[V any](m arithmetic[V], x []V) []V {
	y0 := m.copy(x[4])
	m.add(y0, squareA*squareB, x[0])
	m.subtract(y0, squareA+squareB, x[2])
	m.release(x[0])
	m.add(x[5], squareA*squareB, x[1])
	m.subtract(x[5], squareA+squareB, x[3])
	even, odd := m.copy(x[4]), m.copy(x[3])
	m.subtract(even, squareB, x[2])
	m.subtract(odd, squareB, x[1])
	y1, y2 := both(m, even, pointA, odd)
	m.subtract(x[4], squareA, x[2])
	m.subtract(x[3], squareA, x[1])
	m.release(x[1], x[2])
	y3, y4 := both(m, x[4], pointB, x[3])
	return []V{y0, y1, y2, y3, y4, x[5]}
}

// resultLine is Aᵀ.
var resultLine = line{window, tileResults, []float64{
	pointA, pointB, squareA, squareB, squareA * pointA, squareB * pointB,
}, result[reg.VecPhysical], result[neon.Vec]}

func result[V any](m arithmetic[V], x []V) []V {
	s, d := m.sums(x[1], x[2])
	t, e := m.sums(x[3], x[4])
	m.plus(x[0], s)
	m.plus(x[0], t)
	y1 := m.times(pointA, d)
	m.add(y1, pointB, e)
	m.scale(s, squareA)
	m.add(s, squareB, t)
	m.add(x[5], squareA*pointA, d)
	m.add(x[5], squareB*pointB, e)
	m.release(d, e, t)
	return []V{x[0], y1, s, x[5]}
}

// gradLine is A.
var gradLine = line{tileResults, window, []float64{
	squareA, squareB, pointA, pointB,
}, grad[reg.VecPhysical], grad[neon.Vec]}

func grad[V any](m arithmetic[V], x []V) []V {
	even, odd := m.copy(x[0]), m.copy(x[1])
	m.add(even, squareA, x[2])
	m.add(odd, squareA, x[3])
	y1, y2 := both(m, even, pointA, odd)
	even = m.copy(x[0])
	m.add(even, squareB, x[2])
	m.add(x[1], squareB, x[3])
	m.release(x[2])
	y3, y4 := both(m, even, pointB, x[1])
	return []V{x[0], y1, y2, y3, y4, x[3]}
}

// weightLine is G.
var weightLine = line{tileTaps, window, []float64{
	1 / divide0, 1 / divideA, 1 / divideB, pointA / divideA, pointB / divideB, squareA / divideA, squareB / divideB,
}, weight[reg.VecPhysical], weight[neon.Vec]}

func weight[V any](m arithmetic[V], x []V) []V {
	even := m.times(1/divideA, x[0])
	m.add(even, squareA/divideA, x[2])
	y1, y2 := plusMinus(m, even, pointA/divideA, x[1])
	even = m.times(1/divideB, x[0])
	m.add(even, squareB/divideB, x[2])
	y3, y4 := plusMinus(m, even, pointB/divideB, x[1])
	m.scale(x[0], 1/divide0)
	m.release(x[1])
	return []V{x[0], y1, y2, y3, y4, x[2]}
}

// weightGradLine is Gᵀ.
var weightGradLine = line{window, tileTaps, []float64{
	1 / divide0, 1 / divideA, 1 / divideB, pointA / divideA, pointB / divideB, squareA / divideA, squareB / divideB,
}, weightGrad[reg.VecPhysical], weightGrad[neon.Vec]}

func weightGrad[V any](m arithmetic[V], x []V) []V {
	s, d := m.sums(x[1], x[2])
	t, e := m.sums(x[3], x[4])
	m.scale(x[0], 1/divide0)
	m.add(x[0], 1/divideA, s)
	m.add(x[0], 1/divideB, t)
	m.scale(d, pointA/divideA)
	m.add(d, pointB/divideB, e)
	m.add(x[5], squareA/divideA, s)
	m.add(x[5], squareB/divideB, t)
	m.release(s, t, e)
	return []V{x[0], d, x[5]}
}
