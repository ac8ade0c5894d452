//go:build gpu && cgo

package net

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// maxPlaces finds the place of the maximum in each window, in row-major order, for operands x and its MaxPool: a byte
// in windows of at most 256 elements, otherwise an int32, for [N,H,W,C]. In training the pool's kernel stores them for
// the gradient.
type maxPlaces struct{ op.MaxPool }

// Kind implements op.Op.
func (maxPlaces) Kind() string { return "max_pool_places" }

func (o maxPlaces) String() string { return "places of " + o.MaxPool.String() }

// Infer implements op.Op.
func (o maxPlaces) Infer(in ...op.Type) (op.Type, error) {
	t, err := o.MaxPool.Infer(in[:min(1, len(in))]...)
	if err != nil {
		return t, err
	}
	return placesOf(o.MaxPool, t), nil
}

// Run implements op.Op.
func (o maxPlaces) Run(out op.Tensor, in ...op.Tensor) error {
	x, err := numbers(in[0])
	if err != nil {
		return err
	}
	y, err := o.MaxPool.Infer(in[0].Type())
	if err != nil {
		return err
	}
	o.each(in[0].Shape, y.Shape, func(_, at int, places, elements []int) {
		best := 0
		for k, i := range elements {
			if v, most := x[i], x[elements[best]]; v > most || v != v && most == most {
				best = k
			}
		}
		switch p := out.Data.(type) {
		case []uint8:
			p[at] = uint8(places[best])
		case []int32:
			p[at] = int32(places[best])
		}
	})
	return nil
}

// each calls f for each window of x with its index in y and among places, and with the places and indices of its
// elements inside the image.
func (o maxPlaces) each(x, y op.Shape, f func(window, at int, places, elements []int)) {
	for window := range y.Size() {
		plane, i, j := window/(y[2]*y[3]), window/y[3]%y[2], window%y[3]
		top, left := i*cmp.Or(o.Stride[0], o.Kernel[0])-o.Pad[0], j*cmp.Or(o.Stride[1], o.Kernel[1])-o.Pad[1]
		var places, elements []int
		for p := range o.Kernel[0] * o.Kernel[1] {
			row, col := top+p/o.Kernel[1], left+p%o.Kernel[1]
			if row >= 0 && row < x[2] && col >= 0 && col < x[3] {
				places, elements = append(places, p), append(elements, (plane*x[2]+row)*x[3]+col)
			}
		}
		f(window, ((plane/y[1]*y[2]+i)*y[3]+j)*y[1]+plane%y[1], places, elements)
	}
}

// numbers are the elements of a floating-point tensor.
func numbers(t op.Tensor) ([]float64, error) {
	switch x := t.Data.(type) {
	case []float64:
		return x, nil
	case []float32:
		all := make([]float64, len(x))
		for i, v := range x {
			all[i] = float64(v)
		}
		return all, nil
	}
	return nil, fmt.Errorf("%v has no floating-point elements", t.Type())
}

// placesOf is the type of the places for maxima of type y. They are stored in the order of its shape.
func placesOf(o op.MaxPool, y op.Type) op.Type {
	return op.T(placeType(o), y.Shape[0], y.Shape[2], y.Shape[3], y.Shape[1])
}

// placeType is the type of a place in a window.
func placeType(o op.MaxPool) op.DType {
	if o.Kernel[0]*o.Kernel[1] <= 256 {
		return op.Uint8
	}
	return op.Int32
}

// placedGrad is the gradient of a MaxPool of x, for operands places and dy.
type placedGrad struct {
	op.MaxPool
	x op.Type
}

// Kind implements op.Op.
func (placedGrad) Kind() string { return "max_pool_grad" }

func (o placedGrad) String() string {
	return fmt.Sprintf("gradient for %v by places of %v", o.x, o.MaxPool)
}

// Infer implements op.Op.
func (o placedGrad) Infer(...op.Type) (op.Type, error) { return o.x, nil }

