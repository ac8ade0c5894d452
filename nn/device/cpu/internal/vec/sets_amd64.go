//go:build amd64 && !purego

package vec

import "onlinerna/internal/simd"

var sets = [simd.Count]Set{
	simd.Go: plain,
	simd.AVX2: {
		ReLU:             reluAVX2,
		ReLUGrad:         reluGradAVX2,
		Add:              addAVX2,
		Normalize:        normalizeAVX2,
		NormalizeReLU:    normalizeReLUAVX2,
		NormalizeAdd:     normalizeAddAVX2,
		NormalizeAddReLU: normalizeAddReLUAVX2,
		NormalizeAct: normalizeActs{
			SiLU: normalizeSiLUAVX2, Hardswish: normalizeHardswishAVX2, ReLU6: normalizeReLU6AVX2},
		NormalizeActGrad: normalizeActGrads{
			SiLU: normalizeSiLUGradAVX2, Hardswish: normalizeHardswishGradAVX2, ReLU6: normalizeReLU6GradAVX2},
		NormalizeGrad:   normalizeGradAVX2,
		Scale:           scaleAVX2,
		Fill:            fillAVX2,
		AddScaled:       addScaledAVX2,
		Lerp:            lerpAVX2,
		Strange:         strangeAVX2,
		Squares:         squaresAVX2,
		Sums:            sumsAVX2,
		Moments:         momentsAVX2,
		GradSums:        gradSumsAVX2,
		ReLUGradSums:    reluGradSumsAVX2,
		AddReLUGradSums: addReLUGradSumsAVX2,
		Functions: Functions{
			SiLU: siluAVX2, SiLUGrad: siluGradAVX2, Hardswish: hardswishAVX2, HardswishGrad: hardswishGradAVX2,
			ReLU6: relu6AVX2, ReLU6Grad: relu6GradAVX2, GELU: geluAVX2, GELUGrad: geluGradAVX2,
			Neg: negAVX2, Sqrt: sqrtAVX2, Exp: expAVX2, Log: logAVX2, Tanh: tanhAVX2, Erf: erfAVX2, Sigmoid: sigmoidAVX2,
			Sub: subAVX2, Mul: mulAVX2, Div: divAVX2, Min: minimumAVX2, Max: maximumAVX2,
			Less: lessAVX2, LessEqual: lessEqualAVX2, Equal: equalAVX2, If: chooseAVX2, Uniforms: byGroups(uniformsAVX2),
		},
		Rows: Rows{
			softmaxAVX2, softmaxGradAVX2, softmaxPaddedAVX2, softmaxGradPaddedAVX2,
			layerNormAVX2, layerNormGradAVX2,
		},
		MaxWindows: func(y, x []float32, w Windows) {
			run := maxWindowsAVX2
			if w.paired(8) {
				run = maxWindowsPairsAVX2
			}
			run(y, x, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step)
		},
		MaxWindowsGrad: func(dy, x, dx []float32, w Windows) {
			maxWindowsGradAVX2(dy, x, dx, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step, w.BehindReLU)
		},
		MaxWindowsSet: func(dy, x, dx []float32, w Windows) {
			run := maxWindowsSetAVX2
			if w.paired(8) {
				run = maxWindowsSetPairsAVX2
			}
			run(dy, x, dx, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step, w.BehindReLU)
		},
	},
	simd.AVX512: {
		ReLU:             reluAVX512,
		ReLUGrad:         reluGradAVX512,
		Add:              addAVX512,
		Normalize:        normalizeAVX512,
		NormalizeReLU:    normalizeReLUAVX512,
		NormalizeAdd:     normalizeAddAVX512,
		NormalizeAddReLU: normalizeAddReLUAVX512,
		NormalizeAct: normalizeActs{
			SiLU: normalizeSiLUAVX512, Hardswish: normalizeHardswishAVX512, ReLU6: normalizeReLU6AVX512},
		NormalizeActGrad: normalizeActGrads{
			SiLU: normalizeSiLUGradAVX512, Hardswish: normalizeHardswishGradAVX512, ReLU6: normalizeReLU6GradAVX512},
		NormalizeGrad:   normalizeGradAVX512,
		Scale:           scaleAVX512,
		Fill:            fillAVX512,
		AddScaled:       addScaledAVX512,
		Lerp:            lerpAVX512,
		Strange:         strangeAVX512,
		Squares:         squaresAVX512,
		Sums:            sumsAVX512,
		Moments:         momentsAVX512,
		GradSums:        gradSumsAVX512,
		ReLUGradSums:    reluGradSumsAVX512,
		AddReLUGradSums: addReLUGradSumsAVX512,
		Functions: Functions{
			SiLU: siluAVX512, SiLUGrad: siluGradAVX512, Hardswish: hardswishAVX512, HardswishGrad: hardswishGradAVX512,
			ReLU6: relu6AVX512, ReLU6Grad: relu6GradAVX512, GELU: geluAVX512, GELUGrad: geluGradAVX512,
			Neg: negAVX512, Sqrt: sqrtAVX512, Exp: expAVX512, Log: logAVX512, Tanh: tanhAVX512, Erf: erfAVX512,
			Sigmoid: sigmoidAVX512,
			Sub:     subAVX512, Mul: mulAVX512, Div: divAVX512, Min: minimumAVX512, Max: maximumAVX512,
			Less: lessAVX512, LessEqual: lessEqualAVX512, Equal: equalAVX512, If: chooseAVX512, Uniforms: byGroups(uniformsAVX2),
		},
		Rows: Rows{
			softmaxAVX512, softmaxGradAVX512, softmaxPaddedAVX512, softmaxGradPaddedAVX512,
			layerNormAVX512, layerNormGradAVX512,
		},
		MaxWindows: func(y, x []float32, w Windows) {
			run := maxWindowsAVX512
			if w.paired(16) {
				run = maxWindowsPairsAVX512
			}
			run(y, x, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step)
		},
		MaxWindowsGrad: func(dy, x, dx []float32, w Windows) {
			maxWindowsGradAVX512(dy, x, dx, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step,
				w.BehindReLU)
		},
		MaxWindowsSet: func(dy, x, dx []float32, w Windows) {
			run := maxWindowsSetAVX512
			if w.paired(16) {
				run = maxWindowsSetPairsAVX512
			}
			run(dy, x, dx, w.Count, w.Channels, w.Pitch, w.Rows, w.Columns, w.Line, w.Pixel, w.Step, w.BehindReLU)
		},
	},
}

