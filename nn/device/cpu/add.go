package cpu

import "onlinerna/nn/device/cpu/internal/vec"

func lowerAdd(s step) (*lowering, string) {
	return s.elementwise(func(k *vec.Set, dst []float32, in [][]float32) { k.Add(dst, in[0], in[1]) })
}
