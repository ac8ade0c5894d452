//go:build gpu && cgo

package net

import (
	"cmp"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// elementwise lowers an op that computes each element of its result from the operands' elements at the same place.
func (s step) elementwise(kernel string) (*lowering, error) {
	f, all := s.activations()
	if len(s.OutType().Shape) == 4 && !s.form(0).last { // rows of an image, if all operands have that layout
		f.last = false
		for i := range all {
			all[i].form.last = false
		}
	}
	l := s.result(f, 0, all, func(b *binding, in []driver.Span, out driver.Span) {
		var args []any
		for _, x := range in {
			args = append(args, x)
		}
		b.each("element.cu", kernel, s.OutType().Shape.Size(), append(args, out.Written())...)
	})
	l.Results[0].Over = []int{s.In[0], s.In[len(s.In)-1]}
	return l, nil
}

// activations wants all operands in the result's form, with 16 bits if some operand has them. Only the last operands
// are gradients and carry the loss scale.
func (s step) activations() (form, []want) {
	var each []int
	for i := range s.In {
		each = append(each, i)
	}
	f := s.like(s.OutType(), each...)
	wants := make([]want, len(s.In))
	for i := range wants {
		x := form{last: len(s.InType(i).Shape) == 4, narrow: f.narrow, scaled: f.scaled &&
			(s.form(i).scaled || lower.Is[op.Add](s.Step))}
		wants[i] = s.want(i, x)
	}
	return f, wants
}

// images lowers the windows of images. The result may have more channels than the images. A table maps the 256 levels
// of each channel to values.
func (s step) images(o op.Images) (*lowering, error) {
	from, to := s.InType(0).Shape, s.OutType().Shape // NHWC, NCHW
	channels := from[3]
	pixels := to[0] * to[2] * to[3] * channels
	return s.result(form{last: true, narrow: s.d.narrow()}, 0, nil,
		func(b *binding, in []driver.Span, out driver.Span) {
			levels := make([]float32, 256*channels)
			for i := range levels {
				c := i % channels
				levels[i] = float32((float64(i/channels)/255 - o.Mean[c]) / o.Std[c])
			}
			table, err := s.d.table(driver.Bytes(levels))
			if err != nil {
				b.fail(err)
				return
			}
			b.each("element.cu", "nn_images", to[0]*to[2]*to[3], in[0].Part(min(in[0].Bytes(), int64(pixels)), 0),
				in[1], table,
				out.Written(), from[1], from[2], channels, o.Height, o.Width, to[1])
		}), nil
}

// shortcut lowers the parameter-free shortcut from x to y, or its gradient.
func (s step) shortcut(kernel string, o op.Shortcut, x, y op.Type) (*lowering, error) {
	f, all := s.activations()
	needed, err := op.Reads(s.Op, s.InType(0))
	if err != nil {
		return nil, err
	}
	return s.result(f, 0, all, func(b *binding, in []driver.Span, out driver.Span) {
		read := in[0].Bytes() / int64(s.InType(0).Shape.Size()) * int64(needed[0])
		b.each("element.cu", kernel, s.OutType().Shape.Size(), in[0].Part(read, 0), out.Written(), x.Shape[2],
			x.Shape[3], x.Shape[1],
			y.Shape[2], y.Shape[3], y.Shape[1], cmp.Or(o.Stride, 1))
	}), nil
}

// view lowers an op whose result is a contiguous part of the operand in row-major order. If both are stored in the same
// order, it has nothing to do.
func (s step) view(o op.View) (*lowering, error) {
	from, to := s.InType(0).Shape, s.OutType().Shape
	first := o.ViewOffset(s.InType(0))
	fromChannels, fromPixels := order(from)
	toChannels, toPixels := order(to)
	f, all := s.activations()
	offset := first * f.bytes(op.T(op.Float32, 1))
	l := s.result(f, 0, all, func(b *binding, in []driver.Span, out driver.Span) {
		if !from.Equal(to) && (fromChannels > 1 || toChannels > 1) {
			b.each("element.cu", "nn_view", to.Size(), in[0].Part(out.Bytes(), 0), out.Written(), fromChannels,
				fromPixels, toChannels, toPixels, int64(first))
			return
		}
		if part := in[0].Span(int64(offset), out.Bytes()); part != out {
			b.copy(out, part)
		}
	})
	if from.Equal(to) || fromChannels == 1 && toChannels == 1 {
		l.Results[0].View = &lower.View{Value: s.In[0], Offset: offset}
	}
	return l, nil
}

// same lowers an op whose result has the operand's elements in the order in which they are stored.
func (s step) same() (*lowering, error) {
	f, all := s.activations()
	l := s.result(f, 0, all, func(b *binding, in []driver.Span, out driver.Span) {
		if in[0] != out {
			b.copy(out, in[0])
		}
	})
	l.Results[0].View = &lower.View{Value: s.In[0]}
	return l, nil
}

// order returns the channels and pixels of a tensor's image in the device's layout, both 1 if that is row-major order.
func order(s op.Shape) (channels, pixels int64) {
	if len(s) != 4 || s[1] == 1 || s[2]*s[3] == 1 {
		return 1, 1
	}
	return int64(s[1]), int64(s[2] * s[3])
}
