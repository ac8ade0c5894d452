package mapping

import (
	"slices"

	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Block is the number of elements that an expression computes at a time: intermediate results, 4 KiB each, stay in the
// first level cache.
const Block = 1 << 10

// Code is an expression as calls of vector kernels on blocks of elements.
type Code struct {
	nodes []expr.Node
	slot  []int // by node: its buffer in a worker's scratch; -1 for constants, operands and the result
	slots int
	row   []int // by node: which of the rows in a worker's scratch it is read from, or -1
	rows  int
	order order
	axes  []op.Axes // by operand
	made  int       // the operand that is given to Run, or -1
}

// newCode compiles an expression whose result has the given order, for operands that vary along axes.
func newCode(nodes []expr.Node, o order, axes []op.Axes) *Code {
	nodes = fuse(nodes)
	c := &Code{nodes: nodes, order: o, axes: axes, made: -1}
	last := make([]int, len(c.nodes)) // the last reader of each node
	for i, n := range c.nodes {
		for _, a := range n.In {
			last[a] = i
		}
	}
	var free []int
	for i, n := range c.nodes {
		for _, a := range slices.Compact(slices.Sorted(slices.Values(n.In))) { // kernels may overwrite their operands
			if s := c.slot[a]; s >= 0 && last[a] == i {
				free = append(free, s)
			}
		}
		s, row := -1, -1
		if n.Kind == expr.KindArg && o.periodic(axes[n.Index]) {
			row = c.rows
			c.rows++
		} else if n.Kind != expr.KindConst && (n.Kind != expr.KindArg || axes[n.Index] != op.All) &&
			(i < len(c.nodes)-1 || n.Kind == expr.KindArg) {
			if k := len(free); k > 0 {
				s, free = free[k-1], free[:k-1]
			} else {
				s = c.slots
				c.slots++
			}
		}
		c.slot, c.row = append(c.slot, s), append(c.row, row)
	}
	return c
}

// Scratch reserves scratch for blocks of the given size, for each worker, in r.
func (c *Code) Scratch(r *work.Room, workers, block int) []work.Part {
	return r.Each(workers, c.slots*block+c.rows*(block+c.order.channels))
}

// Bound is a Code with its storage.
type Bound struct {
	*Code
	set      *vec.Set
	numbers  []*work.Pieces // by operand, nil for counters
	counters [][]int32      // by operand
	workers  []worker
}

// worker is the state of one worker.
type worker struct {
	buffers [][]float32
	values  [][]float32 // by node
	rows    [][]float32 // operands that vary along channels, repeated over a block that begins at any channel
	samples []int       // by row: the sample whose row it is, or -1
}

// Bind binds c to kernels, to the workers' scratch, to a block size, and to operands.
func (c *Code) Bind(set *vec.Set, scratch [][]float32, block int, numbers []*work.Pieces, counters [][]int32) *Bound {
	b := &Bound{Code: c, set: set, numbers: numbers, counters: counters}
	constants := make([][]float32, len(c.nodes))
	for i, n := range c.nodes {
		if n.Kind == expr.KindConst {
			constants[i] = make([]float32, block)
			b.set.Fill(constants[i], float32(n.Value))
		}
	}
	for _, x := range scratch {
		w := worker{values: slices.Clone(constants)}
		for s := range c.slots {
			w.buffers = append(w.buffers, x[s*block:][:block])
		}
		for x = x[c.slots*block:]; len(w.rows) < c.rows; x = x[block+c.order.channels:] {
			w.rows, w.samples = append(w.rows, x[:block+c.order.channels]), append(w.samples, -1)
		}
		b.workers = append(b.workers, w)
	}
	return b
}

// Begin lists the phase before those that call Run, if any.
func (b *Bound) Begin() []work.Phase {
	if b.rows == 0 {
		return nil
	}
	return work.One(func() {
		for i := range b.workers {
			b.begin(i)
		}
	})
}

// begin forgets the rows of a worker: their operands may have changed.
func (b *Bound) begin(number int) {
	for i := range b.workers[number].samples {
		b.workers[number].samples[i] = -1
	}
}

// Run computes the elements from place lo on, at most a block. made holds the same elements of the operand that another
// kernel makes, if any. It may be dst.
func (b *Bound) Run(number int, dst []float32, lo int, made []float32) {
	w, k, size := &b.workers[number], b.set, len(dst)
	for i, n := range b.nodes {
		to := dst
		if s := b.slot[i]; s >= 0 {
			to = w.buffers[s][:size]
		}
		var in [3][]float32
		for j, a := range n.In {
			in[j] = w.values[a][:size]
		}
		switch n.Kind {
		case expr.KindConst:
			continue
		case expr.KindArg:
			switch x := b.numbers[n.Index]; {
			case n.Index == b.made:
				to = made
			case b.axes[n.Index] == op.All:
				to = x.Read(number, lo, lo+size)
			case b.row[i] >= 0:
				to = b.repeated(w, b.row[i], x.All(), b.axes[n.Index], lo, size)
			default:
				b.order.spread(to, lo, x.All(), b.axes[n.Index])
			}
		case expr.KindRandom:
			b.order.draw(k, to, lo, n, b.counters[n.Index])
		default:
			if n.Kind >= fusedSiLU {
				computeFused(k, n.Kind, to, &in)
			} else {
				compute(k, n.Kind, to, &in)
			}
		}
		w.values[i] = to
	}
	if y := w.values[len(b.nodes)-1]; &y[0] != &dst[0] { // an operand or a constant
		copy(dst, y)
	}
}

// repeated returns x, which varies along channels and perhaps samples, over size elements from place lo on. They are a
// part of a row, which is made once for all elements or, if x varies along samples, for those of one sample.
func (b *Bound) repeated(w *worker, row int, x []float32, a op.Axes, lo, size int) []float32 {
	o, to := &b.order, w.rows[row]
	n, at, _ := o.at(lo)
	each := o.channels * o.pixels
	switch {
	case a&op.Samples == 0:
		n, each = 0, len(to)
	case lo+size > (n+1)*each:
		w.samples[row] = -1
		o.spread(to[:size], lo, x, a)
		return to[:size]
	}
	if w.samples[row] != n {
		w.samples[row] = n
		o.spread(to[:min(len(to), each)], n*each, x, a)
	}
	return to[at:][:size]
}

// RunAll is Run for elements lo to hi of dst.
func (b *Bound) RunAll(number int, dst *work.Pieces, lo, hi int) {
	b.begin(number)
	for ; lo < hi; lo += Block {
		end := min(lo+Block, hi)
		b.Run(number, dst.To(number, lo, end), lo, nil)
		dst.Done(number, lo, end)
	}
}

// RunOver is RunAll for an expression of another kernel's result x, which it overwrites, from place lo on.
func (b *Bound) RunOver(number, lo int, x []float32) {
	for len(x) > 0 {
		m := min(Block, len(x))
		b.Run(number, x[:m], lo, x[:m])
		x, lo = x[m:], lo+m
	}
}

// Alone reports whether the other kernel's result is the only operand.
func (b *Bound) Alone() bool { return len(b.axes) == 1 }

// compute applies a function to elements.
func compute(k *vec.Set, kind expr.Kind, to []float32, in *[3][]float32) {
	switch kind {
	case expr.KindNeg:
		k.Neg(to, in[0])
	case expr.KindAdd:
		k.Add(to, in[0], in[1])
	case expr.KindSub:
		k.Sub(to, in[0], in[1])
	case expr.KindMul:
		k.Mul(to, in[0], in[1])
	case expr.KindDiv:
		k.Div(to, in[0], in[1])
	case expr.KindMin:
		k.Min(to, in[0], in[1])
	case expr.KindMax:
		k.Max(to, in[0], in[1])
	case expr.KindExp:
		k.Exp(to, in[0])
	case expr.KindLog:
		k.Log(to, in[0])
	case expr.KindSqrt:
		k.Sqrt(to, in[0])
	case expr.KindTanh:
		k.Tanh(to, in[0])
	case expr.KindErf:
		k.Erf(to, in[0])
	case expr.KindSigmoid:
		k.Sigmoid(to, in[0])
	case expr.KindLess:
		k.Less(to, in[0], in[1])
	case expr.KindLessEqual:
		k.LessEqual(to, in[0], in[1])
	case expr.KindEqual:
		k.Equal(to, in[0], in[1])
	case expr.KindIf:
		k.If(to, in[0], in[1], in[2])
	}
}
