package avx

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// EncodeBF16 writes an instruction of AVX512_BF16, EVEX.512.F3.0F38.W0 opcode /r, which Go's assembler does not know.
// Operands are numbers of vectors, in the assembler's order; src1 is -1 for two operands.
func EncodeBF16(name string, opcode uint32, src2, src1, dst int) {
	rm, v, r := uint32(src2), uint32(max(src1, 0)), uint32(dst)
	if src1 >= 0 {
		Commentf("%s Z%d, Z%d, Z%d", name, rm, v, r)
	} else {
		Commentf("%s Z%d, Y%d", name, rm, r)
	}
	bit := func(x uint32, i int) uint32 { return ^x >> i & 1 } // they are stored inverted
	const (
		map38, prefixF3, length512 = 2, 2, 2
		fixed                      = 1 << 2
		registers                  = 3 << 6
	)
	p0 := bit(r, 3)<<7 | bit(rm, 4)<<6 | bit(rm, 3)<<5 | bit(r, 4)<<4 | map38
	p1 := ^v&15<<3 | fixed | prefixF3
	p2 := length512<<5 | bit(v, 4)<<3
	emit := func(opcode string, imm Constant) {
		Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{imm}})
	}
	emit("LONG", U32(0x62|p0<<8|p1<<16|p2<<24))
	emit("WORD", U16(opcode|(registers|r&7<<3|rm&7)<<8))
}

// LoadStored widens a vector of bfloat16 in memory to float32; lanes outside m are 0. It needs AVX-512.
func (s Set) LoadStored(from Mem, m *Mask) reg.VecVirtual {
	x := s.Vector()
	if m == nil {
		VPMOVZXWD(from, x)
	} else {
		VPMOVZXWD_Z(from, m.Opmask(), x)
	}
	VPSLLD(Imm(16), x, x)
	return x
}

// StoreRounded rounds the lanes of m to bfloat16 and writes them. It needs AVX512_BF16, and uses Z31.
func (s Set) StoreRounded(x reg.VecVirtual, to Mem, m *Mask) {
	const last = 31
	VMOVAPS(x, reg.Z31)
	EncodeBF16("VCVTNEPS2BF16", 0x72, last, -1, last)
	if m == nil {
		VMOVDQU16(reg.Y31, to)
		return
	}
	VMOVDQU16(reg.Y31, m.Opmask(), to)
}
