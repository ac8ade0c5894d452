package fixedpoint

import "math"

// tridiagonal solves −x_{i−1} + (2+c) x_i − x_{i+1} = b_i with zero ends, in place.
func tridiagonal(b []float64, c float64) {
	n := len(b)
	w := make([]float64, n)
	d := 2 + c
	w[0] = -1 / d
	b[0] /= d
	for i := 1; i < n; i++ {
		m := 1 / (d + w[i-1])
		w[i] = -m
		b[i] = (b[i] + b[i-1]) * m
	}
	for i := n - 2; i >= 0; i-- {
		b[i] -= w[i] * b[i+1]
	}
}

// bratu is Picard's iteration of −u″ = λ eᵘ.
func bratu(seed uint64) Problem {
	const n = 60
	lambda := 3.0 + 0.1*float64(seed%5)
	h := 1.0 / (n + 1)
	g := func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = h * h * lambda * math.Exp(v)
		}
		tridiagonal(dst, 0)
		return nil
	}
	return Problem{Start: make([]float64, n), G: g}
}

// heat is an implicit step of u_t = (k(u) u′)′ with k lagged: Picard's iteration.
func heat(seed uint64) Problem {
	const n = 50
	r := source(seed)
	old := make([]float64, n)
	amplitude := 1 + r.Float64()
	for i := range old {
		old[i] = amplitude * math.Sin(math.Pi*float64(i+1)/(n+1)) * (1 + 0.1*r.Float64())
	}
	h := 1.0 / (n + 1)
	dt := 0.2
	k := func(u float64) float64 { return math.Exp(-1.5 * u) }
	lower, diag, upper := make([]float64, n), make([]float64, n), make([]float64, n)
	at := func(x []float64, i int) float64 {
		if i < 0 || i >= n {
			return 0
		}
		return x[i]
	}
	g := func(dst, x []float64) error {
		for i := range n {
			a := (k(at(x, i-1)) + k(x[i])) / 2 * dt / (h * h)
			b := (k(at(x, i+1)) + k(x[i])) / 2 * dt / (h * h)
			lower[i], diag[i], upper[i] = -a, 1+a+b, -b
		}
		copy(dst, old)
		for i := 1; i < n; i++ {
			m := lower[i] / diag[i-1]
			diag[i] -= m * upper[i-1]
			dst[i] -= m * dst[i-1]
		}
		dst[n-1] /= diag[n-1]
		for i := n - 2; i >= 0; i-- {
			dst[i] = (dst[i] - upper[i]*dst[i+1]) / diag[i]
		}
		return nil
	}
	return Problem{Start: append([]float64(nil), old...), G: g}
}

// jacobi is Jacobi's iteration on Poisson's equation in two dimensions.
func jacobi(seed uint64) Problem {
	const n = 15
	r := source(seed)
	f := normals(r, n*n)
	g := func(dst, x []float64) error {
		at := func(i, j int) float64 {
			if i < 0 || j < 0 || i >= n || j >= n {
				return 0
			}
			return x[i*n+j]
		}
		for i := range n {
			for j := range n {
				dst[i*n+j] = (at(i-1, j) + at(i+1, j) + at(i, j-1) + at(i, j+1) + f[i*n+j]) / 4
			}
		}
		return nil
	}
	return Problem{Start: make([]float64, n*n), G: g}
}

// selfConsistent is a damped field of a small chain: the density of its lowest orbitals, whose potential is the density
// itself.
func selfConsistent(seed uint64) Problem {
	const n, electrons, strength, damping = 12, 4, 1.2, 0.3
	r := source(seed)
	potential := normals(r, n)
	scale(potential, 0.5)
	g := func(dst, x []float64) error {
		a := make([]float64, n*n)
		for i := range n {
			a[i*n+i] = potential[i] + strength*x[i]
			if i+1 < n {
				a[i*n+i+1], a[(i+1)*n+i] = -1, -1
			}
		}
		values, vectors := eigen(a, n)
		copy(dst, x)
		scale(dst, 1-damping)
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		for i := range electrons {
			for j := i + 1; j < n; j++ {
				if values[order[j]] < values[order[i]] {
					order[i], order[j] = order[j], order[i]
				}
			}
			for k := range n {
				v := vectors[k*n+order[i]]
				dst[k] += damping * 2 * v * v
			}
		}
		return nil
	}
	return Problem{Start: filled(n, 2*float64(electrons)/n), G: g}
}

// eigen is Jacobi's method for a symmetric matrix, which is lost: values and columns of vectors.
func eigen(a []float64, n int) (values, vectors []float64) {
	v := make([]float64, n*n)
	for i := range n {
		v[i*n+i] = 1
	}
	for range 30 {
		off := 0.0
		for p := range n {
			for q := range p {
				off += a[p*n+q] * a[p*n+q]
			}
		}
		if off < 1e-28 {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				if a[p*n+q] == 0 {
					continue
				}
				theta := (a[q*n+q] - a[p*n+p]) / (2 * a[p*n+q])
				t := 1 / (math.Abs(theta) + math.Sqrt(theta*theta+1))
				if theta < 0 {
					t = -t
				}
				c := 1 / math.Sqrt(t*t+1)
				s := t * c
				for k := range n {
					x, y := a[k*n+p], a[k*n+q]
					a[k*n+p], a[k*n+q] = c*x-s*y, s*x+c*y
				}
				for k := range n {
					x, y := a[p*n+k], a[q*n+k]
					a[p*n+k], a[q*n+k] = c*x-s*y, s*x+c*y
					x, y = v[k*n+p], v[k*n+q]
					v[k*n+p], v[k*n+q] = c*x-s*y, s*x+c*y
				}
			}
		}
	}
	values = make([]float64, n)
	for i := range n {
		values[i] = a[i*n+i]
	}
	return values, v
}

// chandrasekhar is the H-equation of radiative transfer.
func chandrasekhar(seed uint64) Problem {
	const n = 60
	c := 0.9 + 0.0199*float64(seed%6)
	g := func(dst, x []float64) error {
		for i := range dst {
			mu, s := (float64(i)+0.5)/n, 0.0
			for j := range x {
				nu := (float64(j) + 0.5) / n
				s += mu * x[j] / (mu + nu)
			}
			dst[i] = 1 / (1 - c/(2*n)*s)
		}
		return nil
	}
	return Problem{Start: filled(n, 1), G: g}
}
