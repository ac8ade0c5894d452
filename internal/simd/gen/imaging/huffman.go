package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The constants of package kern.
const (
	lookBits   = 10
	firstBits  = 9
	room       = 256
	endOfBlock = 96
	notWhole   = 255
	longFirst  = ^room
)

var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

func natural() Mem {
	return data("natural", func() {
		for k := range room {
			v := uint8(64)
			if k < len(zigzag) {
				v = zigzag[k]
			}
			DATA(k, U8(v))
		}
	})
}

// reader keeps the fields of a Bits in registers. r points to At, behind which Acc and N lie.
type reader struct {
	bits, p, acc, n reg.GPVirtual
}

func newReader() *reader {
	r := &reader{param("r").(reg.GPVirtual), param("data").(reg.GPVirtual), GP64(), GP64()}
	ADDQ(Mem{Base: r.bits}, r.p)
	MOVQ(Mem{Base: r.bits, Disp: 8}, r.acc)
	MOVQ(Mem{Base: r.bits, Disp: 16}, r.n)
	return r
}

func (r *reader) store() {
	data := GP64()
	Load(Param("data"), data)
	SUBQ(data, r.p)
	MOVQ(r.p, Mem{Base: r.bits})
	MOVQ(r.acc, Mem{Base: r.bits, Disp: 8})
	MOVQ(r.n, Mem{Base: r.bits, Disp: 16})
}

// fill is Bits.Fill, except at the end of the data.
func (r *reader) fill() {
	v, t := GP64(), GP64()
	MOVQ(Mem{Base: r.p}, v)
	BSWAPQ(v)
	SHRXQ(r.n, v, v)
	ORQ(v, r.acc)
	MOVQ(r.n, t)
	XORQ(Imm(63), t)
	SHRQ(Imm(3), t)
	ADDQ(t, r.p)
	ORQ(Imm(56), r.n)
}

// value reads a value of size bits.
func (r *reader) value(size reg.GPVirtual) reg.GPVirtual {
	v, t, sign := GP64(), GP64(), GP64()
	MOVQ(r.acc, v)
	SHRQ(Imm(1), v)
	MOVQ(U32(63), t)
	SUBQ(size, t)
	SHRXQ(t, v, v)
	// A value whose first bit is 0 is negative: subtract 2^size − 1.
	MOVQ(r.acc, sign)
	NOTQ(sign)
	SARQ(Imm(63), sign)
	MOVQ(I32(-1), t)
	SHLXQ(size, t, t)
	INCQ(t)
	ANDQ(sign, t)
	ADDQ(t, v)
	SHLXQ(size, r.acc, r.acc)
	SUBQ(size, r.n)
	return v
}

// difference is package kern's; it jumps to long at a long code.
func (r *reader) difference(long string) {
	first, i, e, size := param("first").(reg.GPVirtual), GP64(), GP64(), GP64()
	MOVQ(r.acc, i)
	SHRQ(Imm(64-firstBits), i)
	r.fill()
	MOVWLZX(Mem{Base: first, Index: i, Scale: 2}, e.As32())
	TESTL(e.As32(), e.As32())
	JZ(LabelRef(long))
	SHLXQ(e, r.acc, r.acc)
	MOVBQZX(e.As8(), size)
	SUBQ(size, r.n)
	SHRL(Imm(8), e.As32())
	v := r.value(e)
	pred := param("pred").(reg.GPVirtual)
	ADDL(v.As32(), Mem{Base: pred})
}

