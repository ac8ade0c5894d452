package cpu

// outer is a sum of outer products over the pixels of a grid:
//
//	dst[k, g·rows + r] = Σ over pixels of a[pixel + tap, g·channels + c] · b[pixel, g·rows + r],  k = tap·channels + c
//
// The gradients of weights are such.
type outer struct {
	grid         // of b's pixels, with a as the source
	groups, rows int
	columns      int // of dst and b: groups × rows
}

// The tile of dst that a block computes, and the pixels that are gathered at a time. The gathered rows are a
// little longer than that: rows a power of two apart would compete for the same cache lines.
const (
	outerRows    = 128
	outerColumns = 128
	outerPixels  = 256
	outerStride  = outerPixels + 16
)

// outerBlock is a tile of dst in one group, summed over a range of pixels. Where there are several ranges, each
// has a copy of dst of its own, to be added up.
type outerBlock struct {
	split, group  int
	pixel, pixels int
	k, kn, row, n int
}

// depth is the number of rows of dst.
func (o *outer) depth() int { return len(o.taps) * o.channels }

// splits is into how many ranges the pixels are cut: so many that there is work for a few dozen workers,
// while each range is long and the copies stay small.
func (o *outer) splits() int {
	const enough, copies = 48, 4 << 20
	tiles := o.groups * ceil(o.depth(), outerRows) * ceil(o.rows, outerColumns)
	n := min(ceil(enough, tiles), ceil(o.pixels(), 2*outerPixels), copies/(o.depth()*o.columns))
	return max(1, n)
}

func ceil(a, b int) int { return (a + b - 1) / b }

func (o *outer) blocks(splits int) []outerBlock {
	var list []outerBlock
	size := ceil(ceil(o.pixels(), splits), outerPixels) * outerPixels
	for s := range splits {
		p := min(s*size, o.pixels())
		for g := range o.groups {
			for k := 0; k < o.depth(); k += outerRows {
				for r := 0; r < o.rows; r += outerColumns {
					list = append(list, outerBlock{
						s, g, p, min(size, o.pixels()-p),
						k, min(outerRows, o.depth()-k), r, min(outerColumns, o.rows-r),
					})
				}
			}
		}
	}
	return list
}

// lower adds the scratch that o needs to r and returns its phases.
func (o *outer) lower(d *Device, r *room, a, b, dst int) func(s *storage) []phase {
	workers := d.pool.workers()
	splits := o.splits()
	blocks := o.blocks(splits)
	size := o.depth() * o.columns
	var copies part
	if splits > 1 {
		copies = r.floats(splits * size)
	}
	left := r.each(workers, min(outerRows, o.depth())*outerStride)
	right := r.each(workers, min(outerColumns, o.rows)*outerStride)
	zeros := r.floats(max(o.channels, o.rows))

	return func(s *storage) []phase {
		k := &outerKernel{
			outer: o, blocks: blocks, size: size, splits: splits,
			a: s.floats(a), b: s.floats(b), dst: s.floats(dst), zeros: s.scratch(zeros),
			left: s.scratches(left), right: s.scratches(right), offsets: make([][]int32, workers),
		}
		for i := range k.offsets {
			k.offsets[i] = make([]int32, outerPixels)
		}
		k.to = k.dst
		if splits == 1 {
			return []phase{{1, k.clear}, {len(blocks), k.run}}
		}
		k.to = s.scratch(copies)
		return []phase{{1, k.clear}, {len(blocks), k.run}, {ceil(size, sumBlock), k.sum}}
	}
}

// outerKernel is a bound outer.
type outerKernel struct {
	*outer
	blocks       []outerBlock
	size, splits int
	a, b, dst    []float32
	to           []float32 // dst, or the copies of it
	zeros        []float32
	left, right  [][]float32 // by worker
	offsets      [][]int32   // by worker
}

func (k *outerKernel) clear(_, _ int) { clear(k.zeros) }

// run computes a block.
func (k *outerKernel) run(worker, block int) {
	b := k.blocks[block]
	left, right, offsets := k.left[worker], k.right[worker], k.offsets[worker]
	first := b.group*k.rows + b.row
	c := k.to[b.split*k.size+b.k*k.columns+first:]
	if b.pixels == 0 {
		for i := range b.kn {
			clear(c[i*k.columns:][:b.n])
		}
	}
	for p := 0; p < b.pixels; p += outerPixels {
		m := min(outerPixels, b.pixels-p)
		k.gather(left, outerStride, k.a, b.group*k.channels, b.pixel+p, m, b.k, b.kn, offsets, k.zeros)
		for i := range m {
			offsets[i] = int32(b.pixel + p + i)
		}
		transpose(right, outerStride, k.b[first:], k.columns, k.zeros[:b.n], offsets[:m])
		gemm(b.kn, b.n, m, left, outerStride, right, outerStride, c, k.columns, p > 0)
	}
}

// sumBlock is how many elements of dst are summed at a time.
const sumBlock = 4096

// sum adds up the copies.
func (k *outerKernel) sum(_, block int) {
	lo := block * sumBlock
	hi := min(lo+sumBlock, k.size)
	dst := k.dst[lo:hi]
	copy(dst, k.to[lo:hi])
	for s := 1; s < k.splits; s++ {
		for i, v := range k.to[s*k.size+lo : s*k.size+hi] {
			dst[i] += v
		}
	}
}
