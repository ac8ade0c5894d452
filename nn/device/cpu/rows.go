package cpu

import "onlinerna/nn/device/cpu/internal/vec"

// rows is an activation cut into rows of whole pixels, along which parameters of channels are repeated. Where
// there are few channels a row has so many pixels that it fills whole vectors, and several.
type rows struct {
	pixels, channels int
	repeat           int // pixels in a row
}

func rowsOf(pixels, channels int) rows {
	const (
		wide  = 256 // elements, from which on a vector that is not full does not matter
		batch = 64  // elements that kernels like to have in hand
		most  = 2 * wide
	)
	r := rows{pixels, channels, 1}
	if channels >= wide {
		return r
	}
	for r.width() <= most {
		if r.width()%batch == 0 && r.width() >= wide/2 {
			return r
		}
		r.repeat++
	}
	for r.repeat = 1; r.width() < wide/2 || r.width() != vec.Padded(r.width()); {
		r.repeat++
	}
	return r
}

// width is the elements of a row, size those of all.
func (r rows) width() int { return r.repeat * r.channels }
func (r rows) size() int  { return r.pixels * r.channels }

// whole is how many rows are full; rest is the elements of the one behind them.
func (r rows) whole() int { return r.pixels / r.repeat }
func (r rows) rest() int  { return r.pixels % r.repeat * r.channels }

// spread fills a row with parameters.
func (r rows) spread(row, x []float32) {
	for len(row) > 0 {
		row = row[copy(row, x[:r.channels]):]
	}
}

// phase runs f for parts of an activation, elements lo to hi, that begin with a row. It begins at the end: that is
// what the op before has left in the caches, and what the next one reads first comes last.
func (r rows) phase(f func(lo, hi int)) phase {
	part := max(1, elementBlock/r.width()) * r.width()
	blocks := ceil(r.size(), part)
	return phase{blocks, func(_, block int) {
		lo := (blocks - 1 - block) * part
		f(lo, min(lo+part, r.size()))
	}}
}
