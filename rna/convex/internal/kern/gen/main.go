// Command gen writes the assembly of package kern: for amd64 by avo, for arm64 by package neon. Package kern's go:generate line runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
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
	Generate()
}
