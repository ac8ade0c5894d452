//go:build !purego

package vec

import "onlinerna/internal/simd"

var sets = [simd.Count]Set{
	simd.Go: plain,
	simd.NEON: {
		ReLU:             reluNEON,
		ReLUGrad:         reluGradNEON,
		Add:              addNEON,
		Normalize:        normalizeNEON,
		NormalizeReLU:    normalizeReLUNEON,
		NormalizeAdd:     normalizeAddNEON,
		NormalizeAddReLU: normalizeAddReLUNEON,
		NormalizeAct: normalizeActs{
			SiLU: normalizeSiLUNEON, Hardswish: normalizeHardswishNEON, ReLU6: normalizeReLU6NEON},
		NormalizeActGrad: normalizeActGrads{
			SiLU: normalizeSiLUGradNEON, Hardswish: normalizeHardswishGradNEON, ReLU6: normalizeReLU6GradNEON},
		NormalizeGrad:   normalizeGradNEON,
		Scale:           scaleNEON,
		Fill:            fillNEON,
		AddScaled:       addScaledNEON,
		Lerp:            lerpNEON,
		Strange:         strangeNEON,
		Squares:         squaresNEON,
		Sums:            sumsNEON,
		Moments:         momentsNEON,
		GradSums:        gradSumsNEON,
		ReLUGradSums:    reluGradSumsNEON,
		AddReLUGradSums: addReLUGradSumsNEON,
		Functions: Functions{
			SiLU: siluNEON, SiLUGrad: siluGradNEON, Hardswish: hardswishNEON, HardswishGrad: hardswishGradNEON,
			ReLU6: relu6NEON, ReLU6Grad: relu6GradNEON, GELU: geluNEON, GELUGrad: geluGradNEON,
			Neg: negNEON, Sqrt: sqrtNEON, Exp: expNEON, Log: logNEON, Tanh: tanhNEON, Erf: erfNEON, Sigmoid: sigmoidNEON,
			Sub: subNEON, Mul: mulNEON, Div: divNEON, Min: minimumNEON, Max: maximumNEON,
			Less: lessNEON, LessEqual: lessEqualNEON, Equal: equalNEON, If: chooseNEON, Uniforms: byGroups(uniformsNEON),
		},
		Rows: Rows{
			softmaxNEON, softmaxGradNEON, softmaxPaddedNEON, softmaxGradPaddedNEON,
			layerNormNEON, layerNormGradNEON,
		},
		MaxWindows: func(y, x []float32, w Windows) {
			maxWindowsNEON(y, x, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step)
		},
		MaxWindowsGrad: func(dy, x, dx []float32, w Windows) {
			maxWindowsGradNEON(dy, x, dx, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step, w.BehindReLU)
		},
		MaxWindowsSet: func(dy, x, dx []float32, w Windows) {
			maxWindowsSetNEON(dy, x, dx, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step, w.BehindReLU)
		},
	},
}

// large is the same: arm64's stores past the caches are no more than a hint.
var large = sets

var updates = [simd.Count]Updates{
	simd.NEON: {
		Apply:   apply{"momentum": momentumNEON, "nesterov": nesterovNEON, "adamw": adamWNEON, "lamb": lambNEON},
		Measure: measure{"lars": larsNormsNEON, "lamb": lambNormsNEON},
	},
}
