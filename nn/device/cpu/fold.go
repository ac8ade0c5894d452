package cpu

import "onlinerna/nn/device/cpu/internal/kern"

// fold is p with several pixels side by side taken for one that has the rows of all: where a pixel has few rows,
// more of a vector's lanes are used so. The taps become more, since the pixels lie beside each other. The
// weights of a tap are those that the tap has for each of the pixels, -1 where it has none. Without gain
// there are no weights, and p is returned.
func (p *product) fold(set *kern.Set) (*product, [][]int) {
	columns := p.tapColumns()
	if columns == 0 {
		return p, nil
	}
	t := &p.grids[0]
	const most = 4
	best, gain := 1, .85 // of the work of p
	for n := 2; n <= most; n++ {
		if t.width%n != 0 || n*p.rows > set.Columns() {
			continue
		}
		taps := float64(columns+(n-1)*t.colStep) / float64(columns)
		vectors := float64(set.Vectors(n*p.rows)) / float64(set.Vectors(p.rows))
		if work := taps * vectors / float64(n); work < gain {
			best, gain = n, work
		}
	}
	if best == 1 {
		return p, nil
	}

	q := *p
	q.rows, q.dstC, q.dstW = best*p.rows, best*p.dstC, p.dstW/best
	folded := *t
	folded.width, folded.colStep = t.width/best, t.colStep*best
	folded.taps = nil
	var weights [][]int
	for i := 0; i < len(t.taps); i += columns {
		for c := range columns + (best-1)*t.colStep {
			w := make([]int, best)
			for n := range w {
				w[n] = -1
				if k := c - n*t.colStep; k >= 0 && k < columns {
					w[n] = t.taps[i+k].weight
				}
			}
			folded.taps = append(folded.taps, tap{t.taps[i].row, t.taps[i].col + c, len(weights)})
			weights = append(weights, w)
		}
	}
	q.grids = []target{folded}
	return &q, weights
}

// tapColumns is how many taps there are in each line, if a product has one grid of whole pixels with one group and its
// taps lie side by side in lines of equal length, and otherwise 0.
func (p *product) tapColumns() int {
	if len(p.grids) != 1 || p.groups != 1 || !p.grids[0].whole(p) || len(p.grids[0].taps) == 0 {
		return 0
	}
	taps := p.grids[0].taps
	n := 1
	for n < len(taps) && taps[n].row == taps[0].row {
		n++
	}
	for i, t := range taps {
		first := taps[i/n*n]
		if t.row != first.row || t.col != taps[0].col+i%n || i/n > 0 && i%n == 0 && t.row == taps[i-1].row {
			return 0
		}
	}
	if len(taps)%n != 0 {
		return 0
	}
	return n
}

// packFolded writes the weights of a tap for n channels as columns of a panel: those for each pixel side by side.
func (k *tiledKernel) packFolded(dst []float32, width int, t tap, channel, n int) {
	pixels := k.weightsOf[t.weight]
	rows := k.rows / len(pixels)
	for i, tap := range pixels {
		for c := range n {
			row := dst[c*width+i*rows:][:rows]
			if tap < 0 {
				clear(row)
				continue
			}
			w := k.weights[tap*k.weightTap+(channel+c)*k.weightChannel:]
			for r := range row {
				row[r] = w[r*k.weightRow]
			}
		}
	}
	for c := range n {
		clear(dst[c*width+k.rows : (c+1)*width])
	}
}
