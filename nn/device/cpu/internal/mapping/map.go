// Package mapping evaluates expressions, and sums up what they make of operands that are repeated.
package mapping

import (
	"fmt"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// order is how the elements of a result lie: which is the one at a place in memory.
type order struct {
	channels, pixels int
	last             bool // channels lie behind pixels
}

func orderOf(s op.Shape, l device.Layout) order {
	_, channels, pixels := s.Extents()
	return order{channels, pixels, l == work.NHWC}
}

// at is the sample, channel and pixel of the element at place i.
func (o order) at(i int) (n, c, p int) {
	n, i = i/(o.channels*o.pixels), i%(o.channels*o.pixels)
	if o.last {
		return n, i % o.channels, i / o.channels
	}
	return n, i / o.pixels, i % o.pixels
}

// place is where an operand that varies along a has the number for an element.
func (o order) place(a op.Axes, n, c, p int) int {
	if o.last && a&op.Channels != 0 && a&op.Pixels != 0 { // channels lie behind pixels
		return (a&op.Samples).Index(n, 0, 0, 0, 0)*o.channels*o.pixels + p*o.channels + c
	}
	return a.Index(n, c, p, o.channels, o.pixels)
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

// Patterns are those of the ops of this package, for so many workers.
func Patterns(workers int) []work.Pattern {
	return []work.Pattern{
		lower.Alone(func(s work.Step, o op.Map) (*work.Lowering, error) { return lowerMap(s, o, workers) }),
		lower.Alone(lowerSumTo),
	}
}

// lowerMap evaluates expressions in float64, block by block.
func lowerMap(s work.Step, o op.Map, workers int) (*work.Lowering, error) {
	types := make([]op.Type, len(s.In))
	for i := range types {
		types[i] = s.InType(i)
	}
	axes := o.Axes(types...)
	layout, whole := work.RowMajor, false
	for i, a := range axes {
		if a == op.All && types[i].Shape.Equal(s.OutType().Shape) && !whole {
			layout, whole = s.InValue(i).Layout, true
		}
	}
	flat := layout != work.Layout(s.OutType(), device.Data) // of weights: nothing but the place counts
	var over []int
	for i, a := range axes {
		v := s.InValue(i)
		_, counter := o.Expr.Reads(i)
		switch {
		case flat && (counter || a != op.All && a != 0):
			return nil, lower.Reason(fmt.Sprintf("operands of layout %q take none that are repeated", layout))
		case a == op.All && v.Type.Shape.Equal(s.OutType().Shape) && v.Layout != layout,
			!isLine(v.Type.Shape) && v.Layout != layout && v.Layout != work.Layout(v.Type, device.Data):
			return nil, lower.Reason("operands have different layouts")
		case a == op.All:
			over = append(over, s.In[i])
		}
	}
	l := work.Result(s, layout, func(st *work.Storage) []work.Phase {
		dst := st.Floats(s.Out)
		in, counters := make([][]float32, len(s.In)), make([][]int32, len(s.In))
		for i, v := range s.In {
			if _, counter := o.Expr.Reads(i); counter {
				counters[i] = work.Value[int32](st, v)
			} else {
				in[i] = st.Floats(v)
			}
		}
		ord := orderOf(s.OutType().Shape, layout)
		each := make([]*mapWorker, workers)
		for i := range each {
			each[i] = newMapWorker(o.Expr, len(in))
		}
		return []work.Phase{{Blocks: work.Ceil(len(dst), expr.BlockSize), Run: func(worker, block int) {
			lo := block * expr.BlockSize
			each[worker].run(dst[lo:min(lo+expr.BlockSize, len(dst))], lo, in, counters, axes, ord)
		}}}
	})
	l.Results[0].Over = over
	return l, nil
}

// mapWorker is what a worker needs to evaluate an expression.
type mapWorker struct {
	eval *expr.Evaluator
	args [][]float64
}

func newMapWorker(e expr.Expr, operands int) *mapWorker {
	w := &mapWorker{eval: e.Evaluator(), args: make([][]float64, operands)}
	for i := range w.args {
		w.args[i] = make([]float64, expr.BlockSize)
	}
	return w
}

// run computes the elements of dst, the first of which is at place lo.
func (w *mapWorker) run(dst []float32, lo int, in [][]float32, counters [][]int32, axes []op.Axes, ord order) {
	for i, x := range in {
		switch {
		case x == nil:
		case axes[i] == op.All:
			for j, v := range x[lo : lo+len(dst)] {
				w.args[i][j] = float64(v)
			}
		default:
			for j := range dst {
				n, c, p := ord.at(lo + j)
				w.args[i][j] = float64(x[ord.place(axes[i], n, c, p)])
			}
		}
	}
	result := w.eval.Run(len(dst), w.args, func(r expr.Node, draw []float64) {
		step, first := uint32(counters[r.Index][0]), uint32(counters[r.Index][1])
		for j := range draw {
			n, c, p := ord.at(lo + j)
			if r.PerSample {
				c, p = 0, 0
			}
			draw[j] = float64(expr.Uniform(r.Key, step, first+uint32(n), uint32(p*ord.channels+c)))
		}
	})
	for j, v := range result {
		dst[j] = float32(v)
	}
}

// lowerSumTo sums in float64, samples apart where the result keeps them.
func lowerSumTo(s work.Step, o op.SumTo) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	x := s.InType(0)
	axes := o.Axes(x)
	samples, channels, pixels := x.Shape.Extents()
	ord := orderOf(x.Shape, work.Layout(x, device.Data))
	blocks := 1
	if axes&op.Samples != 0 {
		blocks = samples
	}
	size := samples / blocks * channels * pixels
	var r work.Room
	part := r.Doubles(s.OutType().Shape.Size())
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst, sums := st.Floats(s.In[0]), st.Floats(s.Out), st.Scratch64(part)
		mine := len(dst) / blocks
		return []work.Phase{{Blocks: blocks, Run: func(_, block int) {
			sum := sums[block*mine:][:mine]
			clear(sum)
			for i, v := range src[block*size:][:size] {
				n, c, p := ord.at(i)
				sum[ord.place(axes, n, c, p)] += float64(v)
			}
			for i, v := range sum {
				dst[block*mine+i] = float32(v)
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l, nil
}