// Run implements op.Op.
func (o placedGrad) Run(out op.Tensor, in ...op.Tensor) error {
	dy, err := numbers(in[1])
	if err != nil {
		return err
	}
	sums := make([]float64, out.Shape.Size())
	maxPlaces{o.MaxPool}.each(out.Shape, in[1].Shape, func(window, at int, places, elements []int) {
		var place int
		switch p := in[0].Data.(type) {
		case []uint8:
			place = int(p[at])
		case []int32:
			place = int(p[at])
		}
		if k := slices.Index(places, place); k >= 0 {
			sums[elements[k]] += dy[window]
		}
	})
	switch dx := out.Data.(type) {
	case []float64:
		copy(dx, sums)
	case []float32:
		for i, s := range sums {
			dx[i] = float32(s)
		}
	}
	return nil
}

// placePools makes gradients of MaxPools read places, which the pools store.
func placePools(p *device.Program) {
	for i := 0; i < len(p.Steps); i++ {
		o, ok := p.Steps[i].Op.(op.MaxPoolGrad)
		if !ok {
			continue
		}
		for j, s := range p.Steps[:i] {
			if m, ok := s.Op.(op.MaxPool); !ok || m != o.MaxPool || s.In[0] != p.Steps[i].In[0] {
				continue
			}
			places := p.Values[s.Out]
			places.Type = placesOf(o.MaxPool, places.Type)
			p.Values = append(p.Values, places)
			at := len(p.Values) - 1
			g := &p.Steps[i]
			g.Op, g.In = placedGrad{o.MaxPool, p.Values[g.Out].Type}, []int{at, g.In[1]}
			find := device.Step{Name: s.Name, Op: maxPlaces{o.MaxPool}, In: []int{s.In[0], s.Out}, Out: at}
			p.Steps = append(p.Steps[:j+1:j+1], append([]device.Step{find}, p.Steps[j+1:]...)...)
			i++
			break
		}
	}
}

// placedPool takes MaxPool + maxPlaces in one pass.
func (d *Device) placedPool(f *lower.Flow, first int) []lower.Match[kernel] {
	s := step{d, f.Step(first)}
	o, ok := s.Op.(op.MaxPool)
	if !ok {
		return nil
	}
	for _, r := range f.Readers(first) {
		places := f.Step(r)
		if !lower.Is[maxPlaces](places) || places.In[1] != s.Out || places.In[0] != s.In[0] {
			continue
		}
		return []lower.Match[kernel]{{Steps: []int{first, r}, Lower: func() (*lowering, error) {
			return s.maxima(o, s.Out, places.Out)
		}}}
	}
	return nil
}

func (s step) maxPool(o op.MaxPool) (*lowering, error) { return s.maxima(o, s.Out, -1) }

func (s step) maxPlaces(o maxPlaces) (*lowering, error) {
	s.In = s.In[:1]
	return s.maxima(o.MaxPool, -1, s.Out)
}

// maxima lowers the maxima of windows, value y, and their places. Either may be negative.
func (s step) maxima(o op.MaxPool, y, places int) (*lowering, error) {
	t, err := o.Infer(s.InType(0))
	if err != nil {
		return nil, err
	}
	args, err := windows(s.InType(0), t, o.Kernel, o.Stride, o.Pad)
	if err != nil {
		return nil, err
	}
	f := s.like(t, 0)
	l := s.result(f, 0, []want{s.want(0, f)}, func(b *binding, in []driver.Span, _ driver.Span) {
		written := func(v int) any {
			if v < 0 {
				return driver.Span{}
			}
			return b.spans[v].Written()
		}
		b.each("pool.cu", "nn_max_pool"+wide(o), t.Shape.Size(),
			append([]any{in[0], written(y), written(places)}, args...)...)
	})
	l.Results = nil
	if y >= 0 {
		l.Results = append(l.Results, lower.Result{Value: y, Layout: s.d.layout(f), Bytes: f.bytes(t)})
	}
	if places >= 0 {
		l.Results = append(l.Results, lower.Result{Value: places, Layout: s.d.layout(form{}), Bytes: placeBytes(o, t)})
	}
	return l, nil
}

// wide ends the names of kernels whose places are not bytes.
func wide(o op.MaxPool) string {
	if placeType(o) == op.Uint8 {
		return ""
	}
	return "_wide"
}

// placeBytes is the size of the places in windows whose maxima have type t.
func placeBytes(o op.MaxPool, t op.Type) int { return t.Shape.Size() * placeType(o).Size() }

