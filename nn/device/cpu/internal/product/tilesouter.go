package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// tilesOuter runs an outer in tiles. The left operand is turned: its channels become rows of A that run along pixels. The
// right one becomes pairs of pixels for B. With several taps b is on the left, and pairs of a's pixels are made for each
// tap, or shifted; with one, the operand with fewer channels is on the left, as turning takes longer. Sums of a task stay
// in the second level cache while the chunks of pixels go by. With one tap, an operand whose channels several tasks
// read is turned or paired before them, once.
type tilesOuter struct {
	*outer
	tiles       *kern.Tiles
	left, right tilesSide
	line        *tilesLine // not nil if a line of taps is one
	flipped     bool       // b is on the left: rows of the sums are columns of dst
	chunks      []tilesChunk
	sets        [][]tilesTap // by set of pairs: the taps that use it
	tasks       []tilesTask
	splits      int
	rowsMost    int               // of a task
	height      int               // most rows of A in a task
	sums        int               // most of their elements
	blocks      int               // most of a chunk
	panel       int               // words from a panel of pairs to the next
	panels      int               // most of a task
	steps       [][]kern.TileStep // by the blocks of a chunk
	whole       *outer            // without lines of taps as taps

	rowParts, columnParts int // of the tasks of a group and split
}

// tilesColumns is the number of columns of a panel: two tiles.
const tilesColumns = 2 * kern.TileWidth

// tilesRows is the most rows of a task.
const tilesRows = 256

// tilesSide is an operand.
type tilesSide struct {
	channels, stride int  // of a group, and from a pixel to the next
	stored           bool // as bfloat16
	staged           int  // elements of the largest copy in bfloat16, 0 for none
}

// tilesTap is a tap: its pairs begin shift pairs into their set.
type tilesTap struct{ weight, shift int }

// tilesTask is a range of rows × a range of columns of the sums of a group, over a range of chunks.
type tilesTask struct {
	split, group    int
	from, to        int // chunks
	row, rows       int
	column, columns int
	rowPart         int
	columnPart      int
	span            int // rows of a tile
	spans           [][2]kern.TileSpan
}

// height is the number of rows of the sums.
func (t *tilesTask) height() int { return 2 * len(t.spans) * t.span }

// inTiles returns o as it runs in tiles, perhaps with lines of taps as taps, or nil if it has too few channels
// or, in parts of float32, is not faster so.
func (d Options) inTiles(o *outer) (*outer, *tilesLine) {
	switch {
	case d.Tiles != nil && d.Tiles.Parts > 0 && (o.merged != nil || !d.outerPartsPay(o)):
	case d.tiles(o.channels, o.rows):
		return o, nil
	case d.Tiles != nil && o.rows >= kern.TileWidth:
		return o.mergeLines(kern.TileWidth)
	}
	return nil, nil
}

func (d Options) newTilesOuter(whole, o *outer, line *tilesLine, storedA, storedB bool) *tilesOuter {
	a := tilesSide{channels: o.channels, stride: o.srcC, stored: storedA}
	b := tilesSide{channels: o.rows, stride: o.columns, stored: storedB}
	t := &tilesOuter{outer: o, tiles: d.Tiles, left: a, right: b, line: line, whole: whole}
	if t.flipped = len(o.taps) > 1 || line != nil || o.rows < o.channels; t.flipped {
		t.left, t.right = b, a
	}
	t.cutChunks()
	t.cutTasks(d.Workers)
	for _, c := range t.chunks {
		t.blocks = max(t.blocks, c.blocks)
		for _, l := range c.right.lists {
			t.panel = max(t.panel, (len(l)/2+1)*tilesColumns) // not a multiple of a page
		}
		if s := &t.left; !s.stored || s.channels%8 != 0 {
			s.staged = max(s.staged, c.left.count*work.Eights(t.rowsMost))
		}
		if s := &t.right; line != nil {
			s.staged = max(s.staged, line.elements(c.right.lines))
		} else if !s.stored {
			s.staged = max(s.staged, c.right.count*min(s.channels, t.panels*tilesColumns))
		}
	}
	t.steps = make([][]kern.TileStep, t.blocks+1)
	for _, c := range t.chunks {
		if t.steps[c.blocks] == nil {
			t.steps[c.blocks] = t.tiles.Steps(c.blocks, func(i, a, b int) kern.TileStep {
				return kern.TileStep{A: (a*t.blocks + i) * t.height * 2 * kern.TileDepth,
					B: 4 * (b*t.panels*t.panel + i*kern.TileWidth*tilesColumns)}
			})
		}
	}
	return t
}

