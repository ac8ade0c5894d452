package convex

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// An Optimum is the minimum of a function, up to rounding.
type Optimum struct {
	W        []float64
	Value    float64
	GradNorm float64 // ‖∇f(W)‖₂
}

const (
	gradientGoal = 1e-14
	maxNewton    = 300
	maxDense     = 1500 // features; above, Newton's systems are solved by conjugate gradients
)

// Optimum minimises the risk by Newton's method until ‖∇f‖ < 1e-14, or until rounding stops it from
// falling. It factors Hessians of up to 1500 features; for more it solves by conjugate
// gradients, which takes O(n + d) memory beside the data but more passes over it.
func (r *Risk) Optimum() (Optimum, error) {
	p, err := r.Problem()
	if err != nil {
		return Optimum{}, err
	}
	d := r.X.d
	t := p.linear.team
	defer t.begin()()
	w, grad := make([]float64, d), make([]float64, d)
	best := Optimum{GradNorm: math.Inf(1)}
	f := p.F(w, grad)
	trial, trialGrad := make([]float64, d), make([]float64, d)
	idle := 0
	for range maxNewton {
		norm := floats.Norm(grad, 2)
		if math.IsNaN(norm) || math.IsNaN(f) {
			return best, errors.New("convex: Newton's method for f* met NaN: scale the features")
		}
		if norm < best.GradNorm {
			if norm > 0.5*best.GradNorm {
				idle++
			} else {
				idle = 0
			}
			best = Optimum{W: append(best.W[:0], w...), Value: f, GradNorm: norm}
		} else {
			idle++
		}
		if norm < gradientGoal || idle > 8 && norm < 1e-9*(1+math.Abs(f)) || idle > 40 {
			break
		}
		step, err := r.newtonStep(w, grad, t)
		if err != nil {
			return best, err
		}
		slope := floats.Dot(step, grad)
		size, moved := 1.0, false
		for range 60 {
			floats.AddScaledTo(trial, w, -size, step)
			ft := p.F(trial, trialGrad)
			// Near the optimum f is flat to rounding and the gradient decides.
			if ft <= f-1e-4*size*slope || math.Abs(ft-f) <= 1e-14*(1+math.Abs(f)) &&
				floats.Norm(trialGrad, 2) <= norm*1.5 {
				f, moved = ft, true
				break
			}
			size /= 2
		}
		if !moved {
			break
		}
		copy(w, trial)
		copy(grad, trialGrad)
	}
	return best, nil
}

// newtonStep returns H⁻¹ grad.
func (r *Risk) newtonStep(w, grad []float64, t *team) ([]float64, error) {
	weights := make([]float64, r.X.n)
	t.each(func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			weights[i] = r.Loss.bend(r.X.dot(i, w)) / float64(r.X.n)
		}
	})
	if r.X.d > maxDense {
		return r.conjugate(grad, weights, t), nil
	}
	h := r.hessian(weights)
	var chol mat.Cholesky
	for ridge := 0.0; ; ridge = math.Max(10*ridge, 1e-16*mat.Trace(h)) {
		if ridge > 0 {
			for j := range r.X.d {
				h.SetSym(j, j, h.At(j, j)+ridge)
			}
		}
		if chol.Factorize(h) {
			break
		}
		if ridge > mat.Trace(h) || math.IsNaN(ridge) {
			return nil, fmt.Errorf("convex: the Hessian of %d features is not positive: raise the regularisation",
				r.X.d)
		}
	}
	step := mat.NewVecDense(r.X.d, nil)
	if err := chol.SolveVecTo(step, mat.NewVecDense(r.X.d, grad)); err != nil {
		if c := mat.Condition(0); !errors.As(err, &c) {
			return nil, fmt.Errorf("convex: Newton's system: %w", err)
		}
	}
	return step.RawVector().Data, nil
}

// hessian returns XᵀDX + Reg·I.
func (r *Risk) hessian(weights []float64) *mat.SymDense {
	d := r.X.d
	h := mat.NewSymDense(d, nil)
	raw := h.RawSymmetric()
	if r.X.index == nil {
		const rows = 256
		scaled := make([]float64, rows*d)
		for lo := 0; lo < r.X.n; lo += rows {
			hi := min(lo+rows, r.X.n)
			for i := lo; i < hi; i++ {
				_, x := r.X.Row(i)
				floats.ScaleTo(scaled[(i-lo)*d:(i-lo+1)*d], math.Sqrt(weights[i]), x)
			}
			blas64.Syrk(blas.Trans, 1, blas64.General{Rows: hi - lo, Cols: d, Stride: d, Data: scaled}, 1, raw)
		}
	} else {
		for i := range r.X.n {
			columns, x := r.X.Row(i)
			for a, j := range columns {
				row, s := raw.Data[int(j)*raw.Stride:], weights[i]*x[a]
				for b := a; b < len(columns); b++ {
					row[columns[b]] += s * x[b]
				}
			}
		}
	}
	for j := range d {
		raw.Data[j*raw.Stride+j] += r.Reg
	}
	return h
}

// conjugate solves (XᵀDX + Reg·I) s = grad by conjugate gradients with the diagonal as preconditioner.
func (r *Risk) conjugate(grad, weights []float64, t *team) []float64 {
	d := r.X.d
	diagonal := make([]float64, d)
	for i := range r.X.n {
		columns, x := r.X.Row(i)
		for k, v := range x {
			j := k
			if columns != nil {
				j = int(columns[k])
			}
			diagonal[j] += weights[i] * v * v
		}
	}
	for j := range diagonal {
		if diagonal[j] += r.Reg; diagonal[j] == 0 {
			diagonal[j] = 1
		}
	}
	product := newProduct(r.X, t)
	s, res := make([]float64, d), append([]float64(nil), grad...)
	z, q := make([]float64, d), make([]float64, d)
	floats.DivTo(z, res, diagonal)
	p := append([]float64(nil), z...)
	rho, norm := floats.Dot(res, z), floats.Norm(grad, 2)
	goal := norm * math.Min(0.1, math.Max(math.Sqrt(norm), 1e-8))
	for range 2000 {
		if floats.Norm(res, 2) <= goal {
			break
		}
		product.apply(q, p, weights)
		floats.AddScaled(q, r.Reg, p)
		curve := floats.Dot(p, q)
		if !(curve > 0) {
			break
		}
		a := rho / curve
		floats.AddScaled(s, a, p)
		floats.AddScaled(res, -a, q)
		floats.DivTo(z, res, diagonal)
		next := floats.Dot(res, z)
		floats.AddScaledTo(p, z, next/rho, p)
		rho = next
	}
	return s
}
