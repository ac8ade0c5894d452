//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/cuda/dnn"
	"onlinerna/cuda/driver"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// attention describes the attention of rows as a graph of cuDNN has it. It is not ok if cuDNN lacks that: its attention
// has 16 bits.
func (d *Device) attention(o op.SelfAttention, rows op.Shape) (a dnn.Attention, ok bool) {
	c := rows[1] / 3
	a = dnn.Attention{Sequences: rows[0] / o.Tokens, Tokens: o.Tokens, Heads: o.Heads, Width: c / o.Heads,
		Scale: float32(o.Scale)}
	return a, d.narrow() && !d.opts.Formulas && a.Width%8 == 0 && a.Usable()
}

// attends reports whether cuDNN has plans for an attention, and for its gradient if that is asked for.
func (d *Device) attends(o op.SelfAttention, rows op.Shape, gradient bool) bool {
	a, ok := d.attention(o, rows)
	if !ok || d.attentionPlans(a.Forward(d.opts.Precision)) == nil {
		return false
	}
	return !gradient || d.attentionPlans(a.Gradient(d.opts.Precision, d.opts.Deterministic)) != nil
}

// attentionPlans returns the plans for a graph of an attention, made once; nil if cuDNN has none.
func (d *Device) attentionPlans(g *dnn.Graph) *dnn.Plans {
	key := g.String()
	p, ok := d.graphs[key]
	if !ok {
		var err error
		p, err = d.dnn.NewPlans(g, d.planning())
		if errors.Is(err, driver.ErrOutOfMemory) {
			return nil
		}
		if err != nil {
			p = nil
		}
		d.graphs[key] = p
	}
	return p
}

// run adds a graph, whose plan is chosen first.
func (b *binding) run(p *dnn.Plans, work driver.Span, at ...driver.Span) {
	if b.err != nil {
		return
	}
	if err := p.Settle(at, work); err != nil {
		if errors.Is(err, dnn.ErrNoPlan) {
			err = fmt.Errorf("%w; with RNA_CUDA_ATTENTION=never in the environment it runs as products and softmaxes", err)
		}
		b.fail(err)
		return
	}
	b.calls = append(b.calls, func() error { return p.Run(at, work) })
}

// room hands out parts of a workspace.
type room struct {
	bytes int
	at    []int
}

func (r *room) take(bytes int64) (part int) {
	r.at = append(r.at, r.bytes)
	r.bytes += align(int(bytes))
	return len(r.at) - 1
}
func (r *room) span(b *binding, part int, bytes int64) driver.Span {
	return b.work.Span(int64(r.at[part]), bytes)
}

// vectors are the queries, keys and values, or their gradients, in rows.
func vectors(a dnn.Attention, rows driver.Span) (q, k, v driver.Span) {
	part, next := a.Part(3), int64(2*a.Heads*a.Width)
	return rows.Span(0, part), rows.Span(next, part), rows.Span(2*next, part)
}

func (s step) selfAttention(o op.SelfAttention) (*lowering, error) {
	if len(s.In) > 1 {
		return s.windowed(o)
	}
	a, p, err := s.plansOf(o, s.InType(0).Shape, false)
	if err != nil {
		return nil, err
	}
	f, to := p[0], form{narrow: true}
	var r room
	work, stats := r.take(f.Workspace()), r.take(a.RowBytes())
	l := s.result(to, r.bytes, []want{s.want(0, to)}, func(b *binding, in []driver.Span, out driver.Span) {
		q, k, v := vectors(a, in[0])
		b.run(f, r.span(b, work, f.Workspace()), q, k, v, out, r.span(b, stats, a.RowBytes()))
	})
	l.Kernel.wants[0].dnn = true
	return l, nil
}

// selfAttentionGrad computes the result again, which takes less time than to keep it and the sums of its softmax.
func (s step) selfAttentionGrad(o op.SelfAttentionGrad) (*lowering, error) {
	a, p, err := s.plansOf(op.SelfAttention(o), s.InType(0).Shape, true)
	if err != nil {
		return nil, err
	}
	f, g := p[0], p[1]
	to := form{narrow: true, scaled: s.form(1).scaled}
	var r room
	most := max(f.Workspace(), g.Workspace())
	work, result, stats, mean := r.take(most), r.take(a.Part(1)), r.take(a.RowBytes()), r.take(a.RowBytes())
	sum := r.take(2 * a.Part(1))
	wants := []want{s.want(0, form{narrow: true}), s.want(1, to)}
	l := s.result(to, r.bytes, wants, func(b *binding, in []driver.Span, out driver.Span) {
		q, k, v := vectors(a, in[0])
		dq, dk, dv := vectors(a, out)
		y, sums := r.span(b, result, a.Part(1)), r.span(b, stats, a.RowBytes())
		scratch := r.span(b, work, most)
		b.run(f, scratch, q, k, v, y, sums)
		at := []driver.Span{q, k, v, y, in[1], sums, dq, dk, dv, r.span(b, mean, a.RowBytes())}
		if !s.d.opts.Deterministic {
			at = append(at, r.span(b, sum, 2*a.Part(1)))
		}
		b.run(g, scratch, at...)
	})
	for i := range l.Kernel.wants {
		l.Kernel.wants[i].dnn = true
	}
	return l, nil
}

// plansOf are the plans of an attention and, if asked for, of its gradient.
func (s step) plansOf(o op.SelfAttention, rows op.Shape, gradient bool) (a dnn.Attention, p []*dnn.Plans, err error) {
	if !s.d.attends(o, rows, gradient) || len(s.In) > 2 {
		return a, nil, lower.Reason("cuDNN has no attention like this")
	}
	a, _ = s.d.attention(o, rows)
	p = append(p, s.d.attentionPlans(a.Forward(s.d.opts.Precision)))
	if gradient {
		p = append(p, s.d.attentionPlans(a.Gradient(s.d.opts.Precision, s.d.opts.Deterministic)))
	}
	return a, p, nil
}

