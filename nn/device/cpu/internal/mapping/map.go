// Package mapping computes expressions, and sums up what they make of operands that are repeated.
//
// An expression becomes calls of the kernels of package vec on blocks of elements that stay in the first level cache:
// arithmetic in float32, functions within 0.54 ulp. So results are the same at every level of instructions and
// for any number of workers. An expression of what another one makes is computed together with it.
package mapping

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// Patterns are those of the ops of this package, for so many workers.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		func(f *lower.Flow, first int) []work.Match { return maps(f, first, workers) },
		lower.Alone(sumTo), lower.Alone(reduce),
	}
}

// maps takes elementwise ops after each other, one of which is an expression.
func maps(f *lower.Flow, first, workers int) []work.Match {
	var list []work.Match
	for _, m := range lower.MapsFrom(f, first) {
		c := Chain{m, f.Step(m.Steps[len(m.Steps)-1]), -1}
		list = append(list, work.Match{Steps: m.Steps, Lower: func() (*work.Lowering, error) { return c.lower(workers) }})
	}
	return list
}

// Chain is elementwise ops after each other as one expression.
type Chain struct {
	lower.Maps
	Last work.Step
	made int // the operand that another kernel makes, in the layout of activations, or -1
}

// After lists the chains behind step i that begin with an expression, reader, which is one of those that read its result, the
// longest first. Their steps begin with i.
func After(f *lower.Flow, i, reader int) []Chain {
	if !lower.Is[op.Map](f.Step(reader)) {
		return nil
	}
	var list []Chain
	for m, ok := lower.After(f, i).Then(f, reader); ok; m, ok = m.Next(f) {
		made := slices.Index(m.In, f.Step(i).Out)
		list = slices.Insert(list, 0, Chain{m, f.Step(m.Steps[len(m.Steps)-1]), made})
	}
	return list
}

// Alone says whether nothing is read but what another kernel makes.
func (c *Chain) Alone() bool { return len(c.In) == 1 }

// lower lowers the expression into the result of the last step.
func (c Chain) lower(workers int) (*work.Lowering, error) {
	var r work.Room
	p, err := c.Plan(&r, workers, Block)
	if err != nil {
		return nil, err
	}
	l := work.Result(c.Last, p.layout, func(st *work.Storage) []work.Phase {
		dst, size := st.Pieces(c.Last.Out), c.Last.OutType().Shape.Size()
		b, before := p.Bind(st)
		if st.Err != nil {
			return nil
		}
		return append(before, work.Phase{Blocks: work.Ceil(size, work.ElementBlock), Run: func(worker, block int) {
			lo := block * work.ElementBlock
			b.RunAll(worker, dst, lo, min(lo+work.ElementBlock, size))
		}})
	})
	l.Kernel.Take(Block, c.Last.Out)
	p.Take(&l.Kernel)
	l.Results[0].Over = p.Over
	l.Workspace = r.Bytes
	return l, nil
}

// Plan is a chain with its scratch.
type Plan struct {
	Chain
	Over    []int // operands whose storage the result may take
	code    *Code
	early   []early
	layout  device.Layout
	scratch []work.Part
	block   int
}

// Plan takes what so many workers need for blocks of a size from r.
func (c Chain) Plan(r *work.Room, workers, block int) (*Plan, error) {
	y := c.Last.OutType()
	axes := make([]op.Axes, len(c.In))
	p := &Plan{Chain: c, layout: work.RowMajor, block: block}
	whole := c.made >= 0
	if whole {
		p.layout = work.Layout(y, device.Data)
	}
	for i, v := range c.In {
		x := c.Last.Values[v]
		if !x.Type.DType.Float() {
			continue
		}
		if axes[i], _ = op.Along(x.Type.Shape, y.Shape); axes[i] != op.All || i == c.made {
			continue
		}
		p.Over = append(p.Over, v)
		if x.Type.Shape.Equal(y.Shape) && !whole {
			p.layout, whole = work.Order(x), true
		}
	}
	if err := c.fits(p.layout, axes); err != nil {
		return nil, err
	}
	o := orderOf(y.Shape, p.layout)
	samples, _, _ := y.Shape.Extents()
	nodes, axes, parts := hoist(c.Map.Expr.Nodes(), axes, o, samples)
	p.code, p.early = newCode(nodes, o, axes), parts
	p.code.made = c.made
	p.scratch = p.code.Scratch(r, workers, block)
	for i := range p.early {
		e := &p.early[i]
		e.result, e.scratch = r.Floats(e.size), e.code.Scratch(r, workers, Block)
	}
	return p, nil
}

// Over is the plan of a chain that is Alone and overwrites what it is of, in blocks of any place.
func (c Chain) Over(r *work.Room, workers int) *Plan {
	code := newCode(c.Map.Expr.Nodes(), order{1, 1, true}, []op.Axes{op.All})
	code.made = c.made
	return &Plan{Chain: c, code: code, scratch: code.Scratch(r, workers, Block), block: Block}
}

// inPieces says whether operand i is read a block at a time.
func (p *Plan) inPieces(i int) bool { return p.code.axes[i] == op.All && i != p.made }

// Take has k take what is read a block at a time.
func (p *Plan) Take(k *work.Kernel) {
	for i, v := range p.In {
		if p.inPieces(i) {
			k.Take(p.block, v)
		}
	}
}

// Bind is p on its operands, and the phases that come before.
func (p *Plan) Bind(st *work.Storage) (b *Bound, before []work.Phase) {
	numbers, counters := make([]*work.Pieces, len(p.In)), make([][]int32, len(p.In))
	for i, v := range p.In {
		switch {
		case p.inPieces(i):
			numbers[i] = st.Pieces(v)
		case i == p.made:
		case p.Last.Values[v].Type.DType.Float():
			numbers[i] = work.Whole(st.Floats(v))
		default:
			counters[i] = work.Value[int32](st, v)
		}
	}
	if st.Err != nil {
		return nil, nil
	}
	for i := range p.early {
		e := &p.early[i]
		x := st.Scratch(e.result)
		before = append(before, e.phase(st, x, numbers, counters))
		numbers = append(numbers, work.Whole(x))
	}
	return p.code.Bind(vec.For(st.Level), st.Scratches(p.scratch), p.block, numbers, counters), before
}

// fits says which operands lie otherwise than it takes for a result in a layout.
func (c Chain) fits(layout device.Layout, axes []op.Axes) error {
	y := c.Last.OutType()
	flat := layout != work.Layout(y, device.Data) // of weights: nothing but the place counts
	for i, v := range c.In {
		x := c.Last.Values[v]
		counter := !x.Type.DType.Float()
		switch {
		case i == c.made:
		case flat && (counter || axes[i] != op.All && axes[i] != 0):
			return lower.Reason(fmt.Sprintf("operands of layout %q take none that are repeated", layout))
		case axes[i] == op.All && x.Type.Shape.Equal(y.Shape) && work.Order(x) != layout,
			!isLine(x.Type.Shape) && work.Order(x) != layout && work.Order(x) != work.Layout(x.Type, device.Data):
			return lower.Reason("operands have different layouts")
		}
	}
	return nil
}

// isLine says whether a shape has one extent at most that counts: its elements lie in the same order in all layouts.
func isLine(s op.Shape) bool {
	long := 0
	for _, d := range s {
		if d > 1 {
			long++
		}
	}
	return long <= 1
}
