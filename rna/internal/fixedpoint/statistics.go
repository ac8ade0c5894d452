package fixedpoint

import "math"

// regression is a random design with correlated columns, and a response.
func regression(seed uint64, n, d int, correlation float64) (a, b []float64) {
	r := source(seed)
	a, b = make([]float64, n*d), make([]float64, n)
	truth := normals(r, d)
	for j := range truth {
		if j%3 != 0 {
			truth[j] = 0
		}
	}
	for i := range n {
		common := r.NormFloat64()
		for j := range d {
			a[i*d+j] = correlation*common + r.NormFloat64()
		}
	}
	matVec(b, a, truth)
	for i := range b {
		b[i] += r.NormFloat64()
	}
	return a, b
}

// solveSPD solves A x = b in place by Cholesky's factors; A is d×d and lost.
func solveSPD(a, b []float64) {
	d := len(b)
	for j := range d {
		for k := range j {
			for i := j; i < d; i++ {
				a[i*d+j] -= a[i*d+k] * a[j*d+k]
			}
		}
		s := math.Sqrt(max(a[j*d+j], 1e-300))
		for i := j; i < d; i++ {
			a[i*d+j] /= s
		}
	}
	for i := range d {
		for k := range i {
			b[i] -= a[i*d+k] * b[k]
		}
		b[i] /= a[i*d+i]
	}
	for i := d - 1; i >= 0; i-- {
		for k := i + 1; k < d; k++ {
			b[i] -= a[k*d+i] * b[k]
		}
		b[i] /= a[i*d+i]
	}
}

// leastAbsolute is iteratively reweighted least squares for absolute deviations, smoothed at 1e-3.
func leastAbsolute(seed uint64) Problem {
	const n, d = 80, 6
	a, b := regression(seed, n, d, 0.5)
	res, m := make([]float64, n), make([]float64, d*d)
	g := func(dst, x []float64) error {
		matVec(res, a, x)
		clear(m)
		clear(dst)
		for i := range n {
			e := res[i] - b[i]
			w := 1 / math.Sqrt(e*e+1e-3)
			row := a[i*d : (i+1)*d]
			for j := range d {
				dst[j] += w * row[j] * b[i]
				for k := range d {
					m[j*d+k] += w * row[j] * row[k]
				}
			}
		}
		solveSPD(m, dst)
		return nil
	}
	return Problem{Start: make([]float64, d), G: g}
}

// logisticData are labels ±1 that a linear model gives with noise; rows are multiplied by their labels.
func logisticData(seed uint64, n, d int) []float64 {
	r := source(seed)
	a := normals(r, n*d)
	truth := normals(r, d)
	for i := range n {
		s := 0.0
		for j := range d {
			a[i*d+j] *= math.Pow(0.8, float64(j))
			s += a[i*d+j] * truth[j]
		}
		if s+r.NormFloat64() < 0 {
			scale(a[i*d:(i+1)*d], -1)
		}
	}
	return a
}

// logisticMM is Böhning and Lindsay's bound: x + 4 (AᵀA + μ)⁻¹ times the negative gradient.
func logisticMM(seed uint64) Problem {
	const n, d, mu = 100, 8, 1e-3
	a := logisticData(seed, n, d)
	var bound [d * d]float64
	for i := range n {
		for j := range d {
			for k := range d {
				bound[j*d+k] += a[i*d+j] * a[i*d+k] / 4
			}
		}
	}
	for j := range d {
		bound[j*d+j] += mu
	}
	margin, weights := make([]float64, n), make([]float64, n)
	g := func(dst, x []float64) error {
		matVec(margin, a, x)
		for i, v := range margin {
			weights[i] = 1 / (1 + math.Exp(v))
		}
		matTVec(dst, a, weights)
		for j := range dst {
			dst[j] -= mu * x[j]
		}
		m := bound
		solveSPD(m[:], dst)
		for j := range dst {
			dst[j] += x[j]
		}
		return nil
	}
	return Problem{Start: make([]float64, d), G: g}
}

