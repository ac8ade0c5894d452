//go:build gpu && cgo

package net

import (
	"errors"
	"fmt"

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

// attentionPlans are plans for a graph of an attention, of which one is made; nil if cuDNN has none.
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
	if !s.d.attends(o, rows, gradient) || len(s.In) > 2 || len(s.In) > 1 && !gradient {
		return a, nil, lower.Reason("cuDNN has no attention like this")
	}
	a, _ = s.d.attention(o, rows)
	p = append(p, s.d.attentionPlans(a.Forward(s.d.opts.Precision)))
	if gradient {
		p = append(p, s.d.attentionPlans(a.Gradient(s.d.opts.Precision, s.d.opts.Deterministic)))
	}
	return a, p, nil
}
