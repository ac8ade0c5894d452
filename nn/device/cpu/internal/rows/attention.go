package rows

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// scores is the number of elements of a block of scores: these, and the gradient's, stay in the second level cache.
// Processors with tiles have a larger cache.
const scores, tiledScores = 16 << 10, 48 << 10

// queriesAtATime is the number of queries of a block, unless it is all: a multiple of a step in depth with Tiles, and
// of the rows of a kernel's tile with Set.
func (k Kernels) queriesAtATime(queries, keys int) int {
	if k.Tiles != nil {
		return min(work.Even(queries, tiledScores/keys, kern.TileDepth), queries)
	}
	n := min(max(scores/keys, 8), queries)
	if k.Set != nil {
		n = min(work.Ceil(n, k.Set.Rows)*k.Set.Rows, queries)
	}
	return n
}

// attend is the scratch of a worker.
type attend struct {
	multiplier
	keys, values, scores []float32
	_                    [128]byte // workers write to cache lines of their own
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

// lookup is attention of queries to keys and values. A worker computes the scores of a block of queries and all keys at
// a time, so that memory grows with the number of rows, not with its square.
type lookup struct {
	scale                       float64
	matrices, queries, keys     int // matrices and their rows
	width, wide                 int // elements of a query or key, and of a value or result
	block                       int // queries
	query, key, content, result strided
	biases, groups              int // the value, -1 for none, and its matrices: those of all without one
}

// lookupOf takes the operands of an attention, and the value of its result or of the gradient with respect to that.
func lookupOf(o op.Attention, s work.Step, in []int, result int, kernels Kernels) lookup {
	q, v := s.Values[in[0]].Type.Shape, s.Values[in[2]].Type.Shape
	a := lookup{
		scale: o.Scale, matrices: q[0], queries: q[1], keys: v[1], width: q[2], wide: v[2],
		query: dense(in[0], q[1], q[2]), key: dense(in[1], v[1], q[2]), content: dense(in[2], v[1], v[2]),
		result: dense(result, q[1], v[2]),
	}
	return a.biased(s, in[3:], kernels)
}

// selfLookup takes the operands of self-attention, a head of a sequence for each matrix.
func selfLookup(o op.SelfAttention, s work.Step, in []int, result int, kernels Kernels) lookup {
	rows := s.Values[in[0]].Type.Shape
	wide := rows[1] / 3
	width := wide / o.Heads
	a := lookup{
		scale: o.Scale, matrices: rows[0] / o.Tokens * o.Heads, queries: o.Tokens, keys: o.Tokens, width: width, wide: width,
		result: strided{result, wide, func(b, i int) int { return (b/o.Heads*o.Tokens+i)*wide + b%o.Heads*width }},
	}
	a.query, a.key, a.content = selfParts(o, in[0], wide)
	return a.biased(s, in[1:], kernels)
}

// selfParts are the queries, keys and values in rows of 3·wide elements.
func selfParts(o op.SelfAttention, rows, wide int) (query, key, content strided) {
	part := func(part int) strided {
		return strided{rows, 3 * wide, func(b, i int) int {
			return ((b/o.Heads*o.Tokens+i)*3+part)*wide + b%o.Heads*(wide/o.Heads)
		}}
	}
	return part(0), part(1), part(2)
}

// biased takes a bias, if there is one, and chooses the block.
func (a lookup) biased(s work.Step, bias []int, kernels Kernels) lookup {
	a.biases, a.groups = -1, a.matrices
	if len(bias) > 0 {
		a.biases, a.groups = bias[0], s.Values[bias[0]].Type.Shape[0]
	}
	a.block = kernels.queriesAtATime(a.queries, a.keys)
	return a
}

// softmax sets the scores of n queries of matrix b, from query i on, to their weights.
func (a *lookup) softmax(k *vec.Set, p, bias []float32, b, i, n int) {
	if bias != nil {
		bias = bias[(b%a.groups*a.queries+i)*a.keys:][:n*a.keys]
	}
	k.SoftmaxPadded(p, bias, float32(a.scale), a.keys, n)
}

func selfAttention(s work.Step, o op.SelfAttention, workers int, kernels Kernels) (*work.Lowering, error) {
	return selfLookup(o, s, s.In, s.Out, kernels).lower(s, workers, kernels)
}

// crossAttention is attention of queries to keys and values of other rows.
func crossAttention(s work.Step, o op.Attention, workers int, kernels Kernels) (*work.Lowering, error) {
	return lookupOf(o, s, s.In, s.Out, kernels).lower(s, workers, kernels)
}

func (a lookup) lower(s work.Step, workers int, kernels Kernels) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	stride := vec.Padded(a.keys)
	var r work.Room
	query := hold(&r, s, a.query.value, workers, a.block, a.width)
	key := hold(&r, s, a.key.value, workers, a.keys, a.width)
	content := hold(&r, s, a.content.value, workers, a.keys, a.wide)
	result := hold(&r, s, a.result.value, workers, a.block, a.wide)
	keys := r.Each(workers, kernels.packedSize(a.width, a.keys))
	values := r.Each(workers, kernels.packedSize(a.keys, a.wide))
	blocks := r.Each(workers, a.block*stride)
	room := kernels.tiledRoom(&r, workers, a.block, max(a.width, a.keys), 0)
	parts, each := 1, a.queries // of the queries of a matrix
	if a.matrices < 4*workers {
		parts, each = work.Ceil(a.queries, a.block), a.block
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		q, x, v, y := query.bind(st), key.bind(st), content.bind(st), result.bind(st)
		var bias []float32
		if a.biases >= 0 {
			bias = st.Floats(a.biases)
		}
		own := make([]attend, workers)
		for i := range own {
			own[i] = attend{multiplier: kernels.multiplier(st, room, i), keys: st.Scratch(keys[i]),
				values: st.Scratch(values[i]), scores: st.Scratch(blocks[i])}
		}
		set := vec.For(st.Level)
		return []work.Phase{{Blocks: a.matrices * parts, Run: func(worker, block int) {
			b, from := block/parts, block%parts*each
			k := &own[worker]
			rows, ld := x.read(worker, a.key.at(b, 0), a.keys, a.key.stride)
			keys := k.packTransposed(k.keys, rows, ld, a.width, a.keys)
			keys.padded = true
			rows, ld = v.read(worker, a.content.at(b, 0), a.keys, a.content.stride)
			values := k.pack(k.values, rows, ld, a.keys, a.wide)
			for to := min(from+each, a.queries); from < to; from += a.block {
				n := min(a.block, to-from)
				rows, ld = q.read(worker, a.query.at(b, from), n, a.query.stride)
				k.product(k.scores, stride, rows, ld, n, keys, false)
				a.softmax(set, k.scores[:n*stride], bias, b, from, n)
				to, ldc := y.to(worker, a.result.at(b, from), a.result.stride)
				k.product(to, ldc, k.scores, stride, n, values, false)
				y.done(worker, a.result.at(b, from), n, a.result.stride)
			}
		}}}
	})
	l.Workspace = r.Bytes
	l.Kernel.Take(0, a.query.value, a.key.value, a.content.value, a.result.value)
	return l, nil
}
