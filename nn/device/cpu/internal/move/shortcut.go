package move

import (
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func shortcut(s work.Step, o op.Shortcut) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	from, to := nhwc.ImageOf(s.InType(0).Shape), nhwc.ImageOf(s.OutType().Shape)
	stride := max(1, o.Stride)
	before := (to.C - from.C) / 2
	return work.Data(s, func(st *work.Storage) []work.Phase {
		x, y := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{nhwc.LinesOf(to).Phase(y, func(n, i int, line []float32) {
			clear(line)
			row := x[(n*from.H+i*stride)*from.W*from.C:]
			for j := range to.W {
				copy(line[j*to.C+before:][:from.C], row[j*stride*from.C:])
			}
		})}
	}), nil
}

func shortcutGrad(s work.Step, o op.ShortcutGrad) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	from, to := nhwc.ImageOf(s.OutType().Shape), nhwc.ImageOf(s.InType(0).Shape)
	stride := max(1, o.Shortcut.Stride)
	before := (to.C - from.C) / 2
	return work.Data(s, func(st *work.Storage) []work.Phase {
		dy, dx := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{nhwc.LinesOf(from).Phase(dx, func(n, i int, line []float32) {
			clear(line)
			if i%stride != 0 {
				return
			}
			row := dy[(n*to.H+i/stride)*to.W*to.C+before:]
			for j := range to.W {
				copy(line[j*stride*from.C:][:from.C], row[j*to.C:])
			}
		})}
	}), nil
}
