//go:build amd64 && !purego

package kernel

import (
	"onlinerna/internal/simd"
	"onlinerna/internal/simd/convert"
)

var sets = [simd.Count]set{
	simd.Go: plain,
	simd.AVX2: {
		format: [4]ops{
			convert.Float32: {
				setDiff: setDiffFloat32AVX2, setFour: setFourFloat32AVX2,
				dot: dotFloat32AVX2, dotDiff: dotDiffFloat32AVX2, dotFour: dotFourFloat32AVX2,
				add: [4]combiner{addOneFloat32AVX2, addTwoFloat32AVX2, addThreeFloat32AVX2, addFourFloat32AVX2},
			},
			convert.Float64: {
				setDiff: setDiffFloat64AVX2, setFour: setFourFloat64AVX2,
				dot: dotFloat64AVX2, dotDiff: dotDiffFloat64AVX2, dotFour: dotFourFloat64AVX2,
				add: [4]combiner{addOneFloat64AVX2, addTwoFloat64AVX2, addThreeFloat64AVX2, addFourFloat64AVX2},
			},
			convert.Float16: {
				setDiff: setDiffFloat16AVX2, setFour: setFourFloat16AVX2,
				add: [4]combiner{addOneFloat16AVX2, addTwoFloat16AVX2, addThreeFloat16AVX2, addFourFloat16AVX2},
			},
			convert.BFloat16: {
				setDiff: setDiffBFloat16AVX2, setFour: setFourBFloat16AVX2,
				add: [4]combiner{addOneBFloat16AVX2, addTwoBFloat16AVX2, addThreeBFloat16AVX2, addFourBFloat16AVX2},
			},
		},
		tile: 3, square: squareAVX2, triangle: triangleAVX2,
	},
	simd.AVX512: {
		format: [4]ops{
			convert.Float32: {
				setDiff: setDiffFloat32AVX512, setFour: setFourFloat32AVX512,
				dot: dotFloat32AVX512, dotDiff: dotDiffFloat32AVX512, dotFour: dotFourFloat32AVX512,
				add: [4]combiner{addOneFloat32AVX512, addTwoFloat32AVX512, addThreeFloat32AVX512, addFourFloat32AVX512},
			},
			convert.Float64: {
				setDiff: setDiffFloat64AVX512, setFour: setFourFloat64AVX512,
				dot: dotFloat64AVX512, dotDiff: dotDiffFloat64AVX512, dotFour: dotFourFloat64AVX512,
				add: [4]combiner{addOneFloat64AVX512, addTwoFloat64AVX512, addThreeFloat64AVX512, addFourFloat64AVX512},
			},
			convert.Float16: {
				setDiff: setDiffFloat16AVX512, setFour: setFourFloat16AVX512,
				add: [4]combiner{addOneFloat16AVX512, addTwoFloat16AVX512, addThreeFloat16AVX512, addFourFloat16AVX512},
			},
			convert.BFloat16: {
				setDiff: setDiffBFloat16AVX512, setFour: setFourBFloat16AVX512,
				add: [4]combiner{addOneBFloat16AVX512, addTwoBFloat16AVX512, addThreeBFloat16AVX512, addFourBFloat16AVX512},
			},
		},
		tile: 5, square: squareAVX512, triangle: triangleAVX512,
	},
}
