package cpu

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// lowerView lowers an op whose result is a contiguous part of the operand in row-major order. Where both
// are stored in that order, or in the same other one, there is nothing to do.
func lowerView(s step, o op.View) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	from, to := s.in(0).Shape, s.out().Shape
	offset := o.ViewOffset(s.in(0))
	if from.Equal(to) || plain(from) && plain(to) {
		l := s.data(func(st *storage) []phase {
			x, dst := st.floats(s.In[0]), st.floats(s.Out)
			if st.err != nil || len(dst) == 0 || &x[offset] == &dst[0] {
				return nil
			}
			return one(func() { copy(dst, x[offset:]) })
		})
		l.outputs[0].View = &device.View{Input: slices.Index(s.group.Inputs, s.In[0]), Offset: offset * op.Float32.Size()}
		return l, ""
	}
	if image, ok := images(from, to, offset); ok {
		return s.data(func(st *storage) []phase {
			x, dst := st.floats(s.In[0]), st.floats(s.Out)
			return []phase{{to.Size() / image, func(_, n int) {
				from, to := x[offset+n*image:][:image], dst[n*image:][:image]
				if plain(s.in(0).Shape) {
					transposeImage(to, from, s.out().Shape[1])
				} else {
					transposeImage(to, from, image/s.in(0).Shape[1])
				}
			}}}
		}), ""
	}
	return s.data(func(st *storage) []phase {
		x, dst := st.floats(s.In[0]), st.floats(s.Out)
		at := position(from)
		width := to[len(to)-1]
		if len(to) == 4 {
			width = to[2] * to[3] * to[1]
		}
		index := position(to)
		lines := len(dst) / width
		return []phase{{lines, func(_, line int) {
			for i := line * width; i < (line+1)*width; i++ {
				dst[index(i)] = x[at(offset+i)]
			}
		}}}
	}), ""
}

// images says whether a view turns whole images from channels-last to row-major order or back, and gives their size.
func images(from, to op.Shape, offset int) (size int, ok bool) {
	shape := from
	if plain(from) {
		shape = to
	}
	if plain(from) == plain(to) {
		return 0, false
	}
	size = shape[1] * shape[2] * shape[3]
	return size, size > 0 && offset%size == 0 && to.Size()%size == 0
}

// transposeImage writes src, a matrix whose columns become rows of n elements, to dst.
func transposeImage(dst, src []float32, n int) {
	columns := len(src) / n
	for i := range n {
		for j, v := range src[i*columns : (i+1)*columns] {
			dst[j*n+i] = v
		}
	}
}

// plain says whether a tensor in the layout of activations lies in row-major order.
func plain(s op.Shape) bool {
	return len(s) != 4 || s[1] == 1 || s[2]*s[3] == 1
}

// position gives where in memory the element with a row-major index lies, in the layout of activations.
func position(s op.Shape) func(i int) int {
	if plain(s) {
		return func(i int) int { return i }
	}
	channels, size := s[1], s[2]*s[3]
	return func(i int) int {
		n, c, p := i/(channels*size), i/size%channels, i%size
		return (n*size+p)*channels + c
	}
}
