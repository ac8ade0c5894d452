package fixedpoint

import "math"

// valueIteration is a random Markov decision process with 40 states, 4 actions and a discount of 0.95.
func valueIteration(seed uint64) Problem {
	const n, actions, discount = 40, 4, 0.95
	r := source(seed)
	p, reward := make([]float64, actions*n*n), normals(r, actions*n)
	for i := range actions * n {
		row := p[i*n : (i+1)*n]
		for range 3 {
			row[r.IntN(n)] += r.Float64()
		}
		scale(row, 1/sum(row))
	}
	q := make([]float64, actions*n)
	g := func(dst, x []float64) error {
		matVec(q, p, x)
		for i := range dst {
			dst[i] = math.Inf(-1)
			for a := range actions {
				dst[i] = max(dst[i], reward[a*n+i]+discount*q[a*n+i])
			}
		}
		return nil
	}
	return Problem{Start: make([]float64, n), G: g}
}

// policyEvaluation is a chain of neighbours with a discount of 0.99.
func policyEvaluation(seed uint64) Problem {
	const n, discount = 60, 0.99
	r := source(seed)
	reward := normals(r, n)
	right := make([]float64, n)
	for i := range right {
		right[i] = 0.3 + 0.4*r.Float64()
	}
	g := func(dst, x []float64) error {
		for i := range dst {
			dst[i] = reward[i] + discount*(right[i]*x[min(i+1, n-1)]+(1-right[i])*x[max(i-1, 0)])
		}
		return nil
	}
	return Problem{Start: make([]float64, n), G: g}
}

// pageRank is a random graph of 200 pages with a damping of 0.85 to 0.95.
func pageRank(seed uint64) Problem {
	const n = 200
	r := source(seed)
	damping := 0.85 + 0.05*float64(seed%3)
	links := make([][]int, n)
	for i := range links {
		for range 1 + r.IntN(4) {
			links[i] = append(links[i], (i+1+int(math.Floor(10*r.ExpFloat64())))%n)
		}
	}
	g := func(dst, x []float64) error {
		for i := range dst {
			dst[i] = (1 - damping) / n
		}
		for i, to := range links {
			for _, j := range to {
				dst[j] += damping * x[i] / float64(len(to))
			}
		}
		return nil
	}
	return Problem{Start: filled(n, 1.0/n), G: g}
}

// ising is the mean field of spins with random couplings near the critical temperature.
func ising(seed uint64) Problem {
	const n = 40
	r := source(seed)
	j, h := make([]float64, n*n), normals(r, n)
	scale(h, 0.05)
	for a := range n {
		for b := range a {
			v := (1 + 0.5*r.NormFloat64()) / n
			j[a*n+b], j[b*n+a] = v, v
		}
	}
	g := func(dst, x []float64) error {
		matVec(dst, j, x)
		for i := range dst {
			dst[i] = math.Tanh(0.98*dst[i] + h[i])
		}
		return nil
	}
	return Problem{Start: make([]float64, n), G: g}
}

// equilibrium is a layer z = tanh(W z + b) with ‖W‖ near 0.95, not symmetric.
func equilibrium(seed uint64) Problem {
	const n = 60
	r := source(seed)
	w, b := normals(r, n*n), normals(r, n)
	scale(w, 0.98/math.Sqrt(normSquared(w, n, n)))
	scale(b, 0.1)
	g := func(dst, x []float64) error {
		matVec(dst, w, x)
		for i := range dst {
			dst[i] = math.Tanh(1.3*dst[i] + b[i])
		}
		return nil
	}
	return Problem{Start: make([]float64, n), G: g}
}
