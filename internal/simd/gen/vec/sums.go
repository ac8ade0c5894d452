package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columns is a kernel that sums down the columns of matrices whose rows are stride elements apart. The sums are float64
// and stay in registers for several columns at a time. It stores whole vectors of sums.
type columns struct {
	isa
	column, at reg.GPVirtual // bytes to the current columns: from the first, and from the first of the first row
	next       reg.GPVirtual // bytes to the data to prefetch meanwhile
	base       map[string]reg.Register

	tally
	mask *mask
}

func (k *columns) mem(name string) Mem {
	return Mem{Base: k.base[name], Index: k.at, Scale: 1, Disp: k.unit * k.Bytes()}
}

func (k *columns) in(name string) reg.VecVirtual {
	m := k.mem(name)
	if k.mask == nil && m.Disp%line == 0 {
		PREFETCHT1(Mem{Base: m.Base, Index: k.next, Scale: 1, Disp: m.Disp})
	}
	return k.Load(m, k.mask)
}

func (k *columns) out(name string, x reg.VecVirtual) { k.Store(x, k.mem(name), k.mask) }

func (k *columns) passed(y, dy reg.VecVirtual) reg.VecVirtual { return k.isa.Passed(y, dy, k.Zero()) }

// tally are float64 sums in registers, by name and by unit: that of the current vector.
type tally struct {
	unit int
	sums map[string][][2]reg.VecVirtual
}

func newTally() tally { return tally{sums: make(map[string][][2]reg.VecVirtual)} }

func (t *tally) accumulate(to string, d [2]reg.VecVirtual) {
	for i, s := range t.sums[to][t.unit] {
		VADDPD(d[i], s, s)
	}
}

func (t *tally) multiply(to string, a, b [2]reg.VecVirtual) {
	for i, s := range t.sums[to][t.unit] {
		VFMADD231PD(a[i], b[i], s)
	}
}

// total is half of the sums of the current vector.
func (k *columns) total(name string, i int) Mem {
	return Mem{Base: k.base[name], Index: k.column, Scale: 2, Disp: (2*k.unit + i) * k.Bytes()}
}

func (k *columns) fetch(name string) {
	for i := range 2 {
		sum := k.Vector()
		VMOVUPD(k.total(name, i), sum)
		k.sums[name][k.unit][i] = sum
	}
}

func (k *columns) leave(name string) {
	for i, sum := range k.sums[name][k.unit] {
		VMOVUPD(sum, k.total(name, i))
	}
}

// open begins a kernel with the given sums, matrices and, if not empty, a row beside them, and loads their addresses.
func (s isa) open(name, sums, matrices, row string) (k *columns, totals, names []string) {
	k = &columns{isa: s, base: make(map[string]reg.Register), tally: newTally()}
	totals, names = strings.Fields(sums), strings.Fields(matrices)
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
	return k, totals, names
}

// columns generates a kernel with the given sums, matrices and, if not empty, a row beside them. It processes the
// given number of vectors at a time.
func (s isa) columns(name, sums, matrices, row string, vectors int, body func(k *columns, row reg.VecVirtual)) {
	k, totals, _ := s.open(name, sums, matrices, row)
	n, stride := Load(Param("width"), GP64()), Load(Param("stride"), GP64())
	SHLQ(Imm(2), stride)
	k.column, k.at, k.next = GP64(), GP64(), GP64() // next: the same columns, as many rows further down
	XORQ(k.column, k.column)
	left := GP64()

	block := func(label string, vectors int) {
		for _, t := range totals {
			k.sums[t] = make([][2]reg.VecVirtual, vectors)
			for k.unit = range vectors {
				k.fetch(t)
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
			for k.unit = range vectors {
				k.leave(t)
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

// rowwiseAhead is the prefetch distance of matrices in rows.
const rowwiseAhead = 2

// rowwise generates such a kernel that processes row by row and keeps the sums in memory. It serves several matrices:
// the processor does not prefetch columns of two of them in time, and cache lines of rows a power of two apart would be
// evicted before their other columns are read.
func (s isa) rowwise(name, sums, matrices, row string, body func(k *columns, row reg.VecVirtual)) {
	k, totals, names := s.open(name, sums, matrices, row)
	stride, left := Load(Param("stride"), GP64()), Load(Param("rows"), GP64())
	SHLQ(Imm(2), stride)
	n, width := GP64(), Load(Param("width"), GP64())
	k.column, k.next = GP64(), GP64()
	k.at = k.column

	Label("row")
	XORQ(k.column, k.column)
	IMUL3Q(Imm(rowwiseAhead), stride, k.next)
	MOVQ(width, n)
	vector := func() {
		for _, t := range totals {
			k.sums[t] = make([][2]reg.VecVirtual, k.unit+1)
			k.fetch(t)
		}
		var side reg.VecVirtual
		if row != "" {
			side = k.Load(k.mem(row), k.mask)
		}
		body(k, side)
		for _, t := range totals {
			k.leave(t)
		}
	}
	next := func(vectors int) {
		ADDQ(U32(uint32(vectors*s.Bytes())), k.column)
		ADDQ(U32(uint32(vectors*s.Bytes())), k.next)
		SUBQ(Imm(uint64(vectors*s.Lanes)), n)
	}
	const unroll = 2
	SUBQ(Imm(uint64(unroll*s.Lanes)), n)
	JL(LabelRef("rest"))
	Label("whole")
	for k.unit = range unroll {
		vector()
	}
	next(unroll)
	JGE(LabelRef("whole"))
	Label("rest")
	k.unit = 0
	ADDQ(Imm(uint64(unroll*s.Lanes)), n)
	JLE(LabelRef("done"))
	Label("part")
	k.mask = s.First(n)
	vector()
	next(1)
	JG(LabelRef("part"))
	Label("done")
	for _, m := range names {
		ADDQ(stride, k.base[m])
	}
	DECQ(left)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

func sums(s isa) {
	for _, g := range columnSums[reg.VecVirtual, [2]reg.VecVirtual]() {
		body := func(k *columns, row reg.VecVirtual) { g.body(k, row) }
		switch {
		case g.several: // in memory's order, which the processor prefetches
			s.rowwise(g.name, g.sums, g.matrices, g.row, body)
		case s.Masks: // four vectors are a row of 64 channels, so that memory is read in its order
			s.columns(g.name, g.sums, g.matrices, g.row, 4, body)
		default:
			s.columns(g.name, g.sums, g.matrices, g.row, 2, body)
		}
	}
}
