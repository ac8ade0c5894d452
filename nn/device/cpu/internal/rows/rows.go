// Package rows has ops that run along the last dimension of row-major values in one pass: layer normalisation, softmax
// and their gradients. One worker computes a row; sums are float64.
package rows

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns returns the patterns of this package's ops.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		lower.Alone(layerNorm), lower.Alone(layerNormGradInput),
		lower.Alone(func(s work.Step, o op.LayerNormGradScale) (*work.Lowering, error) {
			return layerNormGradScale(s, o, workers)
		}),
		lower.Alone(softmax), lower.Alone(softmaxGrad),
	}
}

// Whole reports whether patterns take a composite op as a whole: an op of this package whose rows are contiguous.
func Whole(c op.Composite, in []op.Type) bool {
	switch c.(type) {
	case op.LayerNorm, op.LayerNormGradInput, op.LayerNormGradScale, op.Softmax, op.SoftmaxGrad:
		return work.Layout(in[0], device.Data) == work.RowMajor
	}
	return false
}

// matrix returns the extents of an operand, and the number of rows of a block.
func matrix(t op.Type) (rows, width, each int) {
	width = t.Shape[len(t.Shape)-1]
	return t.Shape.Size() / width, width, max(1, work.ElementBlock/width)
}

// eachRow is the phase that calls f for each row, elements lo to hi.
func eachRow(t op.Type, f func(lo, hi int)) work.Phase {
	rows, width, each := matrix(t)
	return work.Phase{Blocks: work.Ceil(rows, each), Run: func(_, block int) {
		for i := block * each; i < min((block+1)*each, rows); i++ {
			f(i*width, (i+1)*width)
		}
	}}
}

// lanes is the number of columns that sums of a row run in.
const lanes = 16

// summer sums along rows.
type summer struct{ *vec.Set }

// sum adds up all elements.
func (k summer) sum(x []float32) (sum float64) {
	var part [lanes]float64
	n := len(x) / lanes
	if n > 0 {
		k.Sums(part[:], x, lanes, lanes, n)
	}
	for _, v := range part {
		sum += v
	}
	for _, v := range x[n*lanes:] {
		sum += float64(v)
	}
	return sum
}

// dot adds up products.
func dot(x, y []float32) float64 {
	var a, b, c, d float64
	y = y[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a += float64(x[i]) * float64(y[i])
		b += float64(x[i+1]) * float64(y[i+1])
		c += float64(x[i+2]) * float64(y[i+2])
		d += float64(x[i+3]) * float64(y[i+3])
	}
	for ; i < len(x); i++ {
		a += float64(x[i]) * float64(y[i])
	}
	return a + b + (c + d)
}
