package devicetest

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
)

// sgd tests Vector.SGD against its equations.
func (s *suite) sgd(t tester) {
	failures := 0
	for _, n := range lengths {
		for _, c := range steps(n) {
			if err := s.trajectory(n, c); err != nil {
				t.Errorf("%d elements, %+v: %v", n, c, err)
				if failures++; failures == 5 {
					t.Fatalf("further cases are left out")
				}
			}
		}
	}
}

// steps lists settings of SGD for n elements.
func steps(n int) []device.SGD {
	spans := []device.Span{{Off: n / 7, Len: n / 5}, {Off: n / 2, Len: n / 3}, {Off: n, Len: 0}}
	edges := []device.Span{{Off: 0, Len: n / 4}, {Off: n / 4, Len: n / 4}, {Off: n - n/8, Len: n / 8}}
	return []device.SGD{
		{Rate: .1, Scale: 1},
		{Rate: .1, Scale: 1, Decay: .01},
		{Rate: .1, Scale: 1, Momentum: .9},
		{Rate: .1, Scale: 1, Momentum: .9, Nesterov: true},
		{Rate: .1, Scale: .25, Momentum: .9, Decay: .01},
		{Rate: .1, Scale: 1. / 3, Momentum: .9, Decay: .01, Nesterov: true},
		{Rate: .1, Scale: 1, Decay: .5, NoDecay: spans},
		{Rate: .1, Scale: .5, Momentum: .9, Decay: .5, NoDecay: edges},
		{Rate: .1, Scale: 1, Momentum: .9, Decay: .5, Nesterov: true, NoDecay: spans},
		{Rate: .1, Scale: 1, Momentum: .9, Decay: .5, NoDecay: []device.Span{{Off: 0, Len: n}}},
	}
}

// trajectory makes three steps and compares them with the equations in float64.
func (s *suite) trajectory(n int, c device.SGD) error {
	w, m := s.numbers("w", n), make([]float64, n)
	v, err := s.vector(w)
	if err != nil {
		return err
	}
	defer v.Free()
	momentum, err := s.vector(m)
	if err != nil {
		return err
	}
	defer momentum.Free()
	for step := range 3 {
		g := s.numbers(fmt.Sprint("gradient", step), n)
		grad, err := s.vector(g)
		if err != nil {
			return err
		}
		defer grad.Free()
		if err := v.SGD(grad, momentum, c); err != nil {
			return err
		}
		for i := range w {
			decay := c.Decay
			if slices.ContainsFunc(c.NoDecay, func(d device.Span) bool { return d.Off <= i && i < d.Off+d.Len }) {
				decay = 0
			}
			d := c.Scale*g[i] + decay*w[i]
			m[i] = c.Momentum*m[i] + d
			if c.Nesterov {
				w[i] -= c.Rate * (d + c.Momentum*m[i])
			} else {
				w[i] -= c.Rate * m[i]
			}
		}
		if err := s.expect(fmt.Sprintf("momentum after step %d", step+1), momentum, m, s.rounding()); err != nil {
			return err
		}
		if err := s.expect(fmt.Sprintf("weights after step %d", step+1), v, w, s.rounding()); err != nil {
			return err
		}
		if err := s.expect("gradient", grad, g, 0); err != nil {
			return err
		}
	}
	return nil
}