// cutTasks divides dst and, if dst is small, the pixels. Results depend on the division of the pixels only, which the
// shape determines. The parts of dst are as large as fits the second level cache, as each packs its pixels by itself,
// unless there are many workers.
func (t *tilesOuter) cutTasks(workers int) {
	const enough, each = 8, 2
	sums := 160 << 10 / t.tiles.Planes() // whose operands fit too
	left, right, taps := t.left.channels, t.right.channels, len(t.taps)
	// Parts of dst that can be made well, and the copies of dst that take a quarter of the memory of the operands.
	parts := work.Ceil(left, 128) * work.Ceil(right, 256) * t.groups
	copies := t.pixels() * (left + right) * t.groups / (8 * t.size())
	t.splits = max(1, min(work.Ceil(enough, parts), len(t.chunks), copies))
	size := work.Ceil(len(t.chunks), t.splits)
	t.splits = work.Ceil(len(t.chunks), size)

	rows := work.Even(left, tilesRows, 8)
	columns := work.Even(right, min(sums/(taps*rows), kern.TileChannels), tilesColumns)
	tasks := func() int { return t.splits * t.groups * work.Ceil(left, rows) * work.Ceil(right, columns) }
	for tasks() < each*workers && (columns > tilesColumns || rows > tilesColumns) {
		if columns >= rows {
			columns = work.Even(columns, columns/2, tilesColumns)
		} else {
			rows = work.Even(rows, rows/2, tilesColumns)
		}
	}
	t.rowParts, t.columnParts = work.Ceil(left, rows), work.Ceil(right, columns)
	for s := range t.splits {
		for g := range t.groups {
			for i := 0; i < t.left.channels; i += rows {
				for j := 0; j < t.right.channels; j += columns {
					k := tilesTask{
						split: s, group: g, from: s * size, to: min((s+1)*size, len(t.chunks)),
						row: i, rows: min(rows, t.left.channels-i), column: j, columns: min(columns, t.right.channels-j),
						rowPart: i / rows, columnPart: j / columns,
					}
					k.cut()
					t.height = max(t.height, k.height(), work.Eights(k.rows))
					t.rowsMost = max(t.rowsMost, k.rows)
					t.panels = max(t.panels, work.Ceil(k.columns, tilesColumns))
					t.sums = max(t.sums, len(t.taps)*work.Ceil(k.columns, tilesColumns)*k.height()*tilesColumns)
					t.tasks = append(t.tasks, k)
				}
			}
		}
	}
}

// cut divides the rows into spans.
func (t *tilesTask) cut() {
	pairs := work.Ceil(t.rows, 2*kern.TileRows)
	t.span = work.Ceil(t.rows, 2*pairs)
	for i := range pairs {
		var pair [2]kern.TileSpan
		for j := range pair {
			row := (2*i + j) * t.span
			pair[j] = kern.TileSpan{A: row * 2 * kern.TileDepth, C: row * 4 * tilesColumns}
		}
		t.spans = append(t.spans, pair)
	}
}

// turnsAhead and pairsAhead report whether an operand is made ready before the tasks, for all that read it.
func (t *tilesOuter) turnsAhead() bool { return t.ahead() && t.columnParts > 1 }
func (t *tilesOuter) pairsAhead() bool { return t.ahead() && t.rowParts > 1 }
func (t *tilesOuter) ahead() bool      { return len(t.taps) == 1 && t.line == nil && t.tiles.Planes() == 1 }

