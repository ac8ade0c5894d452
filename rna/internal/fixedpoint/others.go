package fixedpoint

import "math"

// Others lists further kinds, most of them variants of [Kinds].
func Others() []Kind {
	return []Kind{
		{"EM of exponentials", exponentials},
		{"Baum and Welch", hiddenMarkov},
		{"Richardson and Lucy", deconvolution},
		{"ISTA of the group lasso", groupLasso},
		{"Kaczmarz, inconsistent", kaczmarz},
		{"SOR", sor},
		{"Chambolle and Pock, total variation", totalVariation},
		{"quantal response", quantalResponse},
		{"Weiszfeld near a point", weiszfeld},
		{"value iteration of a game", game},
		{"switching affine maps", switching},
	}
}

// exponentials is EM of a mixture of three exponential distributions, by logits of weights and logarithms of rates.
func exponentials(seed uint64) Problem {
	r := source(seed)
	data := make([]float64, 300)
	for i := range data {
		data[i] = r.ExpFloat64() * []float64{.3, 1, 4}[r.IntN(3)]
	}
	accept := func(x []float64) bool {
		for _, v := range x {
			if !(v > 1e-12) {
				return false
			}
		}
		return true
	}
	return Problem{Start: []float64{.3, .3, .4, 2, 1, .4}, Accept: accept, G: func(dst, x []float64) error {
		var n, s [3]float64
		for _, v := range data {
			var p [3]float64
			sum := 0.0
			for k := range p {
				p[k] = x[k] * x[3+k] * math.Exp(-x[3+k]*v)
				sum += p[k]
			}
			for k := range p {
				n[k] += p[k] / sum
				s[k] += p[k] / sum * v
			}
		}
		for k := range n {
			dst[k], dst[3+k] = n[k]/float64(len(data)), n[k]/s[k]
		}
		return nil
	}}
}

// hiddenMarkov is EM of a hidden Markov model with two states and three symbols.
func hiddenMarkov(seed uint64) Problem {
	r := source(seed)
	const length = 200
	symbols, state := make([]int, length), 0
	emit := [2][3]float64{{.7, .2, .1}, {.15, .25, .6}}
	for t := range symbols {
		if r.Float64() < .1 {
			state = 1 - state
		}
		u := r.Float64()
		switch {
		case u < emit[state][0]:
		case u < emit[state][0]+emit[state][1]:
			symbols[t] = 1
		default:
			symbols[t] = 2
		}
	}
	accept := func(x []float64) bool {
		for _, v := range x {
			if !(v > 1e-12) {
				return false
			}
		}
		return true
	}
	// x is the transitions, 2×2, and then the emissions, 2×3.
	return Problem{Start: []float64{.7, .3, .4, .6, .4, .35, .25, .3, .3, .4}, Accept: accept, G: func(dst, x []float64) error {
		var f, b [length][2]float64
		scale := [length]float64{}
		for t, o := range symbols {
			for j := range 2 {
				in := .5
				if t > 0 {
					in = f[t-1][0]*x[j] + f[t-1][1]*x[2+j]
				}
				f[t][j] = in * x[4+3*j+o]
			}
			scale[t] = f[t][0] + f[t][1]
			f[t][0], f[t][1] = f[t][0]/scale[t], f[t][1]/scale[t]
		}
		b[length-1] = [2]float64{1, 1}
		for t := length - 2; t >= 0; t-- {
			o := symbols[t+1]
			for i := range 2 {
				b[t][i] = (x[2*i]*x[4+o]*b[t+1][0] + x[2*i+1]*x[7+o]*b[t+1][1]) / scale[t+1]
			}
		}
		clear(dst)
		for t, o := range symbols {
			for i := range 2 {
				dst[4+3*i+o] += f[t][i] * b[t][i]
				if t+1 < length {
					for j := range 2 {
						dst[2*i+j] += f[t][i] * x[2*i+j] * x[4+3*j+symbols[t+1]] * b[t+1][j] / scale[t+1]
					}
				}
			}
		}
		for _, row := range [][]float64{dst[:2], dst[2:4], dst[4:7], dst[7:]} {
			sum := 0.0
			for _, v := range row {
				sum += v
			}
			for i := range row {
				row[i] /= sum
			}
		}
		return nil
	}}
}

