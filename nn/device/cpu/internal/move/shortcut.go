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
	width := from.W * from.C
	l := nhwc.ByLine(s, func(st *work.Storage) func(worker, n, i int, line []float32) {
		x := st.Pieces(s.In[0])
		return func(worker, n, i int, line []float32) {
			clear(line)
			at := (n*from.H + i*stride) * width
			row := x.Read(worker, at, at+width)
			for j := range to.W {
				copy(line[j*to.C+before:][:from.C], row[j*stride*from.C:])
			}
		}
	})
	l.Kernel.Take(width, s.In[0])
	return l, nil
}

func shortcutGrad(s work.Step, o op.ShortcutGrad) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	from, to := nhwc.ImageOf(s.OutType().Shape), nhwc.ImageOf(s.InType(0).Shape)
	stride := max(1, o.Shortcut.Stride)
	before := (to.C - from.C) / 2
	width := to.W * to.C
	l := nhwc.ByLine(s, func(st *work.Storage) func(worker, n, i int, line []float32) {
		dy := st.Pieces(s.In[0])
		return func(worker, n, i int, line []float32) {
			clear(line)
			if i%stride != 0 {
				return
			}
			at := (n*to.H + i/stride) * width
			row := dy.Read(worker, at, at+width)[before:]
			for j := range to.W {
				copy(line[j*stride*from.C:][:from.C], row[j*to.C:])
			}
		}
	})
	l.Kernel.Take(width, s.In[0])
	return l, nil
}
