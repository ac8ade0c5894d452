// Command convex writes the assembly of rna/convex/internal/kern; the go:generate line there runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"

	"onlinerna/internal/simd/gen/avx"
)

func main() {
	avx.Enter("rna/convex/internal/kern")
	writeNEON()
	ConstraintExpr("amd64,!purego")
	for _, s := range []isa{avx512, avx2} {
		for n := 1; n <= most; n++ {
			for _, e := range []element{floats, coded} {
				s.dots(n, e)
				s.addRows(n, e)
			}
		}
		s.losses()
		s.streams()
	}
	avx2.sparse()
	avx2.strips()
	avx.Write("stubs_amd64.go")
}

// isa is a set of instructions for float64.
type isa struct{ avx.Set }

var avx512, avx2 = isa{avx.AVX512(8)}, isa{avx.AVX2(8)}

type mask = avx.Mask
