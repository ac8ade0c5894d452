package main

import (
	"bytes"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Arguments of the kernels that bring pixels into tiles and sums out of them: see Tiles.
const (
	turns    = "(dst, src *uint16, pixels *int32, blocks, channels, rows, step int)"
	pairings = "(dst *uint32, src *uint16, pixels *int32, pairs, columns, step, panel int)"
	orders   = "(dst, src *float32, rows, columns, stride, panel int)"
	columnar = "(dst, src *float32, rows, columns, stride int)"
	squares  = "(dst, src *float32, dstStride, srcStride int)"
	splits   = "(dst, src *float32, rows, width, dstStride, srcStride, part int, bad *uint32)"
)

// tileChannels is the TileChannels of package kern.
const tileChannels = 2048

// pixelZeros is a pixel of zeros; quadsLow and quadsHigh combine two vectors of 16 bytes each in turn.
var pixelZeros, quadsLow, quadsHigh Mem

// tilePacking writes the kernels and the fields of Tiles that refer to them.
func tilePacking(decl *bytes.Buffer) (fields string) {
	pixelZeros = GLOBL("pixelZeros", RODATA|NOPTR)
	for i := range tileChannels / 4 {
		DATA(8*i, U64(0))
	}
	table := func(name string, order [8]int) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i, v := range order {
			DATA(8*i, U64(uint64(v)))
		}
		return m
	}
	quadsLow = table("quadsLow", [8]int{0, 1, 8, 9, 2, 3, 10, 11})
	quadsHigh = table("quadsHigh", [8]int{4, 5, 12, 13, 6, 7, 14, 15})
	for _, k := range []struct {
		field, arguments string
		write            func(name string)
	}{
		{"Turn", turns, turn}, {"Pairs", pairings, pairPixels}, {"Order", orders, order}, {"Transpose", columnar, transpose},
		{"Square", squares, square},
	} {
		name := "tile" + k.field
		k.write(name)
		fmt.Fprintf(decl, "\n//go:noescape\nfunc %s%s\n", name, k.arguments)
		fields += fmt.Sprintf("%s: %s, ", k.field, name)
	}
	for parts := 2; parts <= 3; parts++ {
		name := fmt.Sprintf("tileSplit%d", parts)
		split(name, parts)
		fmt.Fprintf(decl, "\n//go:noescape\nfunc %s%s\n", name, splits)
	}
	fmt.Fprintf(decl, "\nvar tileSplits = [MostParts + 1]SplitRows{2: tileSplit2, 3: tileSplit3}\n")
	return fields + "Add: avx512Add, Split: tileSplits,"
}

// split writes rows of the parts of float32: each is the rest of those before, rounded to bfloat16.
func split(name string, parts int) {
	s := avx512
	x, y, of := s.regs[0], s.regs[1], s.regs[2]
	found, one := reg.K4, reg.K5
	var c rounding
	part, bad := GP64(), GP64()
	put := func(r rowAt) {
		to := GP64()
		LEAQ(r.in(r.dst, 4, 0, 0), to)
		for i := range parts {
			c.sum(x)
			VPANDD(c.high, c.t, y)
			VMOVUPS(y, Mem{Base: to})
			if i == 0 {
				VPANDD(c.exponent, y, of)
				VPCMPEQD(c.exponent, of, one)
				KORW(one, found, found)
			}
			if i < parts-1 {
				VSUBPS(y, x, x)
				ADDQ(part, to)
			}
		}
	}
	eachRowThen(name, splits, s.bytes/4, 1,
		func(r rowAt) {
			Load(Param("part"), part)
			Load(Param("bad"), bad)
			tail(r.left, s, nil)
			c = newRounding(s, 3)
			KXORW(found, found, found)
		},
		func(r rowAt, _ int) {
			VMOVUPS(r.in(r.src, 4, 0, 0), x)
			put(r)
		},
		func(r rowAt) {
			loadTail(r.in(r.src, 4, 0, 0), s, nil, x)
			put(r)
		},
		func() {
			bits := GP32()
			KMOVW(found, bits)
			ORL(bits, Mem{Base: bad})
		})
}

// pixel sets p to the start of the next pixel of a list, or to zeros if it is negative.
func pixel(p, list, step, src, zeros reg.Register, i int) {
	n := GP64()
	MOVLQSX(Mem{Base: list, Disp: 4 * i}, n)
	MOVQ(n, p)
	IMULQ(step, p)
	ADDQ(src, p)
	TESTQ(n, n)
	CMOVQLT(zeros, p)
}

