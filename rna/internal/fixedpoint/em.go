package fixedpoint

import (
	"math"
	"math/rand/v2"
)

// poissonMixture is EM of two Poisson distributions on Hasselblad's deaths of old women, as in the papers on SQUAREM,
// scaled by the seed.
func poissonMixture(seed uint64) Problem {
	counts := []float64{162, 267, 271, 185, 111, 61, 27, 8, 3, 1}
	r := source(seed)
	if seed > 0 {
		for i := range counts {
			counts[i] = math.Round(counts[i] * (0.8 + 0.4*r.Float64()))
		}
	}
	g := func(dst, x []float64) error {
		p, a, b := x[0], x[1], x[2]
		var n, w, wi, vi float64
		for i, c := range counts {
			k := float64(i)
			fa := p * math.Exp(-a+k*math.Log(a))
			fb := (1 - p) * math.Exp(-b+k*math.Log(b))
			t := fa / (fa + fb)
			n += c
			w += c * t
			wi += c * t * k
			vi += c * (1 - t) * k
		}
		dst[0], dst[1], dst[2] = w/n, wi/w, vi/(n-w)
		return nil
	}
	accept := func(x []float64) bool { return x[0] > 0 && x[0] < 1 && x[1] > 0 && x[2] > 0 }
	return Problem{Start: []float64{0.3, 1, 2.5}, G: g, Accept: accept}
}

// gaussians is EM of k Gaussians in one dimension: weights (all but the last), means, logarithms of variances.
func gaussians(r *rand.Rand, n, k int, apart float64) Problem {
	data := make([]float64, n)
	for i := range data {
		data[i] = apart*float64(i%k) + r.NormFloat64()*(0.8+0.2*float64(i%k))
	}
	start := make([]float64, 3*k-1)
	for j := range k {
		if j < k-1 {
			start[j] = 1 / float64(k)
		}
		start[k-1+j] = apart*float64(j) + 0.3*r.NormFloat64()
		start[2*k-1+j] = 0.2 * r.NormFloat64()
	}
	t := make([]float64, k)
	w, m, v := make([]float64, k), make([]float64, k), make([]float64, k)
	g := func(dst, x []float64) error {
		last := 1 - sum(x[:k-1])
		clear(w)
		clear(m)
		clear(v)
		for _, y := range data {
			s := 0.0
			for j := range k {
				p := last
				if j < k-1 {
					p = x[j]
				}
				d := y - x[k-1+j]
				t[j] = p * math.Exp(-0.5*d*d*math.Exp(-x[2*k-1+j])-0.5*x[2*k-1+j])
				s += t[j]
			}
			for j := range k {
				q := t[j] / s
				w[j] += q
				m[j] += q * y
				v[j] += q * y * y
			}
		}
		for j := range k {
			if j < k-1 {
				dst[j] = w[j] / float64(n)
			}
			mean := m[j] / w[j]
			dst[k-1+j] = mean
			dst[2*k-1+j] = math.Log(max(v[j]/w[j]-mean*mean, 1e-12))
		}
		return nil
	}
	accept := func(x []float64) bool { return positive(x[:k-1]) && sum(x[:k-1]) < 1 }
	return Problem{Start: start, G: g, Accept: accept}
}

func separateGaussians(seed uint64) Problem {
	return gaussians(source(seed), 400, 3, 4)
}

func overlappingGaussians(seed uint64) Problem {
	return gaussians(source(seed+50), 400, 2, 1.6)
}

