package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// matrixOuter runs an outer whose grid's pixels are those of its source: a product of two matrices, dst = aᵀ b. Both
// are packed for some pixels at a time: b in panels of columns, a in panels of as many channels as a kernel's tile has
// rows. A panel of b stays in the first level cache, the panels of a in the second.
type matrixOuter struct {
	*outer
	set    *kern.Set
	depth  int // pixels at a time
	tasks  []matrixTask
	chunk  int // channels that are packed at a time, a multiple of a tile's rows
	splits int
}

// matrixTask is a part of dst, summed over a range of pixels. With several ranges, each has its own copy of dst.
type matrixTask struct {
	split, group      int
	from, to          int // pixels
	channel, channels int
	column, columns   int
}

const (
	panelElements  = 4096 // about the most of a panel of b: half of a first level cache of 32 KiB
	matrixChannels = 400  // about the most channels of a that are packed at a time
	tasksOfWorker  = 2    // about the number of tasks of a worker

	// The parts into which dst is cut at most.
	leastChannels, leastColumns = 96, 64
)

// isMatrix reports whether o runs as a matrixOuter. A tiledOuter reads shorter rows of a in place, which is as fast.
func (o *outer) isMatrix(set *kern.Set) bool {
	return set.Narrow == nil && o.direct() && o.srcC > directOuter && o.channels >= leastChannels && o.rows >= leastColumns
}

func newMatrixOuter(o *outer, set *kern.Set, workers int) *matrixOuter {
	const enough, copies = 32, 1 << 20
	m := &matrixOuter{outer: o, set: set}
	units := work.Ceil(o.pixels(), panelElements/set.Columns())
	m.depth = work.Ceil(o.pixels(), units)
	parts := o.groups * work.Ceil(o.channels, leastChannels) * work.Ceil(o.rows, leastColumns)
	m.splits = max(1, min(work.Ceil(enough, parts), units, copies/(o.channels*o.columns)))
	size := work.Ceil(units, m.splits) * m.depth
	m.splits = work.Ceil(o.pixels(), size)
	channels, columns := m.cut(work.Ceil(tasksOfWorker*workers, m.splits*o.groups))
	even := work.Ceil(channels, work.Ceil(channels, matrixChannels))
	m.chunk = work.Ceil(even, set.Rows) * set.Rows
	for s := range m.splits {
		for g := range o.groups {
			for c := 0; c < o.channels; c += channels {
				for j := 0; j < o.rows; j += columns {
					m.tasks = append(m.tasks, matrixTask{
						split: s, group: g, from: s * size, to: min((s+1)*size, o.pixels()),
						channel: c, channels: min(channels, o.channels-c), column: j, columns: min(columns, o.rows-j),
					})
				}
			}
		}
	}
	return m
}

// cut is the size of the parts of dst of a group, if there should be the given number: the one that packs least. Its
// results do not depend on it.
func (m *matrixOuter) cut(parts int) (channels, columns int) {
	best := 0.0
	for i := 1; i <= work.Ceil(m.channels, leastChannels); i++ {
		j := min(work.Ceil(parts, i), work.Ceil(m.rows, leastColumns))
		if i*j < parts && i < work.Ceil(m.channels, leastChannels) {
			continue
		}
		c := work.Ceil(work.Ceil(m.channels, i), m.set.Rows) * m.set.Rows
		n := work.Ceil(work.Ceil(m.rows, j), m.set.Columns()) * m.set.Columns()
		if cost := 1/float64(c) + 1/float64(n); best == 0 || cost < best {
			best, channels, columns = cost, c, n
		}
	}
	return channels, columns
}

// stride is the distance between panels of a: the last vector that is written reaches behind a panel.
func (m *matrixOuter) stride() int { return m.set.Rows*m.depth + m.set.Lanes }

// lower reserves the scratch of m in r and returns its phases.
func (m *matrixOuter) lower(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	size := m.channels * m.columns
	columns := 0
	for _, t := range m.tasks {
		columns = max(columns, t.columns)
	}
	left := r.Each(d.Workers, m.chunk/m.set.Rows*m.stride())
	right := r.Each(d.Workers, work.Ceil(columns, m.set.Columns())*m.set.Columns()*m.depth)
	var copies work.Part
	if m.splits > 1 {
		copies = r.Floats((m.splits - 1) * size)
	}
	return func(s *work.Storage) []work.Phase {
		k := &matrixOuterKernel{
			matrixOuter: m, size: size, args: make([]workerArgs, d.Workers),
			a: s.Floats(a), b: s.Floats(b), dst: s.Floats(dst),
			left: s.Scratches(left), right: s.Scratches(right),
		}
		phases := []work.Phase{{Blocks: len(m.tasks), Run: k.run}}
		if m.splits > 1 {
			k.copies = s.Scratch(copies)
			phases = append(phases, work.Phase{Blocks: work.Ceil(size, sumBlock), Run: k.sum})
		}
		return phases
	}
}

