package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// winogradOuter is the gradient with respect to the weights of a convolution that winograd supports. It transforms
// windows of the source and tiles of the result's gradient, sums the outer products of their values over all tiles, and
// transforms the sums to taps.
type winogradOuter struct {
	*outer
	tiles  tiling
	set    *kern.Set
	most   outerTask // the channels and columns of the largest task
	blocks []extent
	tasks  []outerTask
	splits int
}

func newWinogradOuter(o *outer, set *kern.Set) *winogradOuter {
	w := &winogradOuter{outer: o, set: set}
	// The sums of a task stay in the second level cache, together with the tiles of a block.
	const sums, channels = 400 << 10, 128
	w.most.channels = o.channels
	if o.channels > channels {
		w.most.channels = work.Ceil(work.Ceil(o.channels, work.Ceil(o.channels, channels)), set.Lanes) * set.Lanes
	}
	panels := max(1, sums/(4*values*w.most.channels*set.Columns()))
	w.most.columns = min(o.rows, panels*set.Columns())
	w.tiles = newTiling(&o.grid, 4*values*(w.padded(w.most.channels)+w.padded(w.most.columns)))
	w.blocks = w.tiles.extents()

	const enough, copies = 32, 1 << 20
	chunks := work.Ceil(o.channels, w.most.channels) * work.Ceil(o.rows, w.most.columns)
	splits := max(1, min(work.Ceil(enough, chunks), len(w.blocks), copies/(o.depth()*o.columns)))
	size := work.Ceil(len(w.blocks), splits)
	w.splits = work.Ceil(len(w.blocks), size)
	for s := range w.splits {
		for c := 0; c < o.channels; c += w.most.channels {
			for j := 0; j < o.rows; j += w.most.columns {
				w.tasks = append(w.tasks, outerTask{
					split: s, from: s * size, to: min((s+1)*size, len(w.blocks)),
					channel: c, channels: min(w.most.channels, o.channels-c),
					column: j, columns: min(w.most.columns, o.rows-j),
				})
			}
		}
	}
	return w
}

// padded is n rounded up to whole vectors.
func (w *winogradOuter) padded(n int) int { return w.set.Vectors(n) * w.set.Lanes }

// lower reserves the scratch of w in r and returns its phases.
func (w *winogradOuter) lower(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	workers := d.Workers
	channels, columns := w.padded(w.most.channels), w.padded(w.most.columns)
	lines := r.Each(workers, w.tiles.columnScratch(w.set, kern.Window))
	sources := r.Each(workers, values*w.tiles.apart(channels))
	grads := r.Each(workers, values*w.tiles.apart(columns))
	sums := r.Each(workers, values*w.most.channels*columns)
	zeros := r.Floats(max(w.srcW*w.srcC, w.width*w.columns))
	size := w.depth() * w.columns
	var copies work.Part
	if w.splits > 1 {
		copies = r.Floats((w.splits - 1) * size)
	}

	return func(s *work.Storage) []work.Phase {
		k := &winogradOuterKernel{
			winogradOuter: w, size: size, args: make([]winogradArgs, workers), dst: s.Floats(dst),
			lines: s.Scratches(lines), sources: s.Scratches(sources), grads: s.Scratches(grads), sums: s.Scratches(sums),
		}
		z := s.Scratch(zeros)
		k.source = w.outer.source(w.set, s.Floats(a), z)
		k.grad = windows{w.set.Winograd.Grad, kern.TileResults, 0, 0, w.height, w.width, w.columns, s.Floats(b), z}
		phases := []work.Phase{{Blocks: 1, Run: func(int, int) { clear(z) }}, {Blocks: len(w.tasks), Run: k.run}}
		if w.splits > 1 {
			k.copies = s.Scratch(copies)
			phases = append(phases, work.Phase{Blocks: work.Ceil(size, sumBlock), Run: k.sum})
		}
		return phases
	}
}

