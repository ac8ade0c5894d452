package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns is a kernel that sums down the columns of matrices whose rows lie stride elements apart. The sums are
// float64 and stay in registers for some columns at a time. What is stored of them is a whole number of vectors.
type columns struct {
	isa
	column, at reg.GPVirtual // bytes to the columns in hand: from the first, and from the first of the first row
	next       reg.GPVirtual // bytes to the same columns as many rows further down: what the next call is to read
	base       map[string]reg.Register
	sums       map[string][][2]reg.VecVirtual

	unit int
	mask *mask
}

func (k *columns) mem(name string) Mem {
	return Mem{Base: k.base[name], Index: k.at, Scale: 1, Disp: k.unit * k.Bytes()}
}

func (k *columns) in(name string) reg.VecVirtual {
	m := k.mem(name)
	if k.mask == nil && m.Disp%line == 0 {
		PREFETCHT0(Mem{Base: m.Base, Index: k.next, Scale: 1, Disp: m.Disp})
	}
	return k.Load(m, k.mask)
}

func (k *columns) out(name string, x reg.VecVirtual) { k.Store(x, k.mem(name), k.mask) }

func (k *columns) passed(y, dy reg.VecVirtual) reg.VecVirtual { return k.isa.passed(y, dy, k.Zero()) }

func (k *columns) accumulate(to string, d [2]reg.VecVirtual) {
	for i, s := range k.sums[to][k.unit] {
		VADDPD(d[i], s, s)
	}
}

func (k *columns) multiply(to string, a, b [2]reg.VecVirtual) {
	for i, s := range k.sums[to][k.unit] {
		VFMADD231PD(a[i], b[i], s)
	}
}

// columns generates a kernel with the given sums, matrices and, if not empty, a row beside them. vectors is how
// many are in hand.
func (s isa) columns(name, sums, matrices, row string, vectors int, body func(k *columns, row reg.VecVirtual)) {
	k := &columns{isa: s, base: make(map[string]reg.Register), sums: make(map[string][][2]reg.VecVirtual)}
	totals, names := strings.Fields(sums), strings.Fields(matrices)
	slices := names
	if row != "" {
		slices = append(slices[:len(slices):len(slices)], row)
	}
	TEXT(name+s.Suffix, NOSPLIT, fmt.Sprintf("func(%s []float64, %s []float32, width, stride, rows int)",
		strings.Join(totals, ", "), strings.Join(slices, ", ")))
	Pragma("noescape")
	for _, n := range append(totals, slices...) {
		k.base[n] = Load(Param(n).Base(), GP64())
	}
	n, stride := Load(Param("width"), GP64()), Load(Param("stride"), GP64())
	SHLQ(Imm(2), stride)
	k.column, k.at, k.next = GP64(), GP64(), GP64()
	XORQ(k.column, k.column)
	left := GP64()

	block := func(label string, vectors int) {
		half := func(name string, unit, i int) Mem {
			return Mem{Base: k.base[name], Index: k.column, Scale: 2, Disp: (2*unit + i) * s.Bytes()}
		}
		for _, t := range totals {
			k.sums[t] = make([][2]reg.VecVirtual, vectors)
			for unit := range k.sums[t] {
				for i := range 2 {
					k.sums[t][unit][i] = s.Vector()
					VMOVUPD(half(t, unit, i), k.sums[t][unit][i])
				}
			}
		}
		MOVQ(k.column, k.at)
		side := make([]reg.VecVirtual, vectors)
		if row != "" {
			for k.unit = range vectors {
				side[k.unit] = k.Load(k.mem(row), k.mask)
			}
		}
		Load(Param("rows"), left)
		MOVQ(stride, k.next)
		IMULQ(left, k.next)
		ADDQ(k.at, k.next)
		Label(label)
		for k.unit = range vectors {
			body(k, side[k.unit])
		}
		ADDQ(stride, k.at)
		ADDQ(stride, k.next)
		DECQ(left)
		JNZ(LabelRef(label))
		for _, t := range totals {
			for unit, halves := range k.sums[t] {
				for i, sum := range halves {
					VMOVUPD(sum, half(t, unit, i))
				}
			}
		}
		ADDQ(U32(uint32(vectors*s.Bytes())), k.column)
		SUBQ(Imm(uint64(vectors*s.Lanes)), n)
	}
	SUBQ(Imm(uint64(vectors*s.Lanes)), n)
	JL(LabelRef("rest"))
	Label("whole")
	block("row", vectors)
	JGE(LabelRef("whole"))
	Label("rest")
	ADDQ(Imm(uint64(vectors*s.Lanes)), n)
	JLE(LabelRef("done"))
	Label("part")
	k.mask = s.First(n.(reg.GPVirtual))
	block("partRow", 1)
	JG(LabelRef("part"))
	Label("done")
	VZEROUPPER()
	RET()
}

func sums(s isa) {
	// Four vectors are a row of 64 channels, so that memory is read in its order. AVX2 has too few registers.
	wide, narrow := 4, 4
	if !s.Masks {
		wide, narrow = 2, 1
	}
	for _, g := range columnSums[reg.VecVirtual, [2]reg.VecVirtual]() {
		vectors := wide
		if g.many {
			vectors = narrow
		}
		s.columns(g.name, g.sums, g.matrices, g.row, vectors, func(k *columns, row reg.VecVirtual) { g.body(k, row) })
	}
}
