package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// A Scheme is a method of the class that RNA accelerates (eq. general_iteration), by its coefficients:
//
//	x_i = g(y_{i-1}),   y_i = Σ_{j=1..i} α_j x_j + β_j y_{j-1},   x_0 = y_0,
//
// with Σ (α_j + β_j) = 1 and α_i ≠ 0. The zero Scheme is a method before its first iteration. Gradient descent has y_i
// = x_i, α = (0, …, 0, 1); Nesterov's method y_i = (1+β)x_i − βx_{i-1}; online RNA the coefficients c of each
// extrapolation, as long as the last is not 0.
type Scheme struct {
	columns [][]float64 // y_i = Σ_j columns[i-1][j] x_j
}

// Append adds an iteration: y_i for the i-th call, with i coefficients α and as many β. A nil β is zeros.
func (s *Scheme) Append(alpha, beta []float64) error {
	i := len(s.columns) + 1
	if beta == nil {
		beta = make([]float64, len(alpha))
	}
	if len(alpha) != i || len(beta) != i {
		return fmt.Errorf("rna: iteration %d of a scheme with %d alphas and %d betas", i, len(alpha), len(beta))
	}
	sum, size := 0.0, 0.0
	for j := range i {
		sum += alpha[j] + beta[j]
		size += math.Abs(alpha[j]) + math.Abs(beta[j])
	}
	if !(math.Abs(sum-1) <= 1e-12*size) {
		return fmt.Errorf("rna: coefficients of iteration %d of a scheme have the sum %v: it must be 1", i, sum)
	}
	if alpha[i-1] == 0 {
		return fmt.Errorf("rna: iteration %d of a scheme leaves its newest x out: alpha_%d must not be 0", i, i)
	}
	column := make([]float64, i+1)
	copy(column[1:], alpha)
	for j, b := range beta { // of y_j
		for k, v := range s.column(j) {
			column[k] += b * v
		}
	}
	s.columns = append(s.columns, column)
	return nil
}

// Len is the number of iterations.
func (s *Scheme) Len() int { return len(s.columns) }

// column is y_i in terms of x_0 … x_i.
func (s *Scheme) column(i int) []float64 {
	if i == 0 {
		return []float64{1}
	}
	return s.columns[i-1]
}

// Y writes y_i = [x_0 … x_i] L_i e_i to dst, for i from 0 to Len.
func (s *Scheme) Y(dst []float64, xs [][]float64, i int) {
	clear(dst)
	for j, a := range s.column(i) {
		for k, v := range xs[j] {
			dst[k] += a * v
		}
	}
}

// L is the upper triangular matrix of eq. (recurence_L) after i iterations, Y = [x_0, X] L, whose columns sum to one:
// that of y_0 … y_i, of order i+1.
func (s *Scheme) L(i int) *mat.TriDense {
	l := mat.NewTriDense(i+1, mat.Upper, nil)
	for j := range i + 1 {
		for k, v := range s.column(j) {
			l.SetTri(k, j, v)
		}
	}
	return l
}

// Norms are ‖L_1‖₂ … ‖L_i‖₂, of the matrices after 1 to i iterations.
func (s *Scheme) Norms(i int) []float64 {
	norms := make([]float64, i)
	for j := range norms {
		var svd mat.SVD
		if svd.Factorize(s.L(j+1), mat.SVDNone) {
			norms[j] = svd.Values(nil)[0]
		}
	}
	return norms
}

// Polynomial is p_i of the proposition on polynomials (poly_iter), by its coefficients, that of 1 first: for a linear
// g(y) = G(y − x*) + x*, y_i = x* + p_i(G)(x_0 − x*). Its degree is i exactly, and p_i(1) = 1.
func (s *Scheme) Polynomial(i int) []float64 {
	ps := make([][]float64, i+1)
	for k := range ps {
		ps[k] = make([]float64, k+1)
		for j, a := range s.column(k) {
			if j == 0 {
				ps[k][0] += a
				continue
			}
			for m, v := range ps[j-1] { // x_j − x* = G(y_{j-1} − x*)
				ps[k][m+1] += a * v
			}
		}
	}
	return ps[i]
}
