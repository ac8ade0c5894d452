package cpu

import "onlinerna/nn/device/cpu/internal/vec"

func lowerGlobalAvgPool(s step) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	m := imageOf(s.in(0).Shape)
	tiles := ceil(m.c, sumTile)
	width := vec.Padded(m.c)
	var r room
	sumPart := r.doubles(m.n * width)
	l := s.data(func(st *storage) []phase {
		k := kernels()
		x, y, sums := st.floats(s.In[0]), st.floats(s.Out), st.scratch64(sumPart)
		return []phase{{m.n * tiles, func(_, block int) {
			n, lo := block/tiles, block%tiles*sumTile
			hi := min(lo+sumTile, m.c)
			sum := sums[n*width:][lo:vec.Padded(hi)]
			clear(sum)
			k.Sums(sum, x[n*m.h*m.w*m.c+lo:], hi-lo, m.c, m.h*m.w)
			for c := range hi - lo {
				y[n*m.c+lo+c] = float32(sum[c] / float64(m.h*m.w))
			}
		}}}
	})
	l.workspace = r.bytes
	return l, ""
}

func lowerGlobalAvgPoolGrad(s step) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	m := imageOf(s.out().Shape)
	part := 1 / float32(m.h*m.w)
	return s.data(func(st *storage) []phase {
		dy, dx := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{linesOf(m).phase(dx, func(n, _ int, line []float32) {
			pixel := line[:m.c]
			for c, v := range dy[n*m.c:][:m.c] {
				pixel[c] = v * part
			}
			for line = line[m.c:]; len(line) > 0; line = line[m.c:] {
				copy(line, pixel)
			}
		})}
	}), ""
}
