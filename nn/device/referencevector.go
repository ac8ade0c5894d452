package device

import (
	"fmt"
	"math"
)

// referenceVector is a HostVector with the arithmetic written as its equations are. Products are converted
// before they are added: that keeps compilers from fusing the two, which rounds differently.
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

// SGD implements Vector.
func (v referenceVector[T]) SGD(grad, momentum Vector, s SGD) error {
	if err := s.Check(v.Len()); err != nil {
		return err
	}
	gs, err := HostElements[T](grad, v.Len())
	if err != nil {
		return fmt.Errorf("sgd: gradient: %w", err)
	}
	ms, err := HostElements[T](momentum, v.Len())
	if err != nil {
		return fmt.Errorf("sgd: momentum: %w", err)
	}
	noDecay := s.NoDecay
	for i, w := range v.data {
		for len(noDecay) > 0 && i >= noDecay[0].Off+noDecay[0].Len {
			noDecay = noDecay[1:]
		}
		g := T(T(s.Scale) * gs[i])
		if len(noDecay) == 0 || i < noDecay[0].Off {
			g += T(T(s.Decay) * w)
		}
		m := T(T(s.Momentum)*ms[i]) + g
		ms[i] = m
		if s.Nesterov {
			m = g + T(T(s.Momentum)*m)
		}
		v.data[i] = w - T(T(s.Rate)*m)
	}
	return nil
}

// Norm implements Vector.
func (v referenceVector[T]) Norm() (float64, error) {
	var sum float64
	for _, a := range v.data {
		sum += float64(float64(a) * float64(a))
	}
	return math.Sqrt(sum), nil
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
