package product

import "onlinerna/nn/device/cpu/internal/work"

// made holds results of tiles, or of products that are stored as bfloat16, in float32 until they are stored. If all
// channels are summed at a time, it holds a few panels, otherwise a whole block.
type made struct {
	group   int // panels that are stored together
	columns int // of a panel
	each    int // panels of a block
	size    int // elements, for a worker
}

const (
	// storedColumns is the number of columns that are stored together: a cache line.
	storedColumns = 32
	// tileColumns is that number for tiles: kernels of stored activations sum so many columns at a time.
	tileColumns = 64
	// mostMade is the largest number of columns of a block whose results wait.
	mostMade = 512
)

// prepare returns the number of panels of a block of t, given the number without made.
func (m *made) prepare(t *tiled, each int) int {
	m.columns = t.set.Columns()
	together := storedColumns
	if t.set.Tiles != nil {
		together = tileColumns
	}
	m.each, m.group = min(each, t.panels), max(1, together/m.columns)
	for i := range t.targets {
		if !t.targets[i].once() {
			m.each = min(m.each, mostMade/m.columns)
		}
	}
	m.group = min(m.group, m.each)
	for i := range t.targets {
		g := &t.targets[i]
		m.size = max(m.size, g.block.images*g.block.lines*g.width*m.step(g))
	}
	return m.each
}

// rooms takes room for results for each worker.
func (m *made) rooms(r *work.Room, workers int) []work.Part {
	if m == nil {
		return nil
	}
	return r.Each(workers, m.size)
}

// once reports whether all channels are summed at a time.
func (g *tiledTarget) once() bool { return len(g.taps) == 0 || g.chunk >= g.channels }

// step is the distance from a pixel to the next.
func (m *made) step(g *tiledTarget) int {
	if g.once() {
		return m.group * m.columns
	}
	return m.each * m.columns
}

// last reports whether panel j of a block ends a group.
func (m *made) last(b *tiledBlock, j int) bool {
	return (j-b.panel+1)%m.group == 0 || j+1 == b.panel+b.panels
}

// at is the position of the results of panel j of a block.
func (m *made) at(g *tiledTarget, b *tiledBlock, j int) int {
	return (j - b.panel) * m.columns % m.step(g)
}

// room is the memory for the results of panel j of a block. The first call copies the addend there and
// returns it as add.
func (k *tiledKernel) room(worker int, g *tiledTarget, b *tiledBlock, j int, first bool) (dst, add []float32) {
	dst = k.rooms[worker][k.made.at(g, b, j):]
	if !first || k.added == nil {
		return dst, nil
	}
	k.lines(g, b, func(pixel, at, pixels, stride int) {
		k.added.Copy(dst[pixel*k.made.step(g):], k.made.step(g), at+j*k.made.columns, pixels, k.columns(j), stride)
	})
	return dst, dst
}

// lines calls run for runs of contiguous pixels of a block: the first pixel, its place in dst, the number of pixels and
// their stride in dst.
func (t *tiled) lines(g *tiledTarget, b *tiledBlock, run func(pixel, at, pixels, stride int)) {
	if g.to.whole(t.product) {
		run(0, t.place(g, b, 0, 0), b.images*b.lines*g.width, t.dstC)
		return
	}
	for m := range b.images {
		for l := range b.lines {
			run((m*b.lines+l)*g.width, t.place(g, b, m, l), g.width, g.to.stepW*t.dstC)
		}
	}
}

// store stores the group of panels of a block that ends with panel j.
func (k *tiledKernel) store(worker int, g *tiledTarget, b *tiledBlock, j int) {
	m := k.made
	first := j - (j-b.panel)%m.group
	lo, hi := first*m.columns, min((j+1)*m.columns, k.rows)
	x, step := k.rooms[worker][m.at(g, b, first):], m.step(g)
	if k.set.Tiles != nil && k.finish(worker, g, b, lo, hi, x, step) {
		return
	}
	if k.then != nil || k.add != nil { // such products have one target
		k.endColumns(worker, b.number, lo, hi, k.place(g, b, 0, 0), k.dstC, b.images*b.lines*g.width, x, step)
	}
	if k.stores {
		return
	}
	k.lines(g, b, func(pixel, at, pixels, stride int) {
		if k.dst.Stored() != nil {
			k.dst.Store(x[pixel*step:], step, at+lo, pixels, hi-lo, stride)
			return
		}
		for i := range pixels {
			copy(k.dst.All()[at+lo+i*stride:][:hi-lo], x[(pixel+i)*step:])
		}
	})
}
