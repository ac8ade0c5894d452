//go:build gpu && cgo

package net

import (
	"cmp"
	"errors"
	"fmt"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/nn/op"
)

// convKey identifies the convolution of a plan.
type convKey struct {
	kind  dnn.Kind
	shape dnn.Shape
}

// convolution describes a convolution, once for each shape. If cuDNN lacks it in the precision, it uses a more exact
// one.
func (d *Device) convolution(kind dnn.Kind, o op.Conv2D, x, w op.Type) (*dnn.Plans, error) {
	key := convKey{kind, shapeOf(o, x, w)}
	if v, ok := d.convs[key]; ok {
		return v, nil
	}
	v, err := d.dnn.NewPlans(key.shape.Graph(kind, d.opts.Precision), d.planning())
	if errors.Is(err, dnn.ErrNoPlan) {
		v, err = d.wider(key, d.opts.Precision, err)
	}
	if err != nil {
		return nil, err
	}
	d.convs[key] = v
	return v, nil
}

// shapeOf is the shape of the convolution of x with w.
func shapeOf(o op.Conv2D, x, w op.Type) dnn.Shape {
	one := func(a [2]int) [2]int { return [2]int{cmp.Or(a[0], 1), cmp.Or(a[1], 1)} }
	return dnn.Shape{
		N: x.Shape[0], C: x.Shape[1], H: x.Shape[2], W: x.Shape[3], O: w.Shape[0], KH: w.Shape[2], KW: w.Shape[3],
		Stride: one(o.Stride), Pad: o.Pad, Dilation: one(o.Dilation), Groups: cmp.Or(o.Groups, 1),
	}
}

// planning returns the options by which plans are chosen.
func (d *Device) planning() dnn.Options {
	o := dnn.Options{Precision: d.opts.Precision, Deterministic: d.opts.Deterministic, Workspace: d.opts.Workspace,
		Measure: true, Ahead: d.ahead}
	if d.tried != nil {
		o.Tried = func(t dnn.Tried) { fmt.Fprintf(d.tried, "%v\t%v\n", d.opts.Precision, t) }
	}
	return o
}

// conv lowers a convolution whose result has the form out. Operand number weight is part of the weights; if that is the
// number after the last operand, the result is their gradient. Both may start anywhere in their vector.
func (s step) conv(v *dnn.Plans, weight int, out form,
	then func(b *binding, in []driver.Span, out driver.Span)) *lowering {
	inside := form{last: true, narrow: v.Options().Precision.Bytes() == 2} // the form in which cuDNN computes
	wants := make([]want, 2)
	for i := range wants {
		wants[i] = s.want(i, inside)
		if i == weight {
			wants[i].dnn = true
		} else if f := s.form(i); f.scaled {
			wants[i].form.scaled, inside.scaled = true, true
		}
	}
	scratch := v.Workspace()
	own, room := align(int(scratch)), 0
	if inside != out || weight == 2 {
		room = inside.bytes(s.OutType())
	}
	l := s.result(out, own+room, wants, func(b *binding, in []driver.Span, to driver.Span) {
		work, made := b.work.Span(0, scratch), to
		if inside != out || weight == 2 && to.Offset()%dnn.Align != 0 {
			made = b.work.Span(int64(own), int64(room))
		}
		b.convolve(v, in[0], in[1], made, work) // it may overwrite the result's memory
		if made != to {
			b.recast(to, out, made, inside)
		}
		if then != nil {
			then(b, in, to)
		}
	})
	return l
}

func (s step) convForward(o op.Conv2D) (*lowering, error) {
	v, err := s.d.convolution(dnn.Forward, o, s.InType(0), s.InType(1))
	if err != nil {
		return nil, err
	}
	return s.conv(v, 1, form{last: true, narrow: s.d.narrow(), scaled: s.form(0).scaled}, s.bias), nil
}

// bias adds the third operand, if present, to the result.
func (s step) bias(b *binding, in []driver.Span, out driver.Span) {
	if len(in) == 3 {
		b.each("element.cu", "nn_bias", s.OutType().Shape.Size(), out.Updated(), in[2], s.OutType().Shape[1])
	}
}

func (s step) convGradInput(o op.Conv2DGradInput) (*lowering, error) {
	v, err := s.d.convolution(dnn.GradInput, o.Conv2D, s.OutType(), s.InType(0))
	if err != nil {
		return nil, err
	}
	return s.conv(v, 0, form{last: true, narrow: s.d.narrow(), scaled: s.form(1).scaled}, nil), nil
}

func (s step) convGradWeight(o op.Conv2DGradWeight) (*lowering, error) {
	v, err := s.d.convolution(dnn.GradWeight, o.Conv2D, s.InType(0), s.OutType())
	if err != nil {
		return nil, err
	}
	return s.conv(v, 2, form{last: true}, nil), nil
}

// factors wants both operands of a matrix product in the device's precision.
func (s step) factors() []want {
	wants := make([]want, 2)
	for i := range wants {
		wants[i] = s.want(i, form{narrow: s.d.narrow(), scaled: s.form(i).scaled})
	}
	return wants
}

// linear lowers x wᵀ + b in float32, since the result may be the logits.
func (s step) linear(op.Linear) (*lowering, error) { return s.linearAs(form{}), nil }

// linearAs lowers x wᵀ + b with a result of a form. cuBLAS is column-major: it computes the transposed product.
func (s step) linearAs(to form) *lowering {
	n, k, m := s.InType(0).Shape[0], s.InType(0).Shape[1], s.InType(1).Shape[0]
	return s.result(to, 0, s.factors(), func(b *binding, in []driver.Span, out driver.Span) {
		b.gemm(true, false, m, n, k, in[1], k, in[0], k, out, to.narrow)
		s.bias(b, in, out)
	})
}

// linearGradInput lowers dy w.
func (s step) linearGradInput(op.LinearGradInput) (*lowering, error) {
	m, k, n := s.InType(0).Shape[0], s.InType(0).Shape[1], s.InType(1).Shape[0]
	narrow := s.d.narrow()
	return s.result(form{narrow: narrow, scaled: s.form(1).scaled}, 0, s.factors(),
		func(b *binding, in []driver.Span, out driver.Span) {
			b.gemm(false, false, k, n, m, in[0], k, in[1], m, out, narrow)
		}), nil
}

// linearGradWeight lowers dyᵀ x.
func (s step) linearGradWeight(op.LinearGradWeight) (*lowering, error) {
	n, k, m := s.InType(0).Shape[0], s.InType(0).Shape[1], s.InType(1).Shape[1]
	return s.result(form{}, 0, s.factors(), func(b *binding, in []driver.Span, out driver.Span) {
		b.gemm(false, true, k, m, n, in[0], k, in[1], m, out, false)
		if s.form(1).scaled {
			b.recast(out, form{}, out, form{scaled: true})
		}
	}), nil
}

// gemm adds a matrix product in the device's precision; the result's leading dimension is its number of rows.
func (b *binding) gemm(transA, transB bool, m, n, k int, A driver.Span, lda int, B driver.Span, ldb int, y driver.Span,
	narrow bool) {
	d := b.d
	b.calls = append(b.calls, func() error {
		return d.blas.Gemm(d.opts.Precision, transA, transB, m, n, k, 1, A, lda, B, ldb, 0, y, m, narrow)
	})
}
