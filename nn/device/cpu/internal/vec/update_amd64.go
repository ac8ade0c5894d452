//go:build !purego

package vec

import "onlinerna/internal/simd"

var updates = [simd.Count]Updates{
	simd.AVX2: {
		Apply:   apply{"momentum": momentumAVX2, "nesterov": nesterovAVX2, "adamw": adamWAVX2, "lamb": lambAVX2},
		Measure: measure{"lars": larsNormsAVX2, "lamb": lambNormsAVX2},
	},
	simd.AVX512: {
		Apply:   apply{"momentum": momentumAVX512, "nesterov": nesterovAVX512, "adamw": adamWAVX512, "lamb": lambAVX512},
		Measure: measure{"lars": larsNormsAVX512, "lamb": lambNormsAVX512},
	},
}