// factorModel is EM of y = L f + e with two factors: the loadings L, d×2, and the logarithms of e's variances.
func factorModel(seed uint64) Problem {
	const d, q, n = 8, 2, 200
	r := source(seed)
	truth := normals(r, d*q)
	cov := make([]float64, d*d)
	for range n {
		f, y := normals(r, q), make([]float64, d)
		matVec(y, truth, f)
		for i := range y {
			y[i] += r.NormFloat64() * 0.7
		}
		for i := range d {
			for j := range d {
				cov[i*d+j] += y[i] * y[j] / n
			}
		}
	}
	start := append(normals(r, d*q), make([]float64, d)...)
	g := func(dst, x []float64) error {
		l, psi := x[:d*q], x[d*q:]
		// B = (I + LᵀΨ⁻¹L)⁻¹ LᵀΨ⁻¹, q×d; E[f f'] = I − B L + B S Bᵀ.
		var m [q * q]float64
		for a := range q {
			for b := range q {
				for i := range d {
					m[a*q+b] += l[i*q+a] * l[i*q+b] * math.Exp(-psi[i])
				}
			}
			m[a*q+a]++
		}
		det := m[0]*m[3] - m[1]*m[2]
		inv := [q * q]float64{m[3] / det, -m[1] / det, -m[2] / det, m[0] / det}
		var b [q * d]float64
		for a := range q {
			for i := range d {
				for c := range q {
					b[a*d+i] += inv[a*q+c] * l[i*q+c] * math.Exp(-psi[i])
				}
			}
		}
		var sb [d * q]float64 // S Bᵀ
		for i := range d {
			for a := range q {
				for j := range d {
					sb[i*q+a] += cov[i*d+j] * b[a*d+j]
				}
			}
		}
		var e [q * q]float64
		for a := range q {
			for c := range q {
				for i := range d {
					e[a*q+c] += b[a*d+i] * (sb[i*q+c] - l[i*q+c])
				}
			}
			e[a*q+a]++
		}
		det = e[0]*e[3] - e[1]*e[2]
		inv = [q * q]float64{e[3] / det, -e[1] / det, -e[2] / det, e[0] / det}
		for i := range d {
			v := cov[i*d+i]
			for a := range q {
				s := 0.0
				for c := range q {
					s += sb[i*q+c] * inv[c*q+a]
				}
				dst[i*q+a] = s
				v -= s * sb[i*q+a]
			}
			dst[d*q+i] = math.Log(max(v, 1e-8))
		}
		return nil
	}
	return Problem{Start: start, G: g}
}

// studentT is EM of location and scale of a multivariate t with one degree of freedom, after Kent and Tyler: its mean
// and log scales.
func studentT(seed uint64) Problem {
	const d, n, nu = 5, 60, 1.0
	r := source(seed)
	data := make([]float64, n*d)
	for i := range n {
		s := 1 / math.Abs(r.NormFloat64())
		for j := range d {
			data[i*d+j] = 2*float64(j) + r.NormFloat64()*s
		}
	}
	g := func(dst, x []float64) error {
		clear(dst)
		total := 0.0
		weights := make([]float64, n)
		for i := range n {
			q := 0.0
			for j := range d {
				e := data[i*d+j] - x[j]
				q += e * e * math.Exp(-x[d+j])
			}
			weights[i] = (nu + d) / (nu + q)
			total += weights[i]
			for j := range d {
				dst[j] += weights[i] * data[i*d+j]
			}
		}
		for j := range d {
			dst[j] /= total
			for i := range n {
				e := data[i*d+j] - dst[j]
				dst[d+j] += weights[i] * e * e / n
			}
			dst[d+j] = math.Log(dst[d+j])
		}
		return nil
	}
	return Problem{Start: make([]float64, 2*d), G: g}
}

// geneticLinkage is EM of recombination in several families, the example of Dempster, Laird and Rubin, with cells that
// the seed scales.
func geneticLinkage(seed uint64) Problem {
	r := source(seed)
	const n = 6
	cells := make([][4]float64, n)
	for i := range cells {
		k := 0.2 + 3*r.Float64()
		cells[i] = [4]float64{125 * k, 18 * (0.5 + r.Float64()), 20 * (0.5 + r.Float64()), 34 * k}
	}
	g := func(dst, x []float64) error {
		for i, c := range cells {
			t := x[i]
			e := c[0] * t / (2 + t)
			dst[i] = (e + c[3]) / (e + c[1] + c[2] + c[3])
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
	return Problem{Start: filled(n, 0.1), G: g, Accept: accept}
}

// softMeans is EM of cluster centres with fixed, wide variances in the plane.
func softMeans(seed uint64) Problem {
	const k, n = 4, 200
	r := source(seed)
	data := make([]float64, 2*n)
	for i := range n {
		data[2*i] = 1.5*float64(i%2) + 0.6*r.NormFloat64()
		data[2*i+1] = 1.5*float64(i/2%2) + 0.6*r.NormFloat64()
	}
	t := make([]float64, k)
	g := func(dst, x []float64) error {
		clear(dst)
		w := make([]float64, k)
		for i := range n {
			s := 0.0
			for j := range k {
				a, b := data[2*i]-x[2*j], data[2*i+1]-x[2*j+1]
				t[j] = math.Exp(-2 * (a*a + b*b))
				s += t[j]
			}
			for j := range k {
				q := t[j] / max(s, 1e-300)
				w[j] += q
				dst[2*j] += q * data[2*i]
				dst[2*j+1] += q * data[2*i+1]
			}
		}
		for j := range k {
			dst[2*j] /= max(w[j], 1e-300)
			dst[2*j+1] /= max(w[j], 1e-300)
		}
		return nil
	}
	start := normals(r, 2*k)
	return Problem{Start: start, G: g}
}
