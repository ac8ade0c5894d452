package main

import (
	"bytes"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// storage writes the kernels that move bfloat16.
func storage(decl *bytes.Buffer, s isa) {
	widen(s.name+"Widen", s)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc %sWiden(dst *float32, src *uint16, rows, width, dstStride, srcStride int)\n", s.name)
	narrow(s.name+"Narrow", s)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc %sNarrow(dst *uint16, src *float32, rows, width, dstStride, srcStride int)\n", s.name)
	fmt.Fprintf(decl, "\nvar %sStored = BFloat16{Widen: %[1]sWiden, Narrow: %[1]sNarrow, Lanes: %d}\n", s.name, s.bytes/4)
}

// rowAt is a row while a kernel goes through it: at of its elements are done, and at its end some are left.
type rowAt struct{ dst, src, at, left reg.GPVirtual }

// eachRow is a kernel that goes through rows step elements at a time, where it can so many times at once. begin comes before the
// first row; end, at the end of each, is for what is left.
func eachRow(name, signature string, step, times int, begin func(r rowAt), whole func(r rowAt, i int), end func(r rowAt)) {
	TEXT(name, NOSPLIT, signature)
	r := rowAt{dst: GP64(), src: GP64(), at: GP64(), left: GP64()}
	Load(Param("dst"), r.dst)
	Load(Param("src"), r.src)
	rows, width := Load(Param("rows"), GP64()), Load(Param("width"), GP64())
	dstStride, srcStride := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64())
	MOVQ(width, r.left)
	ANDQ(Imm(uint64(step-1)), r.left)
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
	VZEROUPPER()
	RET()
}

// in is step i, of so many bytes, from where r is in a slice of elements of size.
func (r rowAt) in(base reg.GPVirtual, size uint8, bytes, i int) Mem {
	return Mem{Base: base, Index: r.at, Scale: size, Disp: i * bytes}
}

// widen writes rows of float32 of rows of bfloat16. It reads nothing behind them and writes whole vectors, filled up with zeros.
func widen(name string, s isa) {
	put := func(r rowAt, x reg.VecPhysical, i int) {
		VPSLLD(Imm(16), x, x)
		VMOVUPS(x, r.in(r.dst, 4, s.bytes, i))
	}
	eachRow(name, "func(dst *float32, src *uint16, rows, width, dstStride, srcStride int)", s.bytes/4, 4,
		func(r rowAt) {
			if s.masks {
				tail(r.left, s, nil)
			}
		},
		func(r rowAt, i int) {
			VPMOVZXWD(r.in(r.src, 2, s.bytes/2, i), s.regs[i])
			put(r, s.regs[i], i)
		},
		func(r rowAt) {
			x := s.regs[0]
			if s.masks {
				VMOVDQU16_Z(r.in(r.src, 2, 0, 0), reg.K1, x.AsY())
			} else {
				loadWords(r, x.AsX())
			}
			VPMOVZXWD(lower(s, x), x)
			put(r, x, 0)
		})
}

// lower is the lower half of x.
func lower(s isa, x reg.VecPhysical) reg.Register {
	if s.bytes == 64 {
		return x.AsY()
	}
	return x.AsX()
}

// loadWords reads what is left of a row, up to seven words, and zeros: the last word, the two before, and four.
func loadWords(r rowAt, x reg.Register) {
	words, more, two := GP64(), GP64(), GP64()
	XORQ(words, words)
	LEAQ(Mem{Base: r.at, Index: r.left, Scale: 1}, more)
	TESTQ(U32(1), r.left)
	JZ(LabelRef("pair"))
	MOVWQZX(Mem{Base: r.src, Index: more, Scale: 2, Disp: -2}, words)
	DECQ(more)
	Label("pair")
	TESTQ(U32(2), r.left)
	JZ(LabelRef("four"))
	MOVL(Mem{Base: r.src, Index: more, Scale: 2, Disp: -4}, two.As32())
	SHLQ(Imm(32), words)
	ORQ(two, words)
	Label("four")
	VMOVQ(words, x)
	TESTQ(U32(4), r.left)
	JZ(LabelRef("loaded"))
	VPSLLDQ(Imm(8), x, x)
	VPINSRQ(Imm(0), r.in(r.src, 2, 0, 0), x, x)
	Label("loaded")
}

