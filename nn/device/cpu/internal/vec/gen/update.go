package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// coefficients are the numbers that an optimiser's kernel takes. They stay in registers where there are enough.
type coefficients struct {
	*stream
	from reg.Register
	kept []reg.VecVirtual
}

func (k *stream) coefficients(n int) *coefficients {
	c := &coefficients{stream: k, from: Load(Param("c"), GP64())}
	if k.Masks || n <= 4 {
		for i := range n {
			c.kept = append(c.kept, c.load(i))
		}
	}
	return c
}

func (c *coefficients) load(i int) reg.VecVirtual {
	x := c.Vector()
	VBROADCASTSS(Mem{Base: c.from, Disp: 4 * i}, x)
	return x
}

func (c *coefficients) at(i int) reg.VecVirtual {
	if c.kept != nil {
		return c.kept[i]
	}
	return c.load(i)
}

// apply generates the kernel of package device that changes parameters w by their gradient g and the state a and b.
func (s isa) apply(name string, n int, body func(c *coefficients)) {
	s.stream(name, "w g a b", "", "c *[8]float32)", func(k *stream) (func(), func()) {
		c := k.coefficients(n)
		return func() { body(c) }, nil
	})
}

// measure generates a kernel that adds up the squares of two quantities, those of element i to sums i%8.
func (s isa) measure(name string, n int, body func(c *coefficients) (x, y reg.VecVirtual)) {
	s.stream(name, "w g a b", "", "c *[8]float32, sums *[2][8]float64)", func(k *stream) (func(), func()) {
		c := k.coefficients(n)
		var acc [2][]reg.VecVirtual
		for i := range acc {
			for range 16 / s.Lanes {
				acc[i] = append(acc[i], s.Zero())
			}
		}
		add := func(acc []reg.VecVirtual, x reg.VecVirtual) {
			for i, d := range s.doubles(x) {
				VFMADD231PD(d, d, acc[i%len(acc)])
			}
		}
		return func() {
				x, y := body(c)
				add(acc[0], x)
				add(acc[1], y)
			}, func() {
				sums := Load(Param("sums"), GP64())
				for q, list := range acc {
					for i, a := range list {
						VMOVUPD(a, Mem{Base: sums, Disp: q*64 + i*s.Bytes()})
					}
				}
			}
	})
}

func updates(s isa) {
	for _, nesterov := range []bool{false, true} {
		name := "momentum"
		if nesterov {
			name = "nesterov"
		}
		s.apply(name, 4, func(c *coefficients) {
			rate, momentum, decay, scale := c.at(0), c.at(1), c.at(2), c.at(3)
			w := c.in("w")
			d := s.Add(s.Mul(scale, c.in("g")), s.Mul(decay, w))
			u := s.Add(s.Mul(momentum, c.in("a")), d)
			c.out("a", u)
			if nesterov {
				u = s.Add(d, s.Mul(momentum, u))
			}
			c.out("w", s.Sub(w, s.Mul(rate, u)))
		})
	}
	s.apply("adamW", 7, func(c *coefficients) {
		m, v := c.moments()
		c.out("w", s.Sub(s.Mul(c.at(6), c.in("w")), s.div(s.Mul(c.at(5), m), s.Add(s.sqrt(v), c.at(4)))))
	})
	s.measure("larsNorms", 0, func(c *coefficients) (x, y reg.VecVirtual) { return c.in("w"), c.in("g") })
	s.measure("lambNorms", 7, func(c *coefficients) (x, y reg.VecVirtual) {
		m, v := c.moments()
		w := c.in("w")
		return w, c.some(c.lambStep(w, m, v))
	})
	s.apply("lamb", 8, func(c *coefficients) {
		w := c.in("w")
		c.out("w", s.Sub(w, s.Mul(c.at(7), c.lambStep(w, c.in("a"), c.in("b")))))
	})
}

// moments moves the averages of the gradient and of its square.
func (c *coefficients) moments() (m, v reg.VecVirtual) {
	s := c.isa
	g := c.in("g")
	d := s.Mul(c.at(3), g)
	m = s.Add(s.Mul(c.at(0), c.in("a")), s.Mul(c.at(1), g))
	v = s.Add(s.Mul(c.at(2), c.in("b")), s.Mul(d, d))
	c.out("a", m)
	c.out("b", v)
	return m, v
}

func (c *coefficients) lambStep(w, m, v reg.VecVirtual) reg.VecVirtual {
	s := c.isa
	return s.Add(s.div(s.Mul(c.at(5), m), s.Add(s.sqrt(v), c.at(4))), s.Mul(c.at(6), w))
}

// some is x, and 0 in lanes that do not count.
func (c *coefficients) some(x reg.VecVirtual) reg.VecVirtual {
	switch {
	case c.mask == nil:
	case c.Masks:
		VMOVAPS_Z(x, c.mask.Opmask(), x)
	default:
		VANDPS(c.mask.Vector(), x, x)
	}
	return x
}

func (s isa) div(a, b reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	VDIVPS(b, a, x)
	return x
}

func (s isa) sqrt(a reg.VecVirtual) reg.VecVirtual {
	x := s.Vector()
	VSQRTPS(a, x)
	return x
}
