package nn

import (
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
