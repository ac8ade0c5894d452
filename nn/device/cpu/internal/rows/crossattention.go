package rows

import (
	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// crossAttention lowers attention of queries to keys and values of other rows, in the way of selfAttention.
func crossAttention(s work.Step, o op.Attention, workers int, level simd.Level) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	q, v := s.InType(0).Shape, s.InType(2).Shape
	matrices, queries, width, keys, wide := q[0], q[1], q[2], v[1], v[2]
	set, stride, block := kern.For(level), vec.Padded(keys), queriesAtATime(kern.For(level), queries, keys)
	var r work.Room
	packedKeys, packedValues := r.Each(workers, packedSize(set, width, keys)), r.Each(workers, packedSize(set, keys, wide))
	blocks := r.Each(workers, block*stride)
	parts, each := 1, queries // of the queries of a matrix
	if matrices < 4*workers {
		parts, each = work.Ceil(queries, block), block
	}
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		q, x, v, y := st.Floats(s.In[0]), st.Floats(s.In[1]), st.Floats(s.In[2]), st.Floats(s.Out)
		var bias []float32
		heads := 1
		if len(s.In) > 3 {
			bias, heads = st.Floats(s.In[3]), s.InType(3).Shape[0]
		}
		own := make([]attend, workers)
		for i := range own {
			own[i] = attend{multiplier{set: set}, st.Scratch(packedKeys[i]), st.Scratch(packedValues[i]), st.Scratch(blocks[i])}
		}
		rows := vec.For(st.Level)
		return []work.Phase{{Blocks: matrices * parts, Run: func(worker, number int) {
			b, from := number/parts, number%parts*each
			k := &own[worker]
			across := k.packTransposed(k.keys, x[b*keys*width:], width, width, keys)
			across.padded = true
			down := k.pack(k.values, v[b*keys*wide:], wide, keys, wide)
			for to := min(from+each, queries); from < to; from += block {
				n := min(block, to-from)
				k.product(k.scores, stride, q[(b*queries+from)*width:], width, n, across, false)
				var added []float32
				if bias != nil {
					added = bias[(b%heads*queries+from)*keys:][:n*keys]
				}
				rows.SoftmaxPadded(k.scores[:n*stride], added, float32(o.Scale), keys, n)
				k.product(y[(b*queries+from)*wide:], wide, k.scores, stride, n, down, false)
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l, nil
}
