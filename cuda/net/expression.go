//go:build gpu && cgo

package net

import (
	"fmt"
	"math"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/nvrtc"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// expression lowers an elementwise expression to a kernel, compiled once for the expression and its operands' forms. If
// an operand carries the loss scale, so does the result: the kernel divides by the scale first and multiplies at the
// end.
func (s step) expression(o op.Map) (*lowering, error) {
	y := s.OutType()
	if int64(y.Shape.Size()) > math.MaxUint32 {
		return nil, lower.Reason(fmt.Sprintf("%v has too many elements for an elementwise expression", y))
	}
	types := make([]op.Type, len(s.In))
	for i := range types {
		types[i] = s.InType(i)
	}
	axes := o.Axes(types...)
	m := kernels.Mapping{Expr: o.Expr, Operands: make([]kernels.Operand, len(s.In))}
	f := form{last: len(y.Shape) == 4}
	wants := make([]want, len(s.In))
	for i, t := range types {
		have := s.form(i)
		_, counter := o.Expr.Reads(i)
		m.Operands[i] = kernels.Operand{Counter: counter, Whole: axes[i] == op.All, Narrow: have.narrow,
			Scaled: have.scaled}
		wants[i] = s.want(i, form{last: len(t.Shape) == 4, narrow: have.narrow, scaled: have.scaled})
		f.narrow, f.scaled = f.narrow || have.narrow, f.scaled || have.scaled
	}
	m.Narrow, m.Scaled = f.narrow, f.scaled
	_, channels, pixels := y.Shape.Extents()
	l := s.result(f, 0, wants, func(b *binding, in []driver.Span, out driver.Span) {
		k, err := b.d.mapping(m)
		if err != nil {
			b.fail(err)
			return
		}
		row := f.last || pixels == 1
		row = row && channels%(16/f.bytes(op.T(op.Float32, 1))) == 0
		var args []any
		for i, x := range in {
			args = append(args, x)
			if q := m.Operands[i]; !q.Counter && !q.Whole {
				n, c, p := strides(axes[i], channels, pixels, f.last)
				args = append(args, n, c, p)
				row = row && packed(x)
			}
		}
		args = append(args, out.Written(), uint32(channels), uint32(pixels), f.last, row, b.d.scaleFor(f),
			int64(y.Shape.Size()))
		grid, block := b.d.flat(y.Shape.Size())
		b.add(k, grid, block, args...)
	})
	for i, a := range axes {
		if a == op.All && m.Operands[i].Narrow == m.Narrow {
			l.Results[0].Over = append(l.Results[0].Over, s.In[i])
		}
	}
	return l, nil
}

// strides are the distances between elements of an operand that varies along some axes of a result.
func strides(a op.Axes, channels, pixels int, last bool) (n, c, p uint32) {
	size := uint32(1)
	take := func(axis op.Axes, extent int) uint32 {
		if a&axis == 0 {
			return 0
		}
		step := size
		size *= uint32(extent)
		return step
	}
	if last {
		c = take(op.Channels, channels)
		p = take(op.Pixels, pixels)
	} else {
		p = take(op.Pixels, pixels)
		c = take(op.Channels, channels)
	}
	return take(op.Samples, 1), c, p
}

// mapping returns the kernel of an expression.
func (d *Device) mapping(m kernels.Mapping) (*driver.Kernel, error) {
	narrow := m.Narrow
	for _, o := range m.Operands {
		narrow = narrow || o.Narrow
	}
	source, options, err := m.Source(d.element(narrow))
	if err != nil {
		return nil, err
	}
	return d.compiled("map.cu", "nn_map", source, options)
}

// compiled returns a kernel of a generated source.
func (d *Device) compiled(file, name, source string, options []string) (*driver.Kernel, error) {
	module := fmt.Sprint(source, options)
	key := name + module
	if k, ok := d.kernels[key]; ok {
		return k, nil
	}
	m, ok := d.modules[module]
	if !ok {
		var err error
		if m, err = nvrtc.Compile(d.c, file, source, options...); err != nil {
			return nil, err
		}
		d.modules[module] = m
	}
	k, err := m.Kernel(name)
	if err == nil {
		d.kernels[key] = k
	}
	return k, err
}

// sumTo lowers a sum over the axes along which an operand was repeated. A result that keeps the samples has the
// operand's form; any other may be a gradient of weights and is float32.
func (s step) sumTo(o op.SumTo) (*lowering, error) {
	x := s.InType(0)
	have := s.form(0)
	have.last = len(x.Shape) == 4
	axes := o.Axes(x)
	f := form{last: len(o.Shape) == 4}
	if axes&op.Samples != 0 {
		f.narrow, f.scaled = have.narrow, have.scaled
	}
	samples, channels, pixels := x.Shape.Extents()
	dims := [3]struct {
		extent int
		kept   bool
	}{{samples, axes&op.Samples != 0}, {channels, axes&op.Channels != 0}, {pixels, axes&op.Pixels != 0}}
	if have.last {
		dims[1], dims[2] = dims[2], dims[1]
	}
	// View it as [a, b, c, d] with sums over a and c: merge neighbours that are both summed, or both kept.
	v, at := [4]int{1, 1, 1, 1}, 0
	for _, d := range dims {
		if d.extent > 1 && d.kept != (at%2 == 1) {
			at++
		}
		v[at] *= d.extent
	}
	if at <= 1 { // [b], a sum of all elements, or [a, b]
		v[1], v[3] = 1, v[1]
		if v[0] > 1 {
			v[0], v[2] = 1, v[0]
		}
	}
	outputs, terms := v[1]*v[3], v[0]*v[2]
	p := s.d.sumGrid(outputs, terms, v[3] > 1)
	wants := []want{s.want(0, have)}
	l := s.result(f, 8*p.grid.Z*outputs, wants, func(b *binding, in []driver.Span, out driver.Span) {
		partial := b.work.Span(0, int64(8*p.grid.Z*outputs))
		b.launch("sum.cu", "nn_sum_to", p.grid, p.block, in[0], partial.Written(), int64(v[0]), int64(v[1]),
			int64(v[2]), int64(v[3]), v[3] > 1)
		end, scale := "nn_sum_to_end", driver.Span{}
		if !f.narrow {
			end = "nn_sum_to_wide"
		}
		if have.scaled && !f.scaled {
			scale = b.d.scale()
		}
		b.each("sum.cu", end, outputs, partial, p.grid.Z, out.Written(), scale)
	})
	l.Kernel.narrow = have.narrow
	return l, nil
}

// sumGrid is the grid of nn_sum_to. Neighbouring threads take neighbouring outputs if across, else neighbouring terms.
func (d *Device) sumGrid(outputs, terms int, across bool) pass {
	along := terms
	if across {
		along = outputs
	}
	x := 1
	for x < 256 && x < along {
		x *= 2
	}
	if across {
		x = min(x, 32)
	}
	p := pass{block: driver.Dim{X: x, Y: 256 / x, Z: 1}}
	own, share := p.block.Y, p.block.X // outputs of a block, and threads for each output
	if across {
		own, share = share, own
	}
	p.grid = driver.Dim{X: (outputs + own - 1) / own, Y: 1}
	const least = 16 // terms per thread, at least
	p.grid.Z = max(1, min((terms+share*least-1)/(share*least), d.blocks()/p.grid.X, 65535))
	return p
}