// deconvolution is EM of a Poisson inverse problem: a blurred signal of spikes with a background.
func deconvolution(seed uint64) Problem {
	r := source(seed)
	const n = 40
	kernel := []float64{.05, .2, .5, .2, .05}
	truth, data := make([]float64, n), make([]float64, n)
	for i := range truth {
		truth[i] = 3
	}
	for range 4 {
		truth[r.IntN(n)] += 20 * r.Float64()
	}
	blur := func(dst, x []float64) {
		for i := range dst {
			dst[i] = 0
			for k, w := range kernel {
				dst[i] += w * x[(i+k-2+n)%n]
			}
		}
	}
	blur(data, truth)
	for i := range data {
		data[i] = max(0, data[i]+.2*math.Sqrt(data[i])*r.NormFloat64())
	}
	start := make([]float64, n)
	for i := range start {
		start[i] = 2
	}
	accept := func(x []float64) bool {
		for _, v := range x {
			if v < 0 {
				return false
			}
		}
		return true
	}
	got, ratio := make([]float64, n), make([]float64, n)
	return Problem{Start: start, Accept: accept, G: func(dst, x []float64) error {
		blur(got, x)
		for i, v := range data {
			ratio[i] = v / (got[i] + 1)
		}
		blur(dst, ratio) // the kernel is symmetric
		for i := range dst {
			dst[i] *= x[i]
		}
		return nil
	}}
}

// groupLasso is proximal gradient descent with groups of three.
func groupLasso(seed uint64) Problem {
	r := source(seed)
	const rows, groups, d = 40, 20, 60
	a, y := normals(r, rows*d), normals(r, rows)
	for i := range y {
		y[i] += 3*a[i*d] - 2*a[i*d+1] + a[i*d+7]
	}
	return Problem{Start: make([]float64, d), G: func(dst, x []float64) error {
		const step = 1. / 250
		copy(dst, x)
		for i := range rows {
			e := -y[i]
			for j, v := range x {
				e += a[i*d+j] * v
			}
			for j := range dst {
				dst[j] -= step * e * a[i*d+j]
			}
		}
		for g := range groups {
			part := dst[3*g : 3*g+3]
			norm := math.Sqrt(part[0]*part[0] + part[1]*part[1] + part[2]*part[2])
			shrink := max(0, 1-step*12/max(norm, 1e-300))
			for j := range part {
				part[j] *= shrink
			}
		}
		return nil
	}}
}

// kaczmarz is a sweep of relaxed projections onto the equations of an inconsistent system.
func kaczmarz(seed uint64) Problem {
	r := source(seed)
	const rows, d = 30, 20
	a, y := normals(r, rows*d), normals(r, rows)
	return Problem{Start: make([]float64, d), G: func(dst, x []float64) error {
		copy(dst, x)
		for i := range rows {
			row := a[i*d : (i+1)*d]
			e, norm := y[i], 0.0
			for j, v := range row {
				e -= v * dst[j]
				norm += v * v
			}
			for j, v := range row {
				dst[j] += .5 * e / norm * v
			}
		}
		return nil
	}}
}

// sor is over-relaxation near the best parameter on Poisson's equation, whose iteration has a defective spectrum.
func sor(seed uint64) Problem {
	r := source(seed)
	const n = 15
	f := normals(r, n*n)
	omega := 2 / (1 + math.Sin(math.Pi/(n+1))) * []float64{1, .97, 1.02}[seed%3]
	return Problem{Start: make([]float64, n*n), G: func(dst, x []float64) error {
		copy(dst, x)
		at := func(i, j int) float64 {
			if i < 0 || j < 0 || i >= n || j >= n {
				return 0
			}
			return dst[i*n+j]
		}
		for i := range n {
			for j := range n {
				v := (f[i*n+j] + at(i-1, j) + at(i+1, j) + at(i, j-1) + at(i, j+1)) / 4
				dst[i*n+j] += omega * (v - dst[i*n+j])
			}
		}
		return nil
	}}
}