// turnedSize and pairedSize are the elements of an operand of a task, for a chunk.
func (t *tilesOuter) turnedSize() int {
	return t.tiles.Planes() * t.blocks * t.height * kern.TileDepth / 2
}
func (t *tilesOuter) pairedSize() int { return t.tiles.Planes() * t.panels * t.panel }

// size is the number of elements of dst.
func (t *tilesOuter) size() int { return len(t.taps) * t.channels * t.columns }

// lower reserves the scratch of t in r and returns its phases.
func (t *tilesOuter) lower(d Options, r *work.Room, a, b, dst int) func(s *work.Storage) []work.Phase {
	workers, planes := d.Workers, t.tiles.Planes()
	var turned, pairs []work.Part // by worker, or by chunk, group and part of the operand
	units := len(t.chunks) * t.groups
	if t.turnsAhead() {
		turned = r.Several(units*t.rowParts, t.turnedSize())
	} else {
		turned = r.Each(workers, t.turnedSize())
	}
	if t.pairsAhead() {
		pairs = r.Several(units*t.columnParts, t.pairedSize())
	} else {
		pairs = r.Each(workers, t.pairedSize())
	}
	// Turned pixels and their staged copies are of two bytes, and Transpose reads whole tiles of sums.
	parts := [...][]work.Part{
		r.Each(workers, t.sums+kern.TileRows*tilesColumns),
		r.Each(workers, work.Ceil(planes*t.left.staged, 2)), r.Each(workers, work.Ceil(planes*t.right.staged, 2)),
	}
	split := splitRooms(r, t.tiles, workers)
	fresh := make([]work.Part, workers)
	if planes > 1 {
		fresh = r.Each(workers, t.height*tilesColumns)
	}
	var copies work.Part
	if t.splits > 1 {
		copies = r.Floats((t.splits - 1) * t.size())
	}
	return func(s *work.Storage) []work.Phase {
		k := &tilesOuterKernel{tilesOuter: t, BFloat16: kern.Stored(s.Level), dst: s.Floats(dst),
			left: s.Pieces(a), right: s.Pieces(b), workers: make([]tilesWorker, workers),
			splitters: newSplitters(t.tiles, s.Scratches(split)), bad: make([]uint32, len(t.tasks)),
			turned: s.Scratches(turned), pairs: s.Scratches(pairs)}
		if t.flipped {
			k.left, k.right = k.right, k.left
		}
		for i := range k.workers {
			k.workers[i] = tilesWorker{sums: s.Scratch(parts[0][i]),
				stages: [2][]float32{s.Scratch(parts[1][i]), s.Scratch(parts[2][i])}, fresh: s.Scratch(fresh[i])}
		}
		var phases []work.Phase
		if t.turnsAhead() {
			phases = append(phases, work.Phase{Blocks: len(k.turned), Run: k.turnAhead})
		}
		if t.pairsAhead() {
			phases = append(phases, work.Phase{Blocks: len(k.pairs), Run: k.pairAhead})
		}
		phases = append(phases, work.Phase{Blocks: len(t.tasks), Run: k.run})
		if t.splits > 1 {
			k.copies, k.set = s.Scratch(copies), kern.For(s.Level)
			phases = append(phases, work.Phase{Blocks: work.Ceil(t.size(), sumBlock), Run: k.sum})
		}
		if t.tiles.Parts > 0 {
			phases = append(phases, work.Phase{Blocks: work.Ceil(t.size(), sumBlock), Run: k.again})
		}
		return phases
	}
}

// tilesOuterKernel is a bound tilesOuter.
type tilesOuterKernel struct {
	*tilesOuter
	*kern.BFloat16
	left, right *work.Pieces
	turned      [][]float32 // by worker, or made ahead by chunk, group and part
	pairs       [][]float32
	dst         []float32
	copies      []float32 // of dst, for each split but the first
	set         *kern.Set // adds copies; nil for plain Go
	workers     []tilesWorker
	splitters   []splitter // by worker, for parts of float32
	bad         []uint32   // by task: not 0 if a number is not finite, for parts
}

// tilesWorker is the scratch of a worker.
type tilesWorker struct {
	args   kern.TileArgs
	sums   []float32
	fresh  []float32    // sums of a chunk, for parts
	stages [2][]float32 // left and right
	_      [128]byte    // workers write to cache lines of their own
}

