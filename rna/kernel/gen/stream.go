package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// stream is a kernel that runs along a row of float64 and, from byte off on, some vectors beside it. As it does, it
// prefetches what is read next.
type stream struct {
	isa
	format
	row  reg.Register
	v    []reg.Register
	at   reg.GPVirtual // bytes of the vectors
	unit int           // the vector of lanes in hand
}

func (k *stream) load(i int) reg.VecVirtual {
	return k.widen(k.format, Mem{Base: k.v[i], Index: k.at, Scale: 1, Disp: k.unit * k.Lanes * k.size})
}

func (k *stream) rowMem(i int) Mem { return Mem{Base: k.row, Disp: i*pitch + k.unit*k.Bytes()} }

// stream generates a kernel over so many vectors.
func (s isa) stream(f format, name, args string, vectors int, begin func(k *stream), body func(k *stream), end func(k *stream)) {
	TEXT(name+f.name+s.Suffix, NOSPLIT, "func(row []float64, v *[5]*byte, next *[4]uintptr, off int"+args+")")
	Pragma("noescape")
	k := &stream{isa: s, format: f, row: Load(Param("row").Base(), GP64()), at: GP64()}
	n := Load(Param("row").Len(), GP64())
	table := Load(Param("v"), GP64())
	for i := range vectors {
		k.v = append(k.v, GP64())
		MOVQ(Mem{Base: table, Disp: 8 * i}, k.v[i])
	}
	var next [4]reg.GPVirtual
	fetched := next[:min(vectors, len(next))]
	Load(Param("next"), table)
	for i := range fetched {
		fetched[i] = GP64()
		MOVQ(Mem{Base: table, Disp: 8 * i}, fetched[i])
	}
	begin(k)
	Load(Param("off"), k.at)
	SUBQ(Imm(group), n)
	JL(LabelRef("done"))
	Label("loop")
	for k.unit = range group / s.Lanes {
		if disp := k.unit * s.Lanes * f.size; disp%line == 0 {
			for _, p := range fetched {
				PREFETCHT0(Mem{Base: p, Index: k.at, Scale: 1, Disp: disp})
			}
		}
		body(k)
	}
	ADDQ(Imm(8*group), k.row)
	ADDQ(Imm(uint64(f.size*group)), k.at)
	SUBQ(Imm(group), n)
	JGE(LabelRef("loop"))
	Label("done")
	end(k)
	VZEROUPPER()
	RET()
}

// residuals generates the kernels that set rows to residuals, and that multiply a row and residuals: a vector
// itself, a difference of two, or four of successive ones of five.
func residuals(s isa, f format) {
	nothing := func(*stream) {}
	diff := func(x, y reg.VecVirtual) reg.VecVirtual {
		d := s.Vector()
		VSUBPD(y, x, d)
		return d
	}
	s.stream(f, "set", "", 1, nothing, func(k *stream) { VMOVUPD(k.load(0), k.rowMem(0)) }, nothing)
	s.stream(f, "setDiff", "", 2, nothing, func(k *stream) { VMOVUPD(diff(k.load(1), k.load(0)), k.rowMem(0)) }, nothing)
	s.stream(f, "setFour", "", 5, nothing, func(k *stream) {
		before := k.load(0)
		for i := range 4 {
			now := k.load(i + 1)
			VMOVUPD(diff(now, before), k.rowMem(i))
			before = now
		}
	}, nothing)
	if f.size < 4 {
		return
	}
	dot := func(name string, vectors, count int, terms func(k *stream) []reg.VecVirtual) {
		var table reg.Register
		parts := sumLanes / s.Lanes
		sums := make([]reg.VecVirtual, count*parts)
		each := func(f func(sum reg.VecVirtual, m Mem)) {
			for i := range sums {
				f(sums[i], Mem{Base: table, Disp: i * s.Bytes()})
			}
		}
		s.stream(f, name, fmt.Sprintf(", sums *[%d]float64", 4*sumLanes), vectors, func(*stream) {
			table = Load(Param("sums"), GP64())
			for i := range sums {
				sums[i] = s.Vector()
			}
			each(func(sum reg.VecVirtual, m Mem) { VMOVUPD(m, sum) })
		}, func(k *stream) {
			row := s.Vector()
			VMOVUPD(k.rowMem(0), row)
			for i, t := range terms(k) {
				VFMADD231PD(t, row, sums[i*parts+k.unit%parts])
			}
		}, func(*stream) { each(func(sum reg.VecVirtual, m Mem) { VMOVUPD(sum, m) }) })
	}
	dot("dot", 1, 1, func(k *stream) []reg.VecVirtual { return []reg.VecVirtual{k.load(0)} })
	dot("dotDiff", 2, 1, func(k *stream) []reg.VecVirtual { return []reg.VecVirtual{diff(k.load(1), k.load(0))} })
	dot("dotFour", 5, 4, func(k *stream) (ds []reg.VecVirtual) {
		before := k.load(0)
		for i := range 4 {
			now := k.load(i + 1)
			ds = append(ds, diff(now, before))
			before = now
		}
		return ds
	})
}

// combinations generates the kernels that add multiples of one to four vectors to a row.
func combinations(s isa, f format) {
	for i, name := range []string{"addOne", "addTwo", "addThree", "addFour"} {
		var coef []reg.VecVirtual
		s.stream(f, name, ", coef *[4]float64", i+1, func(*stream) {
			table := Load(Param("coef"), GP64())
			for k := range i + 1 {
				coef = append(coef, s.Vector())
				VBROADCASTSD(Mem{Base: table, Disp: 8 * k}, coef[k])
			}
		}, func(k *stream) {
			sum := s.Vector()
			VMOVUPD(k.rowMem(0), sum)
			for i, c := range coef {
				VFMADD231PD(k.load(i), c, sum)
			}
			VMOVUPD(sum, k.rowMem(0))
		}, func(*stream) {})
	}
}
