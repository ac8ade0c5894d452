package cpu

// pixelsOf is how many rows of channels an activation has, and how many channels: NHWC, or a matrix.
func pixelsOf(shape []int) (pixels, channels int) {
	pixels, channels = shape[0], shape[1]
	for _, n := range shape[2:] {
		pixels *= n
	}
	return pixels, channels
}

// image is the extents of an NHWC activation.
type image struct{ n, h, w, c int }

func imageOf(shape []int) image { return image{shape[0], shape[2], shape[3], shape[1]} }

// lines cuts an image into blocks of whole lines, (n, i) in row-major order.
type lines struct {
	image
	size int // lines in a block
}

func linesOf(m image) lines {
	return lines{m, max(1, elementBlock/(m.w*m.c))}
}

// phase runs f for each line: its image, its row and its storage in x.
func (l lines) phase(x []float32, f func(n, i int, line []float32)) phase {
	total := l.n * l.h
	width := l.w * l.c
	return phase{ceil(total, l.size), func(_, block int) {
		for at := block * l.size; at < min((block+1)*l.size, total); at++ {
			f(at/l.h, at%l.h, x[at*width:][:width])
		}
	}}
}

// ceil is a/b rounded up, for a ≥ 0.
func ceil(a, b int) int { return (a + b - 1) / b }

// floor is a/b rounded down, for positive b.
func floor(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}
