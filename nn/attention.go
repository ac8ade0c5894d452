package nn

import (
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// SelfAttention adds scaled dot-product attention with the given number of heads for n images. Rows [N·T, 3C] hold the
// queries, keys and values one after the other, each split into heads. The result is [N·T, C].
func (b *Builder) SelfAttention(name string, qkv *G.Node, n, heads int) *G.Node {
	s, ok := b.shape(name, qkv, 2)
	if !ok {
		return nil
	}
	tokens, d := s[0]/n, s[1]/3/heads
	// Five dimensions: devices keep values of four as images.
	y := b.Permute(name+".heads", b.Reshape(name+".split", qkv, n, tokens, 3, heads, d), 2, 0, 3, 1, 4)
	var part [3]*G.Node
	for i, of := range []string{".q", ".k", ".v"} {
		part[i] = b.Reshape(name+of, b.Slice(name+of+".part", y, 0, i, i+1), n*heads, tokens, d)
	}
	y = b.Apply(name, op.Attention{Scale: 1 / math.Sqrt(float64(d))}, part[:]...)
	y = b.Permute(name+".join", b.Reshape(name+".apart", y, 1, n, heads, tokens, d), 0, 1, 3, 2, 4)
	return b.Reshape(name+".rows", y, n*tokens, heads*d)
}
