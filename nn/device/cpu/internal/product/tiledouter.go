package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// tiledOuter runs an outer on the kernels of package kern. The sum runs over the pixels of one block at a time: a is
// read from the tile of a halo, b from panels of columns.
type tiledOuter struct {
	*outer
	set     *kern.Set
	halo    halo
	extents []extent
	runs    []rowOfTaps
	offs    []int // bytes, of the lines of a block in the tile
	depth   int   // pixels of a line that is summed as one
	inPlace bool  // b is itself a panel
	tasks   []outerTask
	splits  int

	whole     *outer  // without folded pixels
	weightsOf [][]int // by tap, where pixels are folded
}

// outerTask is a range of channels × a range of columns of dst, summed over a range of blocks of pixels. With several
// ranges, each has its own copy of dst; sum adds the copies.
type outerTask struct {
	split, group      int
	from, to          int // extents
	channel, channels int
	column, columns   int // of the group
}

// taskElements is about the largest part of b that a task packs at a time.
const taskElements = 512 * blockPixels

// The largest number of channels of a tile with a single tap: more than for products, since b is packed for each tile.
const outerChannels = 256

// directOuter is the number of channels up to which a is read in place.
const directOuter = 256

func newTiledOuter(o *outer, set *kern.Set, tasks int) *tiledOuter {
	whole := o
	o, weightsOf := o.fold(set)
	limit := tileChannels
	if len(o.taps) == 1 {
		limit = outerChannels
	}
	t := &tiledOuter{outer: o, set: set, whole: whole, weightsOf: weightsOf}
	narrow := set.Narrow
	if t.pairs() {
		narrow = nil // pairTile makes the words
	}
	t.halo = newHalo(&o.grid, o.taps, limit, narrow)
	h := &t.halo
	if o.srcC <= directOuter && set.Narrow == nil {
		h.readDirectly()
	}
	t.extents = h.block.extents(&o.grid)
	t.runs = h.runs(o.taps)
	if h.contiguous() {
		t.offs, t.depth = []int{0}, 0
	} else {
		t.depth = o.width
		for n := range h.block.images {
			for i := range h.block.lines {
				t.offs = append(t.offs, 4*h.at(n, i, 0))
			}
		}
	}
	t.inPlace = set.Narrow == nil && o.groups == 1 && o.rows == set.Vectors(o.rows)*set.Lanes && o.rows <= set.Columns()
	t.cutTasks(tasks)
	return t
}

// fold folds adjacent pixels of o into one, as fold of a product does: each pixel computes its own part of dst.
func (o *outer) fold(set *kern.Set) (*outer, [][]int) {
	n := o.folds(set, o.rows)
	if n == 1 || o.groups != 1 || o.merged != nil {
		return o, nil
	}
	folded := &outer{groups: 1, rows: n * o.rows, columns: n * o.columns}
	var weights [][]int
	folded.grid, weights = o.grid.fold(n)
	return folded, weights
}

// cutTasks divides dst and, if dst is small, the pixels, to give work to a few dozen workers. If that makes at most
// the given number of tasks, it divides dst once more. Results depend on the division of the pixels.
func (t *tiledOuter) cutTasks(tasks int) {
	const enough, copies = 32, 1 << 20
	o := t.outer
	panels := work.Ceil(o.rows, t.set.Columns())
	columns := min(panels, max(2, taskElements/(t.blockSize()*t.set.Columns())))
	chunks := work.Ceil(o.channels, t.halo.chunk) * o.groups
	t.splits = max(1, min(work.Ceil(enough, chunks*work.Ceil(panels, columns)), len(t.extents),
		copies/(len(o.taps)*o.channels*o.columns)))
	for columns > 4 && t.splits*chunks*work.Ceil(panels, columns) < tasks {
		columns = work.Ceil(columns, 2)
	}
	columns *= t.set.Columns()
	size := work.Ceil(len(t.extents), t.splits)
	t.splits = work.Ceil(len(t.extents), size)
	for s := range t.splits {
		for g := range o.groups {
			for c := 0; c < o.channels; c += t.halo.chunk {
				for j := 0; j < o.rows; j += columns {
					t.tasks = append(t.tasks, outerTask{
						split: s, group: g, from: s * size, to: min((s+1)*size, len(t.extents)),
						channel: c, channels: min(t.halo.chunk, o.channels-c),
						column: j, columns: min(columns, o.rows-j),
					})
				}
			}
		}
	}
}

