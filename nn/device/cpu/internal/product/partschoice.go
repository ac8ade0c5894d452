package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/device/cpu/internal/work"
)

// The choice between parts in tiles and vectors of float32 compares times in nanoseconds of a core. The rates are those
// of a Granite Rapids-class Xeon, where products in tiles and AVX-512 were measured by themselves; the kernels of this
// package in parts have not been measured there.
const (
	tileRate     = 1100. // multiply-adds of bfloat16 in a nanosecond, with operands from the second level cache
	vectorRate   = 62.   // of float32
	winogradRate = 118.  // of float32 by Winograd's algorithm, counted as direct, in whole tiles of pixels

	splitTime  = .2 // of an element that is split and copied
	resultTime = .9 // of a result that waits to be stored
	weightTime = .7 // of a weight that is packed, beyond that of float32
	pixelTime  = .9 // of an element of a pixel in a sum over pixels: split, and turned or paired
)

// tileTime is about the time of count terms of products with rows of the given length in tiles of columns columns.
func tileTime(count, depth, columns int) float64 {
	whole := work.Ceil(columns, kern.TileWidth) * kern.TileWidth
	time := float64(count*depth*whole) / tileRate
	if columns <= kern.TileWidth { // a tile of columns needs one load for each product, two need one for two
		time *= 1.5
	}
	return time
}

// lineFactor is the share of time that lines of pixels add which do not fill tiles of 16 rows.
func lineFactor(width int) float64 {
	parts := work.Ceil(width, kern.TileRows)
	rows := work.Ceil(width, parts)
	return float64(parts*max(9, min(kern.TileRows, rows+1))) / float64(width)
}

// vectorTime is the time of a pixel's multiply-adds in float32 vectors, by Winograd's algorithm if it is chosen.
func (d Options) vectorTime(g *grid, products int, winograd bool) float64 {
	if !winograd {
		return float64(products) / vectorRate
	}
	tiles := g.images * work.Ceil(g.height, kern.TileResults) * work.Ceil(g.width, kern.TileResults)
	return float64(products) / winogradRate * float64(tiles*kern.TileResults*kern.TileResults) / float64(g.pixels())
}

// partsPay reports whether p in parts is faster than in vectors.
func (d Options) partsPay(p *product) bool {
	if d.AlwaysParts {
		return true
	}
	terms := len(d.Tiles.Terms())
	tiles, vectors, weights := 0., 0., 0
	for i := range p.grids {
		g := &p.grids[i].grid
		if len(g.taps) == 0 {
			continue
		}
		pixels, depth := float64(g.pixels()), len(g.taps)*work.Ceil(g.channels, kern.TileDepth)*kern.TileDepth
		if n := g.tapColumns(); g.channels < kern.TileWidth && n > 0 {
			depth = len(g.taps) / n * work.Ceil(n*work.Even(g.channels, g.channels, 2), kern.TileDepth) * kern.TileDepth
		}
		factor := 1.
		if g.height*g.width > 1 && !g.direct() {
			factor = lineFactor(g.width)
		}
		tiles += pixels * (tileTime(terms, depth, p.rows)*factor + splitTime*float64(g.channels*g.rowStep*g.colStep) +
			resultTime*float64(p.rows))
		products := len(g.taps) * g.channels * p.rows
		vectors += pixels * d.vectorTime(g, products, p.isWinograd() && d.prefersWinograd(g, p.rows, kern.TileWidth))
		weights += products
	}
	return tiles+weightTime*float64(weights) < vectors
}

// outerPartsPay reports whether o in parts is faster than in vectors.
func (d Options) outerPartsPay(o *outer) bool {
	if d.AlwaysParts {
		return true
	}
	const least = 8 // channels, from which on Winograd's algorithm pays
	products := len(o.taps) * o.channels * o.rows
	n := o.pixels()
	whole := work.Ceil(n, kern.TileDepth) * kern.TileDepth
	tiles := tileTime(len(d.Tiles.Terms()), len(o.taps)*o.rows, o.channels)*float64(whole)/float64(n) +
		pixelTime*float64(o.channels+o.rows)
	if len(o.taps) > 1 { // pairs for even and odd shifts, and zeros between lines
		tiles = tiles*float64(o.width+1)/float64(o.width) + pixelTime*float64(o.channels)
	}
	return tiles < d.vectorTime(&o.grid, products, o.isWinograd() && d.prefersWinograd(&o.grid, o.rows, least))
}
