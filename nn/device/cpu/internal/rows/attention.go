package rows

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// scores is the number of elements of a block of scores: these, and the gradient's, stay in the second level cache.
const scores = 16 << 10

// attention has the extents of self-attention. A worker computes the scores of a block of queries and all keys at a
// time, so that memory grows with the number of tokens, not with its square.
type attention struct {
	op.SelfAttention
	set          *kern.Set
	matrices     int // one for each head of a sequence
	width, wide  int // elements of a query, and of a row of results
	groups       int // matrices of the bias; those of all heads without one
	block        int // queries
	stride       int // elements from a row of scores to the next
	rows, biases int // values; biases is -1 for none
}

// newAttention takes the operands rows and, if biased, a bias.
func newAttention(s work.Step, o op.SelfAttention, level simd.Level, biased bool) attention {
	in := s.InType(0).Shape
	a := attention{SelfAttention: o, set: kern.For(level), wide: in[1] / 3, width: in[1] / 3 / o.Heads,
		matrices: in[0] / o.Tokens * o.Heads, rows: s.In[0], biases: -1}
	a.groups = a.matrices
	if biased {
		a.biases, a.groups = s.In[1], s.InType(1).Shape[0]
	}
	a.stride = vec.Padded(o.Tokens)
	a.block = queriesAtATime(a.set, o.Tokens, o.Tokens)
	return a
}

// queriesAtATime is the number of queries of a block: whole tiles of a kernel, if there is one.
func queriesAtATime(set *kern.Set, queries, keys int) int {
	n := min(max(scores/keys, 8), queries)
	if set != nil {
		n = min(work.Ceil(n, set.Rows)*set.Rows, queries)
	}
	return n
}

// place is the index in rows of a part of token i of matrix b: 0 for the query, 1 for the key, 2 for the value. result
// is that of its result.
func (a *attention) place(b, part, i int) int {
	return ((b/a.Heads*a.Tokens+i)*3+part)*a.wide + b%a.Heads*a.width
}

func (a *attention) result(b, i int) int { return (b/a.Heads*a.Tokens+i)*a.wide + b%a.Heads*a.width }

// softmax sets the scores of n queries of matrix b, from query i on, to their weights.
func (a *attention) softmax(k *vec.Set, p, bias []float32, b, i, n int) {
	if bias != nil {
		bias = bias[(b%a.groups*a.Tokens+i)*a.Tokens:][:n*a.Tokens]
	}
	k.SoftmaxPadded(p, bias, float32(a.Scale), a.Tokens, n)
}

// attend is the scratch of a worker.
type attend struct {
	multiplier
	keys, values, scores []float32
}

func selfAttention(s work.Step, o op.SelfAttention, workers int, level simd.Level) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	a := newAttention(s, o, level, len(s.In) > 1)
	var r work.Room
	keys, values := r.Each(workers, packedSize(a.set, a.width, o.Tokens)), r.Each(workers, packedSize(a.set, o.Tokens, a.width))
	blocks := r.Each(workers, a.block*a.stride)
	parts, each := 1, o.Tokens // of the queries of a matrix
	if a.matrices < 4*workers {
		parts, each = work.Ceil(o.Tokens, a.block), a.block
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		x, y := st.Floats(a.rows), st.Floats(s.Out)
		var bias []float32
		if a.biases >= 0 {
			bias = st.Floats(a.biases)
		}
		own := make([]attend, workers)
		for i := range own {
			own[i] = attend{multiplier{set: a.set}, st.Scratch(keys[i]), st.Scratch(values[i]), st.Scratch(blocks[i])}
		}
		rows := vec.For(st.Level)
		return []work.Phase{{Blocks: a.matrices * parts, Run: func(worker, block int) {
			b, from := block/parts, block%parts*each
			k := &own[worker]
			keys := k.packTransposed(k.keys, x[a.place(b, 1, 0):], 3*a.wide, a.width, o.Tokens)
			keys.padded = true
			values := k.pack(k.values, x[a.place(b, 2, 0):], 3*a.wide, o.Tokens, a.width)
			for to := min(from+each, o.Tokens); from < to; from += a.block {
				n := min(a.block, to-from)
				k.product(k.scores, a.stride, x[a.place(b, 0, from):], 3*a.wide, n, keys, false)
				a.softmax(rows, k.scores[:n*a.stride], bias, b, from, n)
				k.product(y[a.result(b, from):], a.wide, k.scores, a.stride, n, values, false)
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l, nil
}
