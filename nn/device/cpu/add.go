package cpu

func lowerAdd(s step) (*lowering, string) {
	return s.elementwise(func(dst []float32, in [][]float32) { add(dst, in[0], in[1]) })
}

func add(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v + b[i]
	}
}
