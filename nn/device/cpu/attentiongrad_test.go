package cpu

import (
	"fmt"
	"slices"
	"testing"

	"onlinerna/nn/op"
)

// The gradients of an attention run as one group, with the bits of each alone, whichever are asked for; one asked for
// twice is computed apart.
func TestAttentionGradGroups(t *testing.T) {
	by := func(k int) op.Op { return op.AttentionGrad{Scale: .3, By: k} }
	self := op.SelfAttention{Tokens: 70, Heads: 3, Scale: .3}
	eachLevel(t, func(t *testing.T) {
		for _, c := range []struct {
			together, apart []op.Op
			other           op.Op // of another result's gradient
		}{
			{together: []op.Op{by(0), by(1), by(3)}, apart: []op.Op{op.AttentionGrad{Scale: .4, By: 2}}, other: by(2)},
			{together: []op.Op{by(2), by(0)}, other: by(1)},
			{together: []op.Op{by(3), by(1)}, apart: []op.Op{by(1)}, other: by(0)},
			{together: []op.Op{op.SelfAttentionGradBias(self), op.SelfAttentionGrad(self)},
				apart: []op.Op{op.SelfAttentionGrad(self)}, other: op.SelfAttentionGrad(self)},
		} {
			b := &builder{tb: t}
			var in []int
			if _, ok := c.together[0].(op.AttentionGrad); ok {
				in = []int{b.data(6, 70, 12), b.data(6, 530, 12), b.data(6, 530, 20), b.weight(3, 70, 530), b.data(6, 70, 20)}
			} else {
				in = []int{b.data(140, 108), b.weight(3, 70, 70), b.data(140, 36)}
			}
			for _, o := range slices.Concat(c.together, c.apart) {
				b.Keep = append(b.Keep, b.apply(o, in...))
			}
			last := len(in) - 1
			other := append(slices.Clone(in[:last]), b.data(b.Values[in[last]].Type.Shape...))
			b.Keep = append(b.Keep, b.apply(c.other, other...))
			alone := bind(t, open(t, 1), &b.Program, b.weights, b.alone())
			alone.run(t)
			for _, workers := range []int{1, 3, 16} {
				d := open(t, workers)
				groups := b.grouped(d)
				if len(groups) != 2+len(c.apart) || len(groups[0]) != len(c.together) {
					t.Fatalf("%v and %v: groups %v", c.together, c.apart, groups)
				}
				grouped := bind(t, d, &b.Program, b.weights, groups)
				grouped.run(t)
				same(t, b, alone, grouped, fmt.Sprintf("%v, %d workers", c.together, workers))
			}
		}
	})
}
