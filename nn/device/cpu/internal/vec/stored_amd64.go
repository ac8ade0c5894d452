//go:build amd64 && !purego

package vec

var storedKernels = &Stored{
	ReLU:             reluStoredAVX512,
	ReLUGrad:         reluGradStoredAVX512,
	Add:              addStoredAVX512,
	Normalize:        normalizeStoredAVX512,
	NormalizeReLU:    normalizeReLUStoredAVX512,
	NormalizeAdd:     normalizeAddStoredAVX512,
	NormalizeAddReLU: normalizeAddReLUStoredAVX512,
	NormalizeGrad:    normalizeGradStoredAVX512,
	NormalizeAct: normalizeActsStored{SiLU: normalizeSiLUStoredAVX512, Hardswish: normalizeHardswishStoredAVX512,
		ReLU6: normalizeReLU6StoredAVX512},
	NormalizeActGrad: normalizeActGradsStored{SiLU: normalizeSiLUGradStoredAVX512,
		Hardswish: normalizeHardswishGradStoredAVX512, ReLU6: normalizeReLU6GradStoredAVX512},
	Sums:                sumsStoredAVX512,
	Moments:             momentsStoredAVX512,
	MomentsMade:         momentsMadeAVX512,
	GradSums:            gradSumsStoredAVX512,
	ReLUGradSums:        reluGradSumsStoredAVX512,
	AddReLUGradSums:     addReLUGradSumsStoredAVX512,
	ReLUGradSumsMade:    reluGradSumsMadeAVX512,
	AffineMade:          affineMadeAVX512,
	AffineReLUMade:      affineReLUMadeAVX512,
	AffineAddMade:       affineAddMadeAVX512,
	AffineAddReLUMade:   affineAddReLUMadeAVX512,
	AddReLUGradSumsMade: addReLUGradSumsMadeAVX512,
}
