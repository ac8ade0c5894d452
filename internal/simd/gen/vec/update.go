package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// updates generates the optimisers' kernels. The measuring ones add squares of element i to sum i%8.
func (s isa) updates() {
	for _, u := range optimisers[reg.VecVirtual]() {
		s.stream(u.name, "w g a b", "", u.arguments(), func(k *stream) (func(), func()) {
			k.keep(u.coefficients)
			if u.measure == nil {
				return func() { u.step(k) }, nil
			}
			var acc [2][]reg.VecVirtual
			for i := range acc {
				for range 16 / s.Lanes {
					acc[i] = append(acc[i], s.Zero())
				}
			}
			add := func(acc []reg.VecVirtual, x reg.VecVirtual) {
				for i, d := range s.Doubles(x) {
					VFMADD231PD(d, d, acc[i%len(acc)])
				}
			}
			return func() {
					x, y := u.measure(k)
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
}

// keep keeps n coefficients in registers if enough are free.
func (k *stream) keep(n int) {
	k.c = Load(Param("c"), GP64())
	if k.Masks || n <= 4 {
		for i := range n {
			k.kept = append(k.kept, k.load(i))
		}
	}
}

func (k *stream) load(i int) reg.VecVirtual {
	x := k.Vector()
	VBROADCASTSS(Mem{Base: k.c, Disp: 4 * i}, x)
	return x
}

func (k *stream) coefficient(i int) reg.VecVirtual {
	if k.kept != nil {
		return k.kept[i]
	}
	return k.load(i)
}

func (k *stream) some(x reg.VecVirtual) reg.VecVirtual { return k.isa.some(x, k.mask) }

// some sets the lanes of x outside m to 0.
func (s isa) some(x reg.VecVirtual, m *mask) reg.VecVirtual {
	switch {
	case m == nil:
	case s.Masks:
		VMOVAPS_Z(x, m.Opmask(), x)
	default:
		VANDPS(m.Vector(), x, x)
	}
	return x
}
