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
	fmt.Fprintf(decl, "\n//go:noescape\nfunc %sWiden%s\n", s.name, widens)
	narrow(s.name+"Narrow", s)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc %sNarrow%s\n", s.name, narrows)
	fmt.Fprintf(decl, "\nvar %sStored = BFloat16{Widen: %[1]sWiden, Narrow: %[1]sNarrow, Lanes: %d}\n", s.name, s.bytes/4)
}

// storedAhead is the distance in bytes at which stored activations are prefetched, into the second level: processors do
// not prefetch across pages by themselves, and the first level waits for few lines at a time.
const storedAhead = 8 << 10

const cacheLine = 64

// widen converts rows of bfloat16 to rows of float32. It reads nothing behind them, writes whole vectors and fills them
// with zeros.
func widen(name string, s isa) {
	put := func(r rowAt, x reg.VecPhysical, i int) {
		VPSLLD(Imm(16), x, x)
		VMOVUPS(x, r.in(r.dst, 4, s.bytes, i))
	}
	eachRow(name, widens, s.bytes/4, 4,
		func(r rowAt) {
			if s.masks {
				tail(r.left, s, nil)
			}
		},
		func(r rowAt, i int) {
			if i*s.bytes/2%cacheLine == 0 {
				PREFETCHT1(r.in(r.src, 2, s.bytes/2, i).Offset(storedAhead))
			}
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

// loadWords reads the remainder of a row, up to seven words, followed by zeros: the last word, the two before, and
// four.
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

// narrow rounds rows of float32 to rows of bfloat16. It reads and writes nothing behind them.
func narrow(name string, s isa) {
	x, y, mask, mask2 := s.regs[0], s.regs[1], s.regs[2], s.regs[3]
	var c rounding
	if s.dots {
		eachRow(name, narrows, s.bytes/2, 1,
			func(r rowAt) {
				bits := first(r.left)
				KMOVD(bits.As32(), reg.K1) // the remaining elements
				SHRQ(Imm(uint64(s.bytes/4)), bits)
				KMOVW(bits.As32(), reg.K2)
			},
			func(r rowAt, i int) {
				VMOVUPS(r.in(r.src, 4, 0, 0), x)
				VMOVUPS(r.in(r.src, 4, s.bytes, 1), y)
				convert(x, y)
				VMOVUPS(x, r.in(r.dst, 2, 0, 0))
			},
			func(r rowAt) {
				VMOVUPS_Z(r.in(r.src, 4, 0, 0), reg.K1, x)
				VMOVUPS_Z(r.in(r.src, 4, s.bytes, 1), reg.K2, y)
				convert(x, y)
				VMOVDQU16(x, reg.K1, r.in(r.dst, 2, 0, 0))
			})
		return
	}
	if s.masks {
		eachRow(name, narrows, s.bytes/4, 1,
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
	eachRow(name, narrows, s.bytes/2, 1,
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

// storeWords writes the remainder of a row, up to fifteen words.
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

// copyStored is copyPairs for elements that are stored as bfloat16.
func copyStored(name string, s isa, upper bool) {
	x := s.regs[0]
	put := func(r rowAt) {
		if upper {
			VPROLD(Imm(16), x, x)
		}
		VMOVUPS(x, r.in(r.dst, 2, 0, 0))
	}
	eachRow(name, widens, s.bytes/2, 1,
		func(r rowAt) {
			KMOVD(first(r.left).As32(), reg.K1)
		},
		func(r rowAt, i int) {
			PREFETCHT1(r.in(r.src, 2, 0, 0).Offset(storedAhead))
			VMOVUPS(r.in(r.src, 2, 0, 0), x)
			put(r)
		},
		func(r rowAt) {
			VMOVDQU16_Z(r.in(r.src, 2, 0, 0), reg.K1, x)
			put(r)
		})
}
