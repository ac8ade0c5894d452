package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
)

// pack writes a panel.
func (k *tiledKernel) pack(worker, block int) {
	p := k.pieces[block]
	g := &k.targets[p.target]
	n := k.columns(p.panel)
	width := k.set.Vectors(n) * k.set.Lanes
	dst := k.packed[k.panel(g, p.group, p.panel):][:g.deep*width]
	if k.set.Tiles != nil {
		s := of(k.splitters, worker)
		if s != nil {
			s.bad = 0
		}
		k.packTiles(s, g, p, dst, k.args[worker].room[:], n, width)
		if s != nil {
			k.bad[block] = s.bad
		}
		return
	}
	clear(dst[:width])
	if k.bias != nil {
		for to := dst[:n]; len(to) > 0; { // again for each of the folded pixels
			to = to[copy(to, k.bias[p.group*k.rows+p.panel*k.set.Columns():]):]
		}
	}
	dst = dst[width:]
	w := k.weights[p.group*k.weightGroup+p.panel*k.set.Columns()*k.weightRow:]
	for c := 0; c < g.channels; c += g.chunk {
		channels := min(g.chunk, g.channels-c)
		whole := g.narrow.Whole(channels)
		for _, t := range g.taps {
			clear(dst[channels*width : whole*width])
			if k.weightsOf != nil {
				k.packFolded(dst, width, t, c, channels)
				dst = dst[whole*width:]
				continue
			}
			from := w[t.weight*k.weightTap+c*k.weightChannel:]
			if k.weightRow == 1 {
				_ = from[(channels-1)*k.weightChannel+n-1]
				k.set.Copy(&dst[0], &from[0], channels, n, 4*width, 4*k.weightChannel)
			} else {
				k.set.Transpose(dst, width, from, k.weightRow, n, channels)
			}
			dst = dst[whole*width:]
		}
	}
	panel := k.packed[k.panel(g, p.group, p.panel):][:g.deep*width]
	k.scale(panel, width, p.group, p.panel*k.set.Columns())
	switch {
	case g.narrow != nil:
		narrowRows(g.narrow, panel[width:], width, g.depth)
	case g.pairs(k.set, n):
		k.set.Interleave(&panel[width], g.depth/2)
	}
}

// narrowRows converts rows of elements to rows of words, in place: the elements of a word are its steps along the
// depth.
func narrowRows(n *kern.Narrow, x []float32, width, rows int) {
	if n.Step == 1 {
		n.Copy(&x[0], &x[0], 1, rows*width, 0, 0)
		return
	}
	n.PairRows(&x[0], &x[0], &x[width], rows, width, 4*width, 8*width)
}

// Sums over pixels of pairs of bfloat16 put two adjacent pixels, of a line or of contiguous lines, into a word. In a
// tile every pixel has a word with the pixel after it, so that taps may begin at any pixel. The element behind an odd
// number of pixels is multiplied by 0.

// pairs reports whether a word holds two pixels.
func (t *tiledOuter) pairs() bool { return t.set.Narrow != nil && t.set.Narrow.Step == 2 }

// next is the distance from a pixel of a tile to the next pixel.
func (t *tiledOuter) next() int { return t.halo.right * t.halo.stride }

// tileSize is the number of words of a tile; with pairs it includes room behind the last pixel.
func (t *tiledOuter) tileSize() int {
	if !t.pairs() {
		return t.halo.size()
	}
	return t.halo.size() + t.next() + t.set.Lanes
}

// pairTile converts a filled tile to words.
func (t *tiledOuter) pairTile(tile []float32, x extent) {
	h := &t.halo
	lines := (x.images-1)*h.tileLines + (x.lines-1)*h.down + h.tileLines - (h.block.lines-1)*h.down
	n := lines * h.tileWidth * h.stride
	whole := t.set.Vectors(n) * t.set.Lanes
	clear(tile[n : whole+t.next()])
	t.set.Narrow.PairRows(&tile[0], &tile[0], &tile[t.next()], 1, whole, 0, 0)
}

// narrowPanels converts panels of the given columns and pixels to words.
func (t *tiledOuter) narrowPanels(x []float32, columns, pixels int) {
	for j := 0; j < columns; j += t.set.Columns() {
		t.narrowPanel(x[j*pixels:], t.set.Vectors(min(t.set.Columns(), columns-j))*t.set.Lanes, pixels)
	}
}

// narrowPanel converts a panel of the given pixels to words.
func (t *tiledOuter) narrowPanel(x []float32, width, pixels int) {
	n := t.set.Narrow
	if n.Step == 1 {
		narrowRows(n, x, width, pixels)
		return
	}
	line := t.depth
	if line == 0 {
		line = pixels
	}
	to := 0
	for from := 0; from < pixels; from += line {
		if line > 1 {
			n.PairRows(&x[to*width], &x[from*width], &x[(from+1)*width], line/2, width, 4*width, 8*width)
		}
		if line%2 != 0 {
			n.PairRows(&x[(to+line/2)*width], &x[(from+line-1)*width], &kern.Zeros[0], 1, width, 0, 0)
		}
		to += n.Words(line)
	}
}
