// Command gen writes the assembly of package vec: for amd64 by avo, for arm64 by package neon. Package vec's go:generate line runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	writeNEON()
	ConstraintExpr("amd64,!purego")
	for _, s := range []isa{avx512, avx2} {
		s.kernels(elementwise[reg.VecVirtual](ways...))
		vectors(s)
		s.updates()
		sums(s)
		pools(s)
		functions(s)
	}
	uniforms()
	Generate()
}
