package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kern.Spread.
const (
	spreadRows = 8 * iota // [6]*float32
	_
	_
	_
	_
	_
	spreadColumns // int
	spreadStepC   // int
	spreadMask    // *int32
	spreadTo      // *float32
	spreadScratch // *float32
	spreadTiles   // int
	spreadDst     // *float32
	spreadStepT   // int
	spreadStepP   // int
	spreadAhead   // int
)

// Offsets of the fields of kern.Collect.
const (
	collectSrc      = 8 * iota // *float32
	collectStepT               // int
	collectStepP               // int
	collectScratch             // *float32
	collectDst                 // *float32
	collectStepRow             // int
	collectStepC               // int
	collectStepTile            // int
	collectRows                // int
	collectColumns             // int
	collectFrom                // *float32
	collectBias                // *float32
	collectFloor               // *float32
	collectMask                // *int32
)

// most is the number of registers that a transform in one dimension needs besides its numbers.
const most = 10

// winograd writes the transforms and returns their Go declarations and the value of kern.Winograd.
func winograd(s isa) (stubs, value string) {
	for _, k := range []struct {
		name string
		line line
	}{{"Source", sourceLine}, {"Grad", gradLine}, {"Weight", weightLine}} {
		name := s.name + k.name
		spread(name, s, k.line)
		stubs += fmt.Sprintf("\n//go:noescape\nfunc %s(a *Spread)\n", name)
		value += fmt.Sprintf("\t%s: %s,\n", k.name, name)
	}
	for _, k := range []struct {
		name string
		line line
	}{{"Result", resultLine}, {"WeightGrad", weightGradLine}} {
		value += fmt.Sprintf("\t%s: [2]func(*Collect){", k.name)
		for i, suffix := range []string{"", "Tail"} {
			name := s.name + k.name + suffix
			collect(name, s, k.line, i > 0)
			stubs += fmt.Sprintf("\n//go:noescape\nfunc %s(a *Collect)\n", name)
			value += name + ", "
		}
		value += "},\n"
	}
	return stubs, value
}

// spread transforms the columns of a row of tiles, then along the rows of each tile. In between the columns are in
// scratch, which already holds the columns outside the source.
func spread(name string, s isa, l line) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64())
	mask := s.regs[0]
	if s.masks {
		at := field(args, spreadMask)
		VMOVUPS(Mem{Base: at}, s.regs[0])
		VPMOVD2M(s.regs[0], reg.K1)
	} else {
		at := field(args, spreadMask)
		VMOVUPS(Mem{Base: at}, mask)
	}
	m := newMaths(s, 1, most, l)

	columns := field(args, spreadColumns)
	step, to := field(args, spreadStepC), field(args, spreadTo)
	rows := make([]reg.GPVirtual, l.in)
	for i := range rows {
		rows[i] = field(args, spreadRows+8*i)
	}
	var ahead reg.GPVirtual
	if l.in > tileTaps {
		ahead = field(args, spreadAhead)
	}
	off := GP64()
	XORQ(off, off)
	TESTQ(columns, columns)
	JZ(LabelRef("along"))
	Label("column")
	x := make([]reg.VecPhysical, l.in)
	for i := range x {
		x[i] = m.take()
		loadTail(Mem{Base: rows[i], Index: off, Scale: 1}, s, mask, x[i])
	}
	if l.in > tileTaps {
		// The rows that only the next row of tiles has.
		for _, row := range rows[l.in-tileResults:] {
			next := GP64()
			MOVQ(row, next)
			ADDQ(off, next)
			PREFETCHT0(Mem{Base: next, Index: ahead, Scale: 1})
		}
	}
	for i, y := range l.run(m, x) {
		VMOVUPS(y, Mem{Base: to, Disp: i * s.bytes})
		m.release(y)
	}
	ADDQ(step, off)
	ADDQ(U32(uint32(window*s.bytes)), to)
	DECQ(columns)
	JNZ(LabelRef("column"))

	Label("along")
	scratch, tiles := field(args, spreadScratch), field(args, spreadTiles)
	dst, stepT := field(args, spreadDst), field(args, spreadStepT)
	value := steps(field(args, spreadStepP))
	at := GP64()
	Label("tile")
	MOVQ(dst, at)
	for i := range window {
		for j := range x {
			x[j] = m.take()
			VMOVUPS(Mem{Base: scratch, Disp: (j*window + i) * s.bytes}, x[j])
		}
		for j, y := range l.run(m, x) {
			VMOVUPS(y, value(at, j))
			m.release(y)
		}
		if i < window-1 {
			nextRow(at, value)
		}
	}
	ADDQ(U32(uint32(tileResults*window*s.bytes)), scratch)
	ADDQ(stepT, dst)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// steps returns the addresses of the first six elements that are step apart.
