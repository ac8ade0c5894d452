//go:build gpu && cgo

package net

import (
	"slices"

	"onlinerna/cuda/driver"
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

var _ device.Composer = (*Device)(nil)

// Threads of a block of rows.cu, and elements of a row that one of them holds, in the gradient of rows without packs
// fewer.
const rowThreads, rowHeld, rowFew = 256, 8, 4

// Whole implements device.Composer: layer normalisations and softmaxes of rows that lie together run as one kernel,
// and so does attention with a bias in windows; other attention runs as a graph of cuDNN. Pixels that become rows, or
// rows that become pixels, stay where they are.
func (d *Device) Whole(c op.Composite, in []op.Type) bool {
	s := in[0].Shape
	switch c.(type) {
	case op.Tokens, op.Planes:
		return true
	}
	if len(s) == 4 { // stored channels-last
		return false
	}
	switch o := c.(type) {
	case op.SelfAttention:
		return len(in) == 1 && d.attends(o, s, false) || len(in) == 2 && d.windows(o, s)
	case op.SelfAttentionGrad:
		return len(in) == 2 && d.attends(op.SelfAttention(o), s, true) || len(in) == 3 && d.windows(op.SelfAttention(o), s)
	case op.SelfAttentionGradBias:
		return d.windows(op.SelfAttention(o), s)
	case op.LayerNorm:
		return s[len(s)-1] <= rowThreads*rowHeld
	case op.LayerNormGradInput, op.LayerNormGradScale:
		return s[len(s)-1] <= rowThreads*d.gradientHeld(s[len(s)-1])
	case op.Softmax, op.SoftmaxGrad:
		return true
	}
	return false
}

// rowsOf are the rows of a value along its last dimension.
func rowsOf(s op.Shape) (rows, width int) {
	width = s[len(s)-1]
	return s.Size() / max(width, 1), width
}

// rowGrid is a grid for rows, of at most so many blocks.
func rowGrid(rows, width, held, most int) (grid, block driver.Dim) {
	block = driver.Dim{X: 1, Y: rowThreads}
	for block.X < rowThreads && block.X*held < width {
		block = driver.Dim{X: block.X * 2, Y: block.Y / 2}
	}
	return driver.Dim{X: max(1, min((rows+block.Y-1)/block.Y, most))}, block
}

// gradientHeld are the elements of a row of this width that a thread of the gradient holds.
func (d *Device) gradientHeld(width int) int {
	if (form{narrow: d.narrow()}).packs(width) {
		return rowHeld
	}
	return rowFew
}

// either is the rows x as 16 bits, or as float32 where they are stored so.
func (f form) either(narrow bool, x driver.Span) (a, b driver.Span) {
	if f.narrow || !narrow {
		return x, driver.Span{}
	}
	return driver.Span{}, x
}

// packs reports whether rows at these places can be accessed by 16 bytes.
func (f form) packs(width int, at ...driver.Span) bool {
	return width%(16/f.bytes(op.T(op.Float32, 1))) == 0 && packed(at...)
}

// rows are the forms of the result of a step in the precision, and of an operand that it reads, in 16 bits or float32.
func (s step) rows(operand int) (to, from form) {
	from = s.form(operand)
	from.last = false
	return form{narrow: s.d.narrow(), scaled: from.scaled}, from
}

func (s step) layerNorm(o op.LayerNorm) (*lowering, error) {
	rows, width := rowsOf(s.InType(0).Shape)
	to, from := s.rows(0)
	l := s.result(to, 0, []want{s.want(0, from)}, func(b *binding, in []driver.Span, out driver.Span) {
		grid, block := rowGrid(rows, width, rowHeld, s.d.blocks())
		x, wide := from.either(to.narrow, in[0])
		b.launch("rows.cu", "nn_layer_norm", grid, block, x, wide, in[1], in[2], out.Written(), int64(rows), width, o.Eps,
			to.packs(width, in[0], out))
	})
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}

func (s step) softmax(op.Softmax) (*lowering, error) {
	rows, width := rowsOf(s.InType(0).Shape)
	to, from := s.rows(0)
	l := s.result(to, 0, []want{s.want(0, from)}, func(b *binding, in []driver.Span, out driver.Span) {
		grid, block := rowGrid(rows, width, rowHeld, s.d.blocks())
		x, wide := from.either(to.narrow, in[0])
		b.launch("rows.cu", "nn_softmax", grid, block, x, wide, out.Written(), int64(rows), width,
			to.packs(width, in[0], out))
	})
	l.Results[0].Over = []int{s.In[0]}
	return l, nil
}

func (s step) softmaxGrad(op.SoftmaxGrad) (*lowering, error) {
	rows, width := rowsOf(s.InType(0).Shape)
	to, from := s.rows(1)
	l := s.result(to, 0, []want{s.want(0, form{narrow: to.narrow}), s.want(1, from)},
		func(b *binding, in []driver.Span, out driver.Span) {
			grid, block := rowGrid(rows, width, rowHeld, s.d.blocks())
			dy, wide := from.either(to.narrow, in[1])
			b.launch("rows.cu", "nn_softmax_grad", grid, block, in[0], dy, wide, out.Written(), int64(rows), width,
				to.packs(width, in[0], in[1], out))
		})
	l.Results[0].Over = []int{s.In[0], s.In[1]}
	return l, nil
}

// rowGradient is the gradient of a layer normalisation of x: those of its steps that are there. Absent values are -1.
type rowGradient struct {
	x, dy, factors          int // factors are the scale
	input, scale, bias      int // results
	eps                     float64
	steps                   []int
	inputStep, scaleStep, b step
}

// layerNormGradient takes LayerNormGradInput, LayerNormGradScale and the sum of the same gradient, which share one pass.
func (d *Device) layerNormGradient(f *lower.Flow, first int) []lower.Match[kernel] {
	g := rowGradient{x: -1, factors: -1, input: -1, scale: -1, bias: -1}
	switch s := f.Step(first); o := s.Op.(type) {
	case op.LayerNormGradInput:
		g.x, g.dy, g.eps = s.In[0], s.In[2], o.Eps
	case op.LayerNormGradScale:
		g.x, g.dy, g.eps = s.In[0], s.In[1], o.Eps
	case op.ChannelSum: // its other readers tell the normalisation
		g.dy = s.In[0]
		for _, r := range f.ReadersOf(g.dy) {
			if s := f.Step(r); g.x < 0 && lower.Is[op.LayerNormGradInput](s) && s.In[2] == g.dy {
				g.x, g.eps = s.In[0], s.Op.(op.LayerNormGradInput).Eps
			}
		}
	}
	if g.x < 0 {
		return nil
	}
	for _, r := range f.ReadersOf(g.dy) {
		s := step{d, f.Step(r)}
		switch o := s.Op.(type) {
		case op.LayerNormGradInput:
			if g.input < 0 && o.Eps == g.eps && s.In[0] == g.x && s.In[2] == g.dy {
				g.input, g.factors, g.inputStep = s.Out, s.In[1], s
				g.steps = append(g.steps, r)
			}
		case op.LayerNormGradScale:
			if g.scale < 0 && o.Eps == g.eps && s.In[0] == g.x && s.In[1] == g.dy {
				g.scale, g.scaleStep = s.Out, s
				g.steps = append(g.steps, r)
			}
		case op.ChannelSum:
			if g.bias < 0 && len(s.InType(0).Shape) == 2 {
				g.bias, g.b = s.Out, s
				g.steps = append(g.steps, r)
			}
		}
	}
	slices.Sort(g.steps)
	g.steps = slices.Compact(g.steps)
	if len(g.steps) == 0 || g.steps[0] != first || g.input < 0 && g.scale < 0 {
		return nil
	}
	return []lower.Match[kernel]{{Steps: g.steps, Lower: func() (*lowering, error) { return g.lower(), nil }}}
}

func (g rowGradient) lower() *lowering {
	s := g.inputStep
	if g.input < 0 {
		s = g.scaleStep
	}
	d := s.d
	rows, width := rowsOf(s.InType(0).Shape)
	x, dy := form{narrow: s.formOf(g.x).narrow}, s.formOf(g.dy)
	dy.last = false
	to := form{narrow: d.narrow(), scaled: dy.scaled}
	l := &lowering{}
	if g.input >= 0 {
		l.Results = append(l.Results, g.inputStep.output(to))
		l.Kernel.wants = append(l.Kernel.wants, want{value: g.factors})
	}
	if g.scale >= 0 {
		l.Results = append(l.Results, g.scaleStep.output(form{}))
	}
	if g.bias >= 0 {
		l.Results = append(l.Results, g.b.output(form{}))
	}
	sums := g.scale >= 0 || g.bias >= 0
	held := d.gradientHeld(width)
	grid, block := rowGrid(rows, width, held, d.blocks())
	if sums {
		const least = 8 // rows of a thread, at least
		grid, block = rowGrid((rows+least-1)/least, width, held, max(1, d.blocks()/2))
		l.Workspace = 2 * 4 * grid.X * width
	}
	bytes := int64(l.Workspace)
	l.Kernel.narrow = to.narrow
	// The kernel needs packs wherever the width allows them.
	l.Kernel.wants = append(l.Kernel.wants, want{value: g.x, form: x, dnn: true}, want{value: g.dy, form: dy, dnn: true})
	l.Kernel.bind = func(b *binding) {
		at := func(v int) (s driver.Span) {
			if v >= 0 {
				s = b.spans[v]
			}
			return s
		}
		var partial driver.Span
		if sums {
			partial = b.work.Span(0, bytes)
		}
		x16, x32 := x.either(to.narrow, at(g.x))
		dy16, dy32 := dy.either(to.narrow, at(g.dy))
		b.launch("rows.cu", "nn_layer_norm_grad", grid, block, x16, x32, at(g.factors), dy16, dy32, at(g.input).Written(),
			partial.Written(), int64(rows), width, g.eps, to.packs(width))
		if sums {
			b.launch("rows.cu", "nn_layer_norm_sums", driver.Dim{X: (2*width + 31) / 32}, driver.Dim{X: 32, Y: 8}, partial,
				grid.X, width, at(g.scale).Written(), at(g.bias).Written(), d.scaleFor(to))
		}
	}
	return l
}
