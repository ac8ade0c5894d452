package cpu

import "onlinerna/nn/device/cpu/internal/vec"

func lowerReLU(s step) (*lowering, string) {
	return s.elementwise(func(k *vec.Set, dst []float32, in [][]float32) { k.ReLU(dst, in[0]) })
}

func lowerReLUGrad(s step) (*lowering, string) {
	return s.elementwise(func(k *vec.Set, dst []float32, in [][]float32) { k.ReLUGrad(dst, in[0], in[1]) })
}
