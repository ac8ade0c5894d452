package pool

import (
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func global(s work.Step, _ op.GlobalAvgPool) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	m := nhwc.ImageOf(s.InType(0).Shape)
	var r work.Room
	sums := nhwc.NewImageSums(&r, m.N, m.H*m.W, m.C)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		y := st.Floats(s.Out)
		return sums.Phases(st, st.Pieces(s.In[0]), func(i int, sum float64) { y[i] = float32(sum / float64(m.H*m.W)) })
	})
	l.Kernel.Take(sums.Piece(), s.In[0])
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
