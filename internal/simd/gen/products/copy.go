package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// copies, widens, narrows and packs are the arguments of kernels that go through rows.
const (
	copies  = "(dst, src *float32, rows, width, dstStride, srcStride int)"
	widens  = "(dst *float32, src *uint16, rows, width, dstStride, srcStride int)"
	narrows = "(dst *uint16, src *float32, rows, width, dstStride, srcStride int)"
	packs   = "(dst, src *float32, rows, panels, panelStride, srcStride int)"
)

// rowAt is the state of a kernel within a row: at elements are done, and at its end left elements remain.
// The rows of src are stride bytes apart.
type rowAt struct{ dst, src, at, left, stride reg.GPVirtual }

// eachRow is a kernel that processes rows step elements at a time, and times steps at once while they fit. begin comes
// before the first row; end handles the remainder of each row.
func eachRow(name, arguments string, step, times int, begin func(r rowAt), whole func(r rowAt, i int),
	end func(r rowAt)) {
	eachRowThen(name, arguments, step, times, begin, whole, end, func() {})
}

// eachRowThen is eachRow with then behind the last row.
func eachRowThen(name, arguments string, step, times int, begin func(r rowAt), whole func(r rowAt, i int),
	end func(r rowAt), then func()) {
	TEXT(name, NOSPLIT, "func"+arguments)
	r := rowAt{dst: GP64(), src: GP64(), at: GP64(), left: GP64()}
	Load(Param("dst"), r.dst)
	Load(Param("src"), r.src)
	rows, width := Load(Param("rows"), GP64()), Load(Param("width"), GP64())
	dstStride, srcStride := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64())
	MOVQ(width, r.left)
	ANDQ(Imm(uint64(step-1)), r.left)
	r.stride = srcStride.(reg.GPVirtual)
	begin(r)
	SUBQ(r.left, width)
	most := GP64()
	if times > 1 {
		MOVQ(width, most)
		ANDQ(I32(-step*times), most)
	}
	Label("row")
	XORQ(r.at, r.at)
	loop := func(name, next string, n int, to reg.Register) {
		CMPQ(r.at, to)
		JGE(LabelRef(next))
		Label(name)
		for i := range n {
			whole(r, i)
		}
		ADDQ(I32(n*step), r.at)
		CMPQ(r.at, to)
		JL(LabelRef(name))
		Label(next)
	}
	if times > 1 {
		loop("loops", "single", times, most)
	}
	loop("loop", "tail", 1, width)
	TESTQ(r.left, r.left)
	JZ(LabelRef("next"))
	end(r)
	Label("next")
	ADDQ(srcStride, r.src)
	ADDQ(dstStride, r.dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	then()
	VZEROUPPER()
	RET()
}

// in is step i, of the given bytes, from the current element of a slice on; size is that of its elements.
func (r rowAt) in(base reg.GPVirtual, size uint8, bytes, i int) Mem {
	return Mem{Base: base, Index: r.at, Scale: size, Disp: i * bytes}
}

// copyRows writes a copy of rows of width elements, rounded to bfloat16 or not. It reads nothing behind them, writes
// whole vectors and fills them with zeros.
func copyRows(name string, s isa, rounded bool) {
	x, mask := s.regs[0], s.regs[1]
	var c rounding
	store := func(r rowAt, i int) {
		if rounded {
			c.round(x)
		}
		VMOVUPS(x, r.in(r.dst, 4, s.bytes, i))
	}
	// Rows of a few lines are too short for the processor to read ahead by itself.
	const line, ahead, short = 64, 2, 8 // bytes; rows; rows that end with a part of a vector
	eachRow(name, copies, s.bytes/4, max(line/s.bytes, 1),
		func(r rowAt) {
			if rounded {
				c = newRounding(s, 2)
			}
			tail(r.left, s, mask)
		},
		func(r rowAt, i int) {
			if i == 0 {
				at := GP64()
				LEAQ(Mem{Base: r.src, Index: r.stride, Scale: ahead}, at)
				PREFETCHT0(r.in(at, 4, 0, 0))
			}
			VMOVUPS(r.in(r.src, 4, s.bytes, i), x)
			store(r, i)
		},
		func(r rowAt) {
			at := GP64()
			LEAQ(Mem{Base: r.src, Index: r.stride, Scale: short}, at)
			PREFETCHT0(r.in(at, 4, 0, 0))
			loadTail(r.in(r.src, 4, 0, 0), s, mask, x)
			store(r, 0)
		})
}

