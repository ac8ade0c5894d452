package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// Products of float32 may run in tiles, in parts of bfloat16: see package kern. Both operands are split as they are
// copied. Sums that are not finite, of operands that are not, are computed again in float32, term by term.

// splitRoom is the number of elements that are split at a time.
const splitRoom = 1024

// splitter splits a worker's operands.
type splitter struct {
	tiles *kern.Tiles
	room  []float32 // splitRoom elements of each part
	bad   uint32    // not 0 if a number was not finite
}

// splitRooms takes the rooms of splitters, if t multiplies in parts.
func splitRooms(r *work.Room, t *kern.Tiles, workers int) []work.Part {
	if t == nil || t.Parts == 0 {
		return nil
	}
	return r.Each(workers, splitRoom*t.Parts)
}

// newSplitters returns the splitters of workers with the given rooms.
func newSplitters(t *kern.Tiles, rooms [][]float32) []splitter {
	list := make([]splitter, len(rooms))
	for i, room := range rooms {
		list[i] = splitter{tiles: t, room: room}
	}
	return list
}

// of is the splitter of a worker, or nil.
func of(list []splitter, worker int) *splitter {
	if len(list) == 0 {
		return nil
	}
	return &list[worker]
}

// split splits rows of n numbers, step apart, into rows of the room that are ld apart.
func (s *splitter) split(src []float32, rows, n, step, ld int) {
	_ = src[(rows-1)*step+n-1]
	s.tiles.Split[s.tiles.Parts](&s.room[0], &src[0], rows, n, 4*ld, 4*step, 4*splitRoom, &s.bad)
}

// each splits rows of any length piece by piece, and calls f for the parts of each.
func (s *splitter) each(src []float32, rows, n, step int, f func(p, row, column, rows, n, ld int, from *float32)) {
	for column := 0; column < n; column += splitRoom {
		width := min(splitRoom, n-column)
		ld := work.Ceil(width, kern.TileWidth) * kern.TileWidth
		most := splitRoom / ld
		for row := 0; row < rows; row += most {
			m := min(most, rows-row)
			s.split(src[row*step+column:], m, width, step, ld)
			for p := range s.tiles.Parts {
				f(p, row, column, m, width, ld, &s.room[p*splitRoom])
			}
		}
	}
}

// words writes rows of n numbers, step apart, as words: rows that are stride apart, and parts that are part apart.
func (s *splitter) words(narrow *kern.Narrow, dst []float32, part, stride int, src []float32, rows, n, step int) {
	s.each(src, rows, n, step, func(p, row, column, rows, n, ld int, from *float32) {
		narrow.Copy(&dst[p*part+row*stride+column/narrow.Step], from, rows, n, 4*stride, 4*ld)
	})
}

// narrowed writes such rows as bfloat16. stride and part are in numbers.
func (s *splitter) narrowed(b *kern.BFloat16, dst []uint16, part, stride int, src []float32, rows, n, step int) {
	s.each(src, rows, n, step, func(p, row, column, rows, n, ld int, from *float32) {
		b.Narrow(&dst[p*part+row*stride+column], from, rows, n, 2*stride, 4*ld)
	})
}

// splitRows is PackedRows for parts, which are plane words apart.
func (k *tiledKernel) splitRows(s *splitter, g *tiledTarget, dst, from []float32, plane, channels, n, width int) {
	const most = splitRoom / (2 * kern.TileWidth) // channels at a time, an even number
	for c := 0; c < channels; c += most {
		m := min(most, channels-c)
		s.split(from[c*k.weightChannel:], m, n, k.weightChannel, width)
		for p := range s.tiles.Parts {
			rows, to := s.room[p*splitRoom:], dst[p*plane+c/2*width:]
			if m > 1 {
				g.narrow.PairRows(&to[0], &rows[0], &rows[width], m/2, width, 4*width, 8*width)
			}
			if m%2 != 0 {
				g.narrow.PairRows(&to[m/2*width], &rows[(m-1)*width], &kern.Zeros[0], 1, width, 0, 0)
			}
		}
	}
	for p := range s.tiles.Parts {
		clear(dst[p*plane+(channels+1)/2*width : p*plane+g.narrow.Words(channels)*width])
	}
}

// splitColumns is PackedColumns for parts. square is a worker's room for a tile.
func (k *tiledKernel) splitColumns(s *splitter, g *tiledTarget, dst, from, square []float32,
	plane, channels, n, width int) {
	for c := 0; c < g.narrow.Whole(channels); c += kern.TileDepth {
		deep := min(kern.TileDepth, channels-c)
		for j := 0; j < width; j += kern.TileRows {
			columns := min(kern.TileRows, n-j)
			s.split(from[j*k.weightRow+c:], columns, deep, k.weightRow, kern.TileDepth)
			for p := range s.tiles.Parts {
				g.narrow.Copy(&square[0], &s.room[p*splitRoom], columns, deep, 4*kern.TileWidth, 4*kern.TileDepth)
				k.set.Tiles.Square(&dst[p*plane+c/2*width+j], &square[0], 4*width, 4*kern.TileWidth)
			}
		}
	}
}

