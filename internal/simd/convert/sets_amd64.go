//go:build amd64 && !purego

package convert

import "onlinerna/internal/simd"

var sets = [simd.Count]set{
	simd.Go: plain,
	simd.AVX2: {
		Float32: {
			set:    setFloat32AVX2,
			narrow: narrowFloat32AVX2, narrowPast: narrowPastFloat32AVX2,
			largest: largestFloat32AVX2, copyLargest: copyLargestFloat32AVX2,
		},
		Float64: {
			set:    setFloat64AVX2,
			narrow: plainNarrow[float64], narrowPast: narrowPastFloat64AVX2,
			largest: largestFloat64AVX2, copyLargest: copyLargestFloat64AVX2,
		},
		Float16: {
			set:    setFloat16AVX2,
			narrow: narrowFloat16AVX2,
		},
		BFloat16: {
			set:    setBFloat16AVX2,
			narrow: narrowBFloat16AVX2,
		},
	},
	simd.AVX512: {
		Float32: {
			set:    setFloat32AVX512,
			narrow: narrowFloat32AVX512, narrowPast: narrowPastFloat32AVX512,
			largest: largestFloat32AVX512, copyLargest: copyLargestFloat32AVX512,
		},
		Float64: {
			set:    setFloat64AVX512,
			narrow: plainNarrow[float64], narrowPast: narrowPastFloat64AVX512,
			largest: largestFloat64AVX512, copyLargest: copyLargestFloat64AVX512,
		},
		Float16: {
			set:    setFloat16AVX512,
			narrow: narrowFloat16AVX512,
		},
		BFloat16: {
			set:    setBFloat16AVX512,
			narrow: narrowBFloat16AVX512,
		},
	},
}
