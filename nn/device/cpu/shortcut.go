package cpu

import "onlinerna/nn/op"

func lowerShortcut(s step, o op.Shortcut) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	from, to := imageOf(s.in(0).Shape), imageOf(s.out().Shape)
	stride := max(1, o.Stride)
	before := (to.c - from.c) / 2
	return s.data(func(st *storage) []phase {
		x, y := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{linesOf(to).phase(y, func(n, i int, line []float32) {
			clear(line)
			row := x[(n*from.h+i*stride)*from.w*from.c:]
			for j := range to.w {
				copy(line[j*to.c+before:][:from.c], row[j*stride*from.c:])
			}
		})}
	}), ""
}

func lowerShortcutGrad(s step, o op.ShortcutGrad) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	from, to := imageOf(s.out().Shape), imageOf(s.in(0).Shape)
	stride := max(1, o.Shortcut.Stride)
	before := (to.c - from.c) / 2
	return s.data(func(st *storage) []phase {
		dy, dx := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{linesOf(from).phase(dx, func(n, i int, line []float32) {
			clear(line)
			if i%stride != 0 {
				return
			}
			row := dy[(n*to.h+i/stride)*to.w*to.c+before:]
			for j := range to.w {
				copy(line[j*stride*from.c:][:from.c], row[j*to.c:])
			}
		})}
	}), ""
}
