// Package mapping has expressions, sums over the axes of repeated operands, and reductions.
//
// An expression becomes calls of the kernels of package vec on blocks of elements that stay in the first level cache:
// arithmetic in float32, exp, tanh and sigmoid within 2.5 ulp, erf within 5.3. Results are therefore the same at every
// level of instructions and for any number of workers. An expression of another expression's result is computed
// together with it.
package mapping

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Patterns returns the patterns of this package's ops for the given number of workers.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		func(f *lower.Flow, first int) []work.Match { return maps(f, first, workers) },
		lower.Alone(sumTo), lower.Alone(reduce),
	}
}

// maps matches consecutive elementwise ops, at least one of which is an expression.
func maps(f *lower.Flow, first, workers int) []work.Match {
	var list []work.Match
	for _, m := range lower.MapsFrom(f, first) {
		c := Chain{Maps: m, Last: f.Step(m.Steps[len(m.Steps)-1]), made: -1}
		if c.hides(f) {
			continue
		}
		list = append(list, c.summed(f, workers)...)
		list = append(list, work.Match{Steps: m.Steps, Lower: func() (*work.Lowering, error) { return c.lower(workers) }})
	}
	return list
}

// Chain is a sequence of elementwise ops as one expression.
type Chain struct {
	lower.Maps
	Last  work.Step
	made  int         // the operand that another kernel makes, in the layout of activations, or -1
	nodes []expr.Node // computed in place of Map's, or nil
}

// After lists the chains behind step i that begin with reader, an expression that reads the result of step i, the
// longest first. Their steps begin with i.
func After(f *lower.Flow, i, reader int) []Chain {
	if !lower.Is[op.Map](f.Step(reader)) {
		return nil
	}
	var list []Chain
	for m, ok := lower.After(f, i).Then(f, reader); ok; m, ok = m.Next(f) {
		c := Chain{Maps: m, Last: f.Step(m.Steps[len(m.Steps)-1]), made: slices.Index(m.In, f.Step(i).Out)}
		if !c.hides(f) {
			list = slices.Insert(list, 0, c)
		}
	}
	return list
}

// Around lists the chains that begin at an earlier operand of reader, the longest first, and then those of After.
func Around(f *lower.Flow, i, reader int) []Chain {
	after := After(f, i, reader)
	if len(after) == 0 {
		return nil
	}
	var list []Chain
	for _, head := range Heads(f, i, reader) {
		for _, m := range lower.MapsFrom(f, head) {
			c := Chain{Maps: m, Last: f.Step(m.Steps[len(m.Steps)-1]), made: slices.Index(m.In, f.Step(i).Out)}
			c.Steps = append([]int{i}, m.Steps...)
			if head != reader && c.made >= 0 && !c.hides(f) {
				list = append(list, c)
			}
		}
	}
	return append(list, after...)
}

// Heads follows the operands of step reader back through elementwise ops with one reader each, up to step i. The
// farthest step comes first, reader last.
func Heads(f *lower.Flow, i, reader int) []int {
	list := []int{reader}
	for {
		s := f.Step(list[0])
		v := slices.IndexFunc(s.In, func(v int) bool {
			m := f.Maker(v)
			if m <= i || f.Sole(m) != list[0] || !s.Values[v].Type.Shape.Equal(s.OutType().Shape) {
				return false
			}
			_, ok := f.Step(m).Op.(op.Elementwise)
			return ok
		})
		if v < 0 {
			return list
		}
		list = slices.Insert(list, 0, f.Maker(s.In[v]))
	}
}

// hides reports whether fewer parts of the chain than of its ops one by one have kernels of their own, which would give
// a result other bits: a constant may become part of another one.
func (c *Chain) hides(f *lower.Flow) bool {
	if len(c.Steps) == 1 {
		return false
	}
	n := 0
	for _, i := range c.Steps {
		if m, ok := f.Step(i).Op.(op.Map); ok {
			n += countFused(m.Expr.Nodes())
		}
	}
	return countFused(c.Map.Expr.Nodes()) < n
}

// Alone reports whether the chain reads nothing but another kernel's result.
func (c *Chain) Alone() bool { return len(c.In) == 1 }

// Elementwise reports whether each element depends on the same elements of numbers of the result's shape.
func (c *Chain) Elementwise() bool {
	return !slices.ContainsFunc(c.In, func(v int) bool {
		x := c.Last.Values[v].Type
		return !x.DType.Float() || !x.Shape.Equal(c.Last.OutType().Shape)
	})
}

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

// Plan reserves scratch for blocks of the given size, for each worker, in r.
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
	nodes := c.nodes
	if nodes == nil {
		nodes = c.Map.Expr.Nodes()
	}
	nodes, axes, parts := hoist(nodes, axes, o, samples)
	p.code, p.early = newCode(nodes, o, axes), parts
	p.code.made = c.made
	p.scratch = p.code.Scratch(r, workers, block)
	for i := range p.early {
		e := &p.early[i]
		e.result, e.scratch = r.Floats(e.size), e.code.Scratch(r, workers, Block)
	}
	return p, nil
}

// Over is the plan of a chain that is Alone or Elementwise and overwrites the operand that another kernel makes, in
// blocks that may begin anywhere.
func (c Chain) Over(r *work.Room, workers int) *Plan {
	code := newCode(c.Map.Expr.Nodes(), order{1, 1, true}, slices.Repeat([]op.Axes{op.All}, len(c.In)))
	code.made = c.made
	return &Plan{Chain: c, code: code, scratch: code.Scratch(r, workers, Block), block: Block}
}

// inPieces reports whether operand i is read a block at a time.
func (p *Plan) inPieces(i int) bool { return p.code.axes[i] == op.All && i != p.made }

// Take makes k take the operands that are read a block at a time.
func (p *Plan) Take(k *work.Kernel) {
	for i, v := range p.In {
		if p.inPieces(i) {
			k.Take(p.block, v)
		}
	}
}

// Bind binds p to its operands and returns the phases that come before it.
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

// fits returns an error for operands whose layout does not fit a result in the given layout.
func (c Chain) fits(layout device.Layout, axes []op.Axes) error {
	y := c.Last.OutType()
	flat := layout != work.Layout(y, device.Data) // weights: only the place of an element matters
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

// isLine reports whether at most one extent of a shape exceeds 1: then all layouts have the same order.
func isLine(s op.Shape) bool {
	long := 0
	for _, d := range s {
		if d > 1 {
			long++
		}
	}
	return long <= 1
}
