//go:build gpu && cgo

package cuda

import "onlinerna/nn/op"

// lossThreads is the block of the kernels of loss.cu.
const lossThreads = 128

func (s netStep) crossEntropy(o op.SoftmaxCrossEntropy) (*lowering, string) {
	n, k := s.in(0).Shape[0], s.in(0).Shape[1]
	return s.result(8*n, func(b *binding, in []Span, out Span) {
		block := Dim{X: lossThreads}
		b.launch("loss.cu", "nn_cross_entropy", Dim{X: n}, block, in[0], in[1], k, o.Smoothing, b.work)
		b.launch("loss.cu", "nn_cross_entropy_end", Dim{}, block, b.work, in[1], n, k, out)
	})
}

func (s netStep) crossEntropyGrad(o op.SoftmaxCrossEntropyGrad) (*lowering, string) {
	n, k := s.in(0).Shape[0], s.in(0).Shape[1]
	return s.result(0, func(b *binding, in []Span, out Span) {
		b.launch("loss.cu", "nn_cross_entropy_grad", Dim{X: n}, Dim{X: lossThreads}, in[0], in[1], in[2], out, n, k, o.Smoothing)
	})
}

func (s netStep) score() (*lowering, string) {
	n, k := s.in(0).Shape[0], s.in(0).Shape[1]
	return s.result(3*8*n, func(b *binding, in []Span, out Span) {
		block := Dim{X: lossThreads}
		b.launch("loss.cu", "nn_score", Dim{X: n}, block, in[0], in[1], k, b.work)
		b.launch("loss.cu", "nn_score_end", Dim{}, block, b.work, n, out)
	})
}
