package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// vectorProduct is a product by vector kernels: tiled or winograd.
type vectorProduct interface {
	way
	end() *epilogue
}

func (t *tiled) end() *epilogue    { return &t.epilogue }
func (w *winograd) end() *epilogue { return &w.epilogue }

// vector chooses the implementation of a product with the kernels of set.
func (d Options) vector(p *product, set *kern.Set) vectorProduct {
	if p.isWinograd() && d.prefersWinograd(&p.grids[0].grid, p.rows, set.Lanes) {
		return newWinograd(p, set, d.blocks())
	}
	return newTiled(p, set, d.blocks(), d.BFloat16 && p.planes)
}

// isWinograd reports whether p is a convolution, or a gradient with respect to its input, that winograd supports.
func (p *product) isWinograd() bool {
	if p.groups != 1 || len(p.grids) != 1 || !p.grids[0].whole(p) {
		return false
	}
	return p.grids[0].square()
}

// square reports whether the taps of g are 3×3 adjacent pixels, at each pixel of the source.
func (g *grid) square() bool {
	if g.rowStep != 1 || g.colStep != 1 || len(g.taps) != kern.TileTaps*kern.TileTaps {
		return false
	}
	for i, t := range g.taps {
		if t.row != g.taps[0].row+i/kern.TileTaps || t.col != g.taps[0].col+i%kern.TileTaps {
			return false
		}
	}
	return true
}

// isWinograd reports whether o is the gradient with respect to the weights of such a convolution.
func (o *outer) isWinograd() bool { return o.groups == 1 && o.square() }

// prefersWinograd reports whether Winograd's algorithm may be used and is faster, for a product of a grid with the
// given rows. The limits are from BenchmarkWinograd on amd64; NEON uses the same numbers. With fewer channels or rows
// than least the transforms cost more than the products save, and with few tiles the transforms of the weights do. If
// much of the tiles lies outside the image, there is nothing to save.
func (d Options) prefersWinograd(g *grid, rows, least int) bool {
	const tiles, pixels = 40, 8 // at least, and of a tile on average
	n := g.images * work.Ceil(g.height, kern.TileResults) * work.Ceil(g.width, kern.TileResults)
	return d.Winograd && !d.BFloat16 && (d.AlwaysWinograd ||
		min(g.channels, rows) >= least && n >= tiles && g.pixels() >= pixels*n)
}
