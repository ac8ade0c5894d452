package fixedpoint

import "math"

// rotations is linear: planes that are turned by random angles and shrunk.
func rotations(seed uint64) Problem {
	const n = 40
	r := source(seed)
	angle, shrink := make([]float64, n/2), make([]float64, n/2)
	for i := range angle {
		angle[i], shrink[i] = math.Pi*r.Float64(), 0.97*math.Sqrt(r.Float64())
	}
	g := func(dst, x []float64) error {
		for i := range angle {
			c, s := shrink[i]*math.Cos(angle[i]), shrink[i]*math.Sin(angle[i])
			a, b := x[2*i]-1, x[2*i+1]-1
			dst[2*i], dst[2*i+1] = 1+c*a-s*b, 1+s*a+c*b
		}
		return nil
	}
	return Problem{Start: normals(r, n), G: g}
}

// nearOne is linear with ten eigenvalues between 0.99 and 0.999 and the others below 0.5, slightly bent.
func nearOne(seed uint64) Problem {
	const n = 40
	r := source(seed)
	e := make([]float64, n)
	for i := range e {
		e[i] = 0.5 * r.Float64()
		if i < 10 {
			e[i] = 0.99 + 0.009*r.Float64()
		}
	}
	g := func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = e[i]*v + 1e-3*math.Sin(x[(i+1)%n])*(1-e[i])
		}
		return nil
	}
	return Problem{Start: normals(r, n), G: g}
}

// nonNormal is a Jordan-like block with 0.9 on the diagonal.
func nonNormal(seed uint64) Problem {
	const n = 12
	r := source(seed)
	b := normals(r, n)
	g := func(dst, x []float64) error {
		for i := range x {
			dst[i] = 0.8*x[i] + b[i]
			if i+1 < n {
				dst[i] += 0.3 * x[i+1]
			}
		}
		return nil
	}
	return Problem{Start: make([]float64, n), G: g}
}

// absolute has kinks: A|x| + b, as in absolute value equations.
func absolute(seed uint64) Problem {
	const n = 30
	r := source(seed)
	a, b := normals(r, n*n), normals(r, n)
	scale(a, 0.95/math.Sqrt(normSquared(a, n, n)))
	t := make([]float64, n)
	g := func(dst, x []float64) error {
		for i, v := range x {
			t[i] = math.Abs(v)
		}
		matVec(dst, a, t)
		for i := range dst {
			dst[i] += b[i]
		}
		return nil
	}
	return Problem{Start: make([]float64, n), G: g}
}

// sine has the derivative 1 at its solution 0 in one coordinate: convergence is sublinear.
func sine(seed uint64) Problem {
	r := source(seed)
	start := []float64{0.5 + r.Float64(), r.Float64(), 1 + r.Float64()}
	g := func(dst, x []float64) error {
		dst[0], dst[1], dst[2] = math.Sin(x[0]), 0.5*x[1]+0.1*x[0], math.Cos(x[2])
		return nil
	}
	return Problem{Start: start, G: g}
}

// averagedRotation is ½(I + R), R a rotation by small angles: averaged, its rates are cos(angle/2), down to 1 − 1e-3.
func averagedRotation(seed uint64) Problem {
	const n = 20
	r := source(seed)
	angle := make([]float64, n/2)
	for i := range angle {
		angle[i] = 0.1 + 2.5*r.Float64()
	}
	g := func(dst, x []float64) error {
		for i, v := range angle {
			c, s := math.Cos(v), math.Sin(v)
			a, b := x[2*i]-2, x[2*i+1]-2
			dst[2*i], dst[2*i+1] = 2+(a+c*a-s*b)/2, 2+(b+s*a+c*b)/2
		}
		return nil
	}
	return Problem{Start: normals(r, n), G: g}
}

// powerIteration is normalised, on a positive matrix with a gap of 2 %.
func powerIteration(seed uint64) Problem {
	const n = 30
	r := source(seed)
	q := normals(r, n*n)
	for i := range n { // Gram and Schmidt
		row := q[i*n : (i+1)*n]
		for j := range i {
			s := 0.0
			for k := range n {
				s += row[k] * q[j*n+k]
			}
			for k := range n {
				row[k] -= s * q[j*n+k]
			}
		}
		scale(row, 1/norm(row))
	}
	t := make([]float64, n)
	g := func(dst, x []float64) error {
		matVec(t, q, x)
		for i := range t {
			t[i] *= math.Pow(0.98, float64(i))
		}
		matTVec(dst, q, t)
		scale(dst, 1/norm(dst))
		return nil
	}
	start := append([]float64(nil), q[:n]...)
	for i := range start {
		start[i] += 0.3 * r.NormFloat64()
	}
	return Problem{Start: start, G: g}
}

// logisticMap has alternating convergence, one coordinate each.
func logisticMap(seed uint64) Problem {
	const n = 5
	r := source(seed)
	rate := make([]float64, n)
	for i := range rate {
		rate[i] = 2.2 + 0.75*r.Float64()
	}
	g := func(dst, x []float64) error {
		for i, v := range x {
			dst[i] = rate[i] * v * (1 - v)
		}
		return nil
	}
	accept := func(x []float64) bool {
		for _, v := range x {
			if !(v > 0 && v < 1) {
				return false
			}
		}
		return true
	}
	return Problem{Start: filled(n, 0.2), G: g, Accept: accept}
}
