package device

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/op/update"
)

// referenceVector is a HostVector with arithmetic written as in the equations.
type referenceVector[T Float] struct{ *HostVector[T] }

var (
	_ Vector = referenceVector[float32]{}
	_ Vector = referenceVector[float64]{}
)

func newReferenceVector[T Float](n int) (Vector, error) {
	v, err := NewHostVector[T](n)
	if err != nil {
		return nil, err
	}
	return referenceVector[T]{v}, nil
}

// AddScaled implements Vector.
func (v referenceVector[T]) AddScaled(a float64, x Vector) error {
	e, err := HostElements[T](x, v.Len())
	if err != nil {
		return fmt.Errorf("add scaled: %w", err)
	}
	for i, w := range v.data {
		v.data[i] = w + T(T(a)*e[i])
	}
	return nil
}

// Lerp implements Vector.
func (v referenceVector[T]) Lerp(a float64, x Vector) error {
	e, err := HostElements[T](x, v.Len())
	if err != nil {
		return fmt.Errorf("lerp: %w", err)
	}
	for i, w := range v.data {
		v.data[i] = w + T(T(a)*(e[i]-w))
	}
	return nil
}

// Update implements Vector.
func (v referenceVector[T]) Update(u Update) error {
	p, n, off, err := HostUpdate[T](v, &u)
	if err != nil || off {
		return err
	}
	if u.Clips() {
		n = u.ClippedFor(n, norm(p.G))
	}
	parts := u.Parts(nil, v.Len(), max(v.Len(), 1))
	ratios := make([]float64, max(len(u.Tensors), 1))
	for i := range ratios {
		ratios[i] = 1
	}
	for _, pass := range u.Passes() {
		program, next, definition := update.Compile(&pass), slices.Clone(ratios), update.Define[T](pass.Body)
		for _, part := range parts {
			if !part.Takes(pass.On) {
				continue
			}
			x := u.PartNumbers(n, part, ratios[part.Tensor])
			var sums update.Sums
			definition.Run(p.Of(part.Off, part.Len), program.Coefficients(&x), &sums)
			if pass.Measures() && part.Decays {
				x.Norms = [2]float64{math.Sqrt(sums.Total(0)), math.Sqrt(sums.Total(1))}
				next[part.Tensor] = program.Ratio(&x)
			}
			if pass.Orthogonal.Steps > 0 && part.Matrix >= 0 {
				orthogonalize(pass.Orthogonal, u.Matrices[part.Matrix],
					p.State[len(u.State)-1][part.Off:part.Off+part.Len])
			}
		}
		ratios = next
	}
	return nil
}

// orthogonalize defines update.NewtonSchulz, in float64. A transposed matrix is stored as its transpose, whose result
// is the transposed result.
func orthogonalize[T Float](o update.NewtonSchulz, m Matrix, elements []T) {
	rows, columns := m.Rows, m.Columns
	if m.Transposed {
		rows, columns = columns, rows
	}
	length := norm(elements)
	x := make([]float64, len(elements))
	for i, e := range elements {
		x[i] = float64(e) / max(length, o.Eps)
	}
	across := columns < rows // by XᵀX, which is smaller: X(XᵀX)ᵏ is (XXᵀ)ᵏX
	n := min(rows, columns)
	at := func(i, k int) float64 { // element k of row i of X, or of Xᵀ
		if across {
			return x[k*columns+i]
		}
		return x[i*columns+k]
	}
	product := func(k int, a, b func(i, k int) float64) []float64 {
		c := make([]float64, n*n)
		for i := range c {
			for j := range k {
				c[i] += float64(a(i/n, j) * b(i%n, j))
			}
		}
		return c
	}
	for range o.Steps {
		gram := product(max(rows, columns), at, at)
		g := func(i, k int) float64 { return gram[i*n+k] }
		p := product(n, g, g)
		for i := range p {
			p[i] = o.B*gram[i] + o.C*p[i]
		}
		next := make([]float64, len(x))
		for i := range next {
			r, c := i/columns, i%columns
			next[i] = o.A * x[i]
			for k := range n {
				if across {
					next[i] += float64(x[r*columns+k] * p[k*n+c])
				} else {
					next[i] += float64(p[r*n+k] * x[k*columns+c])
				}
			}
		}
		x = next
	}
	for i, a := range x {
		elements[i] = T(a)
	}
}

// Norm implements Vector.
func (v referenceVector[T]) Norm() (float64, error) { return norm(v.data), nil }

func norm[T Float](x []T) float64 {
	var sum float64
	for _, a := range x {
		sum += float64(float64(a) * float64(a))
	}
	return math.Sqrt(sum)
}

// Finite implements Vector.
func (v referenceVector[T]) Finite() (bool, error) {
	for _, a := range v.data {
		if d := a - a; d != 0 { // NaN for infinities and NaN
			return false, nil
		}
	}
	return true, nil
}
