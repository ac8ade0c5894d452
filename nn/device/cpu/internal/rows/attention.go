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

// strided are the rows of matrices in a value: at is the place of row i of matrix b, stride the distance to the next.
type strided struct {
	value, stride int
	at            func(b, i int) int
}

// dense are the rows of matrices one behind the other, each of the given numbers of rows and elements.
func dense(value, rows, width int) strided {
	return strided{value, width, func(b, i int) int { return (b*rows + i) * width }}
}

// lookup is attention of queries to keys and values.
type lookup struct {
	scale                       float64
	matrices, queries, keys     int // matrices and their rows
	width, wide                 int // elements of a query or key, and of a value or result
	block                       int // queries
	query, key, content, result strided
	biases, groups              int // the value, -1 for none, and its matrices
}

func selfAttention(s work.Step, o op.SelfAttention, workers int, level simd.Level) (*work.Lowering, error) {
	a := newAttention(s, o, level, len(s.In) > 1)
	part := func(part int) strided {
		return strided{a.rows, 3 * a.wide, func(b, i int) int { return a.place(b, part, i) }}
	}
	return lookup{
		scale: o.Scale, matrices: a.matrices, queries: o.Tokens, keys: o.Tokens, width: a.width, wide: a.width, block: a.block,
		query: part(0), key: part(1), content: part(2), result: strided{s.Out, a.wide, a.result},
		biases: a.biases, groups: a.groups,
	}.lower(s, workers, level)
}

// crossAttention is attention of queries to keys and values of other rows.
func crossAttention(s work.Step, o op.Attention, workers int, level simd.Level) (*work.Lowering, error) {
	q, v := s.InType(0).Shape, s.InType(2).Shape
	l := lookup{
		scale: o.Scale, matrices: q[0], queries: q[1], keys: v[1], width: q[2], wide: v[2],
		block: queriesAtATime(kern.For(level), q[1], v[1]),
		query: dense(s.In[0], q[1], q[2]), key: dense(s.In[1], v[1], q[2]), content: dense(s.In[2], v[1], v[2]),
		result: dense(s.Out, q[1], v[2]), biases: s.Optional(3), groups: 1,
	}
	if l.biases >= 0 {
		l.groups = s.InType(3).Shape[0]
	}
	return l.lower(s, workers, level)
}

func (a lookup) lower(s work.Step, workers int, level simd.Level) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	set, stride := kern.For(level), vec.Padded(a.keys)
	var r work.Room
	keys, values := r.Each(workers, packedSize(set, a.width, a.keys)), r.Each(workers, packedSize(set, a.keys, a.wide))
	blocks := r.Each(workers, a.block*stride)
	parts, each := 1, a.queries // of the queries of a matrix
	if a.matrices < 4*workers {
		parts, each = work.Ceil(a.queries, a.block), a.block
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		q, x := st.Floats(a.query.value), st.Floats(a.key.value)
		v, y := st.Floats(a.content.value), st.Floats(a.result.value)
		var bias []float32
		if a.biases >= 0 {
			bias = st.Floats(a.biases)
		}
		own := make([]attend, workers)
		for i := range own {
			own[i] = attend{multiplier{set: set}, st.Scratch(keys[i]), st.Scratch(values[i]), st.Scratch(blocks[i])}
		}
		rows := vec.For(st.Level)
		return []work.Phase{{Blocks: a.matrices * parts, Run: func(worker, block int) {
			b, from := block/parts, block%parts*each
			k := &own[worker]
			keys := k.packTransposed(k.keys, x[a.key.at(b, 0):], a.key.stride, a.width, a.keys)
			keys.padded = true
			values := k.pack(k.values, v[a.content.at(b, 0):], a.content.stride, a.keys, a.wide)
			for to := min(from+each, a.queries); from < to; from += a.block {
				n := min(a.block, to-from)
				k.product(k.scores, stride, q[a.query.at(b, from):], a.query.stride, n, keys, false)
				var added []float32
				if bias != nil {
					added = bias[(b%a.groups*a.queries+from)*a.keys:][:n*a.keys]
				}
				rows.SoftmaxPadded(k.scores[:n*stride], added, float32(a.scale), a.keys, n)
				k.product(y[a.result.at(b, from):], a.result.stride, k.scores, stride, n, values, false)
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l, nil
}
