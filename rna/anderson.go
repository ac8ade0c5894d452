package rna

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// anderson sets res to the coefficients for λ = 0 by least squares on the triangular factor.
func (s *Spectrum) anderson(res *Result) {
	c, rank, condition := shortest(s.triangle, s.noise)
	res.Rank, res.Accuracy = rank, s.accuracy(condition*condition)
	res.Condition = 1 / s.sigma[0]
	deviation := 0.0
	for _, v := range c {
		res.NormC = math.Hypot(res.NormC, v)
		deviation = math.Hypot(deviation, v-1/float64(s.n))
	}
	if !isFinite(res.NormC) {
		res.refuse(NonFinite, "the coefficients are not finite: raise lambda")
		return
	}
	res.C = c
	res.Tau = excess(s.n, deviation)
}

// shortest returns the c that minimises ‖R c‖ subject to Σc = 1, the shortest if several do, one more than the
// numerical rank of the differences of R's columns, and the condition number of the differences above the noise.
// Column j may be off by noise[j].
func shortest(r *mat.Dense, noise []float64) (c []float64, rank int, condition float64) {
	_, n := r.Dims()
	c = make([]float64, n)
	// Around the smallest column m, c = e_m + Σ γ_j (e_j − e_m), and R c = r_m + Σ γ_j (r_j − r_m).
	norms := make([]float64, n)
	m := 0
	for j := range n {
		norms[j] = mat.Norm(r.ColView(j), 2)
		if norms[j] < norms[m] {
			m = j
		}
	}
	c[m] = 1
	if n == 1 {
		return c, 1, 1
	}
	// Each difference is scaled by its rounding, from the vectors and from the factorisation, so that large ones do
	// not hide small ones as residuals shrink. In these units √(n−1) bounds the rounding of all differences.
	units := make([]float64, n)
	for j := range n {
		units[j] = noise[j] + 4*epsilon*norms[j]
	}
	others := make([]int, 0, n-1)
	a := mat.NewDense(n, n-1, nil)
	lengths := make([]float64, n-1)
	for j := range n {
		if j == m {
			continue
		}
		k := len(others)
		others = append(others, j)
		if lengths[k] = units[j] + units[m]; lengths[k] < 0x1p-900 { // whose inverse is infinite, or nearly so
			lengths[k] = 1
		}
		var d mat.VecDense
		d.SubVec(r.ColView(j), r.ColView(m))
		d.ScaleVec(1/lengths[k], &d)
		a.SetCol(k, d.RawVector().Data)
	}
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDThin) {
		c[m] = math.NaN()
		return c, 0, math.Inf(1)
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	// move adds a·Σ_k v_k/length_k (e_k − e_m) to a vector of coefficients.
	move := func(c []float64, a float64, k int) {
		for i, j := range others {
			g := a * v.At(i, k) / lengths[i]
			c[j] += g
			c[m] -= g
		}
	}
	var free []*mat.VecDense // orthonormal directions that leave R c as it is
	values := svd.Values(nil)
	condition = 1
	for k, value := range values {
		if value > math.Sqrt(float64(n-1)) {
			rank++
			condition = values[0] / value
			move(c, -mat.Dot(u.ColView(k), r.ColView(m))/value, k)
			continue
		}
		direction := make([]float64, n)
		move(direction, 1, k)
		d := mat.NewVecDense(n, direction)
		for range 2 {
			for _, f := range free {
				d.AddScaledVec(d, -mat.Dot(f, d), f)
			}
		}
		if norm := mat.Norm(d, 2); norm > 0 {
			d.ScaleVec(1/norm, d)
			free = append(free, d)
		}
	}
	if len(free) > 0 {
		short := append([]float64(nil), c...)
		point := mat.NewVecDense(n, short)
		for _, f := range free {
			point.AddScaledVec(point, -mat.Dot(f, point), f)
		}
		// If residuals differ by more than the working precision, shortening c may undo the gain.
		before, rounding := product(r, c, units)
		if after, _ := product(r, short, units); after <= before+rounding {
			c = short
		}
	}
	total := 0.0
	for _, v := range c {
		total += v
	}
	for i := range c {
		c[i] /= total
	}
	return c, rank + 1, condition
}

// product returns ‖R c‖ and the size of its rounding, where units are those of the columns.
func product(r *mat.Dense, c, units []float64) (norm, rounding float64) {
	var v mat.VecDense
	v.MulVec(r, mat.NewVecDense(len(c), c))
	for j, a := range c {
		rounding += math.Abs(a) * units[j]
	}
	return mat.Norm(&v, 2), rounding
}