// winogradOuterKernel is a bound winogradOuter.
type winogradOuterKernel struct {
	*winogradOuter
	size         int // elements of dst
	args         []winogradArgs
	source, grad windows
	dst          []float32
	copies       []float32 // of dst, for each split but the first

	// By worker. Sums are channels × columns for each value.
	lines, sources, grads, sums [][]float32
}

// run computes a task.
func (k *winogradOuterKernel) run(worker, task int) {
	t := &k.tasks[task]
	args := &k.args[worker]
	lines := k.lines[worker]
	for e := t.from; e < t.to; e++ {
		b := k.blocks[e]
		k.tiles.spread(k.set, &args.spread, &k.source, lines, b, t.channel, t.channels, k.sources[worker],
			k.padded(t.channels))
		k.tiles.spread(k.set, &args.spread, &k.grad, lines, b, t.column, t.columns, k.grads[worker], k.set.Columns())
		k.multiply(worker, t, b.images*b.lines*k.tiles.perLine, e > t.from)
	}
	k.collect(worker, t)
}

// multiply adds the products of the first tiles of a block to the sums, or sets the sums to them.
func (k *winogradOuterKernel) multiply(worker int, t *outerTask, tiles int, add bool) {
	args := &k.args[worker]
	a := &args.product
	channels, columns := k.padded(t.channels), k.padded(t.columns)
	a.Init, a.Offs, a.Taps, a.Depth = &kern.Zeros[0], &args.off, 1, tiles
	a.StepA = 4 * channels
	a.StepC, a.JumpC = 4*columns, 4*kern.Half*columns
	parts := work.Ceil(t.channels, k.set.Rows)
	for v := range values {
		source, grad := k.sources[worker][v*k.tiles.apart(channels):], k.grads[worker][v*k.tiles.apart(columns):]
		sums := k.sums[worker][v*t.channels*columns:]
		for j := 0; j < columns; j += k.set.Columns() {
			width := min(k.set.Columns(), columns-j)
			kernels := k.set.Sums[width/k.set.Lanes]
			a.B, a.Mask = &grad[j*k.tiles.tiles()], kern.Mask(width)
			for i := range parts {
				m, end := i*t.channels/parts, (i+1)*t.channels/parts
				a.A, a.C, a.From = &source[m], &sums[m*columns+j], nil
				if add {
					a.From = a.C
				}
				kernels[end-m](a)
			}
		}
	}
}

// collect transforms the sums of a task to taps.
func (k *winogradOuterKernel) collect(worker int, t *outerTask) {
	a := &k.args[worker].collect
	columns := k.padded(t.columns)
	dst := k.dst
	if t.split > 0 {
		dst = k.copies[(t.split-1)*k.size:][:k.size]
	}
	tap := 4 * k.channels * k.outer.columns
	first := k.taps[0].weight
	a.StepT, a.StepP = 4*columns, 4*t.channels*columns
	a.StepRow, a.StepC, a.StepTile = (k.taps[kern.TileTaps].weight-first)*tap, (k.taps[1].weight-first)*tap,
		4*k.outer.columns
	a.Rows, a.Columns = kern.TileTaps, t.channels*kern.TileTaps
	a.Scratch, a.Bias, a.Floor, a.From = &k.lines[worker][0], &kern.Zeros[0], &kern.Lowest[0], nil
	lanes := k.set.Lanes
	for j := 0; j < t.columns; j += lanes {
		a.Src, a.Dst = &k.sums[worker][j], &dst[(first*k.channels+t.channel)*k.outer.columns+t.column+j]
		tail := 0
		if j+lanes > t.columns {
			tail = 1
		}
		a.Mask = kern.Mask(min(lanes, t.columns-j))
		k.set.Winograd.WeightGrad[tail](a)
	}
}

// sum adds the copies to dst.
func (k *winogradOuterKernel) sum(_, block int) {
	lo := block * sumBlock
	hi := min(lo+sumBlock, k.size)
	for s := range k.splits - 1 {
		k.set.Add(&k.dst[lo], &k.copies[s*k.size+lo : s*k.size+hi][0], hi-lo)
	}
}