// blocks is block of package kern, with three lookups between fills.
func blocks() {
	TEXT("blockBMI", NOSPLIT, "func(r *int, data *byte, first *uint16, rest *uint64, blk *int16, pred *int32, k int) int")
	r := newReader()
	table, blk, k := param("rest").(reg.GPVirtual), param("blk").(reg.GPVirtual), param("k").(reg.GPVirtual)
	order := GP64()
	LEAQ(natural(), order)
	i, e, old, next, at := GP64(), GP64(), GP64(), GP64(), GP64()
	field := func(offset int) Mem { return Mem{Base: table, Index: i, Scale: 8, Disp: offset} }
	put := func(from Mem, at reg.GPVirtual) {
		MOVBLZX(Mem{Base: order, Index: at, Scale: 1}, at.As32())
		MOVWLZX(from, e.As32())
		MOVW(e.As16(), Mem{Base: blk, Index: at, Scale: 2})
	}
	TESTQ(k, k)
	JGE(LabelRef("rest"))
	r.difference("longFirst")
	XORL(k.As32(), k.As32())
	Label("rest")
	CMPQ(k, Imm(63))
	JGE(LabelRef("done"))
	Label("loop")
	for turn := range 3 {
		MOVQ(r.acc, i)
		SHRQ(Imm(64-lookBits), i)
		if turn == 0 {
			r.fill() // while the table is looked up
		}
		MOVBLZX(field(0), e.As32())
		MOVBLZX(field(2), next.As32())
		MOVQ(r.acc, old)
		SHLXQ(e, r.acc, r.acc)
		ADDQ(k, next)
		CMPQ(next, Imm(63))
		JGE(LabelRef("special"))
		SUBQ(e, r.n)
		MOVBLZX(field(1), at.As32())
		ADDQ(k, at)
		MOVQ(next, k)
		put(field(4), at)
		put(field(6), next)
	}
	JMP(LabelRef("loop"))

	Label("special")
	SUBQ(k, next)
	MOVBLZX(field(1), at.As32())
	CMPQ(next, U32(notWhole))
	JE(LabelRef("notWhole"))
	ADDQ(k, next)
	ADDQ(k, at)
	CMPQ(at, Imm(63))
	JGE(LabelRef("first"))
	SUBQ(e, r.n)
	MOVQ(next, k)
	put(field(4), at)
	put(field(6), next)
	JMP(LabelRef("done"))
	Label("first") // it ends the block; a second one belongs to another block
	MOVBLZX(field(3), e.As32())
	SHLXQ(e, old, r.acc)
	SUBQ(e, r.n)
	MOVQ(at, k)
	put(field(4), at)
	JMP(LabelRef("done"))
	Label("notWhole")
	TESTL(e.As32(), e.As32())
	JZ(LabelRef("long"))
	SUBQ(e, r.n)
	MOVBLZX(field(3), e.As32())
	ADDQ(at, k)
	v := r.value(e)
	MOVBLZX(Mem{Base: order, Index: k, Scale: 1}, at.As32())
	MOVW(v.As16(), Mem{Base: blk, Index: at, Scale: 2})
	CMPQ(k, Imm(63))
	JL(LabelRef("loop"))
	Label("done")
	Load(Param("pred"), at)
	MOVL(Mem{Base: at}, at.As32())
	MOVW(at.As16(), Mem{Base: blk})
	Label("return")
	r.store()
	Store(k, ReturnIndex(0))
	RET()
	Label("long")
	NOTQ(k)
	JMP(LabelRef("return"))
	Label("longFirst")
	MOVQ(I32(longFirst), k)
	JMP(LabelRef("return"))
}

// skips is skip of package kern, with two lookups between fills.
func skips() {
	TEXT("skipBMI", NOSPLIT, "func(r *int, data *byte, first *uint16, rest *uint64, runs *uint16, pred *int32, k int) int")
	r := newReader()
	table, runs, k := param("rest").(reg.GPVirtual), param("runs").(reg.GPVirtual), param("k").(reg.GPVirtual)
	i, e, advance, old, next := GP64(), GP64(), GP64(), GP64(), GP64()
	field := func(offset int) Mem { return Mem{Base: table, Index: i, Scale: 8, Disp: offset} }
	TESTQ(k, k)
	JGE(LabelRef("rest"))
	r.difference("longFirst")
	XORL(k.As32(), k.As32())
	Label("rest")
	CMPQ(k, Imm(63))
	JGE(LabelRef("return"))
	Label("loop")
	for turn := range 2 {
		MOVQ(r.acc, i)
		SHRQ(Imm(64-lookBits), i)
		if turn == 0 {
			r.fill()
		}
		MOVBLZX(Mem{Base: runs, Index: i, Scale: 2}, e.As32())
		MOVBLZX(Mem{Base: runs, Index: i, Scale: 2, Disp: 1}, advance.As32())
		MOVQ(r.acc, old)
		SHLXQ(e, r.acc, r.acc)
		LEAQ(Mem{Base: k, Index: advance, Scale: 1}, next)
		CMPQ(next, Imm(63))
		JGE(LabelRef("special"))
		SUBQ(e, r.n)
		MOVQ(next, k)
	}
	JMP(LabelRef("loop"))

	Label("special")
	JE(LabelRef("whole"))
	CMPQ(advance, U32(notWhole))
	JE(LabelRef("one"))
	CMPQ(advance, Imm(endOfBlock))
	JL(LabelRef("one"))
	SUBQ(Imm(endOfBlock), next)
	CMPQ(next, Imm(63))
	JGE(LabelRef("one"))
	MOVQ(U32(endOfBlock), next)
	Label("whole")
	SUBQ(e, r.n)
	MOVQ(next, k)
	JMP(LabelRef("return"))

	Label("one") // the block may end among them
	MOVBLZX(field(3), e.As32())
	MOVBLZX(field(2), advance.As32())
	CMPQ(advance, U32(notWhole))
	JNE(LabelRef("take"))
	MOVBLZX(field(0), advance.As32())
	TESTL(advance.As32(), advance.As32())
	JZ(LabelRef("long"))
	ADDQ(advance, e)
	Label("take")
	SHLXQ(e, old, r.acc)
	SUBQ(e, r.n)
	MOVBLZX(field(1), advance.As32())
	ADDQ(advance, k)
	CMPQ(k, Imm(63))
	JL(LabelRef("loop"))
	Label("return")
	r.store()
	Store(k, ReturnIndex(0))
	RET()
	Label("long")
	MOVQ(old, r.acc)
	NOTQ(k)
	JMP(LabelRef("return"))
	Label("longFirst")
	MOVQ(I32(longFirst), k)
	JMP(LabelRef("return"))
}
