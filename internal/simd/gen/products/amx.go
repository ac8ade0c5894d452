package main

import (
	"bytes"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Tiles of AMX by number: four of sums, two of A, two of B.
const (
	tileC = 0
	tileA = 4
	tileB = 6
)

// Fields of TileArgs, in bytes.
const (
	tileOperandA = 64 + 8*iota
	tileOperandB
	tileOperandC
	tileInit
	tileAdd
	tileSpans
	tilePairs
	tileSteps
	tileDepth
	tileStepA
	tileStepC
)

// amx writes the kernels of tiles and their value.
func amx(decl *bytes.Buffer) {
	for columns := 1; columns <= 2; columns++ {
		name := fmt.Sprintf("amxProducts%d", columns)
		tileProducts(name, columns)
		fmt.Fprintf(decl, "\n//go:noescape\nfunc %s(a *TileArgs)\n", name)
	}
	copyPairs("amxCopyPairs", bf16, false)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc amxCopyPairs%s\n", copies)
	copyStored("amxCopyStored", bf16, false)
	fmt.Fprintf(decl, "\n//go:noescape\nfunc amxCopyStored%s\n", widens)
	pairRows("amxPairRows", bf16, false)
	fmt.Fprintf(decl, "\n//go:noescape\n"+
		"func amxPairRows(dst, first, second *float32, rows, width, dstStride, srcStride int)\n")
	tilePeak("amxPeak")
	fmt.Fprintf(decl, "\n//go:noescape\nfunc amxPeak(config *TileConfig, n int)\n")
	packing := tilePacking(decl)
	fmt.Fprintf(decl, "\nvar amxTiles = Tiles{\n\tProducts: [3]func(*TileArgs){1: amxProducts1, 2: amxProducts2},\n"+
		"\tCopy: avx512Copy, Narrow: Narrow{Step: 2, Block: TileWidth, Copy: amxCopyPairs, Stored: amxCopyStored, "+
		"PairRows: amxPairRows},\n\t%speak: amxPeak,\n}\n", packing)
}

// vex writes an instruction VEX.128.map.W0 with a register and operands without extension bits: prefix 0 none, 1 66, 2
// F3, 3 F2; v is the number of the second source, 0 for none.
func vex(prefix, v, opcode, modrm byte) {
	raw("LONG", U32(0xe2c4|uint32(^v&15<<3|prefix)<<16|uint32(opcode)<<24))
	raw("BYTE", U8(modrm))
}

func raw(opcode string, imm Constant) {
	Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{imm}})
}

// number is a general register's.
func number(r reg.GPPhysical) byte {
	for i, x := range []reg.GPPhysical{reg.RAX, reg.RCX, reg.RDX, reg.RBX, reg.RSP, reg.RBP, reg.RSI, reg.RDI,
		reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14, reg.R15} {
		if x == r {
			return byte(i)
		}
	}
	panic("no general register")
}

// tileMemory writes TILELOADD (prefix F2) or TILESTORED (F3) of rows that begin at base + disp, stride apart.
func tileMemory(prefix byte, tile int, base, stride reg.GPPhysical, disp int) {
	b, i := number(base), number(stride)
	raw("LONG", U32(0xc4|uint32(0xe2^i>>3<<6^b>>3<<5)<<8|uint32(0x78|prefix)<<16|0x4b<<24))
	raw("WORD", U16(uint16(0x84|tile<<3)|uint16(i&7<<3|b&7)<<8))
	raw("LONG", U32(uint32(disp)))
}

func tileLoad(tile int, base, stride reg.GPPhysical, disp int) {
	Commentf("TILELOADD %d(base)(stride), TMM%d", disp, tile)
	tileMemory(3, tile, base, stride, disp)
}

func tileStore(tile int, base, stride reg.GPPhysical, disp int) {
	Commentf("TILESTORED TMM%d, %d(base)(stride)", tile, disp)
	tileMemory(2, tile, base, stride, disp)
}

func tileZero(tile int) {
	Commentf("TILEZERO TMM%d", tile)
	vex(3, 0, 0x49, byte(0xc0|tile<<3))
}

// tileDot adds the products of tiles a and b to tile c.
func tileDot(c, a, b int) {
	Commentf("TDPBF16PS TMM%d, TMM%d, TMM%d", b, a, c)
	vex(2, byte(b), 0x5c, byte(0xc0|c<<3|a))
}

