//go:build !purego

package kernel

import "onlinerna/internal/simd"

var sets = [simd.Count]set{
	simd.Go: plain,
	simd.NEON: {
		format: [4]ops{
			Float32: {
				set: setFloat32NEON, setDiff: setDiffFloat32NEON, setFour: setFourFloat32NEON,
				dot: dotFloat32NEON, dotDiff: dotDiffFloat32NEON, dotFour: dotFourFloat32NEON,
				add:     [4]combiner{addOneFloat32NEON, addTwoFloat32NEON, addThreeFloat32NEON, addFourFloat32NEON},
				narrow:  narrowFloat32NEON,
				largest: largestFloat32NEON, copyLargest: copyLargestFloat32NEON,
			},
			Float64: {
				set: setFloat64NEON, setDiff: setDiffFloat64NEON, setFour: setFourFloat64NEON,
				dot: dotFloat64NEON, dotDiff: dotDiffFloat64NEON, dotFour: dotFourFloat64NEON,
				add:     [4]combiner{addOneFloat64NEON, addTwoFloat64NEON, addThreeFloat64NEON, addFourFloat64NEON},
				narrow:  plainNarrow[float64],
				largest: largestFloat64NEON, copyLargest: copyLargestFloat64NEON,
			},
			Float16: {
				set: setFloat16NEON, setDiff: setDiffFloat16NEON, setFour: setFourFloat16NEON,
				add:    [4]combiner{addOneFloat16NEON, addTwoFloat16NEON, addThreeFloat16NEON, addFourFloat16NEON},
				narrow: narrowFloat16NEON,
			},
			BFloat16: {
				set: setBFloat16NEON, setDiff: setDiffBFloat16NEON, setFour: setFourBFloat16NEON,
				add:    [4]combiner{addOneBFloat16NEON, addTwoBFloat16NEON, addThreeBFloat16NEON, addFourBFloat16NEON},
				narrow: narrowBFloat16NEON,
			},
		},
		tile: 5, square: squareNEON, triangle: triangleNEON,
	},
}
