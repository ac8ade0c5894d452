package cpu

import "math"

func lowerReLU(s step) (*lowering, string) {
	return s.elementwise(func(dst []float32, in [][]float32) { relu(dst, in[0]) })
}

// relu sets dst to max(x, 0), and to NaN where x is.
func relu(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = max(v, 0)
	}
}

func lowerReLUGrad(s step) (*lowering, string) {
	return s.elementwise(func(dst []float32, in [][]float32) { reluGrad(dst, in[0], in[1]) })
}

// reluGrad sets dst to dy, and to 0 where y ≤ 0.
func reluGrad(dst, y, dy []float32) {
	dst, dy = dst[:len(y)], dy[:len(y)]
	for i, v := range y {
		dst[i] = passed(v, dy[i])
	}
}

// passed is dy, or 0 where y ≤ 0. On integers the compiler can choose without a branch.
func passed(y, dy float32) float32 {
	b := math.Float32bits(dy)
	if y <= 0 {
		b = 0
	}
	return math.Float32frombits(b)
}