// blockSize is the number of pixels of a whole block.
func (t *tiledOuter) blockSize() int { return t.halo.block.images * t.halo.block.lines * t.width }

// lower reserves the scratch of t in r and returns its phases.
func (t *tiledOuter) lower(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	workers := d.Workers
	size := len(t.taps) * t.channels * t.columns
	tiles := r.Each(workers, t.tileSize())
	packed := make([]work.Part, workers)
	if !t.inPlace {
		columns := 0
		for _, task := range t.tasks {
			columns = max(columns, t.set.Vectors(task.columns)*t.set.Lanes)
		}
		packed = r.Each(workers, t.blockSize()*columns)
	}
	var copies, folded work.Part
	if t.splits > 1 {
		copies = r.Floats((t.splits - 1) * size)
	}
	if t.weightsOf != nil {
		folded = r.Floats(size)
	}
	var larger work.Part
	if t.merged != nil {
		larger = r.Floats(t.merged.size())
	}

	return func(s *work.Storage) []work.Phase {
		k := &tiledOuterKernel{
			tiledOuter: t, size: size, args: make([]workerArgs, workers),
			a: s.Pieces(a), b: s.Pieces(b), dst: s.Floats(dst),
			tiles: s.Scratches(tiles), packed: s.Scratches(packed),
		}
		result := k.dst
		if t.merged != nil {
			k.dst = s.Scratch(larger)
		}
		if t.weightsOf != nil {
			k.result, k.dst = k.dst, s.Scratch(folded)
		}
		phases := []work.Phase{{Blocks: len(t.tasks), Run: k.run}}
		if t.splits > 1 {
			k.copies = s.Scratch(copies)
			phases = append(phases, work.Phase{Blocks: work.Ceil(size, sumBlock), Run: k.sum})
		}
		if t.weightsOf != nil {
			phases = append(phases, work.One(k.unfold)...)
		}
		if t.merged != nil {
			phases = append(phases, t.merged.gather(result, k.dst))
		}
		return phases
	}
}

// tiledOuterKernel is a bound tiledOuter.
type tiledOuterKernel struct {
	*tiledOuter
	size   int // elements of dst
	args   []workerArgs
	a, b   *work.Pieces
	dst    []float32
	copies []float32   // of dst, for each split but the first
	result []float32   // for folded pixels, if it is not dst
	tiles  [][]float32 // by worker
	packed [][]float32 // by worker
}

// run computes a task.
func (k *tiledOuterKernel) run(worker, task int) {
	t := &k.tasks[task]
	h := &k.halo
	dst := k.dst
	if t.split > 0 {
		dst = k.copies[(t.split-1)*k.size:][:k.size]
	}
	dst = dst[t.group*k.rows+t.column:]
	a := &k.args[worker]
	a.Init = &kern.Zeros[0]
	a.StepA = 4 * k.next()
	if k.pairs() {
		a.StepA *= 2
	}
	a.StepC, a.JumpC = 4*k.columns, 4*kern.Half*k.columns
	a.Offs = &k.offs[0]
	for e := t.from; e < t.to; e++ {
		x := k.extents[e]
		first := t.group*k.channels + t.channel
		source := k.tiles[worker]
		if h.direct {
			source = k.a.All()[h.source(x, first):]
		} else {
			h.fill(k.set, nil, source, k.a, x, first, t.channels)
			if k.pairs() {
				k.pairTile(source, x)
			}
		}
		pixels := x.images * x.lines * k.width
		a.Taps, a.Depth = x.images*x.lines, k.set.Narrow.Words(k.depth)
		if k.depth == 0 {
			a.Taps, a.Depth = 1, k.set.Narrow.Words(pixels)
		}
		panels := k.panels(worker, t, x, pixels)
		a.ahead.start(k.set)
		if e+1 < t.to && k.far() {
			k.fetchNext(&a.ahead, t, k.extents[e+1])
		}
		for i := range k.runs {
			r := &k.runs[i]
			k.multiply(a, source[r.off:], panels, dst[(r.first.weight*k.channels+t.channel)*k.columns:], r.count*t.channels,
				t.columns, pixels, e > t.from)
		}
	}
}

