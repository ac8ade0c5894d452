package devicetest

import (
	"fmt"
	"math"
)

// equal compares all results of two devices bit for bit.
func equal(t tester, a, b Open) {
	t.Helper()
	var both [2]*suite
	for i, open := range []Open{a, b} {
		d := opened(t, open)
		defer closed(t, d)
		both[i] = &suite{dev: d, dtype: d.DType()}
	}
	if both[0].dtype != both[1].dtype {
		t.Fatalf("devices of %v and %v", both[0].dtype, both[1].dtype)
	}
	d := both[0].dtype

	t.run("ops", func(t tester) {
		failures := 0
		for _, c := range opCases(d) {
			p := c.program(d)
			p.decompose(both[0].dev)
			if err := equalResults(both, p); err != nil {
				g, _ := p.Program.Group(0)
				t.Errorf("%v: %v", g, err)
				if failures++; failures == 5 {
					t.Fatalf("further cases are left out")
				}
			}
		}
	})
	t.run("programs", func(t tester) {
		for _, c := range nets {
			n := newNet(d, c.name)
			c.build(n)
			n.decompose(both[0].dev)
			if err := equalResults(both, n.program); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
	t.run("vectors", func(t tester) {
		for _, n := range append([]int{1 << 20}, lengths...) {
			if err := equalVectors(both, n); err != nil {
				t.Errorf("%d elements: %v", n, err)
			}
		}
	})
}

// equalResults runs p on both devices in all ways that they have.
func equalResults(both [2]*suite, p *program) error {
	var ways [2][]grouping
	for i, s := range both {
		var err error
		if ways[i], err = s.groupings(p); err != nil {
			return err
		}
	}
	if len(ways[0]) != len(ways[1]) {
		return fmt.Errorf("one device groups, the other does not")
	}
	for w, way := range ways[0] {
		first, err := both[0].once(way.program, way.groups)
		if err != nil {
			return fmt.Errorf("%s: first device: %w", way.name, err)
		}
		second, err := both[1].once(ways[1][w].program, ways[1][w].groups)
		if err != nil {
			return fmt.Errorf("%s: second device: %w", way.name, err)
		}
		for i, v := range p.Keep {
			if d := unequal(first[i], second[i]); d != "" {
				return fmt.Errorf("%s: %s differs between the devices: %s", way.name, p.Values[v].Name, d)
			}
		}
	}
	return nil
}

// equalVectors computes with vectors of n elements on both devices.
func equalVectors(both [2]*suite, n int) error {
	compare := func(name string, compute func(s *suite) ([]float64, error)) error {
		var results [2][]float64 // vectors, one after the other
		for i, s := range both {
			var err error
			if results[i], err = compute(s); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		for k, a := range results[0] {
			if b := results[1][k]; math.Float64bits(a) != math.Float64bits(b) {
				return fmt.Errorf("%s: element %d is %v and %v", name, k%n, a, b)
			}
		}
		return nil
	}
	if err := compare("arithmetic or norm", func(s *suite) ([]float64, error) { return s.arithmetic(n) }); err != nil {
		return err
	}
	for _, c := range equalCases(n) {
		if err := compare(c.o.Name(), func(s *suite) ([]float64, error) { return s.after(n, &c) }); err != nil {
			return err
		}
	}
	return nil
}

// arithmetic is a vector of n elements after AddScaled and Lerp, and then its norm.
func (s *suite) arithmetic(n int) ([]float64, error) {
	x, err := s.vector(s.numbers("x", n))
	if err != nil {
		return nil, err
	}
	defer x.Free()
	g, err := s.vector(s.numbers("g", n))
	if err != nil {
		return nil, err
	}
	defer g.Free()
	if err := x.AddScaled(1./3, g); err != nil {
		return nil, err
	}
	if err := x.Lerp(1./7, g); err != nil {
		return nil, err
	}
	norm, err := x.Norm()
	if err != nil {
		return nil, err
	}
	c, err := s.content(x)
	return append(c, norm), err
}

// equalCases are updateCases for short vectors. For long ones, whose parts are shared out, it is a step of the last
// case of each optimiser: the numbers for all of them take longer to make than to compute with.
func equalCases(n int) []updateCase {
	list := updateCases(n)
	if n < 1<<17 {
		return list
	}
	var last []updateCase
	for i, c := range list {
		if i+1 == len(list) || list[i+1].o.Name() != c.o.Name() {
			c.steps = 1
			last = append(last, c)
		}
	}
	return last
}

// after is the parameters and the state after the steps of a case.
func (s *suite) after(n int, c *updateCase) ([]float64, error) {
	v, err := updatedOn(s.dev, c.o, s.start(n, c))
	if err != nil {
		return nil, err
	}
	defer v.free()
	for step := 1; step <= c.steps; step++ {
		if err := v.grad.WriteAt64(s.numbers(fmt.Sprint("gradient", step), n), 0); err != nil {
			return nil, err
		}
		if err := v.w.Update(c.update(v, step)); err != nil {
			return nil, err
		}
	}
	return s.all(v)
}

// all is the parameters and the state.
func (s *suite) all(v *updated) ([]float64, error) {
	all, err := s.content(v.w)
	for _, x := range v.state {
		if err != nil {
			break
		}
		var more []float64
		more, err = s.content(x)
		all = append(all, more...)
	}
	return all, err
}
