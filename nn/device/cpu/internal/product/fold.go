package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
)

// fold is p with several pixels side by side taken for one that has the rows of all: where a pixel has few rows,
// more of a vector's lanes are used so. The taps become more, since the pixels lie beside each other. The
// weights of a tap are those that the tap has for each of the pixels, -1 where it has none. Without gain
// there are no weights, and p is returned.
func (p *product) fold(set *kern.Set) (*product, [][]int) {
	if len(p.grids) != 1 || p.groups != 1 || !p.grids[0].whole(p) {
		return p, nil
	}
	t := &p.grids[0]
	n := t.folds(set, p.rows)
	if n == 1 {
		return p, nil
	}
	q := *p
	q.rows, q.dstC, q.dstW = n*p.rows, n*p.dstC, p.dstW/n
	folded := *t
	var weights [][]int
	folded.grid, weights = t.fold(n)
	q.grids = []target{folded}
	return &q, weights
}

// folds is how many pixels of the given rows it pays to take for one; 1 where it does not.
func (g *grid) folds(set *kern.Set, rows int) int {
	columns := g.tapColumns()
	if columns == 0 {
		return 1
	}
	const most = 4
	best, gain := 1, .85 // of the work without
	for n := 2; n <= most; n++ {
		if g.width%n != 0 || n*rows > set.Columns() {
			continue
		}
		taps := float64(columns+(n-1)*g.colStep) / float64(columns)
		vectors := float64(set.Vectors(n*rows)) / float64(set.Vectors(rows))
		if work := taps * vectors / float64(n); work < gain {
			best, gain = n, work
		}
	}
	return best
}

// fold takes n pixels for one. For each tap of the result there is the weight of a tap of g for each of the pixels,
// or -1.
func (g *grid) fold(n int) (grid, [][]int) {
	columns := g.tapColumns()
	folded := *g
	folded.width, folded.colStep = g.width/n, g.colStep*n
	folded.taps = nil
	var weights [][]int
	for i := 0; i < len(g.taps); i += columns {
		for c := range columns + (n-1)*g.colStep {
			w := make([]int, n)
			for m := range w {
				w[m] = -1
				if k := c - m*g.colStep; k >= 0 && k < columns {
					w[m] = g.taps[i+k].weight
				}
			}
			folded.taps = append(folded.taps, tap{g.taps[i].row, g.taps[i].col + c, len(weights)})
			weights = append(weights, w)
		}
	}
	return folded, weights
}

// tapColumns is how many taps there are in each line, if they lie side by side in lines of equal length, and
// otherwise 0.
func (g *grid) tapColumns() int {
	taps := g.taps
	if len(taps) == 0 {
		return 0
	}
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
