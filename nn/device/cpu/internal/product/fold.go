package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
)

// fold treats several adjacent pixels as one that has the rows of all of them, so that pixels of few rows fill more
// lanes of a vector. The taps become more, since the pixels lie side by side. For each new tap the second result lists
// the weights, one for each pixel, with -1 for none. If folding gains nothing, fold returns p and nil.
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

// folds is the best number of pixels, with the given rows, to fold into one; 1 means that folding gains nothing.
func (g *grid) folds(set *kern.Set, rows int) int {
	columns := g.tapColumns()
	if columns == 0 {
		return 1
	}
	const most = 4
	best, gain := 1, .85 // of the work without folding
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

// fold folds n pixels into one. For each tap of the result it lists the tap of g that provides the weight for each of
// the pixels, or -1.
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

// tapColumns is the number of taps in a line if taps lie side by side in lines of equal length, and otherwise 0.
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

// packFolded writes the weights of a tap for n channels as columns of a panel: the weights for each pixel side by side.
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
