package mapping

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// order describes the storage order of a result: it maps places in memory to elements.
type order struct {
	channels, pixels int
	last             bool // channels are the innermost dimension
}

func orderOf(s op.Shape, l device.Layout) order {
	_, channels, pixels := s.Extents()
	return order{channels, pixels, l == work.NHWC || pixels == 1}
}

// at is the sample, channel and pixel of the element at place i.
func (o order) at(i int) (n, c, p int) {
	n, i = i/(o.channels*o.pixels), i%(o.channels*o.pixels)
	if o.last {
		return n, i % o.channels, i / o.channels
	}
	return n, i / o.pixels, i % o.pixels
}

// place is the index, within an operand that varies along a, of the number for an element.
func (o order) place(a op.Axes, n, c, p int) int {
	if o.last && a&op.Channels != 0 && a&op.Pixels != 0 { // channels are innermost
		return (a&op.Samples).Index(n, 0, 0, 0, 0)*o.channels*o.pixels + p*o.channels + c
	}
	return a.Index(n, c, p, o.channels, o.pixels)
}

// inner is the innermost axis in memory, and its extent.
func (o order) inner() (axis op.Axes, extent int) {
	if o.last {
		return op.Channels, o.channels
	}
	return op.Pixels, o.pixels
}

// periodic reports whether an operand that varies along a repeats after so few elements that a row of them pays.
func (o order) periodic(a op.Axes) bool {
	repeats := o.pixels > 1 || a&op.Samples == 0
	return o.last && a&op.Channels != 0 && a&op.Pixels == 0 && a != op.All && repeats && o.channels <= 4*Block
}

// spread repeats operand x, which varies along a, over the elements from place lo on, into dst.
func (o order) spread(dst []float32, lo int, x []float32, a op.Axes) {
	axis, extent := o.inner()
	n, c, p := o.at(lo)
	for len(dst) > 0 {
		at := &c
		if !o.last {
			at = &p
		}
		m := min(extent-*at, len(dst))
		from := o.place(a, n, c, p)
		if a&axis != 0 {
			copy(dst[:m], x[from:])
		} else {
			v := x[from]
			for i := range dst[:m] {
				dst[i] = v
			}
		}
		dst, *at = dst[m:], 0
		if o.last {
			p++
		} else {
			c++
		}
		if p == o.pixels && o.last || c == o.channels && !o.last {
			n, c, p = n+1, 0, 0
		}
	}
}

// draw sets dst to random numbers for the elements from place lo on.
func (o order) draw(k *vec.Set, dst []float32, lo int, r expr.Node, counter []int32) {
	step, first := uint32(counter[0]), uint32(counter[1])
	size := o.channels * o.pixels
	for len(dst) > 0 {
		n, at := lo/size, lo%size
		m := min(size-at, len(dst))
		switch sample := first + uint32(n); {
		case r.PerSample:
			v := expr.Uniform(r.Key, step, sample, 0)
			for i := range dst[:m] {
				dst[i] = v
			}
		case o.last:
			k.Uniforms(dst[:m], r.Key, step, sample, at)
		default: // random numbers are counted in the order of channels-last layouts
			for i := range dst[:m] {
				_, c, p := o.at(lo + i)
				dst[i] = expr.Uniform(r.Key, step, sample, uint32(p*o.channels+c))
			}
		}
		dst, lo = dst[m:], lo+m
	}
}
