package convex

import (
	"math"

	"onlinerna/rna/convex/internal/kern"
)

// codes are a dense matrix whose values are integers times a step for each column, such as counts or measurements
// with few digits, also after scaling to [0, 1]. Codes take a quarter of the memory, and decode to the same bits.
type codes struct {
	values []uint16 // as package kern encodes them
	stride int
	steps  []float64
}

const (
	mostCode    = math.MaxInt16
	mostDivisor = math.MaxInt16
)

// coded returns the codes of a matrix that is large enough to gain by them, or nil if it has none.
func (m *Matrix) coded() *codes {
	if m.index != nil || m.d < kern.CodeBlock || m.NonZeros() < serialWork {
		return nil
	}
	m.encoded.Do(func() { m.codes = m.encode() })
	return m.codes
}

func (m *Matrix) encode() *codes {
	divisors := make([]float64, m.d)
	for j := range divisors {
		divisors[j] = 1
	}
	for i := range m.n {
		_, row := m.Row(i)
		for j, v := range row {
			if k := math.RoundToEven(v * divisors[j]); k/divisors[j] == v && math.Abs(k) <= mostCode {
				continue
			}
			d := multiple(divisors[j], denominator(v))
			if k := math.RoundToEven(v * d); d == 0 || k/d != v || math.Abs(k) > mostCode {
				return nil
			}
			divisors[j] = d
		}
	}
	c := &codes{stride: (m.d + kern.CodeBlock - 1) / kern.CodeBlock * kern.CodeBlock, steps: make([]float64, m.d)}
	c.values = make([]uint16, m.n*c.stride)
	for i := range m.n {
		_, row := m.Row(i)
		to := c.values[i*c.stride : (i+1)*c.stride]
		for j := range to {
			kern.Encode(to, j, 0)
		}
		for j, v := range row {
			// Divisors have grown since the first rows were looked at.
			k := math.RoundToEven(v * divisors[j])
			if k/divisors[j] != v || math.Abs(k) > mostCode {
				return nil
			}
			kern.Encode(to, j, int16(k))
		}
	}
	for j, d := range divisors {
		c.steps[j] = 1 / d
	}
	return c
}

// denominator returns the least q for which v is p/q, rounded, for some integer p; 0 when it is too large. It is the
// denominator of a convergent of v's continued fraction.
func denominator(v float64) float64 {
	x := math.Abs(v)
	if !(x <= mostCode) {
		return 0
	}
	before, q := 0.0, 1.0
	for rest := x; q <= mostDivisor; {
		if math.RoundToEven(x*q)/q == x {
			return q
		}
		if rest -= math.Floor(rest); rest == 0 {
			break
		}
		rest = 1 / rest
		before, q = q, math.Floor(rest)*q+before
	}
	return 0
}

// multiple returns the least common multiple, or 0 when that is too large.
func multiple(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	x, y := a, b
	for y != 0 {
		x, y = y, math.Mod(x, y)
	}
	if m := a / x * b; m <= mostDivisor {
		return m
	}
	return 0
}