// turn writes blocks of 32 pixels: 8 channels of them at a time are transposed in 16 vectors.
func turn(name string) {
	TEXT(name, NOSPLIT, "func"+turns)
	places := AllocLocal(32 * 8)
	dst, list := Load(Param("dst"), GP64()), Load(Param("pixels"), GP64())
	blocks, rows := Load(Param("blocks"), GP64()), Load(Param("rows"), GP64())
	SHLQ(Imm(6), rows)
	Label("block")
	src, step, zeros := Load(Param("src"), GP64()), Load(Param("step"), GP64()), GP64()
	LEAQ(pixelZeros, zeros)
	p := GP64()
	for i := range 32 {
		pixel(p, list, step, src, zeros, i)
		MOVQ(p, places.Offset(8*i))
	}
	to, at, groups := GP64(), GP64(), Load(Param("channels"), GP64())
	MOVQ(dst, to)
	XORQ(at, at)
	SHRQ(Imm(3), groups)
	Label("group")
	z := avx512.regs
	for i := range 8 {
		for q := range 4 {
			MOVQ(places.Offset(8*(8*q+i)), p)
			from := Mem{Base: p, Index: at, Scale: 1}
			if q == 0 {
				VMOVDQU(from, z[i].AsX())
			} else {
				VINSERTI32X4(Imm(uint64(q)), from, z[i], z[i])
			}
		}
	}
	// Pairs of vectors become words, then pairs of words, then rows.
	for i := range 4 {
		VPUNPCKLWD(z[2*i+1], z[2*i], z[8+2*i])
		VPUNPCKHWD(z[2*i+1], z[2*i], z[9+2*i])
	}
	for i := range 2 {
		for h := range 2 {
			VPUNPCKLDQ(z[10+4*i+h], z[8+4*i+h], z[4*i+2*h])
			VPUNPCKHDQ(z[10+4*i+h], z[8+4*i+h], z[4*i+2*h+1])
		}
	}
	for i := range 4 {
		VPUNPCKLQDQ(z[4+i], z[i], z[8+2*i])
		VPUNPCKHQDQ(z[4+i], z[i], z[9+2*i])
	}
	for i := range 8 {
		VMOVDQU64(z[8+i], Mem{Base: to, Disp: 64 * i})
	}
	ADDQ(Imm(16), at)
	ADDQ(U32(512), to)
	DECQ(groups)
	JNZ(LabelRef("group"))
	ADDQ(rows, dst)
	ADDQ(U32(128), list)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// pairPixels interleaves two pixels at a time.
func pairPixels(name string) {
	TEXT(name, NOSPLIT, "func"+pairings)
	dst, src, list := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("pixels"), GP64())
	pairs, columns, step := Load(Param("pairs"), GP64()), Load(Param("columns"), GP64()), Load(Param("step"), GP64())
	panel := Load(Param("panel"), GP64())
	zeros, p, q := GP64(), GP64(), GP64()
	LEAQ(pixelZeros, zeros)
	x, y, low, high := reg.Z0, reg.Z1, reg.Z2, reg.Z3
	to, at, rest := GP64(), GP64(), GP64()
	MOVQ(columns, rest)
	ANDQ(Imm(31), rest)
	KMOVD(first(rest).As32(), reg.K1)
	SUBQ(rest, columns)
	SHLQ(Imm(1), columns)
	put := func() {
		VPUNPCKLWD(y, x, low)
		VPUNPCKHWD(y, x, high)
		VMOVDQU64(low, Mem{Base: to})
		VMOVDQU64(high, Mem{Base: to, Disp: 64})
	}
	Label("pair")
	pixel(p, list, step, src, zeros, 0)
	pixel(q, list, step, src, zeros, 1)
	MOVQ(dst, to)
	XORQ(at, at)
	CMPQ(at, columns)
	JGE(LabelRef("rest"))
	Label("whole")
	VMOVDQU64(Mem{Base: p, Index: at, Scale: 1}, x)
	VMOVDQU64(Mem{Base: q, Index: at, Scale: 1}, y)
	put()
	ADDQ(panel, to)
	ADDQ(Imm(64), at)
	CMPQ(at, columns)
	JL(LabelRef("whole"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("next"))
	VMOVDQU16_Z(Mem{Base: p, Index: at, Scale: 1}, reg.K1, x)
	VMOVDQU16_Z(Mem{Base: q, Index: at, Scale: 1}, reg.K1, y)
	put()
	Label("next")
	ADDQ(Imm(8), list)
	SUBQ(I32(-128), dst)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	VZEROUPPER()
	RET()
}

// order copies rows of sums, panel by panel, and puts their columns in order.
func order(name string) {
	TEXT(name, NOSPLIT, "func"+orders)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	rows, columns, stride := Load(Param("rows"), GP64()), Load(Param("columns"), GP64()), Load(Param("stride"), GP64())
	panel := Load(Param("panel"), GP64())
	rest := GP64()
	MOVQ(columns, rest)
	ANDQ(Imm(31), rest)
	mask := first(rest)
	KMOVW(mask.As32(), reg.K1)
	SHRQ(Imm(16), mask)
	KMOVW(mask.As32(), reg.K2)
	SUBQ(rest, columns)
	SHLQ(Imm(2), columns)
	x, y, low, high := reg.Z0, reg.Z1, reg.Z2, reg.Z3
	VMOVDQU64(quadsLow, low)
	VMOVDQU64(quadsHigh, high)
	a, b := reg.Z4, reg.Z5
	from, at := GP64(), GP64()
	sort := func() {
		VMOVDQU64(Mem{Base: from}, x)
		VMOVDQU64(Mem{Base: from, Disp: 64}, y)
		VMOVDQA64(low, a)
		VMOVDQA64(high, b)
		VPERMI2Q(y, x, a)
		VPERMI2Q(y, x, b)
	}
	to := func(bytes int) Mem { return Mem{Base: dst, Index: at, Scale: 1, Disp: bytes} }
	Label("row")
	MOVQ(src, from)
	XORQ(at, at)
	CMPQ(at, columns)
	JGE(LabelRef("rest"))
	Label("whole")
	sort()
	VMOVDQU64(a, to(0))
	VMOVDQU64(b, to(64))
	ADDQ(panel, from)
	SUBQ(I32(-128), at)
	CMPQ(at, columns)
	JL(LabelRef("whole"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("next"))
	sort()
	VMOVUPS(a, reg.K1, to(0))
	VMOVUPS(b, reg.K2, to(64))
	Label("next")
	SUBQ(I32(-128), src)
	ADDQ(stride, dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// transpose writes the columns of up to 16 rows of sums as rows, four at a time.
func transpose(name string) {
	TEXT(name, NOSPLIT, "func"+columnar)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	rows, columns, stride := Load(Param("rows"), GP64()), Load(Param("columns"), GP64()), Load(Param("stride"), GP64())
	KMOVW(first(rows).As32(), reg.K1)
	z := avx512.regs
	at := GP64()
	XORQ(at, at)
	Label("quad")
	for i := range 4 {
		for q := range 4 {
			from := Mem{Base: src, Index: at, Scale: 1, Disp: 128 * (4*q + i)}
			if q == 0 {
				VMOVUPS(from, z[i].AsX())
			} else {
				VINSERTF32X4(Imm(uint64(q)), from, z[i], z[i])
			}
		}
	}
	fourColumns(z)
	for i := range 4 {
		VMOVUPS(z[i], reg.K1, Mem{Base: dst})
		DECQ(columns)
		JZ(LabelRef("done"))
		ADDQ(stride, dst)
	}
	// The quads of both halves of a row alternate.
	XORQ(U32(64), at)
	TESTQ(U32(64), at)
	JNZ(LabelRef("quad"))
	ADDQ(Imm(16), at)
	JMP(LabelRef("quad"))
	Label("done")
	VZEROUPPER()
	RET()
}

// fourColumns transposes four columns of 16 rows: vector i has rows i, 4+i, 8+i and 12+i of them in its lanes, so that
// lane q of a transposed column has rows 4q to 4q+3.
func fourColumns(z []reg.VecPhysical) {
	VUNPCKLPS(z[1], z[0], z[4])
	VUNPCKHPS(z[1], z[0], z[5])
	VUNPCKLPS(z[3], z[2], z[6])
	VUNPCKHPS(z[3], z[2], z[7])
	VUNPCKLPD(z[6], z[4], z[0])
	VUNPCKHPD(z[6], z[4], z[1])
	VUNPCKLPD(z[7], z[5], z[2])
	VUNPCKHPD(z[7], z[5], z[3])
}

// square transposes 16 rows of 16 words.
func square(name string) {
	TEXT(name, NOSPLIT, "func"+squares)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	to, from := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64())
	z := avx512.regs
	four := GP64() // rows
	MOVQ(from, four)
	SHLQ(Imm(2), four)
	row, at := GP64(), GP64()
	for column := range 4 {
		MOVQ(src, row)
		for i := range 4 {
			MOVQ(row, at)
			VMOVUPS(Mem{Base: at, Disp: 16 * column}, z[i].AsX())
			for q := 1; q < 4; q++ {
				ADDQ(four, at)
				VINSERTF32X4(Imm(uint64(q)), Mem{Base: at, Disp: 16 * column}, z[i], z[i])
			}
			ADDQ(from, row)
		}
		fourColumns(z[:])
		for i := range 4 {
			VMOVUPS(z[i], Mem{Base: dst})
			ADDQ(to, dst)
		}
	}
	VZEROUPPER()
	RET()
}
