package pool

import (
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func global(s work.Step, _ op.GlobalAvgPool) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	m := nhwc.ImageOf(s.InType(0).Shape)
	tiles := work.Ceil(m.C, nhwc.SumTile)
	width := vec.Padded(m.C)
	var r work.Room
	sumPart := r.Doubles(m.N * width)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.For(st.Level)
		x, y, sums := st.Floats(s.In[0]), st.Floats(s.Out), st.Scratch64(sumPart)
		return []work.Phase{{Blocks: m.N * tiles, Run: func(_, block int) {
			n, lo := block/tiles, block%tiles*nhwc.SumTile
			hi := min(lo+nhwc.SumTile, m.C)
			sum := sums[n*width:][lo:vec.Padded(hi)]
			clear(sum)
			k.Sums(sum, x[n*m.H*m.W*m.C+lo:], hi-lo, m.C, m.H*m.W)
			for c := range hi - lo {
				y[n*m.C+lo+c] = float32(sum[c] / float64(m.H*m.W))
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l, nil
}

func globalGrad(s work.Step, _ op.GlobalAvgPoolGrad) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	m := nhwc.ImageOf(s.OutType().Shape)
	part := 1 / float32(m.H*m.W)
	return nhwc.ByLine(s, func(st *work.Storage) func(worker, n, i int, line []float32) {
		dy := st.Floats(s.In[0])
		return func(_, n, _ int, line []float32) {
			pixel := line[:m.C]
			for c, v := range dy[n*m.C:][:m.C] {
				pixel[c] = v * part
			}
			for line = line[m.C:]; len(line) > 0; line = line[m.C:] {
				copy(line, pixel)
			}
		}
	}), nil
}
