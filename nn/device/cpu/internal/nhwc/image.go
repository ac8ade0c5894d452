// Package nhwc goes over activations as they lie: pixels of channels, in lines, in images.
package nhwc

import "onlinerna/nn/device/cpu/internal/work"

// Pixels is how many rows of channels an activation has, and how many channels: NHWC, or a matrix.
func Pixels(shape []int) (pixels, channels int) {
	pixels, channels = shape[0], shape[1]
	for _, n := range shape[2:] {
		pixels *= n
	}
	return pixels, channels
}

// Image is the extents of an NHWC activation.
type Image struct{ N, H, W, C int }

// ImageOf is that of an activation of the given logical shape.
func ImageOf(shape []int) Image { return Image{shape[0], shape[2], shape[3], shape[1]} }

// Lines cuts an image into blocks of whole lines, (n, i) in row-major order.
type Lines struct {
	Image
	size int // lines in a block
}

// LinesOf cuts m into blocks of about as many elements as elementwise ops have.
func LinesOf(m Image) Lines {
	return Lines{m, max(1, work.ElementBlock/(m.W*m.C))}
}

// Phase runs f for each line: its image, its row and its storage in x.
func (l Lines) Phase(x []float32, f func(n, i int, line []float32)) work.Phase {
	total := l.N * l.H
	width := l.W * l.C
	return work.Phase{Blocks: work.Ceil(total, l.size), Run: func(_, block int) {
		for at := block * l.size; at < min((block+1)*l.size, total); at++ {
			f(at/l.H, at%l.H, x[at*width:][:width])
		}
	}}
}
