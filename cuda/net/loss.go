//go:build gpu && cgo

package net

import (
	"onlinerna/cuda/driver"
	"onlinerna/nn/op"
)

// lossThreads is the block of the kernels of loss.cu.
const lossThreads = 128

func (s step) crossEntropy(o op.SoftmaxCrossEntropy) (*lowering, error) {
	n, k := s.InType(0).Shape[0], s.InType(0).Shape[1]
	l := s.result(form{}, 8*n, nil, func(b *binding, in []driver.Span, out driver.Span) {
		block := driver.Dim{X: lossThreads}
		b.launch("loss.cu", "nn_cross_entropy", driver.Dim{X: n}, block, in[0], in[1], k, o.Smoothing,
			b.rows(n, 1).Written())
		b.launch("loss.cu", "nn_cross_entropy_end", driver.Dim{}, block, b.rows(n, 1), in[1], n, k, out.Written())
	})
	l.Kernel.narrow = s.d.narrow() // one module holds all of these kernels
	return l, nil
}

// crossEntropyGrad computes the first gradient of the backward pass and applies the loss scale.
func (s step) crossEntropyGrad(o op.SoftmaxCrossEntropyGrad) (*lowering, error) {
	n, k := s.InType(0).Shape[0], s.InType(0).Shape[1]
	f := form{narrow: s.d.narrow(), scaled: s.d.scaling()}
	return s.result(f, 0, nil, func(b *binding, in []driver.Span, out driver.Span) {
		b.launch("loss.cu", "nn_cross_entropy_grad", driver.Dim{X: n}, driver.Dim{X: lossThreads}, in[0], in[1], in[2],
			out.Written(), n, k, o.Smoothing, s.d.scale())
	}), nil
}

func (s step) targetLoss(o op.TargetLoss) (*lowering, error) {
	n, k := s.InType(0).Shape[0], s.InType(0).Shape[1]
	l := s.result(form{}, 8*n, nil, func(b *binding, in []driver.Span, out driver.Span) {
		block := driver.Dim{X: lossThreads}
		b.launch("loss.cu", "nn_target_loss", driver.Dim{X: n}, block, in[0], in[1], k, binary(o.Binary),
			b.rows(n, 1).Written())
		b.launch("loss.cu", "nn_target_loss_end", driver.Dim{}, block, b.rows(n, 1), n, k, binary(o.Binary),
			out.Written())
	})
	l.Kernel.narrow = s.d.narrow()
	return l, nil
}

// targetLossGrad, too, computes the first gradient of the backward pass.
func (s step) targetLossGrad(o op.TargetLossGrad) (*lowering, error) {
	n, k := s.InType(0).Shape[0], s.InType(0).Shape[1]
	f := form{narrow: s.d.narrow(), scaled: s.d.scaling()}
	return s.result(f, 0, nil, func(b *binding, in []driver.Span, out driver.Span) {
		b.launch("loss.cu", "nn_target_loss_grad", driver.Dim{X: n}, driver.Dim{X: lossThreads}, in[0], in[1], in[2],
			out.Written(), n, k, binary(o.Binary), s.d.scale())
	}), nil
}

// rows returns workspace for `each` float64 numbers per image, for n images.
func (b *binding) rows(n, each int) driver.Span { return b.work.Span(0, int64(8*n*each)) }

// binary converts a bool to a kernel's argument.
func binary(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s step) score(op.Score) (*lowering, error) {
	n, k := s.InType(0).Shape[0], s.InType(0).Shape[1]
	l := s.result(form{}, 3*8*n, nil, func(b *binding, in []driver.Span, out driver.Span) {
		block := driver.Dim{X: lossThreads}
		b.launch("loss.cu", "nn_score", driver.Dim{X: n}, block, in[0], in[1], k, b.rows(n, 3).Written())
		b.launch("loss.cu", "nn_score_end", driver.Dim{}, block, b.rows(n, 3), n, out.Written())
	})
	l.Kernel.narrow = s.d.narrow()
	return l, nil
}