// narrow writes rows of bfloat16 of rows of float32, rounded, and reads and writes nothing behind them.
func narrow(name string, s isa) {
	const signature = "func(dst *uint16, src *float32, rows, width, dstStride, srcStride int)"
	x, y, mask, mask2 := s.regs[0], s.regs[1], s.regs[2], s.regs[3]
	var c rounding
	if s.masks {
		eachRow(name, signature, s.bytes/4, 1,
			func(r rowAt) {
				tail(r.left, s, nil)
				c = newRounding(s, 1)
			},
			func(r rowAt, i int) {
				VMOVUPS(r.in(r.src, 4, 0, 0), x)
				c.upper(x)
				VPMOVDW(x, r.in(r.dst, 2, 0, 0))
			},
			func(r rowAt) {
				loadTail(r.in(r.src, 4, 0, 0), s, nil, x)
				c.upper(x)
				VPMOVDW(x, reg.K1, r.in(r.dst, 2, 0, 0))
			})
		return
	}
	pack := func() {
		c.upper(x)
		c.upper(y)
		VPACKUSDW(y, x, x)
		VPERMQ(Imm(0b11_01_10_00), x, x)
	}
	eachRow(name, signature, s.bytes/2, 1,
		func(r rowAt) {
			second := GP64()
			LEAQ(Mem{Base: r.left, Disp: -s.bytes / 4}, second)
			tail(r.left, s, mask)
			tail(second, s, mask2)
			c = newRounding(s, 4)
		},
		func(r rowAt, i int) {
			VMOVUPS(r.in(r.src, 4, 0, 0), x)
			VMOVUPS(r.in(r.src, 4, s.bytes, 1), y)
			pack()
			VMOVUPS(x, r.in(r.dst, 2, 0, 0))
		},
		func(r rowAt) {
			loadTail(r.in(r.src, 4, 0, 0), s, mask, x)
			loadTail(r.in(r.src, 4, s.bytes, 1), s, mask2, y)
			pack()
			storeWords(r, x)
		})
}

// storeWords writes what is left of a row, up to fifteen words.
func storeWords(r rowAt, y reg.VecPhysical) {
	to, x := GP64(), y.AsX()
	LEAQ(r.in(r.dst, 2, 0, 0), to)
	for _, n := range []U32{8, 4, 2, 1} {
		next := fmt.Sprintf("less%d", n)
		TESTQ(n, r.left)
		JZ(LabelRef(next))
		switch at := (Mem{Base: to}); n {
		case 8:
			VMOVUPS(x, at)
			VEXTRACTI128(Imm(1), y, x)
		case 4:
			VMOVQ(x, at)
			VPSRLDQ(Imm(8), x, x)
		case 2:
			VMOVD(x, at)
			VPSRLDQ(Imm(4), x, x)
		case 1:
			VPEXTRW(Imm(0), x, at)
		}
		if n > 1 {
			ADDQ(2*n, to)
		}
		Label(next)
	}
}

// copyStored writes rows of words of two elements that are stored as bfloat16, as copyPairs writes them.
func copyStored(name string, s isa) {
	x := s.regs[0]
	put := func(r rowAt) {
		VPROLD(Imm(16), x, x)
		VMOVUPS(x, r.in(r.dst, 2, 0, 0))
	}
	eachRow(name, "func(dst *float32, src *uint16, rows, width, dstStride, srcStride int)", s.bytes/2, 1,
		func(r rowAt) {
			mask := GP64()
			MOVQ(I32(-1), mask)
			SHLXQ(r.left, mask, mask)
			NOTQ(mask)
			KMOVD(mask.As32(), reg.K1)
		},
		func(r rowAt, i int) {
			VMOVUPS(r.in(r.src, 2, 0, 0), x)
			put(r)
		},
		func(r rowAt) {
			VMOVDQU16_Z(r.in(r.src, 2, 0, 0), reg.K1, x)
			put(r)
		})
}
