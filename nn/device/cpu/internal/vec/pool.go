package vec

import "math"

// tile is the number of channels that are processed at a time.
const tile = 64

func maxWindows(y, x []float32, w Windows) {
	for range w.Count {
		best := y[:w.Channels]
		for c := range best {
			best[c] = float32(math.Inf(-1))
		}
		for r := range w.Rows {
			for c := range w.Columns {
				for i, v := range x[r*w.Line+c*w.Pixel:][:len(best)] {
					b, k := math.Float32bits(v), math.Float32bits(best[i])
					if !(v <= best[i]) {
						k = b
					}
					if best[i] != best[i] && v == v {
						k = math.Float32bits(best[i])
					}
					best[i] = math.Float32frombits(k)
				}
			}
		}
		y, x = y[min(w.Pitch, len(y)):], x[min(w.Step, len(x)):]
	}
}

func maxWindowsGrad(dy, x, dx []float32, w Windows) { toFirst(dy, x, dx, w, true) }

func maxWindowsSet(dy, x, dx []float32, w Windows) {
	for i := range w.Count {
		for r := range w.Rows {
			for c := range w.Columns {
				clear(dx[i*w.Step+r*w.Line+c*w.Pixel:][:w.Channels])
			}
		}
	}
	toFirst(dy, x, dx, w, false)
}

// toFirst routes dy to the places of the first maxima: it adds dy to dx, or sets dx.
func toFirst(dy, x, dx []float32, w Windows, add bool) {
	for range w.Count {
		for lo := 0; lo < w.Channels; lo += tile {
			var best, at [tile]int32
			g := dy[lo:min(lo+tile, w.Channels)]
			for r := range w.Rows {
				for c := range w.Columns {
					off := r*w.Line + c*w.Pixel
					larger(best[:len(g)], at[:len(g)], x[off+lo:], int32(off), r+c == 0)
				}
			}
			to := dx[lo:]
			for c, v := range g {
				i := int(at[c]) + c
				if w.BehindReLU {
					v = passed(x[lo+i], v)
				}
				if add {
					to[i] += v
				} else {
					to[i] = v
				}
			}
		}
		dy, x, dx = dy[min(w.Pitch, len(dy)):], x[min(w.Step, len(x)):], dx[min(w.Step, len(dx)):]
	}
}

// larger records each x that exceeds the best, or any x if first is set: its rank, and its position off.
func larger(best, at []int32, x []float32, off int32, first bool) {
	x, at = x[:len(best)], at[:len(best)]
	if first {
		for c, v := range x {
			best[c], at[c] = order(v), off
		}
		return
	}
	for c, v := range x {
		// Both are chosen without a branch: the comparison is unpredictable.
		k, b, p := order(v), best[c], at[c]
		if k > b {
			p = off
		}
		best[c], at[c] = max(b, k), p
	}
}

// order maps numbers to integers in the same order, with equal zeros and NaN above all.
func order(v float32) int32 {
	b := int32(math.Float32bits(v + 0))
	b ^= int32(uint32(b>>31) >> 1)
	if v != v {
		b = math.MaxInt32
	}
	return b
}
