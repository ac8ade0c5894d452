package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// The transforms of Winograd's F(4×4, 3×3) with the points 0, ±a, ±b and ∞, in one dimension. With these points the
// results err by less than with the usual ±1 and ±2, and all numbers of the transforms of activations are exact.
const (
	pointA = 5. / 8
	pointB = 3. / 2

	squareA, squareB = pointA * pointA, pointB * pointB

	// What the polynomials are divided by that are 1 at one of the points, and 0 at the others.
	divide0 = squareA * squareB
	divideA = 2 * squareA * (squareA - squareB)
	divideB = 2 * squareB * (squareB - squareA)
)

// line is a transform of vectors in one dimension.
type line struct {
	in, out int
	numbers []float64
	run     func(m *maths, x []reg.VecPhysical) []reg.VecPhysical // which may take the registers of x
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
}, func(m *maths, x []reg.VecPhysical) []reg.VecPhysical {
	y0 := m.copy(x[4])
	m.add(y0, squareA*squareB, x[0])
	m.subtract(y0, squareA+squareB, x[2])
	m.release(x[0])
	m.add(x[5], squareA*squareB, x[1])
	m.subtract(x[5], squareA+squareB, x[3])
	even, odd := m.copy(x[4]), m.copy(x[3])
	m.subtract(even, squareB, x[2])
	m.subtract(odd, squareB, x[1])
	y1, y2 := m.both(even, pointA, odd)
	m.subtract(x[4], squareA, x[2])
	m.subtract(x[3], squareA, x[1])
	m.release(x[1], x[2])
	y3, y4 := m.both(x[4], pointB, x[3])
	return []reg.VecPhysical{y0, y1, y2, y3, y4, x[5]}
}}

// resultLine is Aᵀ.
var resultLine = line{window, tileResults, []float64{
	pointA, pointB, squareA, squareB, squareA * pointA, squareB * pointB,
}, func(m *maths, x []reg.VecPhysical) []reg.VecPhysical {
	s, d := m.sums(x[1], x[2])
	t, e := m.sums(x[3], x[4])
	VADDPS(s, x[0], x[0])
	VADDPS(t, x[0], x[0])
	y1 := m.times(pointA, d)
	m.add(y1, pointB, e)
	m.scale(s, squareA)
	m.add(s, squareB, t)
	m.add(x[5], squareA*pointA, d)
	m.add(x[5], squareB*pointB, e)
	m.release(d, e, t)
	return []reg.VecPhysical{x[0], y1, s, x[5]}
}}

// gradLine is A.
var gradLine = line{tileResults, window, []float64{
	squareA, squareB, pointA, pointB,
}, func(m *maths, x []reg.VecPhysical) []reg.VecPhysical {
	even, odd := m.copy(x[0]), m.copy(x[1])
	m.add(even, squareA, x[2])
	m.add(odd, squareA, x[3])
	y1, y2 := m.both(even, pointA, odd)
	even = m.copy(x[0])
	m.add(even, squareB, x[2])
	m.add(x[1], squareB, x[3])
	m.release(x[2])
	y3, y4 := m.both(even, pointB, x[1])
	return []reg.VecPhysical{x[0], y1, y2, y3, y4, x[3]}
}}

// weightLine is G.
var weightLine = line{tileTaps, window, []float64{
	1 / divide0, 1 / divideA, 1 / divideB, pointA / divideA, pointB / divideB, squareA / divideA, squareB / divideB,
}, func(m *maths, x []reg.VecPhysical) []reg.VecPhysical {
	even := m.times(1/divideA, x[0])
	m.add(even, squareA/divideA, x[2])
	y1, y2 := m.plusMinus(even, pointA/divideA, x[1])
	even = m.times(1/divideB, x[0])
	m.add(even, squareB/divideB, x[2])
	y3, y4 := m.plusMinus(even, pointB/divideB, x[1])
	m.scale(x[0], 1/divide0)
	m.release(x[1])
	return []reg.VecPhysical{x[0], y1, y2, y3, y4, x[2]}
}}

// weightGradLine is Gᵀ.
var weightGradLine = line{window, tileTaps, []float64{
	1 / divide0, 1 / divideA, 1 / divideB, pointA / divideA, pointB / divideB, squareA / divideA, squareB / divideB,
}, func(m *maths, x []reg.VecPhysical) []reg.VecPhysical {
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
	return []reg.VecPhysical{x[0], d, x[5]}
}}
