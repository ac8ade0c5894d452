//go:build gpu && cgo

package cuda

import (
	"cmp"

	"onlinerna/nn/op"
)

// convKey says which convolution a plan is for.
type convKey struct {
	kind  ConvolutionKind
	shape ConvolutionShape
}

// convolution describes a convolution, once for each shape.
func (d *Net) convolution(kind ConvolutionKind, o op.Conv2D, x, w op.Type) (*Convolution, error) {
	one := func(a [2]int) [2]int { return [2]int{cmp.Or(a[0], 1), cmp.Or(a[1], 1)} }
	key := convKey{kind, ConvolutionShape{
		N: x.Shape[0], C: x.Shape[1], H: x.Shape[2], W: x.Shape[3], O: w.Shape[0], KH: w.Shape[2], KW: w.Shape[3],
		Stride: one(o.Stride), Pad: o.Pad, Dilation: one(o.Dilation), Groups: cmp.Or(o.Groups, 1),
	}}
	v, ok := d.convs[key]
	if !ok {
		var err error
		v, err = d.dnn.NewConvolution(kind, key.shape, ConvolutionOptions{Deterministic: d.opts.Deterministic, Workspace: d.opts.Workspace})
		if err != nil {
			return nil, err
		}
		d.convs[key] = v
	}
	return v, nil
}

// conv lowers a convolution. Weights and their gradients may start anywhere in their vector, for cuDNN they start at multiples of 16
// bytes: those that do not, by the number of the operand or of the result behind the operands, go through the workspace.
func (s netStep) conv(v *Convolution, weight int, then func(b *binding, in []Span, out Span)) (*lowering, string, error) {
	bytes := s.out().Bytes()
	if weight < 2 {
		bytes = s.in(weight).Bytes()
	}
	own := align(int(v.Workspace()))
	l, reason := s.result(own+align(bytes), func(b *binding, in []Span, out Span) {
		all := [3]Span{in[0], in[1], out}
		if all[weight].off%dnnAlign != 0 {
			all[weight] = b.work.Span(int64(own), int64(bytes))
		}
		if weight < 2 && all[weight] != in[weight] {
			b.copy(all[weight], in[weight])
		}
		work := b.work.Span(0, v.Workspace())
		b.calls = append(b.calls, func() error { return v.Run(all[0], all[1], all[2], work) })
		if weight == 2 && all[2] != out {
			b.copy(out, all[2])
		}
		if then != nil {
			then(b, in, out)
		}
	})
	return l, reason, nil
}

func (s netStep) convForward(o op.Conv2D) (*lowering, string, error) {
	v, err := s.d.convolution(ConvolutionForward, o, s.in(0), s.in(1))
	if err != nil {
		return nil, "", err
	}
	return s.conv(v, 1, s.bias)
}

// bias adds the third operand, if there is one, to the result.
func (s netStep) bias(b *binding, in []Span, out Span) {
	if len(in) == 3 {
		b.each("element.cu", "nn_bias", s.out().Shape.Size(), out, in[2], s.out().Shape[1])
	}
}

func (s netStep) convGradInput(o op.Conv2DGradInput) (*lowering, string, error) {
	v, err := s.d.convolution(ConvolutionGradInput, o.Conv2D, s.out(), s.in(0))
	if err != nil {
		return nil, "", err
	}
	return s.conv(v, 0, nil)
}

func (s netStep) convGradWeight(o op.Conv2DGradWeight) (*lowering, string, error) {
	v, err := s.d.convolution(ConvolutionGradWeight, o.Conv2D, s.in(0), s.out())
	if err != nil {
		return nil, "", err
	}
	return s.conv(v, 2, nil)
}

// linear lowers x wᵀ + b. cuBLAS has columns where rows are meant here: it is asked for the transposed products.
func (s netStep) linear() (*lowering, string) {
	n, k, m := s.in(0).Shape[0], s.in(0).Shape[1], s.in(1).Shape[0]
	return s.result(0, func(b *binding, in []Span, out Span) {
		b.calls = append(b.calls, func() error { return s.d.blas.Sgemm(true, false, m, n, k, 1, in[1], k, in[0], k, 0, out, m) })
		s.bias(b, in, out)
	})
}

// linearGradInput lowers dy w.
func (s netStep) linearGradInput() (*lowering, string) {
	m, k, n := s.in(0).Shape[0], s.in(0).Shape[1], s.in(1).Shape[0]
	return s.result(0, func(b *binding, in []Span, out Span) {
		b.calls = append(b.calls, func() error { return s.d.blas.Sgemm(false, false, k, n, m, 1, in[0], k, in[1], m, 0, out, k) })
	})
}

// linearGradWeight lowers dyᵀ x.
func (s netStep) linearGradWeight() (*lowering, string) {
	n, k, m := s.in(0).Shape[0], s.in(0).Shape[1], s.in(1).Shape[1]
	return s.result(0, func(b *binding, in []Span, out Span) {
		b.calls = append(b.calls, func() error { return s.d.blas.Sgemm(false, true, k, m, n, 1, in[0], k, in[1], m, 0, out, k) })
	})
}
