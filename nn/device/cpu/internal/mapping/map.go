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
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Patterns are those of the ops of this package, for so many workers.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		func(f *lower.Flow, first int) []work.Match { return maps(f, first, workers) },
		lower.Alone(sumTo),
	}
}

// maps takes an expression and those of its result that follow, as long as nobody else reads what is in between.
func maps(f *lower.Flow, first, workers int) []work.Match {
	s := f.Step(first)
	o, ok := s.Op.(op.Map)
	if !ok {
		return nil
	}
	c := Chain{expr: o.Expr, values: s.In, last: s}
	steps := []int{first}
	list := []work.Match{c.match(steps, workers)}
	for {
		next, ok := lower.Next[op.Map](f, steps[len(steps)-1])
		if !ok || !c.Append(f.Step(next)) {
			return list
		}
		steps = append(slices.Clone(steps), next)
		list = slices.Insert(list, 0, c.match(steps, workers))
	}
}

// Chain is steps of expressions, each of the one before, as one expression.
type Chain struct {
	expr   expr.Expr
	values []int // operands
	last   work.Step
	made   bool // the first operand is made by another kernel, in the layout of activations
}

// After is a chain of what a step makes.
func After(s work.Step) Chain { return Chain{expr.Arg(0), []int{s.Out}, s, true} }

// Alone says whether no other operand than the first is read.
func (c *Chain) Alone() bool { return len(c.values) == 1 }

// Reads says whether c reads a value that it does not make.
func (c *Chain) Reads(v int) bool { return slices.Contains(c.values, v) }

// Last is the last step.
func (c *Chain) Last() work.Step { return c.last }

// Append makes c that of step s too, an expression that reads its result once. It does not if the result is repeated there.
func (c *Chain) Append(s work.Step) bool {
	o := s.Op.(op.Map)
	at := slices.Index(s.In, c.last.Out)
	if numbers, counter := o.Expr.Reads(at); !numbers || counter || !s.InType(at).Shape.Equal(s.OutType().Shape) {
		return false
	}
	values := slices.Clone(c.values)
	e := o.Expr.Substitute(func(i int) expr.Expr {
		if i == at {
			return c.expr
		}
		k := slices.Index(values, s.In[i])
		if k < 0 {
			k = len(values)
			values = append(values, s.In[i])
		}
		return expr.Arg(k)
	})
	c.expr, c.values, c.last = e, values, s
	return true
}

func (c Chain) match(steps []int, workers int) work.Match {
	return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) { return c.lower(workers) }}
}

// lower lowers the expression into the result of the last step.
func (c Chain) lower(workers int) (*work.Lowering, error) {
	var r work.Room
	p, err := c.Plan(&r, workers, Block)
	if err != nil {
		return nil, err
	}
	l := work.Result(c.last, p.layout, func(st *work.Storage) []work.Phase {
		dst := st.Floats(c.last.Out)
		b, before := p.Bind(st)
		if st.Err != nil {
			return nil
		}
		return append(before, work.Phase{Blocks: work.Ceil(len(dst), work.ElementBlock), Run: func(worker, block int) {
			lo := block * work.ElementBlock
			b.RunAll(worker, dst[lo:min(lo+work.ElementBlock, len(dst))], lo)
		}})
	})
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
	y := c.last.OutType()
	axes := make([]op.Axes, len(c.values))
	p := &Plan{Chain: c, layout: work.RowMajor, block: block}
	whole := c.made
	if c.made {
		p.layout = work.Layout(y, device.Data)
	}
	for i, v := range c.values {
		x := c.last.Values[v]
		if !x.Type.DType.Float() {
			continue
		}
		if axes[i], _ = op.Along(x.Type.Shape, y.Shape); axes[i] != op.All || c.made && i == 0 {
			continue
		}
		p.Over = append(p.Over, v)
		if x.Type.Shape.Equal(y.Shape) && !whole {
			p.layout, whole = x.Layout, true
		}
	}
	if err := c.fits(p.layout, axes); err != nil {
		return nil, err
	}
	o := orderOf(y.Shape, p.layout)
	samples, _, _ := y.Shape.Extents()
	nodes, axes, parts := hoist(c.expr.Nodes(), axes, o, samples)
	p.code, p.early = newCode(nodes, o, axes), parts
	p.scratch = p.code.Scratch(r, workers, block)
	for i := range p.early {
		e := &p.early[i]
		e.result, e.scratch = r.Floats(e.size), e.code.Scratch(r, workers, Block)
	}
	return p, nil
}

// Over is the plan of a chain that is Alone and overwrites what it is of, in blocks of any place.
func (c Chain) Over(r *work.Room, workers int) *Plan {
	code := newCode(c.expr.Nodes(), order{1, 1, true}, []op.Axes{op.All})
	return &Plan{Chain: c, code: code, scratch: code.Scratch(r, workers, Block), block: Block}
}

// Bind is p on its operands, and the phases that come before.
func (p *Plan) Bind(st *work.Storage) (b *Bound, before []work.Phase) {
	numbers, counters := make([][]float32, len(p.values)), make([][]int32, len(p.values))
	for i, v := range p.values {
		if p.last.Values[v].Type.DType.Float() {
			numbers[i] = st.Floats(v)
		} else {
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
		numbers = append(numbers, x)
	}
	return p.code.Bind(st.Scratches(p.scratch), p.block, numbers, counters), before
}

// fits says which operands lie otherwise than it takes for a result in a layout.
func (c Chain) fits(layout device.Layout, axes []op.Axes) error {
	y := c.last.OutType()
	flat := layout != work.Layout(y, device.Data) // of weights: nothing but the place counts
	for i, v := range c.values {
		x := c.last.Values[v]
		counter := !x.Type.DType.Float()
		switch {
		case c.made && i == 0:
		case flat && (counter || axes[i] != op.All && axes[i] != 0):
			return lower.Reason(fmt.Sprintf("operands of layout %q take none that are repeated", layout))
		case axes[i] == op.All && x.Type.Shape.Equal(y.Shape) && x.Layout != layout,
			!isLine(x.Type.Shape) && x.Layout != layout && x.Layout != work.Layout(x.Type, device.Data):
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
