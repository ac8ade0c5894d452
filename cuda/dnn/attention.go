//go:build gpu && cgo

package dnn

// #include <cudnn_backend.h>
import "C"

import (
	"fmt"

	"onlinerna/cuda/number"
)

// Attention is scaled dot-product attention of sequences of tokens to themselves, by heads. Its operands lie as
// op.SelfAttention has them: a token's row holds the queries of all heads, then the keys, then the values, of Width
// elements each, and a row of the result holds one vector for each head.
type Attention struct {
	Sequences, Tokens, Heads, Width int
	Scale                           float32
}

// Usable reports whether the loaded cuDNN computes the gradient correctly: 9.6 clears its sums by itself, and up to 9.15.0
// it needs numbers of tokens that are multiples of 128.
func (a Attention) Usable() bool {
	v := int(C.cudnnGetVersion())
	return v > 91500 || v >= 90600 && a.Tokens%128 == 0
}

// dims are the extents of the queries, keys, values or results of all heads, and steps their strides in rows of so many
// vectors of all heads.
func (a Attention) dims() Dims { return Dims{a.Sequences, a.Heads, a.Tokens, a.Width} }
func (a Attention) steps(vectors int) Dims {
	row := vectors * a.Heads * a.Width
	return Dims{a.Tokens * row, a.Width, row, 1}
}

// scores are the extents of the scores of queries for keys; of rows has one number for each query.
func (a Attention) scores() Dims { return Dims{a.Sequences, a.Heads, a.Tokens, a.Tokens} }
func (a Attention) rows() Dims   { return Dims{a.Sequences, a.Heads, a.Tokens, 1} }

// packed are the strides of a tensor without gaps whose last dimension is contiguous.
func packed(d Dims) Dims { return Dims{d[1] * d[2] * d[3], d[2] * d[3], d[3], 1} }

// transposed exchanges the last two dimensions.
func transposed(d Dims) Dims { return Dims{d[0], d[1], d[3], d[2]} }

// RowBytes is the size of the sums of exponentials that the forward pass leaves for the gradient; it is that of other
// numbers of a query, too.
func (a Attention) RowBytes() int64 { return Float32.bytes() * a.rows().elements() }

// Part is the size in bytes of the queries, from the first to the last, in rows of so many vectors.
func (a Attention) Part(vectors int) int64 {
	return tensor{element: BFloat16, dims: a.dims(), strides: a.steps(vectors)}.place()
}

// attentionGraph is a graph of an attention under construction.
type attentionGraph struct {
	*Graph
	Attention
	element Element
}

func (g attentionGraph) memory(e Element, d, strides Dims) Tensor {
	return g.tensor(tensor{element: e, dims: d, strides: strides})
}
func (g attentionGraph) inside(e Element, d, strides Dims) Tensor {
	return g.tensor(tensor{element: e, dims: d, strides: strides, between: true})
}
func (g attentionGraph) constant(v float32) Tensor {
	return g.tensor(tensor{element: Float32, dims: Dims{1, 1, 1, 1}, strides: Dims{1, 1, 1, 1}, scalar: true, value: v})
}

// score computes a from others between operations: a number for each score.
func (g attentionGraph) score(what action, a, b Tensor) Tensor {
	to := g.inside(Float32, g.scores(), packed(g.scores()))
	g.pointwise(what, a, b, to)
	return to
}

// row computes a number for each query.
func (g attentionGraph) row(what action, a, b Tensor) Tensor {
	to := g.inside(Float32, g.rows(), packed(g.rows()))
	g.pointwise(what, a, b, to)
	return to
}

// turned is the transpose of numbers in place.
func (g attentionGraph) turned(a Tensor, e Element) Tensor {
	t := g.tensors[a]
	to := g.inside(e, transposed(t.dims), transposed(t.strides))
	g.pointwise(opTranspose, a, -1, to)
	return to
}

func (a Attention) graph(name string, p number.Precision) attentionGraph {
	return attentionGraph{&Graph{Name: name, attention: a}, a, ElementOf(p)}
}

// Forward is the graph of the result, for queries, keys, values, the result and, for the gradient, one number for each
// query: the logarithm of the sum of the exponentials of its scores. They lie in this order.
func (a Attention) Forward(p number.Precision) *Graph {
	g := a.graph("attention", p)
	in, d := a.steps(3), a.dims()
	q := g.memory(g.element, d, in)
	k := g.memory(g.element, transposed(d), transposed(in))
	v := g.memory(g.element, d, in)
	y := g.memory(g.element, d, a.steps(1))
	stats := g.memory(Float32, a.rows(), packed(a.rows()))
	scores := g.score(opMultiply, g.score(opMatMul, q, k), g.constant(a.Scale))
	top := g.row(opMax, scores, -1)
	powers := g.score(opExp, g.score(opSubtract, scores, top), -1)
	sum := g.row(opSum, powers, -1)
	g.pointwise(opAdd, top, g.row(opLog, sum, -1), stats)
	weights := g.inside(g.element, a.scores(), packed(a.scores()))
	g.pointwise(opDivide, powers, sum, weights)
	g.pointwise(opMatMul, weights, v, y)
	return g.Graph
}

// Gradient is the graph of the gradient, for queries, keys, values, the result, its gradient, the numbers from the
// forward pass, the gradients of queries, keys and values, and scratch of RowBytes. If deterministic is false a
// float32 copy of the gradient of the queries without gaps follows, in which blocks add up.
func (a Attention) Gradient(p number.Precision, deterministic bool) *Graph {
	g := a.graph("attention gradient", p)
	in, out, d := a.steps(3), a.steps(1), a.dims()
	q := g.memory(g.element, d, in)
	k := g.memory(g.element, transposed(d), transposed(in))
	v := g.memory(g.element, transposed(d), transposed(in))
	y, dy := g.memory(g.element, d, out), g.memory(g.element, d, out)
	stats := g.memory(Float32, a.rows(), packed(a.rows()))
	dq, dk, dv := g.memory(g.element, d, in), g.memory(g.element, d, in), g.memory(g.element, d, in)
	mean := g.memory(Float32, a.rows(), packed(a.rows()))
	scale := g.constant(a.Scale)

	product := g.inside(Float32, d, out)
	g.pointwise(opMultiply, dy, y, product)
	g.pointwise(opMultiply, g.row(opSum, product, -1), g.constant(1), mean)
	scores := g.score(opMultiply, g.score(opMatMul, q, k), scale)
	weights := g.score(opExp, g.score(opSubtract, scores, stats), -1)
	g.pointwise(opMatMul, g.turned(weights, g.element), dy, dv)
	ds := g.score(opSubtract, g.score(opMatMul, dy, v), mean)
	ds = g.score(opMultiply, g.score(opMultiply, ds, weights), scale)
	g.pointwise(opMatMul, g.turned(ds, g.element), q, dk)
	keys := g.turned(k, g.element)
	if deterministic {
		g.pointwise(opMatMul, ds, keys, dq)
		return g.Graph
	}
	sums := g.memory(Float32, d, packed(d))
	g.pointwise(opMatMul, ds, keys, sums)
	g.pointwise(opCopy, sums, -1, dq)
	return g.Graph
}

// extents lists the sizes of the graph's convolution or attention.
func (g *Graph) extents() string {
	if a := g.attention; a != (Attention{}) {
		return fmt.Sprintf("%d sequences of %d tokens, %d heads of %d", a.Sequences, a.Tokens, a.Heads, a.Width)
	}
	return g.Shape().String()
}

// Attention is the attention of the graph, zero for others.
func (g *Graph) Attention() Attention { return g.attention }