// Most tokens and elements of a query in attention.cu.
const windowTokens, windowWidth = 52, 32

// windows reports whether attention.cu computes an attention with a bias: among few tokens, in any precision.
func (d *Device) windows(o op.SelfAttention, rows op.Shape) bool {
	return !d.opts.Formulas && o.Tokens <= windowTokens && rows[1]/3/o.Heads <= windowWidth
}

// windowGrid is the grid of attention.cu for matrices of a bias: a block for each part of the heads that share one.
func (d *Device) windowGrid(o op.SelfAttention, rows, bias op.Shape) (grid, block driver.Dim) {
	shared := rows[0] / o.Tokens * o.Heads / bias[0]
	return driver.Dim{X: bias[0], Y: max(1, min(shared, d.blocks()/2/bias[0]))}, driver.Dim{X: 512}
}

// windowArgs are the last arguments of attention.cu's kernels.
func windowArgs(o op.SelfAttention, rows, bias op.Shape, packs bool) []any {
	return []any{uint32(rows[0] / o.Tokens * o.Heads), o.Tokens, o.Heads, rows[1] / 3 / o.Heads, bias[0],
		float32(o.Scale), packs}
}

// windowed is attention with a bias.
func (s step) windowed(o op.SelfAttention) (*lowering, error) {
	rows, bias := s.InType(0).Shape, s.InType(1).Shape
	if !s.d.windows(o, rows) {
		return nil, lower.Reason("attention with a bias takes up to 52 tokens and heads of 32 elements")
	}
	to := form{narrow: s.d.narrow()}
	return s.result(to, 0, []want{s.want(0, to)}, func(b *binding, in []driver.Span, out driver.Span) {
		grid, block := s.d.windowGrid(o, rows, bias)
		b.launch("attention.cu", "nn_attention", grid, block, append([]any{in[0], in[1], out.Written()},
			windowArgs(o, rows, bias, to.packs(rows[1]/3/o.Heads, in[0], out))...)...)
	}), nil
}

// windowGradient takes the gradients of an attention with a bias, of its rows and of the bias, which share one pass.
func (d *Device) windowGradient(f *lower.Flow, first int) []lower.Match[kernel] {
	attention := func(s lower.Step) (o op.SelfAttention, ofBias, ok bool) {
		switch g := s.Op.(type) {
		case op.SelfAttentionGrad:
			return op.SelfAttention(g), false, len(s.In) == 3
		case op.SelfAttentionGradBias:
			return op.SelfAttention(g), true, true
		}
		return o, false, false
	}
	at := step{d, f.Step(first)}
	o, _, ok := attention(at.Step)
	if !ok || !d.windows(o, at.InType(0).Shape) {
		return nil
	}
	g := windowGradient{SelfAttention: o, step: at, input: -1, bias: -1}
	for _, r := range f.ReadersOf(at.In[2]) {
		s := f.Step(r)
		other, ofBias, ok := attention(s)
		to := &g.input
		if ofBias {
			to = &g.bias
		}
		if ok && other == o && slices.Equal(s.In, at.In) && *to < 0 {
			*to = s.Out
			g.outputs = append(g.outputs, step{d, s})
			g.steps = append(g.steps, r)
		}
	}
	if len(g.steps) == 0 || g.steps[0] != first {
		return nil
	}
	return []lower.Match[kernel]{{Steps: g.steps, Lower: func() (*lowering, error) { return g.lower(), nil }}}
}

// A windowGradient is the gradient of an attention with a bias: those of its results that are there, -1 for others.
type windowGradient struct {
	op.SelfAttention
	step
	input, bias int // results
	outputs     []step
	steps       []int
}

func (g windowGradient) lower() *lowering {
	d, rows, bias := g.d, g.InType(0).Shape, g.InType(1).Shape
	plain := form{narrow: d.narrow()}
	to := form{narrow: d.narrow(), scaled: g.form(2).scaled}
	grid, block := d.windowGrid(g.SelfAttention, rows, bias)
	l := &lowering{}
	for _, s := range g.outputs {
		f := to
		if s.Out == g.bias {
			f = form{}
		}
		l.Results = append(l.Results, s.output(f))
	}
	if g.bias >= 0 {
		l.Workspace = 4 * grid.Y * bias.Size()
	}
	bytes := int64(l.Workspace)
	l.Kernel.narrow = d.narrow()
	l.Kernel.wants = []want{g.want(0, plain), g.want(1, form{}), g.want(2, to)}
	l.Kernel.bind = func(b *binding) {
		var dx, partial driver.Span
		if g.input >= 0 {
			dx = b.spans[g.input]
		}
		if g.bias >= 0 {
			partial = b.work.Span(0, bytes)
		}
		x, dy := b.spans[g.In[0]], b.spans[g.In[2]]
		packs := to.packs(rows[1]/3/g.Heads, x, dy, dx)
		b.launch("attention.cu", "nn_attention_grad", grid, block, append([]any{x, b.spans[g.In[1]], dy, dx.Written(),
			partial.Written()}, windowArgs(g.SelfAttention, rows, bias, packs)...)...)
		if g.bias >= 0 {
			b.each("attention.cu", "nn_attention_bias", bias.Size(), partial, grid.Y, b.spans[g.bias].Written(), d.scaleFor(to))
		}
	}
	return l
}
