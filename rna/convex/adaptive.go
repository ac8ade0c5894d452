package convex

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// adaptive is Algorithm 3, the optimal adaptive algorithm, with x the iterate before:
//
//	x⁺ = y − ∇f(y)/L,  y_ex = RNA(X, Y, λ),  z = (y_ex + βx)/(1 + β),  β = (1 − √κ)/(1 + √κ)
//	y⁺ = y_ex if f(z) ≤ f(x) − ‖∇f(x)‖²/(2L), otherwise (1 + β)x⁺ − βx
//
// and z in place of x⁺ where y_ex was taken. The print has f(x) for the gradient ∇f(x). Its other branch,
// (1 + β)x_i − βx_{i−1}, would not use the x_{i+1} just made; the text calls it a standard Nesterov step, which
// is what is done. The curve is f(y_ex) where that was taken, f(x⁺) otherwise.
func (d *descent) adaptive(rec *recorder, iterations int) error {
	root := math.Sqrt(d.p.Mu / d.p.L)
	beta := (1 - root) / (1 + root)
	grad := make([]float64, d.p.Dim)
	values := make([]float64, 3)
	bound := math.Inf(1)
	x := d.old
	for k := 1; k <= iterations; k++ {
		d.p.F(d.y, d.g)
		floats.AddScaledTo(d.step, d.y, -1/d.p.L, d.g)
		ok, err := d.extrapolate()
		if err != nil {
			return err
		}
		fx := d.p.F(x, grad)
		bound = fx - floats.Dot(grad, grad)/(2*d.p.L)
		points := [][]float64{d.step}
		if ok {
			for j := range d.searched {
				d.searched[j] = (d.extrapolated[j] + beta*x[j]) / (1 + beta)
			}
			points = append(points, d.searched, d.extrapolated)
		}
		d.p.Values(values[:len(points)], points)
		if ok && values[1] <= bound {
			copy(d.y, d.extrapolated)
			copy(x, d.searched)
			if err := rec.add(k, d.extrapolated, values[2]); err != nil {
				return err
			}
			continue
		}
		for j := range d.y {
			d.y[j] = (1+beta)*d.step[j] - beta*x[j]
		}
		copy(x, d.step)
		if err := rec.add(k, d.step, values[0]); err != nil {
			return err
		}
	}
	return nil
}