// configure loads the configuration at RDI.
func configure() {
	Comment("LDTILECFG (DI)")
	vex(0, 0, 0x49, 7)
}

func tileRelease() {
	Comment("TILERELEASE")
	vex(0, 0, 0x49, 0xc0)
}

// tileProducts writes the kernel for one or two tiles of columns.
func tileProducts(name string, columns int) {
	TEXT(name, NOSPLIT, "func(a *int)")
	args := reg.RDI
	a0, a1, b, depth, stepA, stepB, stepC := reg.RAX, reg.RSI, reg.RBX, reg.RCX, reg.RDX, reg.R8, reg.R9
	steps, spans, pairs := reg.R10, reg.R13, reg.R15
	x, y := reg.R11, reg.R12
	field := func(f int) Mem { return Mem{Base: args, Disp: f} }
	Load(Param("a"), args)
	configure()
	MOVQ(field(tileStepA), stepA)
	MOVQ(U32(uint32(64*columns)), stepB)
	MOVQ(field(tileStepC), stepC)
	MOVQ(field(tileSpans), spans)
	MOVQ(field(tilePairs), pairs)

	each := func(f func(c, row, column int)) {
		for r := range 2 {
			for c := range columns {
				f(tileC+2*r+c, r, c)
			}
		}
	}
	results := []reg.GPPhysical{x, y}
	// The places of the results of both spans.
	places := func() {
		MOVQ(field(tileOperandC), x)
		MOVQ(x, y)
		ADDQ(Mem{Base: spans, Disp: 8}, x)
		ADDQ(Mem{Base: spans, Disp: 24}, y)
	}
	Label("pair")
	MOVQ(field(tileAdd), x)
	TESTQ(x, x)
	JZ(LabelRef("fresh"))
	places()
	each(func(c, r, column int) { tileLoad(c, results[r], stepC, 64*column) })
	JMP(LabelRef("sum"))
	Label("fresh")
	MOVQ(field(tileInit), x)
	TESTQ(x, x)
	JZ(LabelRef("zero"))
	XORQ(y, y)
	each(func(c, _, column int) { tileLoad(c, x, y, 64*column) })
	JMP(LabelRef("sum"))
	Label("zero")
	each(func(c, _, _ int) { tileZero(c) })
	Label("sum")
	MOVQ(field(tileOperandA), a0)
	MOVQ(a0, a1)
	ADDQ(Mem{Base: spans}, a0)
	ADDQ(Mem{Base: spans, Disp: 16}, a1)
	MOVQ(field(tileSteps), steps)
	MOVQ(field(tileDepth), depth)
	Label("step")
	MOVQ(Mem{Base: steps}, y)
	MOVQ(Mem{Base: steps, Disp: 8}, b)
	ADDQ(Imm(16), steps)
	LEAQ(Mem{Base: a0, Index: y, Scale: 1}, x)
	ADDQ(a1, y)
	ADDQ(field(tileOperandB), b)
	tileLoad(tileB, b, stepB, 0)
	tileLoad(tileA, x, stepA, 0)
	tileDot(tileC, tileA, tileB)
	if columns == 2 {
		tileLoad(tileB+1, b, stepB, 64)
		tileDot(tileC+1, tileA, tileB+1)
	}
	tileLoad(tileA+1, y, stepA, 0)
	tileDot(tileC+2, tileA+1, tileB)
	if columns == 2 {
		tileDot(tileC+3, tileA+1, tileB+1)
	}
	DECQ(depth)
	JNZ(LabelRef("step"))
	places()
	each(func(c, r, column int) { tileStore(c, results[r], stepC, 64*column) })
	ADDQ(Imm(32), spans)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	tileRelease()
	RET()
}

// tilePeak runs 4n products of whole tiles in registers.
func tilePeak(name string) {
	TEXT(name, NOSPLIT, "func(config *int, n int)")
	Load(Param("config"), reg.RDI)
	n := Load(Param("n"), reg.RCX)
	configure()
	for t := range 8 {
		tileZero(t)
	}
	Label("loop")
	for c := range 4 {
		tileDot(c, tileA+c/2, tileB+c%2)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	tileRelease()
	RET()
}
