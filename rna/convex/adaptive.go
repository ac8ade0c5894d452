package convex

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// adaptive is Algorithm 3, the optimal adaptive algorithm, on Nesterov's estimate sequence. At y_i it makes the
// gradient step y − ∇f(y)/L, and with v, γ of the sequence
//
//	Lα² = (1 − α)γ + αμ,  γ⁺ = (1 − α)γ + αμ,  v⁺ = ((1 − α)γv + αμy − α∇f(y))/γ⁺.
//
// Any x⁺ with f(x⁺) ≤ f(y) − ‖∇f(y)‖²/(2L), the condition of eq. (general_nesterov_step), keeps Nesterov's bound if the
// next y is (α⁺γ⁺v⁺ + γ⁺⁺x⁺)/(γ⁺ + α⁺μ). So z is the x⁺ whose next y is RNA's point, and is taken where it
// meets the condition, the gradient step otherwise. γ starts at μ, which makes α = √κ, or at L where μ is 0.
//
// The curve is f(x⁺), and keeps to [NesterovBound].
func (d *descent) adaptive(rec *recorder, iterations int) error {
	l, mu := d.p.L, d.p.Mu
	gamma := mu
	if mu == 0 {
		gamma = l
	}
	alpha := estimateStep(gamma, l, mu)
	v := append([]float64(nil), d.y...)
	values := make([]float64, 2)
	for k := 1; k <= iterations; k++ {
		fy := d.p.F(d.y, d.g)
		floats.AddScaledTo(d.step, d.y, -1/l, d.g)
		ok, err := d.extrapolate()
		if err != nil {
			return err
		}
		next := (1-alpha)*gamma + alpha*mu
		for j := range v {
			v[j] = ((1-alpha)*gamma*v[j] + alpha*mu*d.y[j] - alpha*d.g[j]) / next
		}
		gamma, alpha = next, estimateStep(next, l, mu)
		next = (1-alpha)*gamma + alpha*mu
		points := [][]float64{d.step}
		if ok {
			for j := range d.searched {
				d.searched[j] = ((gamma+alpha*mu)*d.extrapolated[j] - alpha*gamma*v[j]) / next
			}
			points = append(points, d.searched)
		}
		d.p.Values(values[:len(points)], points)
		if ok && values[1] <= fy-floats.Dot(d.g, d.g)/(2*l) {
			copy(d.y, d.extrapolated)
			if err := rec.add(k, d.searched, values[1]); err != nil {
				return err
			}
			continue
		}
		for j := range d.y {
			d.y[j] = (alpha*gamma*v[j] + next*d.step[j]) / (gamma + alpha*mu)
		}
		if err := rec.add(k, d.step, values[0]); err != nil {
			return err
		}
	}
	return nil
}

// estimateStep returns the root in (0, 1] of Lα² = (1 − α)γ + αμ.
func estimateStep(gamma, l, mu float64) float64 {
	b := gamma - mu
	return 2 * gamma / (b + math.Sqrt(b*b+4*l*gamma))
}

// printed is Algorithm 3 as it is printed, with x the iterate before:
//
//	x⁺ = y − ∇f(y)/L,  y_ex = RNA(X, Y, λ),  z = (y_ex + βx)/(1 + β),  β = (1 − √κ)/(1 + √κ)
//	y⁺ = y_ex if f(z) ≤ f(x) − ‖∇f(x)‖²/(2L), otherwise (1 + β)x⁺ − βx
//
// and z in place of x⁺ where y_ex was taken. The print has f(x) for the gradient ∇f(x). Its other branch, (1 + β)x_i
// − βx_{i−1}, would not use the x_{i+1} just made. The text calls it a standard Nesterov step, and so does this code.
// The curve is f(y_ex) where that was taken, f(x⁺) otherwise.
//
// It is not optimal: (1 + β)x⁺ − βx stands for the estimate sequence after gradient steps alone, not after z, so that
// the proof has a gap, and values exceed Nesterov's bound: on Sonar, with the logistic loss, 16 times in 500 iterations
// for κ = 1e-3, by up to 10 times, 105 times for 1e-6, and at 1e-9 nearly always.
func (d *descent) printed(rec *recorder, iterations int) error {
	root := math.Sqrt(d.p.Mu / d.p.L)
	beta := (1 - root) / (1 + root)
	grad := make([]float64, d.p.Dim)
	values := make([]float64, 3)
	x := d.old
	for k := 1; k <= iterations; k++ {
		d.p.F(d.y, d.g)
		floats.AddScaledTo(d.step, d.y, -1/d.p.L, d.g)
		ok, err := d.extrapolate()
		if err != nil {
			return err
		}
		fx := d.p.F(x, grad)
		points := [][]float64{d.step}
		if ok {
			for j := range d.searched {
				d.searched[j] = (d.extrapolated[j] + beta*x[j]) / (1 + beta)
			}
			points = append(points, d.searched, d.extrapolated)
		}
		d.p.Values(values[:len(points)], points)
		if ok && values[1] <= fx-floats.Dot(grad, grad)/(2*d.p.L) {
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
