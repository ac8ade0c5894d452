package product

import (
	"unsafe"

	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// tilesLine reads lines of taps of few channels as one tap: in a copy of the source with its padding, their channels
// lie side by side.
type tilesLine struct {
	*grid
	channels  int // of a pixel
	top, left int // of the window
	width     int // pixels of a line of the copy
}

// tilesLines are lines of a copy: of each of some images.
type tilesLines struct{ image, images, row, lines int }

// mergeLines returns o with lines of taps as taps that have at least least channels, or nil.
func (o *outer) mergeLines(least int) (*outer, *tilesLine) {
	n := o.tapColumns()
	if o.groups != 1 || n*o.channels < least {
		return nil, nil
	}
	first := o.taps[0]
	line := &tilesLine{&o.grid, o.channels, first.row, first.col, (o.width-1)*o.colStep + n}
	merged := *o
	merged.channels, merged.taps = n*o.channels, nil
	for i := 0; i < len(o.taps); i += n {
		merged.taps = append(merged.taps, tap{o.taps[i].row, first.col, i / n})
	}
	return &merged, line
}

// of returns the lines of a copy under an extent.
func (l *tilesLine) of(e extent) tilesLines {
	height := l.taps[len(l.taps)-1].row - l.top + 1
	return tilesLines{e.image, e.images, e.line*l.rowStep + l.top, (e.lines-1)*l.rowStep + height}
}

// elements is the number of elements of a copy.
func (l *tilesLine) elements(x tilesLines) int { return x.images * x.lines * l.width * l.channels }

// lineChunks have pairs of pixels for each line of taps, in a copy.
func (t *tilesOuter) lineChunks() ([]tilesChunk, [][]tilesTap) {
	g := &t.grid
	return t.tapChunks(func(e extent, image, i, j int, tap tap) int {
		return (image*t.line.of(e).lines+i*g.rowStep+tap.row-t.line.top)*t.line.width + j*g.colStep
	})
}

// fill copies lines of the source, with zeros around them, in bfloat16, or to copies of the parts of s, which may be
// nil, that are staged numbers apart.
func (l *tilesLine) fill(b *kern.BFloat16, s *splitter, stage []float32, staged int, from *work.Pieces, x tilesLines) {
	dst := unsafe.Slice((*uint16)(unsafe.Pointer(&stage[0])), 2*len(stage))
	if s != nil { // the zeros of all parts
		clear(dst)
	}
	lo := min(l.width, max(0, -l.left)) // pixels of a line that lie in the source
	hi := max(lo, min(l.width, l.srcW-l.left))
	n := (hi - lo) * l.channels
	for m := range x.images {
		for i := range x.lines {
			line := dst
			dst = dst[l.width*l.channels:]
			row := x.row + i
			if row < 0 || row >= l.srcH || n == 0 {
				clear(line[:l.width*l.channels])
				continue
			}
			clear(line[:lo*l.channels])
			clear(line[hi*l.channels : l.width*l.channels])
			at := (((x.image+m)*l.srcH+row)*l.srcW + l.left + lo) * l.channels
			switch stored := from.Stored(); {
			case s != nil:
				s.narrowed(b, line[lo*l.channels:], staged, n, from.All()[at:], 1, n, n)
			case stored != nil:
				copy(line[lo*l.channels:], stored[at:at+n])
			default:
				b.Narrowed(line[lo*l.channels:hi*l.channels], from.All()[at:at+n])
			}
		}
	}
}
