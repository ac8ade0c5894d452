package nn

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// Windows cuts images of tokens into windows, one beside the other, whose tokens attend to each other (Liu et al., Swin
// transformer, 2021). Zeros fill the last window of a row and of a column.
//
//	w := nn.Windows{Height: 14, Width: 14, Rows: 7, Columns: 7}
//	y := b.Windows("windows", x, w)                                   // [N·14·14,C] to [N·4·49,C]
//	y = b.SelfAttention("attention", b.Linear("qkv", y, 3*c), n*w.Count(), heads)
//	y = b.FromWindows("images", y, w)
type Windows struct {
	Height, Width int // of an image, in tokens
	Rows, Columns int // of a window, in tokens

	// Down and Right shift all windows. Those at the end go on with the first tokens; Mask keeps such tokens apart.
	Down, Right int
}

// padded is the extent of images that windows fill.
func (w Windows) padded() (height, width int) {
	return (w.Height + w.Rows - 1) / w.Rows * w.Rows, (w.Width + w.Columns - 1) / w.Columns * w.Columns
}

// Count is the number of an image's windows.
func (w Windows) Count() int {
	height, width := w.padded()
	return height / w.Rows * (width / w.Columns)
}

// Mask is a bias of attention [Count·heads,T,T] for windows of T tokens: −100 for pairs of tokens that only a shift
// brings into one window, else 0.
func (w Windows) Mask(heads int) op.Tensor {
	height, width := w.padded()
	across, t := width/w.Columns, w.Rows*w.Columns
	x := op.New(op.T(op.Float64, w.Count()*heads, t, t))
	bias := x.Data.([]float64)
	type wrapped struct{ down, right bool }
	part := make([]wrapped, t)
	for k := range w.Count() {
		for i := range part {
			row, column := k/across*w.Rows+i/w.Columns, k%across*w.Columns+i%w.Columns
			part[i] = wrapped{row+w.Down >= height, column+w.Right >= width}
		}
		for i := range heads * t * t {
			if part[i/t%t] != part[i%t] {
				bias[k*heads*t*t+i] = -100
			}
		}
	}
	return x
}

// Offsets numbers the offsets of pairs of a window's T tokens, which a table of relative positions has a row for each:
// int32 [T·T], from 0 to (2·Rows−1)·(2·Columns−1)−1.
func (w Windows) Offsets() op.Tensor {
	t := w.Rows * w.Columns
	index := make([]int32, t*t)
	for i := range index {
		from, to := i/t, i%t
		down, right := from/w.Columns-to/w.Columns, from%w.Columns-to%w.Columns
		index[i] = int32((down+w.Rows-1)*(2*w.Columns-1) + right + w.Columns - 1)
	}
	return op.Tensor{Shape: op.Shape{t * t}, Data: index}
}

// images is the number of images that rows x are of, by the tokens of each.
func (b *Builder) images(name string, x *G.Node, w Windows, tokens func() int) (n, channels int, ok bool) {
	s, ok := b.shape(name, x, 2)
	if !ok || !b.claim(name) {
		return 0, 0, false
	}
	if min(w.Height, w.Width, w.Rows, w.Columns, w.Down+1, w.Right+1, w.Height-w.Down, w.Width-w.Right) < 1 {
		b.Fail(fmt.Errorf("layer %s: %+v are no windows", name, w))
	} else if s[0]%tokens() != 0 {
		b.Fail(fmt.Errorf("layer %s: the rows %v are not those of images of %d tokens", name, s, tokens()))
	}
	if b.err != nil {
		return 0, 0, false
	}
	return s[0] / tokens(), s[1], true
}

// Windows makes rows [N·Count·Rows·Columns,C] of windows, one after the other, from rows x [N·Height·Width,C] of images.
func (b *Builder) Windows(name string, x *G.Node, w Windows) *G.Node {
	n, c, ok := b.images(name, x, w, func() int { return w.Height * w.Width })
	if !ok {
		return nil
	}
	height, width := w.padded()
	// Five dimensions: devices keep values of four as images.
	x = b.apply(name, op.Reshape{Shape: op.Shape{1, n, w.Height, w.Width, c}}, x)
	if height > w.Height || width > w.Width {
		after := []int{0, 0, height - w.Height, width - w.Width, 0}
		x = b.apply(name, op.Pad{Before: make([]int, 5), After: after}, x)
	}
	if w.Down+w.Right > 0 {
		x = b.apply(name, op.Roll{By: []int{0, 0, w.Down, w.Right, 0}}, x)
	}
	x = b.apply(name, op.Reshape{Shape: op.Shape{n, height / w.Rows, w.Rows, width / w.Columns, w.Columns, c}}, x)
	x = b.apply(name, op.Permute{Axes: []int{0, 1, 3, 2, 4, 5}}, x)
	return b.apply(name, op.Reshape{Shape: op.Shape{n * height * width, c}}, x)
}

// FromWindows is the inverse of Windows: it makes rows of images from those of windows.
func (b *Builder) FromWindows(name string, x *G.Node, w Windows) *G.Node {
	n, c, ok := b.images(name, x, w, func() int { return w.Count() * w.Rows * w.Columns })
	if !ok {
		return nil
	}
	height, width := w.padded()
	x = b.apply(name, op.Reshape{Shape: op.Shape{n, height / w.Rows, width / w.Columns, w.Rows, w.Columns, c}}, x)
	x = b.apply(name, op.Permute{Axes: []int{0, 1, 3, 2, 4, 5}}, x)
	x = b.apply(name, op.Reshape{Shape: op.Shape{1, n, height, width, c}}, x)
	if w.Down+w.Right > 0 {
		x = b.apply(name, op.Roll{By: []int{0, 0, -w.Down, -w.Right, 0}}, x)
	}
	if height > w.Height || width > w.Width {
		x = b.apply(name, op.Slice{From: make([]int, 5), To: []int{1, n, w.Height, w.Width, c}}, x)
	}
	return b.apply(name, op.Reshape{Shape: op.Shape{n * w.Height * w.Width, c}}, x)
}
