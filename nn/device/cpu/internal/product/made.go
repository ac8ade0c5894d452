package product

// made is where the results of a product that are stored as bfloat16 are float32 until then. If all channels are summed at a
// time they wait there for a few panels, otherwise for all of a block.
type made struct {
	group   int // panels that are stored together
	columns int // of a panel
	each    int // panels of a block
	pixels  int // of a block
	size    int // elements, for a worker
}

const (
	// storedColumns are columns that are stored together: a line of cache.
	storedColumns = 32
	// mostMade are the most columns of a block whose results wait.
	mostMade = 512
)

// prepare returns how many panels a block of t has, which would have so many.
func (m *made) prepare(t *tiled, each int) int {
	m.columns = t.set.Columns()
	m.each, m.group = min(each, t.panels), max(1, storedColumns/m.columns)
	for i := range t.families {
		if !t.families[i].once() {
			m.each = min(m.each, mostMade/m.columns)
		}
	}
	m.group = min(m.group, m.each)
	for i := range t.families {
		f := &t.families[i]
		pixels := f.block.images * f.block.lines * f.width
		m.pixels = max(m.pixels, pixels)
		if f.once() {
			m.size = max(m.size, pixels*m.step(f))
		} else {
			m.size = max(m.size, len(f.targets)*pixels*m.step(f))
		}
	}
	return m.each
}

// once says whether all channels are summed at a time.
func (f *family) once() bool { return len(f.targets[0].taps) == 0 || f.chunk >= f.channels }

// step is from a pixel to the next.
func (m *made) step(f *family) int {
	if f.once() {
		return m.group * m.columns
	}
	return m.each * m.columns
}

// last says whether panel j of a block is the last one of a group.
func (m *made) last(b *tiledBlock, j int) bool {
	return (j-b.panel+1)%m.group == 0 || j+1 == b.panel+b.panels
}

// at is where panel j of target i of a block is made.
func (m *made) at(f *family, b *tiledBlock, i, j int) int {
	if f.once() {
		return (j - b.panel) % m.group * m.columns
	}
	return i*f.block.images*f.block.lines*f.width*m.step(f) + (j-b.panel)*m.columns
}

// room is where panel j of target i of a block is made, and what is added to it: at first that is in the same place.
func (k *tiledKernel) room(worker int, f *family, b *tiledBlock, i, j int, first bool) (dst, add []float32) {
	dst = k.rooms[worker][k.made.at(f, b, i, j):]
	if !first || k.added == nil {
		return dst, nil
	}
	k.lines(f, b, i, func(pixel, at, pixels, stride int) {
		k.added.Copy(dst[pixel*k.made.step(f):], k.made.step(f), at+j*k.made.columns, pixels, k.columns(j), stride)
	})
	return dst, dst
}

// lines calls f for runs of pixels of target i of a block: the first one, where it begins in dst, how many they are and how far
// apart they lie there.
func (t *tiled) lines(f *family, b *tiledBlock, i int, run func(pixel, at, pixels, stride int)) {
	g := &f.targets[i]
	if g.whole(t.product) {
		run(0, t.place(b, g, 0, 0), b.images*b.lines*f.width, t.dstC)
		return
	}
	for m := range b.images {
		for l := range b.lines {
			run((m*b.lines+l)*f.width, t.place(b, g, m, l), f.width, g.stepW*t.dstC)
		}
	}
}

// store stores the group of panels of target i of a block that ends with panel j.
func (k *tiledKernel) store(worker int, f *family, b *tiledBlock, i, j int) {
	m := k.made
	first := j - (j-b.panel)%m.group
	lo, hi := first*m.columns, min((j+1)*m.columns, k.rows)
	x, step := k.rooms[worker][m.at(f, b, i, first):], m.step(f)
	if k.then != nil || k.add != nil { // there is one target
		k.endColumns(worker, b.number, lo, hi, k.place(b, &f.targets[i], 0, 0), k.dstC, b.images*b.lines*f.width, x, step)
	}
	k.lines(f, b, i, func(pixel, at, pixels, stride int) {
		k.dst.Store(x[pixel*step:], step, at+lo, pixels, hi-lo, stride)
	})
}
