// Package nhwc iterates over activations in their layout: pixels of channels, in lines, in images.
package nhwc

import "onlinerna/nn/device/cpu/internal/work"

// Pixels is the number of rows of channels of an activation, NHWC or a matrix, and the number of channels.
func Pixels(shape []int) (pixels, channels int) {
	pixels, channels = shape[0], shape[1]
	for _, n := range shape[2:] {
		pixels *= n
	}
	return pixels, channels
}

// Image is the extents of an NHWC activation.
type Image struct{ N, H, W, C int }

// ImageOf returns the extents of an activation of the given logical shape.
func ImageOf(shape []int) Image { return Image{shape[0], shape[2], shape[3], shape[1]} }

// ByLine lowers a step that makes its result line by line. bind returns the function that makes line i of image n.
func ByLine(s work.Step, bind func(st *work.Storage) func(worker, n, i int, line []float32)) *work.Lowering {
	m := ImageOf(s.OutType().Shape)
	total, width := m.N*m.H, m.W*m.C
	size := max(1, work.ElementBlock/width) // lines in a block: about as many elements as for elementwise ops
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		dst, f := st.Pieces(s.Out), bind(st)
		return []work.Phase{{Blocks: work.Ceil(total, size), Run: func(worker, block int) {
			for at := block * size; at < min((block+1)*size, total); at++ {
				lo, hi := at*width, (at+1)*width
				f(worker, at/m.H, at%m.H, dst.To(worker, lo, hi))
				dst.Done(worker, lo, hi)
			}
		}}}
	})
	l.Kernel.Take(width, s.Out)
	return l
}