// placedGrad lowers it.
func (s step) placedGrad(o placedGrad) (*lowering, error) {
	args, err := windows(s.OutType(), s.InType(1), o.Kernel, o.Stride, o.Pad)
	f := s.like(s.OutType(), 1)
	return s.result(f, 0, []want{s.want(0, form{}), s.want(1, f)}, func(b *binding, in []driver.Span, out driver.Span) {
		b.spread(o.MaxPool, in[0], in[1], out, s.OutType(), args)
	}), err
}

// spread adds the kernel that gives gradients to places of x.
func (b *binding) spread(o op.MaxPool, places, dy, dx driver.Span, x op.Type, args []any) {
	b.each("pool.cu", "nn_max_pool_grad"+wide(o), x.Shape.Size(), append([]any{places, dy, dx.Written()}, args...)...)
}

// maxPoolGrad lowers the gradient without stored places: it finds them first.
func (s step) maxPoolGrad(o op.MaxPoolGrad) (*lowering, error) {
	m, y := o.MaxPool, s.InType(1)
	args, err := windows(s.OutType(), y, m.Kernel, m.Stride, m.Pad)
	f, all := s.activations()
	room := placeBytes(m, y)
	return s.result(f, align(room), all, func(b *binding, in []driver.Span, out driver.Span) {
		places := b.work.Span(0, int64(room))
		b.each("pool.cu", "nn_max_pool"+wide(m), y.Shape.Size(),
			append([]any{in[0], driver.Span{}, places.Written()}, args...)...)
		b.spread(m, places, in[1], out, s.OutType(), args)
	}), err
}

func (s step) avgPool(o op.AvgPool) (*lowering, error) {
	return s.averages("nn_avg_pool", o, s.InType(0), s.OutType())
}

func (s step) avgPoolGrad(o op.AvgPoolGrad) (*lowering, error) {
	return s.averages("nn_avg_pool_grad", o.AvgPool, s.OutType(), s.InType(0))
}

// averages lowers a kernel that runs over the windows of x from which y is computed.
func (s step) averages(kernel string, o op.AvgPool, x, y op.Type) (*lowering, error) {
	args, err := windows(x, y, o.Kernel, o.Stride, o.Pad)
	f, all := s.activations()
	return s.result(f, 0, all, func(b *binding, in []driver.Span, out driver.Span) {
		b.each("pool.cu", kernel, s.OutType().Shape.Size(), append([]any{in[0], out.Written()}, args...)...)
	}), err
}

// windows are the kernels' parameters for the windows of x from which y is computed.
func windows(x, y op.Type, size, stride, pad [2]int) ([]any, error) {
	if max(x.Shape.Size(), y.Shape.Size()) > math.MaxInt32 {
		return nil, lower.Reason(fmt.Sprintf("%v has more than 2³¹ elements", x))
	}
	return []any{x.Shape[2], x.Shape[3], y.Shape[2], y.Shape[3], x.Shape[1], size[0], size[1],
		cmp.Or(stride[0], size[0]), cmp.Or(stride[1], size[1]), pad[0], pad[1]}, nil
}

// globalAvgPool lowers the means over the planes of x, or their gradient.
func (s step) globalAvgPool(op.GlobalAvgPool) (*lowering, error) {
	n, c, pixels := extents(s.InType(0).Shape)
	f, all := s.activations()
	return s.result(f, 0, all, func(b *binding, in []driver.Span, out driver.Span) {
		p := s.d.columns(pixels, c, f, packed(in[0], out))
		b.launch("pool.cu", "nn_global_avg_pool", driver.Dim{X: p.grid.X, Y: n}, p.block, in[0], out.Written(),
			int64(pixels), c, p.packs)
	}), nil
}

func (s step) globalAvgPoolGrad(op.GlobalAvgPoolGrad) (*lowering, error) {
	_, c, pixels := extents(s.OutType().Shape)
	f, all := s.activations()
	return s.result(f, 0, all, func(b *binding, in []driver.Span, out driver.Span) {
		b.each("pool.cu", "nn_global_avg_pool_grad", s.OutType().Shape.Size(), in[0], out.Written(), int64(pixels), c)
	}), nil
}
