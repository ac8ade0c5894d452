// Command vec writes the assembly of nn/device/cpu/internal/vec; the go:generate line there runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

func main() {
	avx.Enter("nn/device/cpu/internal/vec")
	writeNEON()
	ConstraintExpr("amd64,!purego")
	for _, s := range []isa{avx512, avx2} {
		s.kernels(elementwise[reg.VecVirtual](ways...))
		vectors(s)
		s.updates()
		sums(s)
		pools(s)
		functions(s)
		rows(s)
	}
	avx512.kernels(layers[reg.VecVirtual](storedWay))
	avx512.kernels(gradients[reg.VecVirtual](storedWay))
	for _, f := range fused[Op]() {
		avx512.normalizedBy(f, f.waysOf([]string{storedWay}))
	}
	storedSums(avx512)
	uniforms()
	avx.Write("stubs_amd64.go")
}

// isa is a set of instructions for float32.
type isa struct{ avx.Set }

var avx512, avx2 = isa{avx.AVX512(4)}, isa{avx.AVX2(4)}

type mask = avx.Mask

// constant is a vector in memory.
func (s isa) constant(name string, lane func(i int) uint32) Mem {
	return s.Constant(name, func(i int) uint64 { return uint64(lane(i)) })
}

func (s isa) add(a, b reg.VecVirtual) reg.VecVirtual { return s.Add(a, b) }
func (s isa) sub(a, b reg.VecVirtual) reg.VecVirtual { return s.Sub(a, b) }
func (s isa) mul(a, b reg.VecVirtual) reg.VecVirtual { return s.Mul(a, b) }
func (s isa) div(a, b reg.VecVirtual) reg.VecVirtual { return s.Div(a, b) }
func (s isa) sqrt(a reg.VecVirtual) reg.VecVirtual   { return s.Sqrt(a) }

func (s isa) doubles(x reg.VecVirtual) [2]reg.VecVirtual { return s.Doubles(x) }
