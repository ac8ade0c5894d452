package product

import (
	"math"
	"unsafe"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/mapping"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// epilogue is the work on a product's results while they are in registers or in a cache.
type epilogue struct {
	folded *folded        // nil for none
	other  int            // an addend of the result, or -1
	relu   bool           // negative results become 0
	sums   *blockSums     // nil for none
	rounds bool           // the result is rounded to bfloat16 before then, as if it were stored in between
	halves []work.Part    // for that, by worker
	then   *mapping.Chain // an expression that follows each block, or nil
	plan   *mapping.Plan  // the plan of then
}

// folded changes the weights and the bias of a product as they are packed: a batch normalisation by constants, or scale
// alone if stats and bias are -1.
type folded struct {
	eps                float64
	stats, scale, bias int  // values
	fixed              bool // they are the same in all runs
	gain, shift        work.Part
}

// blockSums are sums of two quantities over the pixels of each channel. Each block is summed as soon as it is computed.
type blockSums struct {
	// bind returns three functions: prepare fills the parameters of a row of channels (nil without parameters), add sums a
	// matrix, and finish receives the totals of a channel. If operands in reads are stored as bfloat16, rooms has space
	// for them, by worker.
	bind func(s *work.Storage, rooms [][][]float32) (prepare func(row []float32, r nhwc.Rows), add addSums,
		finish func(channel int, first, second float64))
	reads []int // the sums' operands beside the result, with its shape
	// store returns an add that also stores the result as bfloat16, or nil.
	store func(s *work.Storage) addSums

	rows                nhwc.Rows
	rooms               [][]work.Part
	blocks              int
	partial, parameters work.Part
}

// addSums adds the sums of matrix m, whose rows are in made, step apart.
type addSums func(worker int, m nhwc.Summed, made []float32, step int)

// sumRows is the number of bfloat16 rows that are summed at a time.
const sumRows = 64

// stride is the number of partial sums of a block.
func (b *blockSums) stride() int { return 2 * vec.Padded(b.rows.Width()) }

// summable reports whether the blocks of p are whole lines of all channels.
func (p *product) summable() bool {
	return p.groups == 1 && len(p.grids) == 1 && p.grids[0].whole(p) && len(p.grids[0].taps) > 0
}

// keeps reports whether packed weights of p last from run to run.
func (e *epilogue) keeps(p *product) bool { return p.fixed && (e.folded == nil || e.folded.fixed) }

// lower reserves the scratch of e in r. keep says that packed weights last from run to run. columns counts the packed
// columns of the product; its result has the given rows and consists of the given number of blocks.
func (e *epilogue) lower(r *work.Room, keep bool, workers, columns int, rows nhwc.Rows, blocks int) {
	if e.then != nil {
		e.plan = e.then.Over(r, workers)
		if e.rounds {
			e.halves = r.Each(workers, tileColumns/2) // numbers of two bytes
		}
	}
	if n := e.folded; n != nil {
		n.gain, n.shift = r.Keep(keep, columns), r.Keep(keep, columns)
	}
	if s := e.sums; s != nil {
		s.rows, s.blocks = rows, blocks
		s.partial, s.parameters = r.Doubles(s.blocks*s.stride()), r.Floats(s.rows.Width())
	}
}

// boundEpilogue is the epilogue of a bound product.
type boundEpilogue struct {
	vectors     *vec.Set
	level       simd.Level
	gain, shift []float32    // of the packed columns of all groups, or nil
	added       *work.Pieces // nil for none

	then     *mapping.Bound // nil for none
	rounding *kern.BFloat16 // rounds before then, in halves; nil for no rounding
	halves   [][]float32    // by worker, for numbers of two bytes

	add        addSums        // nil for none
	reads      []*work.Pieces // its operands
	stores     bool           // add stores the result
	waits      bool           // the result waits to be stored as bfloat16
	partial    []float64
	stride     int // of partial, from a block to the next
	parameters []float32
}

// bind fills k and returns the phases before the packing of weights and the phases after all blocks. padded is the
// number of packed columns of a group, including unused ones; keep is that of lower.
func (e *epilogue) bind(s *work.Storage, keep bool, k *boundEpilogue, p *product, padded int) (before,
	after []work.Phase) {
	k.vectors, k.level = vec.For(s.Level), s.Level
	if e.other >= 0 {
		k.added = s.Pieces(e.other)
	}
	if e.plan != nil {
		k.then, before = e.plan.Bind(s)
		if e.rounds {
			k.rounding, k.halves = kern.Stored(s.Level), s.Scratches(e.halves)
		}
	}
	if n := e.folded; n != nil {
		k.gain, k.shift = s.Scratch(n.gain), s.Scratch(n.shift)
		scale := s.Floats(n.scale)
		var stats, bias []float32
		if n.stats >= 0 {
			stats, bias = s.Floats(n.stats), s.Floats(n.bias)
		}
		before = append(before, work.Phase{Blocks: 1, Once: keep, Run: func(int, int) {
			channels := len(scale)
			for g := range p.groups {
				gain, shift := k.gain[g*padded:][:padded], k.shift[g*padded:][:padded]
				clear(gain[p.rows:])
				clear(shift)
				for j := range p.rows {
					c := (g*p.rows + j) % channels // pixels may be folded
					if stats == nil {
						gain[j] = scale[c]
						continue
					}
					a := float64(scale[c]) / math.Sqrt(float64(stats[channels+c])+n.eps)
					gain[j], shift[j] = float32(a), float32(float64(bias[c])-float64(stats[c])*a)
				}
			}
		}})
	}
	if b := e.sums; b != nil {
		var rooms [][][]float32
		for _, r := range b.rooms {
			rooms = append(rooms, s.Scratches(r))
		}
		prepare, add, finish := b.bind(s, rooms)
		k.add, k.partial, k.stride, k.parameters = add, s.Scratch64(b.partial), b.stride(), s.Scratch(b.parameters)
		for _, v := range b.reads {
			k.reads = append(k.reads, s.Pieces(v))
		}
		if store := b.store(s); k.waits && store != nil {
			k.add, k.stores = store, true
		}
		if prepare != nil {
			before = append(before, work.Phase{Blocks: 1, Run: func(int, int) { prepare(k.parameters, b.rows) }})
		}
		after = append(after, nhwc.Totals(k.partial, b.stride(), b.rows, finish))
	}
	return before, after
}

// scale applies the folded normalisation to a packed panel: a row of biases, then the rows of weights.
func (k *tiledKernel) scale(panel []float32, width, group, first int) {
	if k.gain == nil {
		return
	}
	gain, shift := k.gain[group*k.padded+first:][:width], k.shift[group*k.padded+first:][:width]
	k.vectors.Scale(panel, panel, gain)
	k.vectors.Add(panel[:width], panel[:width], shift)
}

// end runs the epilogue of a whole block.
func (k *tiledKernel) end(worker int, b *tiledBlock) {
	lo := b.panel * k.set.Columns()
	hi := min(lo+b.panels*k.set.Columns(), k.rows)
	from := (b.image*k.dstH + b.line) * k.dstW * k.dstC
	k.endColumns(worker, b.number, lo, hi, from, k.dstC, b.images*b.lines*k.targets[b.target].width,
		k.dst.All()[from+lo:], k.dstC)
}

// endColumns runs the epilogue of columns lo to hi of a block: rows of the result, stride apart, that begin at element
// from. Their values are in the rows of made, step apart.
func (k *boundEpilogue) endColumns(worker, block, lo, hi, from, stride, rows int, made []float32, step int) {
	if k.rounding != nil {
		k.round(worker, hi-lo, rows, made, step)
	}
	if k.then != nil {
		k.compute(worker, from+lo, hi-lo, stride, rows, made, step)
	}
	if k.add == nil {
		return
	}
	partial := k.partial[block*k.stride:][:k.stride]
	m := nhwc.Summed{
		First: partial[lo:vec.Padded(hi)], Second: partial[k.stride/2+lo : k.stride/2+vec.Padded(hi)],
		From:       from + lo,
		Parameters: k.parameters[lo:hi],
		Width:      hi - lo, Stride: stride, Rows: rows,
	}
	clear(m.First)
	clear(m.Second)
	each := rows
	if k.waits && !k.stores {
		each = sumRows
	}
	for r := 0; r < rows; r += each {
		m.From, m.Rows = from+lo+r*stride, min(each, rows-r)
		k.add(worker, m, made[r*step:], step)
	}
}

// round rounds rows of made to bfloat16.
func (k *boundEpilogue) round(worker, width, rows int, made []float32, step int) {
	room := unsafe.Slice((*uint16)(unsafe.Pointer(&k.halves[worker][0])), tileColumns)
	for r := range rows {
		for row := made[r*step:][:width]; len(row) > 0; {
			n := min(len(row), len(room))
			k.rounding.Narrowed(room[:n], row[:n])
			k.rounding.Widened(row[:n], room[:n])
			row = row[n:]
		}
	}
}

// compute applies the expression to rows of the result that begin at element from.
func (k *boundEpilogue) compute(worker, from, width, stride, rows int, made []float32, step int) {
	if width == step && (width == stride || k.then.Alone()) {
		k.then.RunOver(worker, from, made[:rows*step])
		return
	}
	for r := range rows {
		k.then.RunOver(worker, from+r*stride, made[r*step:][:width])
	}
}
