//go:build !purego

package kernel

import (
	"onlinerna/internal/simd"
	"onlinerna/internal/simd/convert"
)

var sets = [simd.Count]set{
	simd.Go: plain,
	simd.NEON: {
		format: [4]ops{
			convert.Float32: {
				setDiff: setDiffFloat32NEON, setFour: setFourFloat32NEON,
				dot: dotFloat32NEON, dotDiff: dotDiffFloat32NEON, dotFour: dotFourFloat32NEON,
				add: [4]combiner{addOneFloat32NEON, addTwoFloat32NEON, addThreeFloat32NEON, addFourFloat32NEON},
			},
			convert.Float64: {
				setDiff: setDiffFloat64NEON, setFour: setFourFloat64NEON,
				dot: dotFloat64NEON, dotDiff: dotDiffFloat64NEON, dotFour: dotFourFloat64NEON,
				add: [4]combiner{addOneFloat64NEON, addTwoFloat64NEON, addThreeFloat64NEON, addFourFloat64NEON},
			},
			convert.Float16: {
				setDiff: setDiffFloat16NEON, setFour: setFourFloat16NEON,
				add: [4]combiner{addOneFloat16NEON, addTwoFloat16NEON, addThreeFloat16NEON, addFourFloat16NEON},
			},
			convert.BFloat16: {
				setDiff: setDiffBFloat16NEON, setFour: setFourBFloat16NEON,
				add: [4]combiner{addOneBFloat16NEON, addTwoBFloat16NEON, addThreeBFloat16NEON, addFourBFloat16NEON},
			},
		},
		tile: 5, square: squareNEON, triangle: triangleNEON,
	},
}
