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
	c := chain{expr: o.Expr, values: s.In, last: s}
	steps := []int{first}
	list := []work.Match{c.match(steps, workers)}
	for {
		next, ok := lower.Next[op.Map](f, steps[len(steps)-1])
		if !ok || !c.append(f.Step(next)) {
			return list
		}
		steps = append(slices.Clone(steps), next)
		list = slices.Insert(list, 0, c.match(steps, workers))
	}
}

// chain is one expression of several steps.
type chain struct {
	expr   expr.Expr
	values []int // operands
	last   work.Step
}

// append makes c that of step s too, which reads its result once. Where that is repeated, it does not.
func (c *chain) append(s work.Step) bool {
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

func (c chain) match(steps []int, workers int) work.Match {
	return work.Match{Steps: steps, Lower: func() (*work.Lowering, error) { return c.lower(workers) }}
}

// lower lowers the expression into the result of the last step.
func (c chain) lower(workers int) (*work.Lowering, error) {
	shape := c.last.OutType().Shape
	axes := make([]op.Axes, len(c.values))
	layout, whole := work.RowMajor, false
	var over []int
	for i, v := range c.values {
		x := c.last.Values[v]
		if !x.Type.DType.Float() {
			continue
		}
		axes[i], _ = op.Along(x.Type.Shape, shape)
		if axes[i] == op.All {
			over = append(over, v)
			if x.Type.Shape.Equal(shape) && !whole {
				layout, whole = x.Layout, true
			}
		}
	}
	if err := c.fits(layout, axes); err != nil {
		return nil, err
	}
	var r work.Room
	code := newCode(c.expr, orderOf(shape, layout), axes)
	scratch := code.Scratch(&r, workers, Block)
	l := work.Result(c.last, layout, func(st *work.Storage) []work.Phase {
		dst := st.Floats(c.last.Out)
		numbers, counters := make([][]float32, len(c.values)), make([][]int32, len(c.values))
		for i, v := range c.values {
			if c.last.Values[v].Type.DType.Float() {
				numbers[i] = st.Floats(v)
			} else {
				counters[i] = work.Value[int32](st, v)
			}
		}
		buffers := st.Scratches(scratch)
		if st.Err != nil {
			return nil
		}
		b := code.Bind(buffers, Block, numbers, counters)
		return []work.Phase{{Blocks: work.Ceil(len(dst), work.ElementBlock), Run: func(worker, block int) {
			end := min((block+1)*work.ElementBlock, len(dst))
			for lo := block * work.ElementBlock; lo < end; lo += Block {
				b.Run(worker, dst[lo:min(lo+Block, end)], lo)
			}
		}}}
	})
	l.Results[0].Over = over
	l.Workspace = r.Bytes
	return l, nil
}

// fits says which operands lie otherwise than it takes for a result in a layout.
func (c chain) fits(layout device.Layout, axes []op.Axes) error {
	y := c.last.OutType()
	flat := layout != work.Layout(y, device.Data) // of weights: nothing but the place counts
	for i, v := range c.values {
		x := c.last.Values[v]
		counter := !x.Type.DType.Float()
		switch {
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