// panels is the part of b that a task needs: its columns at the pixels of a block.
func (k *tiledOuterKernel) panels(worker int, t *outerTask, x extent, pixels int) []float32 {
	at := (x.image*k.height+x.line)*k.width*k.columns + t.group*k.rows + t.column
	dst := k.packed[worker]
	if k.b.Stored() != nil {
		for j := 0; j < t.columns; j += k.set.Columns() {
			n := min(k.set.Columns(), t.columns-j)
			k.b.Copy(dst[j*pixels:], k.set.Vectors(n)*k.set.Lanes, at+j, pixels, n, k.columns)
		}
		if k.pairs() {
			k.narrowPanels(dst, t.columns, pixels)
		}
		return dst
	}
	from := k.b.All()[at:]
	if k.inPlace {
		return from
	}
	packPanels(k.set, dst, from, pixels, t.columns, k.columns)
	if k.set.Narrow != nil {
		k.narrowPanels(dst, t.columns, pixels)
	}
	return dst
}

// fetchNext makes next fetch the operands of a task in a block.
func (k *tiledOuterKernel) fetchNext(next *ahead, t *outerTask, x extent) {
	next.addPieces(k.b, (x.image*k.height+x.line)*k.width*k.columns+t.group*k.rows+t.column,
		x.images*x.lines*k.width, t.columns, k.columns)
	next.addSource(&k.halo, k.a, x, t.group*k.channels+t.channel, t.channels)
}

// multiply sets dst to rows of a × columns of b over some pixels, or adds that product to it. A panel of b stays in the
// first level cache during the loop over the rows of a. A cache line holds 16 of those rows and is read once for all.
func (k *tiledOuterKernel) multiply(a *workerArgs, source, panels, dst []float32, rows, columns, pixels int,
	add bool) {
	parts := work.Ceil(rows, k.set.Rows)
	for j := 0; j < columns; j += k.set.Columns() {
		n := min(k.set.Columns(), columns-j)
		a.B, a.Mask = &panels[j*pixels], kern.Mask(n)
		sums := k.set.Sums[k.set.Vectors(n)]
		for i := range parts {
			m, end := i*rows/parts, (i+1)*rows/parts
			a.A, a.C = &source[m], &dst[m*k.columns+j]
			a.From = nil
			if add {
				a.From = a.C
			}
			a.ahead.next(&a.Args)
			sums[end-m](&a.Args)
		}
	}
}

// sum adds the copies to dst.
func (k *tiledOuterKernel) sum(_, block int) {
	lo := block * sumBlock
	hi := min(lo+sumBlock, k.size)
	for s := range k.splits - 1 {
		k.set.Add(&k.dst[lo], &k.copies[s*k.size+lo : s*k.size+hi][0], hi-lo)
	}
}

// unfold adds up the parts of the folded pixels.
func (k *tiledOuterKernel) unfold() {
	w := k.whole
	clear(k.result)
	for t, pixels := range k.weightsOf {
		for p, weight := range pixels {
			if weight < 0 {
				continue
			}
			for c := range k.channels {
				from := k.dst[(t*k.channels+c)*k.columns+p*w.rows:][:w.rows]
				to := k.result[(weight*k.channels+c)*w.columns:][:w.rows]
				for i, v := range from {
					to[i] += v
				}
			}
		}
	}
}
