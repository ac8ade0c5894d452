package nn

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// SelfAttention adds scaled dot-product attention with the given number of heads to n sequences of tokens. Rows [N·T,3C]
// hold the queries, keys and values one after the other, each split into heads. The result is [N·T,C]. A bias, as
// op.SelfAttention takes it, may follow.
func (b *Builder) SelfAttention(name string, qkv *G.Node, n, heads int, bias ...*G.Node) *G.Node {
	s, ok := b.shape(name, qkv, 2)
	if !ok {
		return nil
	}
	if n < 1 || heads < 1 {
		b.Fail(fmt.Errorf("layer %s: %d sequences and %d heads: there must be some", name, n, heads))
		return nil
	}
	o := op.SelfAttention{Tokens: s[0] / n, Heads: heads, Scale: 1 / math.Sqrt(float64(s[1]/3/heads))}
	return b.Apply(name, o, append([]*G.Node{qkv}, bias...)...)
}

// Attention describes scaled dot-product attention.
type Attention struct {
	Heads   int
	Scale   float64 // of the scores; 0 means 1/√D for D elements of a head's query
	Dropout float64 // probability of dropping a key's weight in Train, as the layer name.dropout; 0 is faster
}

// Attention adds attention of the tokens of n sequences to those of n others, such as an encoder's: cross-attention.
// Rows of queries [N·T,C], keys [N·S,C] and values [N·S,E] are each split into heads. The result is [N·T,E]. A bias
// [G,T,S], as op.Attention takes it, may follow.
func (b *Builder) Attention(name string, queries, keys, values *G.Node, n int, a Attention, bias ...*G.Node) *G.Node {
	if !b.claim(name) {
		return nil
	}
	if n < 1 || a.Heads < 1 {
		b.Fail(fmt.Errorf("layer %s: %d sequences and %d heads: there must be some", name, n, a.Heads))
		return nil
	}
	var in []*G.Node // [N·Heads,T,D]
	for _, x := range []*G.Node{queries, keys, values} {
		s, ok := b.shape(name, x, 2)
		if ok && (s[0]%n != 0 || s[1]%a.Heads != 0) {
			b.Fail(fmt.Errorf("layer %s: the rows %v are not those of %d sequences for %d heads", name, s, n, a.Heads))
		}
		if b.err != nil {
			return nil
		}
		t, d := s[0]/n, s[1]/a.Heads
		// Five dimensions: devices keep values of four as images.
		x = b.apply(name, op.Reshape{Shape: op.Shape{1, n, t, a.Heads, d}}, x)
		x = b.apply(name, op.Permute{Axes: []int{0, 1, 3, 2, 4}}, x)
		in = append(in, b.apply(name, op.Reshape{Shape: op.Shape{n * a.Heads, t, d}}, x))
	}
	if b.err != nil {
		return nil
	}
	o := op.Attention{Scale: cmp.Or(a.Scale, 1/math.Sqrt(float64(in[0].Shape()[2])))}
	y := b.attention(name, a.Dropout, o, append(in, bias...)...)
	if b.err != nil {
		return nil
	}
	s := y.Shape()
	y = b.apply(name, op.Reshape{Shape: op.Shape{1, n, a.Heads, s[1], s[2]}}, y)
	y = b.apply(name, op.Permute{Axes: []int{0, 1, 3, 2, 4}}, y)
	return b.apply(name, op.Reshape{Shape: op.Shape{n * s[1], a.Heads * s[2]}}, y)
}

// attention is o, or its formula if weights are dropped, which the op cannot do.
func (b *Builder) attention(name string, drop float64, o op.Attention, in ...*G.Node) *G.Node {
	if drop == 0 || b.model.Config.Mode == Eval {
		return b.Dropout(name+".dropout", b.apply(name, o, in...), drop)
	}
	types := make([]op.Type, len(in))
	for i, x := range in {
		types[i], _ = TypeOf(x) // an op that lacks the type has an error of its own
	}
	if _, err := o.Infer(types...); err != nil {
		b.Fail(fmt.Errorf("layer %s: %w", name, err))
		return nil
	}
	q, k := in[0].Shape(), in[1].Shape()
	scores := b.apply(name, op.MatMul{TransB: true}, in[0], in[1])
	if len(in) == 4 {
		g := in[3].Shape()[0]
		scores = b.apply(name, op.Reshape{Shape: op.Shape{q[0] / g, g, q[1] * k[1]}}, scores)
		matrix := b.apply(name, op.Reshape{Shape: op.Shape{1, g, q[1] * k[1]}}, in[3])
		scores = b.apply(name, op.Map{Expr: x0.Scale(o.Scale).Add(x1)}, scores, matrix)
		scores = b.apply(name, op.Reshape{Shape: op.Shape{q[0], q[1], k[1]}}, scores)
	} else {
		scores = b.apply(name, op.Map{Expr: x0.Scale(o.Scale)}, scores)
	}
	// An image has a row of weights: numbers are drawn image by image.
	images := b.model.Config.Batch
	if q[0]%images != 0 {
		images = q[0]
	}
	w := b.apply(name, op.Reshape{Shape: op.Shape{images, q[0] / images * q[1] * k[1]}}, b.apply(name, op.Softmax{}, scores))
	w = b.apply(name, op.Reshape{Shape: op.Shape{q[0], q[1], k[1]}}, b.Dropout(name+".dropout", w, drop))
	return b.apply(name, op.MatMul{}, w, in[2])
}
