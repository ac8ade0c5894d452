// Command imaging writes the assembly of data/imaging/internal/kern; the go:generate line there runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

func main() {
	avx.Enter("data/imaging/internal/kern")
	ConstraintExpr("amd64,!purego")
	idct()
	idct4()
	upsample("upsampleH2V1AVX2", false)
	upsample("upsampleH2V2AVX2", true)
	ycbcr()
	across()
	down()
	blocks()
	skips()
	avx.Write("stubs_amd64.go")
}

var constants = make(map[string]Mem)

// dwords is a vector of eight equal numbers in memory.
func dwords(name string, v int32) Mem {
	return data(name, func() {
		for i := range 8 {
			DATA(4*i, U32(uint32(v)))
		}
	})
}

// words is a vector of sixteen equal numbers in memory.
func words(name string, v int16) Mem {
	return data(name, func() {
		for i := range 16 {
			DATA(2*i, U16(uint16(v)))
		}
	})
}

// octets is a vector in memory; both halves are b if b has 16 bytes.
func octets(name string, b []byte) Mem {
	return data(name, func() {
		for i := range 32 {
			DATA(i, U8(b[i%len(b)]))
		}
	})
}

func data(name string, fill func()) Mem {
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		fill()
		constants[name] = m
	}
	return m
}

func load(m Mem) reg.VecVirtual {
	y := YMM()
	VMOVDQU(m, y)
	return y
}

func param(name string) reg.Register { return Load(Param(name), GP64()) }
