package fixedpoint

import "math"

// kernel is exp(−cost/ε) of points on a line, with random masses of both sides.
func kernel(seed uint64, n int, epsilon float64) (k, a, b []float64) {
	r := source(seed)
	x, y := make([]float64, n), make([]float64, n)
	a, b, k = make([]float64, n), make([]float64, n), make([]float64, n*n)
	for i := range n {
		x[i], y[i] = r.Float64(), r.Float64()
		a[i], b[i] = 0.2+r.Float64(), 0.2+r.Float64()
	}
	scale(a, 1/sum(a))
	scale(b, 1/sum(b))
	for i := range n {
		for j := range n {
			k[i*n+j] = math.Exp(-(x[i] - y[j]) * (x[i] - y[j]) / epsilon)
		}
	}
	return k, a, b
}

// sinkhornMap iterates the logarithms of v; power is 1 for balanced transport, below 1 for unbalanced.
func sinkhornMap(k, a, b []float64, power float64) func(dst, x []float64) error {
	n := len(a)
	u, v, w := make([]float64, n), make([]float64, n), make([]float64, n)
	return func(dst, x []float64) error {
		for j := range v {
			v[j] = math.Exp(x[j])
		}
		matVec(u, k, v)
		for i := range u {
			u[i] = math.Pow(a[i]/u[i], power)
		}
		matTVec(w, k, u)
		for j := range w {
			dst[j] = power * math.Log(b[j]/w[j])
		}
		if power == 1 { // potentials are known up to a constant
			mean := sum(dst) / float64(n)
			for j := range dst {
				dst[j] -= mean
			}
		}
		return nil
	}
}

func sinkhorn(seed uint64) Problem {
	k, a, b := kernel(seed, 30, 0.02)
	return Problem{Start: make([]float64, 30), G: sinkhornMap(k, a, b, 1)}
}

func unbalanced(seed uint64) Problem {
	k, a, b := kernel(seed+9, 30, 0.02)
	return Problem{Start: make([]float64, 30), G: sinkhornMap(k, a, b, 0.97)}
}

// balancing scales a positive matrix to be doubly stochastic: logarithms of the column scales.
func balancing(seed uint64) Problem {
	const n = 20
	r := source(seed)
	m := make([]float64, n*n)
	for i := range m {
		m[i] = math.Exp(2.5 * r.NormFloat64())
	}
	one := filled(n, 1)
	return Problem{Start: make([]float64, n), G: sinkhornMap(m, one, one, 1)}
}

// douglasRachford finds a point of a ball and an affine set, as a map of its governing sequence.
func douglasRachford(seed uint64) Problem {
	const n, d = 10, 30
	r := source(seed)
	a := normals(r, n*d)
	b := make([]float64, n)
	inside := normals(r, d)
	scale(inside, 0.995/norm(inside))
	matVec(b, a, inside)
	project := affine(a, b, n, d)
	p := make([]float64, d)
	g := func(dst, x []float64) error {
		copy(p, x)
		if s := norm(p); s > 1 {
			scale(p, 1/s)
		}
		for i := range dst {
			dst[i] = 2*p[i] - x[i]
		}
		project(dst)
		for i := range dst {
			dst[i] += x[i] - p[i]
		}
		return nil
	}
	start := normals(r, d)
	scale(start, 3)
	return Problem{Start: start, G: g}
}

// affine projects onto {x : A x = b}.
func affine(a, b []float64, n, d int) func(x []float64) {
	gram := make([]float64, n*n)
	for i := range n {
		for j := range n {
			for k := range d {
				gram[i*n+j] += a[i*d+k] * a[j*d+k]
			}
		}
	}
	res, m, back := make([]float64, n), make([]float64, n*n), make([]float64, d)
	return func(x []float64) {
		matVec(res, a, x)
		for i := range res {
			res[i] -= b[i]
		}
		copy(m, gram)
		solveSPD(m, res)
		matTVec(back, a, res)
		for i := range x {
			x[i] -= back[i]
		}
	}
}

// alternating projects onto a subspace and the non-negative orthant in turn.
func alternating(seed uint64) Problem {
	const n, d = 15, 40
	r := source(seed)
	a := normals(r, n*d)
	inside := normals(r, d)
	for i := range inside {
		inside[i] = max(inside[i], 0)
	}
	b := make([]float64, n)
	matVec(b, a, inside)
	project := affine(a, b, n, d)
	g := func(dst, x []float64) error {
		copy(dst, x)
		project(dst)
		for i := range dst {
			dst[i] = max(dst[i], 0)
		}
		return nil
	}
	return Problem{Start: normals(r, d), G: g}
}
