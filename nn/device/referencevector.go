package device

import (
	"fmt"
	"math"
)

// referenceVector is a HostVector with the arithmetic written as its equations are.
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
	k, err := KernelsOf[T](u.Optimizer)
	if err != nil {
		return err
	}
	parts := u.Parts(nil, v.Len(), max(v.Len(), 1))
	ratios := make([]float64, max(len(u.Tensors), 1))
	for i := range ratios {
		ratios[i] = 1
	}
	if u.Clips() {
		n = u.ClippedFor(n, norm(p.G))
	}
	if o, ok := u.Optimizer.(Adaptive); ok {
		for _, part := range parts {
			var sums [2][8]float64
			c := In[T](o.Coefficients(part.Numbers(n), part.Decays, 1))
			k.Measure(p.Of(part.Span), &c, &sums)
			if part.Decays {
				ratios[part.Tensor] = o.Ratio(n, Sum(sums[0]), Sum(sums[1]))
			}
		}
	}
	for _, part := range parts {
		c := In[T](u.Optimizer.Coefficients(part.Numbers(n), part.Decays, ratios[part.Tensor]))
		k.Apply(p.Of(part.Span), &c)
	}
	return nil
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
