package nhwc

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// Rows is an activation cut into rows of whole pixels, along which the parameters of channels are repeated. With few
// channels a row has enough pixels to fill several whole vectors.
type Rows struct {
	Pixels, Channels int
	Repeat           int // pixels in a row
}

// RowsOf cuts an activation for kernels that run along rows.
func RowsOf(pixels, channels int) Rows {
	const (
		wide  = 256 // elements from which on a partial last vector does not matter
		batch = 64  // elements that a kernel call should have at least
		most  = 2 * wide
	)
	r := Rows{pixels, channels, 1}
	if channels >= wide {
		return r
	}
	for r.Width() <= most {
		if r.Width()%batch == 0 && r.Width() >= wide/2 {
			return r
		}
		r.Repeat++
	}
	for r.Repeat = 1; r.Width() < wide/2 || r.Width() != vec.Padded(r.Width()); {
		r.Repeat++
	}
	return r
}

// RowsWith returns rows of repeat pixels.
func RowsWith(pixels, channels, repeat int) Rows { return Rows{pixels, channels, repeat} }

// Width is the number of elements of a row, Size that of all rows.
func (r Rows) Width() int { return r.Repeat * r.Channels }
func (r Rows) Size() int  { return r.Pixels * r.Channels }

// Whole is the number of full rows, Rest the number of elements behind them.
func (r Rows) Whole() int { return r.Pixels / r.Repeat }
func (r Rows) Rest() int  { return r.Pixels % r.Repeat * r.Channels }

// Spread repeats parameters over a row.
func (r Rows) Spread(row, x []float32) {
	for len(row) > 0 {
		row = row[copy(row, x[:r.Channels]):]
	}
}

// Piece is the number of elements of a piece, which consists of whole rows.
func (r Rows) Piece() int { return max(1, work.Piece/r.Width()) * r.Width() }

// Pieces is Phase for a dst that may be stored as bfloat16: then f runs for a piece at a time and the results are
// stored.
func (r Rows) Pieces(dst *work.Pieces, f func(worker, lo, hi int)) work.Phase {
	if dst.Stored() == nil {
		return r.Phase(f)
	}
	piece := r.Piece()
	return r.Phase(func(worker, lo, hi int) {
		for ; lo < hi; lo += piece {
			end := min(lo+piece, hi)
			f(worker, lo, end)
			dst.Done(worker, lo, end)
		}
	})
}

// Phase has workers run f for parts of an activation, elements lo to hi, that begin with a row. It runs from the end to
// the beginning: the end is still in the caches from the op before, and the next op starts at the beginning.
func (r Rows) Phase(f func(worker, lo, hi int)) work.Phase {
	part := max(1, work.ElementBlock/r.Width()) * r.Width()
	blocks := work.Ceil(r.Size(), part)
	return work.Phase{Blocks: blocks, Run: func(worker, block int) {
		lo := (blocks - 1 - block) * part
		f(worker, lo, min(lo+part, r.Size()))
	}}
}
