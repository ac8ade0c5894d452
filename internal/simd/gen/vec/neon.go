package main

import (
	"log"

	"onlinerna/internal/simd/gen/neon"
)

// NEON's vectors are registers of four numbers.
const (
	neonLanes = 4
	neonWhole = neon.Bytes
	neonOne   = 4 // bytes of a number: the remainder behind whole vectors is processed one by one
)

// writeNEON writes the kernels for arm64.
func writeNEON() {
	f := neon.New("vec")
	neonKernels(f, elementwise[neonValue](""))
	neonVectors(f)
	neonUpdates(f)
	neonSums(f)
	neonPools(f)
	neonFunctions(f)
	neonUniforms(f)
	neonRowKernels(f)
	if err := f.Write("kernels_arm64.s", "stubs_arm64.go", ""); err != nil {
		log.Fatal(err)
	}
}