// In parts, sums begin with 0, since a large start would round small terms coarsely: sums of chunks of channels, and the
// bias, are added behind them.

// addRows adds columns of rows, step apart, to the sums of a panel of a block.
func (k *tiledKernel) addRows(g *tiledTarget, b *tiledBlock, sums, rows []float32, step, columns int) {
	for pixel := range b.images * b.lines * g.width {
		k.set.Tiles.Add(&sums[pixel*k.stepC(g)], &rows[pixel*step], columns)
	}
}

// freshRooms takes room for sums of a chunk of channels behind the first one, for parts.
func (t *tiled) freshRooms(r *work.Room, workers int) []work.Part {
	for i := range t.targets {
		if t.set.Planes() > 1 && !t.targets[i].once() {
			return t.made.rooms(r, workers)
		}
	}
	return nil
}

// again computes the sums of a panel of a block that are not finite.
func (k *tiledKernel) again(worker int, g *tiledTarget, b *tiledBlock, panel int) {
	sums, step := k.rooms[worker][k.made.at(g, b, panel):], k.stepC(g)
	for pixel := range b.images * b.lines * g.width {
		for i, v := range sums[pixel*step:][:k.columns(panel)] {
			if !kern.Finite(v) {
				sums[pixel*step+i] = k.direct(g, b, pixel, panel*k.set.Columns()+i)
			}
		}
	}
}

// direct is the sum of a pixel of a block in a row of the product. Zeros around the source are multiplied too.
func (k *tiledKernel) direct(g *tiledTarget, b *tiledBlock, pixel, row int) (sum float32) {
	if k.bias != nil {
		sum = k.bias[b.group*k.rows+row]
	}
	image, line, column := b.image+pixel/(b.lines*g.width), b.line+pixel/g.width%b.lines, pixel%g.width
	for _, t := range g.taps {
		at := g.sourcePixel(image, line*g.rowStep+t.row, column*g.colStep+t.col)
		w := k.weights[t.weight*k.weightTap+b.group*k.weightGroup+row*k.weightRow:]
		for c := range g.channels {
			x := float32(0)
			if at >= 0 {
				x = k.src.All()[at*g.srcC+b.group*g.channels+c]
			}
			if sum = kern.Fused(x, w[c*k.weightChannel], sum); sum != sum {
				return sum
			}
		}
	}
	return sum
}

// again computes the elements of dst that are not finite, if an operand was not.
func (k *tilesOuterKernel) again(_, block int) {
	bad := uint32(0)
	for _, b := range k.bad {
		bad |= b
	}
	lo := block * sumBlock
	hi := min(lo+sumBlock, k.size())
	if bad == 0 {
		return
	}
	for i, v := range k.dst[lo:hi] {
		if !kern.Finite(v) {
			k.dst[lo+i] = k.direct(lo + i)
		}
	}
}

// direct is an element of dst.
func (k *tilesOuterKernel) direct(i int) (sum float32) {
	o := k.whole
	a, b := k.left.All(), k.right.All()
	if k.flipped {
		a, b = b, a
	}
	row, column := i/o.columns, i%o.columns
	var t tap
	for _, t = range o.taps {
		if t.weight == row/o.channels {
			break
		}
	}
	channel := column/o.rows*o.channels + row%o.channels
	for p := range o.pixels() {
		image, line, at := o.at(p)
		from := o.sourcePixel(image, line*o.rowStep+t.row, at*o.colStep+t.col)
		x := float32(0)
		if from >= 0 {
			x = a[from*o.srcC+channel]
		}
		if sum = kern.Fused(x, b[p*o.columns+column], sum); sum != sum {
			return sum
		}
	}
	return sum
}

// parts copies an operand of a chunk in parts.
func (k *tilesOuterKernel) parts(s *splitter, x *tilesSide, from *work.Pieces, stage []float32, p tilesPixels,
	group, channel, n, unit int) (*uint16, int) {
	width := work.Ceil(n, unit) * unit
	to := unsafe.Slice((*uint16)(unsafe.Pointer(&stage[0])), 2*len(stage))
	s.narrowed(k.BFloat16, to, x.staged, width, from.All()[p.first*x.stride+group*x.channels+channel:], p.count, n,
		x.stride)
	return &to[0], 2 * width
}