// logisticGradient is gradient descent with the step 1/L.
func logisticGradient(seed uint64) Problem {
	const n, d, mu = 100, 20, 1e-3
	a := logisticData(seed, n, d)
	step := 1 / (normSquared(a, n, d)/4 + mu*n)
	margin, weights := make([]float64, n), make([]float64, n)
	g := func(dst, x []float64) error {
		matVec(margin, a, x)
		for i, v := range margin {
			weights[i] = 1 / (1 + math.Exp(v))
		}
		matTVec(dst, a, weights)
		for j := range dst {
			dst[j] = x[j] + step*(dst[j]-mu*n*x[j])
		}
		return nil
	}
	return Problem{Start: make([]float64, d), G: g}
}

// bradleyTerry is the MM algorithm for players' skills, from a table of wins; skills have the mean 1.
func bradleyTerry(seed uint64) Problem {
	const n = 12
	r := source(seed)
	wins := make([]float64, n*n)
	for i := range n {
		for j := range n {
			near := i-j <= 2 && j-i <= 2
			if i != j && near {
				wins[i*n+j] = float64(1 + r.IntN(6))
			}
		}
	}
	g := func(dst, x []float64) error {
		for i := range n {
			w, s := 0.0, 0.0
			for j := range n {
				if games := wins[i*n+j] + wins[j*n+i]; games > 0 {
					w += wins[i*n+j]
					s += games / (x[i] + x[j])
				}
			}
			dst[i] = w / s
		}
		scale(dst, n/sum(dst))
		return nil
	}
	return Problem{Start: filled(n, 1), G: g, Accept: positive}
}

func ista(seed uint64) Problem {
	const n, d = 60, 100
	a, b := regression(seed, n, d, 0.7)
	l := normSquared(a, n, d)
	res := make([]float64, n)
	g := func(dst, x []float64) error {
		matVec(res, a, x)
		for i := range res {
			res[i] -= b[i]
		}
		matTVec(dst, a, res)
		for j := range dst {
			dst[j] = soft(x[j]-dst[j]/l, 20/l)
		}
		return nil
	}
	return Problem{Start: make([]float64, d), G: g}
}

func nonNegative(seed uint64) Problem {
	const n, d = 60, 30
	a, b := regression(seed, n, d, 0.7)
	l := normSquared(a, n, d)
	res := make([]float64, n)
	g := func(dst, x []float64) error {
		matVec(res, a, x)
		for i := range res {
			res[i] -= b[i]
		}
		matTVec(dst, a, res)
		for j := range dst {
			dst[j] = max(x[j]-dst[j]/l, 0)
		}
		return nil
	}
	return Problem{Start: make([]float64, d), G: g}
}

// quadratic has curvatures from 1e-3 to 1.
func quadratic(seed uint64) Problem {
	const d = 50
	r := source(seed)
	start := normals(r, d)
	g := func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = v - math.Pow(10, -3*float64(i)/(d-1))*(v-1)
		}
		return nil
	}
	return Problem{Start: start, G: g}
}

// admm is ADMM of the lasso, as a map of z and u.
func admm(seed uint64) Problem {
	const n, d, rho, lambda = 40, 30, 5.0, 10.0
	a, b := regression(seed, n, d, 0.5)
	var gram [d * d]float64
	ab := make([]float64, d)
	matTVec(ab, a, b)
	for i := range n {
		for j := range d {
			for k := range d {
				gram[j*d+k] += a[i*d+j] * a[i*d+k]
			}
		}
	}
	for j := range d {
		gram[j*d+j] += rho
	}
	x := make([]float64, d)
	g := func(dst, v []float64) error {
		z, u := v[:d], v[d:]
		for j := range d {
			x[j] = ab[j] + rho*(z[j]-u[j])
		}
		m := gram
		solveSPD(m[:], x)
		for j := range d {
			dst[j] = soft(x[j]+u[j], lambda/rho)
			dst[d+j] = u[j] + x[j] - dst[j]
		}
		return nil
	}
	return Problem{Start: make([]float64, 2*d), G: g}
}

