// Package dd computes with pairs of float64, some 106 bits: sums of products, and systems that are positive definite.
package dd

import "math"

// Epsilon is the relative error of an operation, at most about.
const Epsilon = 1.0 / (1 << 51) / (1 << 51)

// A Num is Hi + Lo, where |Lo| is at most half a unit in the last place of Hi.
type Num struct{ Hi, Lo float64 }

// Of returns a.
func Of(a float64) Num { return Num{Hi: a} }

// Float returns a rounded.
func (a Num) Float() float64 { return a.Hi + a.Lo }

// Ldexp returns 2^exp a.
func (a Num) Ldexp(exp int) Num { return Num{math.Ldexp(a.Hi, exp), math.Ldexp(a.Lo, exp)} }

// Sum returns a + b exactly.
func Sum(a, b float64) Num {
	s := a + b
	t := s - a
	return Num{s, (a - (s - t)) + (b - t)}
}

// Product returns ab exactly.
func Product(a, b float64) Num {
	p := float64(a * b) // the conversion prevents fusion with later operations
	return Num{p, math.FMA(a, b, -p)}
}

// fast returns a + b exactly where |a| ≥ |b|.
func fast(a, b float64) Num {
	s := a + b
	return Num{s, b - (s - a)}
}

// Add returns a + b.
func (a Num) Add(b Num) Num {
	s, t := Sum(a.Hi, b.Hi), Sum(a.Lo, b.Lo)
	s = fast(s.Hi, s.Lo+t.Hi)
	return fast(s.Hi, s.Lo+t.Lo)
}

// Neg returns −a.
func (a Num) Neg() Num { return Num{-a.Hi, -a.Lo} }

// Sub returns a − b.
func (a Num) Sub(b Num) Num { return a.Add(b.Neg()) }

// Mul returns ab.
func (a Num) Mul(b Num) Num {
	p := Product(a.Hi, b.Hi)
	return fast(p.Hi, p.Lo+(float64(a.Hi*b.Lo)+float64(a.Lo*b.Hi)))
}

// Div returns a/b.
func (a Num) Div(b Num) Num {
	q := a.Hi / b.Hi
	r := a.Sub(b.Mul(Of(q)))
	q2 := r.Hi / b.Hi
	r = r.Sub(b.Mul(Of(q2)))
	return fast(q, q2).Add(Of(r.Hi / b.Hi))
}

// Sqrt returns √a for a > 0.
func (a Num) Sqrt() Num {
	x := math.Sqrt(a.Hi)
	r := a.Sub(Product(x, x))
	return fast(x, r.Hi/(2*x))
}

// Dot returns Σ (h_i + l_i)(g_i + m_i). Slices have one length; l and m may be nil, for zeros.
func Dot(h, l, g, m []float64) Num {
	const lanes = 4
	var hi, lo [lanes]float64
	i := 0
	for ; i+lanes <= len(h); i += lanes {
		a, b := h[i:i+lanes:i+lanes], g[i:i+lanes:i+lanes]
		for k := range lanes {
			p := float64(a[k] * b[k])
			e := math.FMA(a[k], b[k], -p)
			s := hi[k] + p
			t := s - hi[k]
			lo[k] += ((hi[k] - (s - t)) + (p - t)) + e
			hi[k] = s
		}
	}
	for ; i < len(h); i++ {
		p := Product(h[i], g[i])
		s := Sum(hi[0], p.Hi)
		hi[0] = s.Hi
		lo[0] += s.Lo + p.Lo
	}
	rest := 0.0
	for i, v := range l {
		rest += float64(v * g[i])
	}
	for i, v := range m {
		rest += float64(v * h[i])
	}
	sum := Of(rest)
	for k := range lanes {
		sum = sum.Add(Sum(hi[k], lo[k]))
	}
	return sum
}

// A Matrix is symmetric, and only its lower triangle is kept: row i begins at element i(i+1)/2.
type Matrix []Num

// NewMatrix returns an n×n matrix of zeros.
func NewMatrix(n int) Matrix { return make(Matrix, n*(n+1)/2) }

// At points to the element in row i and column j ≤ i.
func (m Matrix) At(i, j int) *Num { return &m[i*(i+1)/2+j] }

// Cholesky overwrites the n×n matrix with its factor L, LLᵀ = m, and reports whether it is positive definite beyond
// rounding.
func (m Matrix) Cholesky(n int) bool {
	for j := range n {
		d := *m.At(j, j)
		size := d.Hi
		for k := range j {
			v := *m.At(j, k)
			d = d.Sub(v.Mul(v))
		}
		if !(d.Hi > 16*float64(n)*Epsilon*size) {
			return false
		}
		root := d.Sqrt()
		*m.At(j, j) = root
		for i := j + 1; i < n; i++ {
			s := *m.At(i, j)
			for k := range j {
				s = s.Sub(m.At(i, k).Mul(*m.At(j, k)))
			}
			*m.At(i, j) = s.Div(root)
		}
	}
	return true
}

// Solve overwrites b with the solution of LLᵀx = b, for the factor that Cholesky leaves.
func (m Matrix) Solve(b []Num) {
	n := len(b)
	for i := range n {
		for k := range i {
			b[i] = b[i].Sub(m.At(i, k).Mul(b[k]))
		}
		b[i] = b[i].Div(*m.At(i, i))
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			b[i] = b[i].Sub(m.At(k, i).Mul(b[k]))
		}
		b[i] = b[i].Div(*m.At(i, i))
	}
}