// pack copies rows into panels of step elements, moved as whole vectors: it reads the source row by row, in memory
// order.
func pack(name string, s isa, step int) {
	TEXT(name, NOSPLIT, "func"+packs)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	rows, panels := Load(Param("rows"), GP64()), Load(Param("panels"), GP64())
	panelStride, srcStride := Load(Param("panelStride"), GP64()), Load(Param("srcStride"), GP64())
	Label("row")
	to, from, n := GP64(), GP64(), GP64()
	MOVQ(dst, to)
	MOVQ(src, from)
	MOVQ(panels, n)
	Label("panel")
	for at := 0; at < 4*step; at += s.bytes {
		VMOVUPS(Mem{Base: from, Disp: at}, s.regs[at/s.bytes])
	}
	for at := 0; at < 4*step; at += s.bytes {
		VMOVUPS(s.regs[at/s.bytes], Mem{Base: to, Disp: at})
	}
	ADDQ(Imm(uint64(4*step)), from)
	ADDQ(panelStride, to)
	DECQ(n)
	JNZ(LabelRef("panel"))
	ADDQ(srcStride, src)
	ADDQ(Imm(uint64(4*step)), dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// interleave writes the two vectors of each pair of rows in the order in which pairs read them: lanes of four in the
// first vector hold the first two columns of both rows, those in the second vector the other two.
func interleave(name string, s isa) {
	TEXT(name, NOSPLIT, "func(x *float32, pairs int)")
	at, n := Load(Param("x"), GP64()), Load(Param("pairs"), GP64())
	a, b, low := s.regs[0], s.regs[1], s.regs[2]
	Label("loop")
	VMOVUPS(Mem{Base: at}, a)
	VMOVUPS(Mem{Base: at, Disp: s.bytes}, b)
	VUNPCKLPS(b, a, low)
	VUNPCKHPS(b, a, a)
	VMOVUPS(low, Mem{Base: at})
	VMOVUPS(a, Mem{Base: at, Disp: s.bytes})
	ADDQ(Imm(uint64(2*s.bytes)), at)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// turnSquares writes squares of 8×8 elements, side by side in 8 rows of src, as their transposes, one below the other.
func turnSquares(name string) {
	TEXT(name, NOSPLIT, "func(dst, src *float32, squares, dstStride, srcStride int)")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("squares"), GP64())
	type steps struct{ one, three, four reg.GPVirtual }
	stepsOf := func(param string) (s steps, double reg.GPVirtual) {
		s, double = steps{GP64(), GP64(), GP64()}, GP64()
		Load(Param(param), s.one)
		LEAQ(Mem{Base: s.one, Index: s.one, Scale: 2}, s.three)
		MOVQ(s.one, s.four)
		SHLQ(Imm(2), s.four)
		return s, double
	}
	to, next := stepsOf("dstStride")
	from, half := stepsOf("srcStride")
	row := func(base reg.Register, s steps, i, disp int) Mem {
		m := Mem{Base: base, Disp: disp}
		switch i {
		case 1, 2:
			m.Index, m.Scale = s.one, uint8(i)
		case 3:
			m.Index, m.Scale = s.three, 1
		}
		return m
	}
	LEAQ(Mem{Base: src, Index: from.four, Scale: 1}, half) // row 4
	Label("loop")
	LEAQ(Mem{Base: dst, Index: to.four, Scale: 1}, next)
	for part, base := range []reg.Register{dst, next} {
		var x [4]reg.VecPhysical
		for i := range x {
			x[i] = avx2.regs[i]
			VMOVUPS(row(src, from, i, 16*part), x[i].AsX())
			VINSERTF128(Imm(1), row(half, from, i, 16*part), x[i], x[i])
		}
		var t [4]reg.VecPhysical
		for i := range t {
			t[i] = avx2.regs[4+i]
		}
		VUNPCKLPS(x[1], x[0], t[0])
		VUNPCKHPS(x[1], x[0], t[1])
		VUNPCKLPS(x[3], x[2], t[2])
		VUNPCKHPS(x[3], x[2], t[3])
		VUNPCKLPD(t[2], t[0], x[0])
		VUNPCKHPD(t[2], t[0], x[1])
		VUNPCKLPD(t[3], t[1], x[2])
		VUNPCKHPD(t[3], t[1], x[3])
		for i := range x {
			VMOVUPS(x[i], row(base, to, i, 0))
		}
	}
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), half)
	LEAQ(Mem{Base: next, Index: to.four, Scale: 1}, dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// laneNumbers are the integers from 0 to 7.
var laneNumbers Mem

func globals() {
	laneNumbers = GLOBL("laneNumbers", RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, I32(i))
	}
}

// tail sets the mask of the first n lanes: K1, or a vector.
func tail(n reg.Register, s isa, mask reg.VecPhysical) {
	if s.masks {
		KMOVW(first(n).As32(), reg.K1)
		return
	}
	// Lane i is set if i < n: n > i as signed integers.
	VMOVD(n.(reg.GPVirtual).As32(), mask.AsX())
	VPBROADCASTD(mask.AsX(), mask)
	VPCMPGTD(laneNumbers, mask, mask)
}

func loadTail(from Mem, s isa, mask, x reg.VecPhysical) {
	if s.masks {
		VMOVUPS_Z(from, reg.K1, x)
		return
	}
	VMASKMOVPS(from, mask, x)
}

func storeTail(to Mem, s isa, mask, x reg.VecPhysical) {
	if s.masks {
		VMOVUPS(x, reg.K1, to)
		return
	}
	VMASKMOVPS(x, mask, to)
}

// add adds n elements of src to dst.
func add(name string, s isa) {
	TEXT(name, NOSPLIT, "func(dst, src *float32, n int)")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	x, mask, y := s.regs[0], s.regs[1], s.regs[2]
	lanes := s.bytes / 4
	SUBQ(Imm(uint64(lanes)), n)
	JL(LabelRef("tail"))
	Label("loop")
	VMOVUPS(Mem{Base: dst}, x)
	VADDPS(Mem{Base: src}, x, x)
	VMOVUPS(x, Mem{Base: dst})
	ADDQ(Imm(uint64(s.bytes)), dst)
	ADDQ(Imm(uint64(s.bytes)), src)
	SUBQ(Imm(uint64(lanes)), n)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(uint64(lanes)), n)
	JZ(LabelRef("done"))
	tail(n, s, mask)
	loadTail(Mem{Base: dst}, s, mask, x)
	loadTail(Mem{Base: src}, s, mask, y)
	VADDPS(y, x, x)
	storeTail(Mem{Base: dst}, s, mask, x)
	Label("done")
	VZEROUPPER()
	RET()
}

// fetch prefetches cache lines into the second level.
func fetch(name string) {
	TEXT(name, NOSPLIT, "func(src *byte, lines int)")
	src, n := Load(Param("src"), GP64()), Load(Param("lines"), GP64())
	Label("loop")
	PREFETCHT1(Mem{Base: src})
	ADDQ(Imm(64), src)
	DECQ(n)
	JNZ(LabelRef("loop"))
	RET()
}

// peak runs n times two multiply-adds on each register, except two registers.
func peak(name string, s isa) {
	TEXT(name, NOSPLIT, "func(n int)")
	n := Load(Param("n"), GP64())
	for _, x := range s.regs {
		VXORPS(x, x, x)
	}
	last := len(s.regs) - 2
	Label("loop")
	for range 2 {
		for _, x := range s.regs[:last] {
			if s.dots {
				dot(s.regs[last], s.regs[last+1], x)
			} else {
				VFMADD231PS(s.regs[last], s.regs[last+1], x)
			}
		}
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
