package cpu

func lowerGlobalAvgPool(s step) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	m := imageOf(s.in(0).Shape)
	tiles := ceil(m.c, channelTile)
	return s.data(func(st *storage) []phase {
		x, y := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{{m.n * tiles, func(_, block int) {
			n, lo := block/tiles, block%tiles*channelTile
			dst := y[n*m.c+lo : n*m.c+min(lo+channelTile, m.c)]
			var sum [channelTile]float64
			for q := n * m.h * m.w; q < (n+1)*m.h*m.w; q++ {
				for c, v := range x[q*m.c+lo:][:len(dst)] {
					sum[c] += float64(v)
				}
			}
			for c := range dst {
				dst[c] = float32(sum[c] / float64(m.h*m.w))
			}
		}}}
	}), ""
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
			g := dy[n*m.c:][:m.c]
			for len(line) > 0 {
				for c, v := range g {
					line[c] = v * part
				}
				line = line[m.c:]
			}
		})}
	}), ""
}