// totalVariation is the primal-dual iteration of denoising a signal of steps; x has the primal and the dual.
func totalVariation(seed uint64) Problem {
	r := source(seed)
	const n = 50
	data := normals(r, n)
	for i := range data {
		data[i] = .3*data[i] + float64(i/13)
	}
	const lambda, tau, sigma = 1., .45, .45
	return Problem{Start: make([]float64, 2*n-1), G: func(dst, x []float64) error {
		u, p := x[:n], x[n:]
		for i := range n {
			v := u[i]
			if i > 0 {
				v -= tau * p[i-1]
			}
			if i < n-1 {
				v += tau * p[i]
			}
			dst[i] = (v + tau*data[i]) / (1 + tau)
		}
		for i := range n - 1 {
			a, b := 2*dst[i]-u[i], 2*dst[i+1]-u[i+1]
			dst[n+i] = min(lambda, max(-lambda, p[i]+sigma*(b-a)))
		}
		return nil
	}}
}

// quantalResponse is logit equilibrium of a game of two players with eight moves each, with damping.
func quantalResponse(seed uint64) Problem {
	r := source(seed)
	const k = 8
	a, b := normals(r, k*k), normals(r, k*k)
	soft := func(dst, x, y, m []float64, along bool) {
		sum := 0.0
		v := make([]float64, k)
		for i := range k {
			e := 0.0
			for j := range k {
				if along {
					e += m[i*k+j] * y[j]
				} else {
					e += m[j*k+i] * y[j]
				}
			}
			v[i] = math.Exp(3 * e)
			sum += v[i]
		}
		for i := range k {
			dst[i] = .7*x[i] + .3*v[i]/sum
		}
	}
	start := make([]float64, 2*k)
	for i := range start {
		start[i] = 1. / k
	}
	return Problem{Start: start, G: func(dst, x []float64) error {
		soft(dst[:k], x[:k], x[k:], a, true)
		soft(dst[k:], x[k:], x[:k], b, false)
		return nil
	}}
}

// weiszfeld is the geometric median of points, one of which is near it.
func weiszfeld(seed uint64) Problem {
	r := source(seed)
	const points, d = 21, 3
	at := normals(r, points*d)
	for j := range d {
		at[j] *= .05
	}
	return Problem{Start: []float64{1, -1, .5}, G: func(dst, x []float64) error {
		clear(dst)
		sum := 0.0
		for i := range points {
			q := 1e-12
			for j, v := range x {
				q += (v - at[i*d+j]) * (v - at[i*d+j])
			}
			w := 1 / math.Sqrt(q)
			sum += w
			for j := range dst {
				dst[j] += w * at[i*d+j]
			}
		}
		for j := range dst {
			dst[j] /= sum
		}
		return nil
	}}
}

// game is Shapley's iteration of a discounted zero-sum game with two moves of each player in each of 25 states.
func game(seed uint64) Problem {
	r := source(seed)
	const n = 25
	pay, next := normals(r, 4*n), make([]int, 8*n)
	for i := range next {
		next[i] = r.IntN(n)
	}
	return Problem{Start: make([]float64, n), G: func(dst, x []float64) error {
		for s := range n {
			var m [4]float64
			for k := range m {
				at := 4*s + k
				m[k] = pay[at] + .98*(.8*x[next[2*at]]+.2*x[next[2*at+1]])
			}
			low := max(min(m[0], m[1]), min(m[2], m[3]))
			high := min(max(m[0], m[2]), max(m[1], m[3]))
			if dst[s] = low; low < high { // mixed
				dst[s] = (m[0]*m[3] - m[1]*m[2]) / (m[0] + m[3] - m[1] - m[2])
			}
		}
		return nil
	}}
}

// switching applies in each coordinate the larger of two affine maps, each a contraction by rows.
func switching(seed uint64) Problem {
	r := source(seed)
	const n = 30
	a, b := make([]float64, 2*n*n), normals(r, 2*n)
	for row := range 2 * n {
		sum := 0.0
		for range 4 {
			j, v := r.IntN(n), r.NormFloat64()
			a[row*n+j] += v
		}
		for _, v := range a[row*n : (row+1)*n] {
			sum += math.Abs(v)
		}
		for j := range n {
			a[row*n+j] *= .97 / sum
		}
	}
	return Problem{Start: make([]float64, n), G: func(dst, x []float64) error {
		for i := range n {
			best := math.Inf(-1)
			for _, row := range []int{i, n + i} {
				v := b[row]
				for j, u := range x {
					v += a[row*n+j] * u
				}
				best = max(best, v)
			}
			dst[i] = best
		}
		return nil
	}}
}