// paired reports whether two windows share a vector of the given lanes: their pixels of y have to be adjacent.
func (w Windows) paired(lanes int) bool {
	return w.Count > 1 && 2*w.Channels <= lanes && w.Pitch == w.Channels
}

var large = [simd.Count]Set{
	simd.Go: plain,
	simd.AVX2: past(sets[simd.AVX2], Set{
		ReLU:             reluPastAVX2,
		Add:              addPastAVX2,
		Normalize:        normalizePastAVX2,
		NormalizeReLU:    normalizeReLUPastAVX2,
		NormalizeAdd:     normalizeAddPastAVX2,
		NormalizeAddReLU: normalizeAddReLUPastAVX2,
		NormalizeAct: normalizeActs{
			SiLU: normalizeSiLUPastAVX2, Hardswish: normalizeHardswishPastAVX2, ReLU6: normalizeReLU6PastAVX2},
	}),
	simd.AVX512: past(sets[simd.AVX512], Set{
		ReLU:             reluPastAVX512,
		Add:              addPastAVX512,
		Normalize:        normalizePastAVX512,
		NormalizeReLU:    normalizeReLUPastAVX512,
		NormalizeAdd:     normalizeAddPastAVX512,
		NormalizeAddReLU: normalizeAddReLUPastAVX512,
		NormalizeAct: normalizeActs{
			SiLU: normalizeSiLUPastAVX512, Hardswish: normalizeHardswishPastAVX512, ReLU6: normalizeReLU6PastAVX512},
	}),
}

// past is s with the kernels of p that store past the caches.
func past(s, p Set) Set {
	s.ReLU, s.Add = p.ReLU, p.Add
	s.Normalize, s.NormalizeReLU = p.Normalize, p.NormalizeReLU
	s.NormalizeAdd, s.NormalizeAddReLU = p.NormalizeAdd, p.NormalizeAddReLU
	s.NormalizeAct = p.NormalizeAct
	return s
}
