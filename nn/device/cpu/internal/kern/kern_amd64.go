//go:build amd64 && !purego

package kern

import "onlinerna/internal/simd"

var sets = [simd.Count]*Set{simd.AVX2: &avx2Set, simd.AVX512: &avx512Set}

var narrowSets = [simd.Count]*Set{
	simd.AVX2:   avx2Set.narrow(avx2Round, avx2Widen),
	simd.AVX512: avx512Set.narrow(avx512Round, avx512Widen),
}

var tapKernels = [simd.Count]*Taps{simd.AVX2: &avx2Taps, simd.AVX512: &avx512Taps}

var groupKernels = [simd.Count][]*Groups{
	simd.AVX2:   {&avx2Groups, &avx2Quads},
	simd.AVX512: {&avx512Groups, &avx512Quads, &avx512vlGroups, &avx512vlQuads},
}

var (
	dotSet      = &bf16Set
	dotStored   = &BFloat16{Widen: avx512Widen, Narrow: bf16Narrow, Lanes: 16}
	amxKernels  = &amxTiles
	vectorTiles = avx512Tiles

	vectorSplits = tileSplits
)

var stored = [simd.Count]*BFloat16{simd.AVX2: &avx2Stored, simd.AVX512: &avx512Stored}
