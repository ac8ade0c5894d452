package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// lines are the lines of a source under a line of a grid: in the source itself, or float32 copies rounded to bfloat16.
// A worker copies each line once while it goes down an image: line r is copied to place r modulo span.
type lines struct {
	*grid
	src    *work.Pieces
	room   []float32 // nil if the source is read in place
	span   int       // lines of room
	stride int       // from a line of room to the next
	top    int       // source line under the first tap of line 0 of the grid
	image  int       // of the copies; -1 before the first
	next   int       // lines of the image before next are copied, or no longer needed
}

// lineTail is room behind a line for a partial last vector.
const lineTail = 16

// reach is the first row of the taps and the number of rows from it to the last.
func (g *grid) reach() (top, span int) {
	if len(g.taps) == 0 {
		return 0, 0
	}
	top = g.taps[0].row
	bottom := top
	for _, t := range g.taps {
		top, bottom = min(top, t.row), max(bottom, t.row)
	}
	return top, bottom - top + 1
}

// lineStride is the distance between copies of lines.
func (g *grid) lineStride() int { return g.srcW*g.srcC + lineTail }

// lineRoom is the number of elements of copies of lines, for a worker.
func (g *grid) lineRoom() int {
	_, span := g.reach()
	return span * g.lineStride()
}

// newLines returns lines of a source for a worker: copies if there are rooms.
func newLines(g *grid, src *work.Pieces, rooms [][]float32, worker int) lines {
	x := lines{grid: g, src: src, image: -1, stride: g.lineStride()}
	if len(rooms) > 0 {
		x.room = rooms[worker]
		x.top, x.span = g.reach()
	}
	return x
}

// first is the element from which places are counted; nil without taps.
func (x *lines) first() *float32 {
	switch {
	case x.room == nil:
		return &x.src.All()[0]
	case x.span == 0:
		return nil
	}
	return &x.room[0]
}

// at is the place of a line of an image.
func (x *lines) at(image, row int) int {
	if x.room == nil {
		return (image*x.srcH + row) * x.srcW * x.srcC
	}
	return row % x.span * x.stride
}

// fill copies the lines under line i of an image.
func (x *lines) fill(image, i int) {
	if x.room == nil {
		return
	}
	if x.image != image {
		x.image, x.next = image, 0
	}
	first := i*x.rowStep + x.top
	width := x.srcW * x.srcC
	for x.next = max(x.next, first); x.next < min(first+x.span, x.srcH); x.next++ {
		copyRounded(x.room[x.next%x.span*x.stride:], x.src, (image*x.srcH+x.next)*width, width)
	}
}

// copyRounded copies elements, rounded to bfloat16. It writes whole vectors.
func copyRounded(dst []float32, src *work.Pieces, from, n int) {
	src.Copy(dst, n, from, 1, n, n)
	if src.Stored() == nil {
		kern.RoundAll(dst[:n])
	}
}
