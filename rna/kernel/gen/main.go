// Command gen writes the assembly of package kernel: for amd64 by avo, for arm64 by package neon. Package kernel's go:generate line runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	writeNEON()
	ConstraintExpr("amd64,!purego")
	for _, s := range []isa{avx512, avx2} {
		for _, f := range formats {
			residuals(s, f)
			combinations(s, f)
		}
		products(s)
		for _, f := range formats {
			narrow(s, f)
		}
		for _, f := range formats[:2] {
			largest(s, f)
		}
	}
	Generate()
}