// beliefPropagation is loopy sum-product on a torus of ±1 spins: messages as log ratios.
func beliefPropagation(seed uint64) Problem {
	const n = 5
	r := source(seed)
	field, coupling := normals(r, n*n), normals(r, 2*n*n)
	scale(field, 0.3)
	scale(coupling, 0.45)
	// message 4·v + k goes from site v in direction k: right, down, left, up.
	next := func(v, k int) int {
		i, j := v/n, v%n
		switch k {
		case 0:
			j = (j + 1) % n
		case 1:
			i = (i + 1) % n
		case 2:
			j = (j + n - 1) % n
		default:
			i = (i + n - 1) % n
		}
		return i*n + j
	}
	weight := func(v, k int) float64 {
		if k < 2 {
			return coupling[2*v+k]
		}
		return coupling[2*next(v, k)+k-2]
	}
	g := func(dst, x []float64) error {
		for v := range n * n {
			total := field[v]
			for k := range 4 {
				total += x[4*next(v, k)+(k+2)%4]
			}
			for k := range 4 {
				h := total - x[4*next(v, k)+(k+2)%4]
				dst[4*v+k] = math.Atanh(math.Tanh(weight(v, k)) * math.Tanh(h))
			}
		}
		return nil
	}
	return Problem{Start: make([]float64, 4*n*n), G: g}
}

// nmf is multiplicative updates of W and H for a 12×10 matrix of rank 3 with noise. H's rows have the sum 1.
func nmf(seed uint64) Problem {
	const m, n, k = 12, 10, 3
	r := source(seed)
	v := make([]float64, m*n)
	w0, h0 := make([]float64, m*k), make([]float64, k*n)
	for i := range w0 {
		w0[i] = r.ExpFloat64()
	}
	for i := range h0 {
		h0[i] = r.ExpFloat64()
	}
	for i := range m {
		for j := range n {
			for a := range k {
				v[i*n+j] += w0[i*k+a] * h0[a*n+j]
			}
			v[i*n+j] += 0.1 * r.Float64()
		}
	}
	start := make([]float64, m*k+k*n)
	for i := range start {
		start[i] = 0.5 + r.Float64()
	}
	g := func(dst, x []float64) error {
		w, h := dst[:m*k], dst[m*k:]
		copy(dst, x)
		ratio := func() []float64 {
			q := make([]float64, m*n)
			for i := range m {
				for j := range n {
					s := 1e-12
					for a := range k {
						s += w[i*k+a] * h[a*n+j]
					}
					q[i*n+j] = v[i*n+j] / s
				}
			}
			return q
		}
		q := ratio()
		for a := range k {
			total := sum(h[a*n : (a+1)*n])
			for i := range m {
				s := 0.0
				for j := range n {
					s += q[i*n+j] * h[a*n+j]
				}
				w[i*k+a] *= s / max(total, 1e-12)
			}
		}
		q = ratio()
		for a := range k {
			total := 0.0
			for i := range m {
				total += w[i*k+a]
			}
			row := h[a*n : (a+1)*n]
			for j := range n {
				s := 0.0
				for i := range m {
					s += q[i*n+j] * w[i*k+a]
				}
				row[j] *= s / max(total, 1e-12)
			}
			s := sum(row)
			scale(row, 1/s)
			for i := range m {
				w[i*k+a] *= s
			}
		}
		return nil
	}
	accept := func(x []float64) bool {
		for _, v := range x {
			if !(v >= 0) {
				return false
			}
		}
		return true
	}
	return Problem{Start: start, G: g, Accept: accept}
}