func steps(step reg.GPVirtual) func(base reg.GPVirtual, i int) Mem {
	step3, step5 := GP64(), GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	LEAQ(Mem{Base: step, Index: step, Scale: 4}, step5)
	return func(base reg.GPVirtual, i int) Mem {
		switch i {
		case 1, 2, 4:
			return Mem{Base: base, Index: step, Scale: uint8(i)}
		case 3:
			return Mem{Base: base, Index: step3, Scale: 1}
		case 5:
			return Mem{Base: base, Index: step5, Scale: 1}
		case 6:
			return Mem{Base: base, Index: step3, Scale: 2}
		}
		return Mem{Base: base}
	}
}

// nextRow moves base on by six values.
func nextRow(base reg.GPVirtual, value func(reg.GPVirtual, int) Mem) { LEAQ(value(base, window), base) }

// collect transforms along the rows of each tile, then along its columns.
func collect(name string, s isa, l line, part bool) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args := Load(Param("a"), GP64())
	bias, floor, mask := s.regs[0], s.regs[1], s.regs[2]
	VMOVUPS(Mem{Base: field(args, collectBias)}, bias)
	VMOVUPS(Mem{Base: field(args, collectFloor)}, floor)
	taken := 2
	if part {
		VMOVUPS(Mem{Base: field(args, collectMask)}, mask)
		if s.masks {
			VPMOVD2M(mask, reg.K1)
		} else {
			taken = 3
		}
	}
	m := newMaths(s, taken, most, l)

	src, scratch := field(args, collectSrc), field(args, collectScratch)
	dst, from := field(args, collectDst), field(args, collectFrom)
	left := field(args, collectColumns)
	// Rows that are not written share the address of the first row, which is written last.
	stepRow, rows := field(args, collectStepRow), field(args, collectRows)
	row := make([]reg.GPVirtual, l.out)
	for r := 1; r < l.out; r++ {
		row[r] = GP64()
		XORQ(row[r], row[r])
		off := GP64()
		MOVQ(stepRow, off)
		if r == 2 {
			ADDQ(stepRow, off)
		}
		if r == 3 {
			LEAQ(Mem{Base: stepRow, Index: stepRow, Scale: 2}, off)
		}
		CMPQ(rows, Imm(uint64(r)))
		CMOVQGT(off, row[r])
	}
	value := steps(field(args, collectStepP))
	Label("tile")
	at := GP64()
	MOVQ(src, at)
	x := make([]reg.VecPhysical, l.in)
	for i := range window {
		for j := range x {
			x[j] = m.take()
			VMOVUPS(value(at, j), x[j])
		}
		for c, y := range l.run(m, x) {
			VMOVUPS(y, Mem{Base: scratch, Disp: (c*window + i) * s.bytes})
			m.release(y)
		}
		if i < window-1 {
			nextRow(at, value)
		}
	}
	ADDQ(Mem{Base: args, Disp: collectStepT}, src)

	place := func(base reg.GPVirtual, r int) Mem {
		if r == 0 {
			return Mem{Base: base}
		}
		return Mem{Base: base, Index: row[r], Scale: 1}
	}
	to, more := GP64(), GP64()
	// The next tile, so that its stores do not wait.
	MOVQ(dst, to)
	ADDQ(Mem{Base: args, Disp: collectStepTile}, to)
	for c := range l.out {
		if c > 0 {
			ADDQ(Mem{Base: args, Disp: collectStepC}, to)
		}
		for r := range l.out {
			PREFETCHT0(place(to, r))
		}
	}
	MOVQ(dst, to)
	MOVQ(from, more)
	for c := range l.out {
		if c > 0 {
			CMPQ(left, Imm(uint64(c)))
			JLE(LabelRef("next"))
			ADDQ(Mem{Base: args, Disp: collectStepC}, to)
			ADDQ(Mem{Base: args, Disp: collectStepC}, more)
		}
		for i := range x {
			x[i] = m.take()
			VMOVUPS(Mem{Base: scratch, Disp: (c*window + i) * s.bytes}, x[i])
		}
		y := l.run(m, x)
		for _, v := range y {
			VADDPS(bias, v, v)
		}
		set := fmt.Sprintf("set%d", c)
		TESTQ(from, from)
		JZ(LabelRef(set))
		for r, v := range y {
			if part {
				other := m.take()
				loadTail(place(more, r), s, mask, other)
				VADDPS(other, v, v)
				m.release(other)
				continue
			}
			VADDPS(place(more, r), v, v)
		}
		Label(set)
		for r := l.out - 1; r >= 0; r-- {
			VMAXPS(y[r], floor, y[r]) // NaN and −0 stay
			if part {
				storeTail(place(to, r), s, mask, y[r])
			} else {
				VMOVUPS(y[r], place(to, r))
			}
			m.release(y[r])
		}
	}
	Label("next")
	stepTile := field(args, collectStepTile)
	ADDQ(stepTile, dst)
	TESTQ(from, from)
	JZ(LabelRef("stay"))
	ADDQ(stepTile, from)
	Label("stay")
	SUBQ(Imm(uint64(l.out)), left)
	JG(LabelRef("tile"))
	VZEROUPPER()
	RET()
}
