package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// stream is a kernel that runs along a row of float64 and, from byte off on, along several vectors. It also prefetches
// the next data.
type stream struct {
	isa
	format
	row  reg.Register
	v    []reg.Register
	at   reg.GPVirtual // bytes of the vectors
	unit int           // the current vector of lanes
	coef []reg.VecVirtual
}

func (k *stream) load(i int) reg.VecVirtual {
	return k.widen(k.format, Mem{Base: k.v[i], Index: k.at, Scale: 1, Disp: k.unit * k.Lanes * k.size})
}

func (k *stream) get() reg.VecVirtual {
	x := k.Vector()
	VMOVUPD(k.rowMem(0), x)
	return x
}

func (k *stream) set(i int, x reg.VecVirtual)                        { VMOVUPD(x, k.rowMem(i)) }
func (k *stream) sub(a, b reg.VecVirtual) reg.VecVirtual             { return k.Sub(a, b) }
func (k *stream) addTimes(y reg.VecVirtual, i int, x reg.VecVirtual) { VFMADD231PD(x, k.coef[i], y) }

func (k *stream) rowMem(i int) Mem { return Mem{Base: k.row, Disp: i*pitch + k.unit*k.Bytes()} }

// stream generates a kernel over the given number of vectors.
func (s isa) stream(f format, name, args string, vectors int, begin func(k *stream), body func(k *stream),
	end func(k *stream)) {
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

// rows generates kernels that set rows.
func rows(s isa, f format, list []setter[reg.VecVirtual]) {
	nothing := func(*stream) {}
	for _, g := range list {
		s.stream(f, g.name, "", g.vectors, nothing, func(k *stream) { g.body(k) }, nothing)
	}
}

// residuals generates the kernels that multiply a row by residuals.
func residuals(s isa, f format) {
	if f.size < 4 {
		return
	}
	for _, g := range dots[reg.VecVirtual]() {
		var table reg.Register
		parts := sumLanes / s.Lanes
		sums := make([]reg.VecVirtual, g.products*parts)
		each := func(f func(sum reg.VecVirtual, m Mem)) {
			for i := range sums {
				f(sums[i], Mem{Base: table, Disp: i * s.Bytes()})
			}
		}
		s.stream(f, g.name, fmt.Sprintf(", sums *[%d]float64", 4*sumLanes), g.vectors, func(*stream) {
			table = Load(Param("sums"), GP64())
			for i := range sums {
				sums[i] = s.Vector()
			}
			each(func(sum reg.VecVirtual, m Mem) { VMOVUPD(m, sum) })
		}, func(k *stream) {
			row := k.get()
			var terms []reg.VecVirtual
			g.residuals(k, func(_ int, x reg.VecVirtual) { terms = append(terms, x) })
			for i, x := range terms {
				VFMADD231PD(x, row, sums[i*parts+k.unit%parts])
			}
		}, func(*stream) { each(func(sum reg.VecVirtual, m Mem) { VMOVUPD(sum, m) }) })
	}
}

// combinations generates the kernels of adders.
func combinations(s isa, f format) {
	for i, name := range adders {
		s.stream(f, name, ", coef *[4]float64", i+1, func(k *stream) {
			table := Load(Param("coef"), GP64())
			for j := range i + 1 {
				k.coef = append(k.coef, s.Vector())
				VBROADCASTSD(Mem{Base: table, Disp: 8 * j}, k.coef[j])
			}
		}, func(k *stream) { addMultiples(k, i+1) }, func(*stream) {})
	}
}

// widen loads one vector of elements.
func (s isa) widen(f format, from Mem) reg.VecVirtual {
	x := s.Vector()
	switch f.name {
	case "Float64":
		VMOVUPD(from, x)
	case "Float32":
		VCVTPS2PD(from, x)
	case "Float16":
		VCVTPH2PS(from, s.Half(x))
		VCVTPS2PD(s.Half(x), x)
	case "BFloat16":
		VPMOVZXWD(from, s.Half(x))
		VPSLLD(Imm(16), s.Half(x), s.Half(x))
		VCVTPS2PD(s.Half(x), x)
	}
	return x
}