// run computes a task.
func (k *tilesOuterKernel) run(worker, task int) {
	t, w, s := &k.tasks[task], &k.workers[worker], of(k.splitters, worker)
	if s != nil {
		s.bad = 0
	}
	a := &w.args
	*a = kern.TileArgs{
		Config: kern.Configure(t.span, tilesColumns), Spans: &t.spans[0], Pairs: len(t.spans), StepA: 2 * kern.TileDepth,
		StepC: 4 * tilesColumns,
	}
	panel := t.height() * tilesColumns
	for i := t.from; i < t.to; i++ {
		c, unit := &k.chunks[i], i*k.groups+t.group
		var turned, paired []float32
		if k.turnsAhead() {
			turned = k.turned[unit*k.rowParts+t.rowPart]
		} else {
			turned = k.turned[worker]
			k.turn(turned, s, w, c, t)
		}
		a.A = (*uint16)(unsafe.Pointer(&turned[0]))
		a.Steps, a.Depth = &k.steps[c.blocks][0], len(k.steps[c.blocks])
		var src *uint16
		var step int
		if k.pairsAhead() {
			paired = k.pairs[unit*k.columnParts+t.columnPart]
		} else {
			paired = k.pairs[worker]
			src, step = k.unpaired(s, w, c, t)
		}
		sums := w.sums
		for set, list := range c.right.lists {
			if !k.pairsAhead() {
				k.pair(paired, src, step, list, t)
			}
			for _, tap := range k.sets[set] {
				for j := range work.Ceil(t.columns, tilesColumns) {
					a.B = (*uint32)(unsafe.Pointer(&paired[j*k.panel+tap.shift*tilesColumns]))
					a.C = &sums[0]
					if s != nil && i > t.from {
						a.C = &w.fresh[0]
					}
					k.tiles.Products[2](a)
					if s != nil && i > t.from {
						k.tiles.Add(&sums[0], &w.fresh[0], panel)
					}
					sums = sums[panel:]
				}
			}
		}
		if s == nil {
			a.Add = 1
		}
	}
	if s != nil {
		k.bad[task] = s.bad
	}
	k.write(t, w.sums)
}

// turn turns the rows of a task from a chunk.
func (k *tilesOuterKernel) turn(dst []float32, s *splitter, w *tilesWorker, c *tilesChunk, t *tilesTask) {
	left, to := &k.tilesOuter.left, (*uint16)(unsafe.Pointer(&dst[0]))
	src, step := k.source(s, left, k.left, w.stages[0], c.left, t.group, t.row, t.rows, 8)
	for p := range k.tiles.Planes() {
		k.tiles.Turn(part(to, p*k.blocks*k.height*kern.TileDepth), part(src, p*left.staged), &c.left.lists[0][0], c.blocks,
			work.Eights(t.rows), k.height, step)
	}
}

// unpaired is where the columns of a task begin in a chunk, and the distance between pixels in bytes.
func (k *tilesOuterKernel) unpaired(s *splitter, w *tilesWorker, c *tilesChunk, t *tilesTask) (*uint16, int) {
	right := &k.tilesOuter.right
	if k.line != nil {
		k.line.fill(k.BFloat16, s, w.stages[1], right.staged, k.right, c.right.lines)
		return part((*uint16)(unsafe.Pointer(&w.stages[1][0])), t.column), 2 * k.line.channels
	}
	return k.source(s, right, k.right, w.stages[1], c.right, t.group, t.column, t.columns, 1)
}

// pair makes pairs of the columns of a task from a list of pixels.
func (k *tilesOuterKernel) pair(dst []float32, src *uint16, step int, list []int32, t *tilesTask) {
	for p := range k.tiles.Planes() {
		k.tiles.Pairs((*uint32)(unsafe.Pointer(&dst[p*k.panels*k.panel])), part(src, p*k.tilesOuter.right.staged), &list[0],
			len(list)/2, t.columns, step, 4*k.panel)
	}
}

