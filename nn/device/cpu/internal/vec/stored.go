package vec

import "onlinerna/internal/simd"

// Stored has kernels of a Set whose slices are stored as bfloat16. They compute in float32 and round their results, and
// so have the bits of the Set's kernels between conversions. Parameters in rows are float32.
type Stored struct {
	ReLU             func(dst, x []uint16)
	ReLUGrad         func(dst, y, dy []uint16)
	Add              func(dst, a, b []uint16)
	Normalize        func(dst, x []uint16, mean, gain, bias []float32)
	NormalizeReLU    func(dst, x []uint16, mean, gain, bias []float32)
	NormalizeAdd     func(dst, x, other []uint16, mean, gain, bias []float32)
	NormalizeAddReLU func(dst, x, other []uint16, mean, gain, bias []float32)
	NormalizeGrad    func(dst, x, dy []uint16, mean, gain, meanGrad, slope []float32)
	NormalizeAct     normalizeActsStored
	NormalizeActGrad normalizeActGradsStored

	// Rows of stored matrices are stride elements apart, those of made and from, which are float32, step elements. dst and
	// dy are rounded after they are summed.
	Sums            func(sum []float64, x []uint16, width, stride, step, rows int)
	Moments         func(sum, squares []float64, x []uint16, width, stride, step, rows int)
	MomentsMade     func(sum, squares []float64, dst []uint16, made []float32, width, stride, step, rows int)
	GradSums        func(scale, bias []float64, x, dy []uint16, mean []float32, width, stride, step, rows int)
	ReLUGradSums    func(scale, bias []float64, x, dy, y, from []uint16, mean []float32, width, stride, step, rows int)
	AddReLUGradSums func(scale, bias []float64, x, dy, y, from, more []uint16, mean []float32, width, stride, step,
		rows int)
	ReLUGradSumsMade func(scale, bias []float64, x, dy, y []uint16, from, mean []float32, width, stride, step, rows int)
	// AffineMade sets dst to made·gain + bias. The others add other to it, set negative results to 0, or both.
	AffineMade        func(dst []uint16, made, gain, bias []float32, width, stride, step, rows int)
	AffineReLUMade    func(dst []uint16, made, gain, bias []float32, width, stride, step, rows int)
	AffineAddMade     func(dst, other []uint16, made, gain, bias []float32, width, stride, step, rows int)
	AffineAddReLUMade func(dst, other []uint16, made, gain, bias []float32, width, stride, step, rows int)

	AddReLUGradSumsMade func(scale, bias []float64, x, dy, y, more []uint16, from, mean []float32, width, stride, step,
		rows int)
}

type (
	normalizeActsStored     [activations]func(dst, x []uint16, mean, gain, bias []float32)
	normalizeActGradsStored [activations]func(dst, x, dy []uint16, mean, gain, bias []float32)
)

// StoredFor returns the kernels of a level, or nil if the level converts pieces of slices instead.
func StoredFor(l simd.Level) *Stored {
	if l.BFloat16() {
		return storedKernels
	}
	return nil
}
