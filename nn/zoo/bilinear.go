package zoo

import (
	G "gorgonia.org/gorgonia"

	"onlinerna/internal/resize"
	"onlinerna/nn/op"
)

// bilinear resizes images x to height×width pixels, as PyTorch's interpolate does: corners is its align_corners.
func (b layer) bilinear(name string, x *G.Node, height, width int, corners bool) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	rows, columns := s[2], s[3]
	if rows == height && columns == width {
		return x
	}
	by := resize.Line{Corners: corners}
	return b.resample(name, x, lineMatrix(by, rows, height), lineMatrix(by, columns, width))
}

// resample multiplies the columns of images x by a matrix [height,extent], and their rows by one [width,extent].
func (b layer) resample(name string, x *G.Node, down, across op.Tensor) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	n, c, rows, columns := s[0], s[1], s[2], s[3]
	height, width := down.Shape[0], across.Shape[0]
	x = b.Reshape(name+".rows", x, n*c*rows, columns)
	x = b.Apply(name+".columns", op.Linear{}, x, b.Constant(name+".across", across))
	x = b.Permute(name+".transposed", b.Reshape(name+".planes", x, n*c, rows, width), 0, 2, 1)
	x = b.Reshape(name+".lines", x, n*c*width, rows)
	x = b.Apply(name+".down", op.Linear{}, x, b.Constant(name+".along", down))
	x = b.Permute(name+".back", b.Reshape(name+".turned", x, n*c, width, height), 0, 2, 1)
	return b.Reshape(name, x, n, c, height, width)
}

// pooling is the matrix [to,from] that gives the means of to parts of a line, which may overlap: PyTorch's adaptive
// pooling.
func pooling(from, to int) op.Tensor {
	m := op.New(op.T(op.Float64, to, from))
	for i := range to {
		first, behind := i*from/to, ((i+1)*from+to-1)/to
		for k := first; k < behind; k++ {
			m.Data.([]float64)[i*from+k] = 1 / float64(behind-first)
		}
	}
	return m
}
