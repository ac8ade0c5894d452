// Command gen writes the assembly of package vec: for amd64 by avo, for arm64 by package neon. Package vec's go:generate line runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	writeNEON()
	ConstraintExpr("amd64,!purego")
	for _, s := range []isa{avx512, avx2} {
		elementwise(s)
		batchNorm(s)
		vectors(s)
		updates(s)
		sums(s)
		pools(s)
		functions(s)
	}
	uniforms()
	Generate()
}
