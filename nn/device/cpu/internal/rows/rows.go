// Package rows has ops that run along the last dimension of row-major values in one pass: layer normalisation, softmax,
// attention, whose scores are such rows, and their gradients. One worker computes a row; sums along it are float64.
package rows

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops.
func Patterns(workers int, kernels Kernels) []work.Pattern {
	return []work.Pattern{
		lower.Alone(layerNorm), layerNormGrads(workers), lower.Alone(softmax), lower.Alone(softmaxGrad),
		lower.Alone(func(s work.Step, o op.SelfAttention) (*work.Lowering, error) {
			return selfAttention(s, o, workers, kernels)
		}),
		attentionGrads(workers, kernels),
		lower.Alone(func(s work.Step, o op.Attention) (*work.Lowering, error) {
			return crossAttention(s, o, workers, kernels)
		}),
	}
}

// Whole reports whether patterns take a composite op as a whole: an op of this package whose rows are contiguous.
func Whole(c op.Composite, in []op.Type) bool {
	switch c.(type) {
	case op.LayerNorm, op.LayerNormGradInput, op.LayerNormGradScale, op.Softmax, op.SoftmaxGrad,
		op.Attention, op.AttentionGrad, op.SelfAttention, op.SelfAttentionGrad, op.SelfAttentionGradBias:
		return work.Layout(in[0], device.Data) == work.RowMajor
	}
	return false
}

// matrix returns the extents of an operand, and the number of rows of a block.
func matrix(t op.Type) (rows, width, each int) {
	width = t.Shape[len(t.Shape)-1]
	return t.Shape.Size() / width, width, max(1, work.ElementBlock/width)
}

// blocks is the phase that calls f for blocks of count rows, elements lo to hi.
func blocks(t op.Type, f func(worker, lo, hi, count int)) []work.Phase {
	rows, width, each := matrix(t)
	return []work.Phase{{Blocks: work.Ceil(rows, each), Run: func(worker, block int) {
		from, to := block*each, min((block+1)*each, rows)
		f(worker, from*width, to*width, to-from)
	}}}
}

// byRows lowers a step that computes its result row by row, over the storage of operands if these are not needed behind
// it. It takes them and the result in blocks.
func byRows(s work.Step, over []int, bind func(st *work.Storage, k *vec.Set) func(worker, lo, hi, count int)) (
	*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase { return blocks(s.OutType(), bind(st, vec.For(st.Level))) })
	l.Results[0].Over = over
	_, width, each := matrix(s.OutType())
	l.Kernel.Take(each*width, over...)
	l.Kernel.Take(each*width, s.Out)
	return l, nil
}
