// Package rows has ops that run along the last dimension of row-major values in one pass: layer normalisation, softmax,
// self-attention, whose scores are such rows, and their gradients. One worker computes a row; sums along it are float64.
package rows

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops.
func Patterns(workers int, level simd.Level) []work.Pattern {
	return []work.Pattern{
		alone(workers, layerNorm), alone(workers, layerNormGradInput), alone(workers, layerNormGradScale),
		alone(workers, softmax), alone(workers, softmaxGrad),
		lower.Alone(func(s work.Step, o op.SelfAttention) (*work.Lowering, error) {
			return selfAttention(s, o, workers, level)
		}),
		attentionGrads(workers, level),
	}
}

// alone is lower.Alone for functions that know the number of workers.
func alone[O op.Op](workers int, f func(s work.Step, o O, workers int) (*work.Lowering, error)) work.Pattern {
	return lower.Alone(func(s work.Step, o O) (*work.Lowering, error) { return f(s, o, workers) })
}

// Whole reports whether patterns take a composite op as a whole: an op of this package whose rows are contiguous.
func Whole(c op.Composite, in []op.Type) bool {
	switch c.(type) {
	case op.LayerNorm, op.LayerNormGradInput, op.LayerNormGradScale, op.Softmax, op.SoftmaxGrad,
		op.SelfAttention, op.SelfAttentionGrad, op.SelfAttentionGradBias:
		return work.Layout(in[0], device.Data) == work.RowMajor
	}
	return false
}

// matrix returns the extents of an operand, and the number of rows of a block.
func matrix(t op.Type) (rows, width, each int) {
	width = t.Shape[len(t.Shape)-1]
	return t.Shape.Size() / width, width, max(1, work.ElementBlock/width)
}

// eachRow is the phase that calls f for each row, elements lo to hi, with a worker's room.
func eachRow(t op.Type, rooms []room, f func(k *room, lo, hi int)) work.Phase {
	rows, width, each := matrix(t)
	return work.Phase{Blocks: work.Ceil(rows, each), Run: func(worker, block int) {
		for i := block * each; i < min((block+1)*each, rows); i++ {
			f(&rooms[worker], i*width, (i+1)*width)
		}
	}}
}

// eachOf lowers a step that computes its result row by row, over the storage of operands if these are not needed behind
// it.
func eachOf(s work.Step, workers int, over []int, bind func(st *work.Storage) func(k *room, lo, hi int)) (*work.Lowering,
	error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	var r work.Room
	_, width, _ := matrix(s.OutType())
	places := rooms(&r, workers, width)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		return []work.Phase{eachRow(s.OutType(), places.bind(st), bind(st))}
	})
	l.Results[0].Over = over
	l.Workspace = r.Bytes
	return l, nil
}
