package nn

import (
	"fmt"
	"slices"

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

// mostTokens is the most tokens of a window: all their scores are kept.
const mostTokens = 1 << 14

// check is the error of windows that are none.
func (w Windows) check() error {
	least, most := min(w.Height, w.Width, w.Rows, w.Columns), max(w.Height, w.Width, w.Rows, w.Columns)
	switch {
	case least < 1 || most > 1<<20:
		return fmt.Errorf("%+v: height, width, rows and columns must be 1 to %d", w, 1<<20)
	case w.Rows*w.Columns > mostTokens:
		return fmt.Errorf("%+v: a window must have at most %d tokens", w, mostTokens)
	case w.Down < 0 || w.Right < 0 || w.Down >= w.Height || w.Right >= w.Width:
		return fmt.Errorf("%+v: shifts must be at least 0 and below the height and the width", w)
	}
	return nil
}

// padded is the extent of images that windows fill.
func (w Windows) padded() (height, width int) {
	return (w.Height + w.Rows - 1) / w.Rows * w.Rows, (w.Width + w.Columns - 1) / w.Columns * w.Columns
}

// Count is the number of an image's windows. Like Mask and Offsets it panics unless extents are at least 1, windows have
// at most 16,384 tokens, and shifts are smaller than images.
func (w Windows) Count() int {
	w.must()
	height, width := w.padded()
	return height / w.Rows * (width / w.Columns)
}

// Mask is a bias of attention [Count·heads,T,T] for windows of T tokens: −100 for pairs of tokens that only a shift
// brings into one window, else 0.
func (w Windows) Mask(heads int) op.Tensor {
	w.must()
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
		if !slices.ContainsFunc(part, func(p wrapped) bool { return p != part[0] }) {
			continue
		}
		of := bias[k*heads*t*t:][:heads*t*t]
		for i, to := range part {
			for j, from := range part {
				if from != to {
					of[i*t+j] = -100
				}
			}
		}
		for h := 1; h < heads; h++ {
			copy(of[h*t*t:], of[:t*t])
		}
	}
	return x
}

// Offsets numbers the offsets between the T tokens of a window, from 0 to (2·Rows−1)·(2·Columns−1)−1, as int32 [T·T] of
// all pairs. A table of relative positions has a row for each offset.
func (w Windows) Offsets() op.Tensor {
	w.must()
	t := w.Rows * w.Columns
	index := make([]int32, t*t)
	for i := range index {
		from, to := i/t, i%t
		down, right := from/w.Columns-to/w.Columns, from%w.Columns-to%w.Columns
		index[i] = int32((down+w.Rows-1)*(2*w.Columns-1) + right + w.Columns - 1)
	}
	return op.Tensor{Shape: op.Shape{t * t}, Data: index}
}

// must panics if windows are none.
func (w Windows) must() {
	if err := w.check(); err != nil {
		panic(fmt.Sprintf("nn.Windows%v", err))
	}
}

// images counts the images in rows x, by the tokens of each.
func (b *Builder) images(name string, x *G.Node, w Windows, tokens func() int) (n, channels int, ok bool) {
	s, ok := b.shape(name, x, 2)
	if !ok || !b.claim(name) {
		return 0, 0, false
	}
	if err := w.check(); err != nil {
		b.Fail(fmt.Errorf("layer %s: windows %w", name, err))
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
