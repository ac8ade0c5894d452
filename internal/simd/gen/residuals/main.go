// Command residuals writes the assembly of internal/simd/convert or of rna/kernel; its argument names the part.
package main

import (
	"log"
	"os"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"onlinerna/internal/simd/gen/avx"
)

func main() {
	switch part := os.Args[1]; part {
	case "convert":
		avx.Enter("internal/simd/convert")
		neonConversions()
		ConstraintExpr("amd64,!purego")
		for _, s := range []isa{avx512, avx2} {
			for _, f := range formats {
				rows(s, f, setters[reg.VecVirtual]()[:1])
				narrow(s, f)
			}
			for _, f := range formats[:2] {
				largest(s, f)
			}
		}
	case "kernel":
		avx.Enter("rna/kernel")
		neonProducts()
		ConstraintExpr("amd64,!purego")
		for _, s := range []isa{avx512, avx2} {
			for _, f := range formats {
				rows(s, f, setters[reg.VecVirtual]()[1:])
				residuals(s, f)
				combinations(s, f)
			}
			products(s)
		}
	default:
		log.Fatalf("part %q: want convert or kernel", part)
	}
	avx.Write("stubs_amd64.go")
}

// isa is a set of instructions for float64.
type isa struct {
	avx.Set
	tile int // rows of a square of products that registers hold
}

var avx512, avx2 = isa{avx.AVX512(8), 5}, isa{avx.AVX2(8), 3}

// Package kernel has the same numbers.
const (
	group    = 16            // elements that kernels take at a time
	sumLanes = 8             // of a sum
	pitch    = 8 * (256 + 8) // bytes from a row of residuals to the next
)

// line is the size of a cache line in bytes.
const line = 64

// format is the storage format of elements.
type format struct {
	name string
	size int
}

var formats = []format{{"Float32", 4}, {"Float64", 8}, {"Float16", 2}, {"BFloat16", 2}}