// turnAhead turns a part of the rows from a chunk, for all tasks that read it.
func (k *tilesOuterKernel) turnAhead(worker, block int) {
	unit := block / k.rowParts
	t := &k.tasks[unit%k.groups*k.rowParts*k.columnParts+block%k.rowParts*k.columnParts]
	k.turn(k.turned[block], nil, &k.workers[worker], &k.chunks[unit/k.groups], t)
}

// pairAhead does so with pairs of columns.
func (k *tilesOuterKernel) pairAhead(worker, block int) {
	unit := block / k.columnParts
	t, c := &k.tasks[unit%k.groups*k.rowParts*k.columnParts+block%k.columnParts], &k.chunks[unit/k.groups]
	src, step := k.unpaired(nil, &k.workers[worker], c, t)
	k.pair(k.pairs[block], src, step, c.right.lists[0], t)
}

// part is p, n numbers on.
func part(p *uint16, n int) *uint16 { return (*uint16)(unsafe.Add(unsafe.Pointer(p), 2*n)) }

// source is the place of n channels of the pixels of a chunk in bfloat16, and the distance between pixels in bytes. It
// copies pixels that are not stored so, or whose channels are not a multiple of unit. Copies of parts, unless parts is
// nil, are staged numbers apart.
func (k *tilesOuterKernel) source(parts *splitter, s *tilesSide, from *work.Pieces, stage []float32, p tilesPixels,
	group, channel,
	n, unit int) (*uint16, int) {
	if parts != nil {
		return k.parts(parts, s, from, stage, p, group, channel, n, unit)
	}
	at := p.first*s.stride + group*s.channels + channel
	if s.stored && n%unit == 0 {
		return &from.Stored()[at], 2 * s.stride
	}
	width := work.Ceil(n, unit) * unit
	to := (*uint16)(unsafe.Pointer(&stage[0]))
	if !s.stored {
		x := from.All()[at:]
		_, _ = x[(p.count-1)*s.stride+n-1], stage[(p.count*width-1)/2]
		k.Narrow(to, &x[0], p.count, n, 2*width, 4*s.stride)
		return to, 2 * width
	}
	x, rows := from.Stored()[at:], unsafe.Slice(to, 2*len(stage))
	for i := range p.count {
		copy(rows[i*width:][:n], x[i*s.stride:])
	}
	return to, 2 * width
}

// write writes the sums of a task to dst, or to its copy.
func (k *tilesOuterKernel) write(t *tilesTask, sums []float32) {
	dst := k.dst
	if t.split > 0 {
		dst = k.copies[(t.split-1)*k.size():][:k.size()]
	}
	panel := t.height() * tilesColumns
	for _, taps := range k.sets {
		for _, tap := range taps {
			first := tap.weight * k.channels
			if !k.flipped {
				at := (first+t.row)*k.columns + t.group*k.rows + t.column
				_ = dst[at+(t.rows-1)*k.columns+t.columns-1]
				k.tiles.Order(&dst[at], &sums[0], t.rows, t.columns, 4*k.columns, 4*panel)
			}
			for j := 0; j < t.columns; j += tilesColumns {
				n := min(tilesColumns, t.columns-j)
				for i := 0; i < t.rows && k.flipped; i += kern.TileRows {
					at := (first+t.column+j)*k.columns + t.group*k.rows + t.row + i
					m := min(kern.TileRows, t.rows-i)
					_ = dst[at+(n-1)*k.columns+m-1]
					k.tiles.Transpose(&dst[at], &sums[i*tilesColumns], m, n, 4*k.columns)
				}
				sums = sums[panel:]
			}
		}
	}
}

// sum adds the copies to dst.
func (k *tilesOuterKernel) sum(_, block int) {
	lo := block * sumBlock
	hi := min(lo+sumBlock, k.size())
	for s := range k.splits - 1 {
		from := k.copies[s*k.size()+lo : s*k.size()+hi]
		if k.set != nil {
			k.set.Add(&k.dst[lo], &from[0], hi-lo)
			continue
		}
		for i, v := range from {
			k.dst[lo+i] += v
		}
	}
}
