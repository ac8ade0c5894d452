//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

var sets = [...]set{
	Go: plain,
	AVX2: {
		format: [4]ops{
			Float32: {
				set: setFloat32AVX2, setDiff: setDiffFloat32AVX2, setFour: setFourFloat32AVX2,
				dot: dotFloat32AVX2, dotDiff: dotDiffFloat32AVX2, dotFour: dotFourFloat32AVX2,
				scale: scaleFloat32AVX2, add: addFloat32AVX2, addFour: addFourFloat32AVX2,
				narrow: narrowFloat32AVX2, narrowPast: narrowPastFloat32AVX2,
				largest: largestFloat32AVX2, copyLargest: copyLargestFloat32AVX2,
			},
			Float64: {
				set: setFloat64AVX2, setDiff: setDiffFloat64AVX2, setFour: setFourFloat64AVX2,
				dot: dotFloat64AVX2, dotDiff: dotDiffFloat64AVX2, dotFour: dotFourFloat64AVX2,
				scale: scaleFloat64AVX2, add: addFloat64AVX2, addFour: addFourFloat64AVX2,
				narrow: plainNarrow[float64], narrowPast: narrowPastFloat64AVX2,
				largest: largestFloat64AVX2, copyLargest: copyLargestFloat64AVX2,
			},
			Float16: {
				set: setFloat16AVX2, setDiff: setDiffFloat16AVX2, setFour: setFourFloat16AVX2,
				scale: scaleFloat16AVX2, add: addFloat16AVX2, addFour: addFourFloat16AVX2,
				narrow: narrowFloat16AVX2,
			},
			BFloat16: {
				set: setBFloat16AVX2, setDiff: setDiffBFloat16AVX2, setFour: setFourBFloat16AVX2,
				scale: scaleBFloat16AVX2, add: addBFloat16AVX2, addFour: addFourBFloat16AVX2,
				narrow: narrowBFloat16AVX2,
			},
		},
		tile: 3, square: squareAVX2, triangle: triangleAVX2,
	},
	AVX512: {
		format: [4]ops{
			Float32: {
				set: setFloat32AVX512, setDiff: setDiffFloat32AVX512, setFour: setFourFloat32AVX512,
				dot: dotFloat32AVX512, dotDiff: dotDiffFloat32AVX512, dotFour: dotFourFloat32AVX512,
				scale: scaleFloat32AVX512, add: addFloat32AVX512, addFour: addFourFloat32AVX512,
				narrow: narrowFloat32AVX512, narrowPast: narrowPastFloat32AVX512,
				largest: largestFloat32AVX512, copyLargest: copyLargestFloat32AVX512,
			},
			Float64: {
				set: setFloat64AVX512, setDiff: setDiffFloat64AVX512, setFour: setFourFloat64AVX512,
				dot: dotFloat64AVX512, dotDiff: dotDiffFloat64AVX512, dotFour: dotFourFloat64AVX512,
				scale: scaleFloat64AVX512, add: addFloat64AVX512, addFour: addFourFloat64AVX512,
				narrow: plainNarrow[float64], narrowPast: narrowPastFloat64AVX512,
				largest: largestFloat64AVX512, copyLargest: copyLargestFloat64AVX512,
			},
			Float16: {
				set: setFloat16AVX512, setDiff: setDiffFloat16AVX512, setFour: setFourFloat16AVX512,
				scale: scaleFloat16AVX512, add: addFloat16AVX512, addFour: addFourFloat16AVX512,
				narrow: narrowFloat16AVX512,
			},
			BFloat16: {
				set: setBFloat16AVX512, setDiff: setDiffBFloat16AVX512, setFour: setFourBFloat16AVX512,
				scale: scaleBFloat16AVX512, add: addBFloat16AVX512, addFour: addFourBFloat16AVX512,
				narrow: narrowBFloat16AVX512,
			},
		},
		tile: 5, square: squareAVX512, triangle: triangleAVX512,
	},
}

func detect() Level {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA:
		return Go
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return AVX512
	}
	return AVX2
}