// matrixOuterKernel is a bound matrixOuter.
type matrixOuterKernel struct {
	*matrixOuter
	size        int // elements of dst
	args        []workerArgs
	a, b, dst   []float32
	copies      []float32   // of dst, for each split but the first
	left, right [][]float32 // by worker
}

// run computes a task.
func (k *matrixOuterKernel) run(worker, task int) {
	t := &k.tasks[task]
	dst := k.dst
	if t.split > 0 {
		dst = k.copies[(t.split-1)*k.size:][:k.size]
	}
	left, right := k.left[worker], k.right[worker]
	a := &k.args[worker]
	a.Init, a.Offs = &kern.Zeros[0], &noOffset[0]
	a.StepA = 4 * k.set.Rows
	a.StepC, a.JumpC = 4*k.columns, 4*kern.Half*k.columns
	for p := t.from; p < t.to; p += k.depth {
		pixels := min(k.depth, t.to-p)
		a.Taps, a.Depth = 1, pixels
		next := &a.ahead
		next.start(k.set)
		if q := p + pixels; q < t.to && k.far() {
			pixels := min(k.depth, t.to-q)
			addRows(next, k.b, q*k.columns+t.group*k.rows+t.column, pixels, t.columns, k.columns)
			addRows(next, k.a, q*k.srcC+t.group*k.channels+t.channel, pixels, t.channels, k.srcC)
		}
		packPanels(k.set, right, k.b[p*k.columns+t.group*k.rows+t.column:], pixels, t.columns, k.columns)
		for c := t.channel; c < t.channel+t.channels; c += k.chunk {
			channels := min(k.chunk, t.channel+t.channels-c)
			k.packLeft(left, k.a[p*k.srcC+t.group*k.channels+c:], pixels, channels)
			k.multiply(a, left, right, dst[c*k.columns+t.group*k.rows+t.column:], channels, t.columns, pixels, p > t.from)
		}
	}
}

var noOffset [1]int

// packLeft packs some channels of some pixels.
func (k *matrixOuterKernel) packLeft(dst, src []float32, pixels, channels int) {
	step, stride := k.set.Rows, k.stride()
	whole := channels / step
	rows := pixels
	if (pixels-1)*k.srcC+(whole-1)*step+k.set.Lanes > len(src) {
		rows-- // the kernel would read behind the last pixel
	}
	if rows > 0 && whole > 0 {
		_, _ = src[(rows-1)*k.srcC+(whole-1)*step+k.set.Lanes-1], dst[(whole-1)*stride+(rows-1)*step+k.set.Lanes-1]
		k.set.PackRows(&dst[0], &src[0], rows, whole, 4*stride, 4*k.srcC)
	}
	for c := 0; c < channels; c += step {
		first, m := 0, min(step, channels-c)
		if m == step {
			first = rows
		}
		if n := pixels - first; n > 0 {
			to, from := dst[c/step*stride+first*step:][:n*step+k.set.Lanes], src[first*k.srcC+c:][:(n-1)*k.srcC+m]
			k.set.Copy(&to[0], &from[0], n, m, 4*step, 4*k.srcC)
		}
	}
}

// multiply sets a part of dst to the product of packed channels and columns, or adds the product to it.
func (k *matrixOuterKernel) multiply(a *workerArgs, left, right, dst []float32, channels, columns, pixels int,
	add bool) {
	for j := 0; j < columns; j += k.set.Columns() {
		n := min(k.set.Columns(), columns-j)
		a.B, a.Mask = &right[j*pixels], kern.Mask(n)
		sums := k.set.Sums[k.set.Vectors(n)]
		for c := 0; c < channels; c += k.set.Rows {
			a.A, a.C = &left[c/k.set.Rows*k.stride()], &dst[c*k.columns+j]
			a.From = nil
			if add {
				a.From = a.C
			}
			a.ahead.next(&a.Args)
			sums[min(k.set.Rows, channels-c)](&a.Args)
		}
	}
}

// sum adds the copies to dst.
func (k *matrixOuterKernel) sum(_, block int) {
	lo := block * sumBlock
	hi := min(lo+sumBlock, k.size)
	for s := range k.splits - 1 {
		k.set.Add(&k.dst[lo], &k.copies[s*k.size+lo : s*k.size+hi][0], hi-lo)
	}
}

// packPanels packs columns of rows of the given stride in panels of two vectors.
func packPanels(set *kern.Set, dst, from []float32, rows, columns, stride int) {
	whole := columns / set.Columns()
	if whole > 0 {
		_, _ = from[(rows-1)*stride+whole*set.Columns()-1], dst[whole*set.Columns()*rows-1]
		set.Pack(&dst[0], &from[0], rows, whole, 4*set.Columns()*rows, 4*stride)
	}
	if j := whole * set.Columns(); j < columns {
		n := columns - j
		width := set.Vectors(n) * set.Lanes
		_, _ = from[(rows-1)*stride+j+n-1], dst[j*rows+rows*width-1]
		set.Copy(&dst[j*rows], &from[j], rows, n, 4*width, 4*stride)
	}
}
