//go:build !purego

package convert

import "onlinerna/internal/simd"

var sets = [simd.Count]set{
	simd.Go: plain,
	simd.NEON: {
		Float32: {
			set:     setFloat32NEON,
			narrow:  narrowFloat32NEON,
			largest: largestFloat32NEON, copyLargest: copyLargestFloat32NEON,
		},
		Float64: {
			set:     setFloat64NEON,
			narrow:  plainNarrow[float64],
			largest: largestFloat64NEON, copyLargest: copyLargestFloat64NEON,
		},
		Float16: {
			set:    setFloat16NEON,
			narrow: narrowFloat16NEON,
		},
		BFloat16: {
			set:    setBFloat16NEON,
			narrow: narrowBFloat16NEON,
		},
	},
}
