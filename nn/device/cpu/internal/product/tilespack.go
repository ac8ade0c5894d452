package product

import (
	"onlinerna/nn/device/cpu/internal/kern"
)

// packTiles writes a panel of n columns for tiles: a row of biases, then words of two channels in the order of steps. room
// is a worker's.
func (k *tiledKernel) packTiles(g *tiledTarget, p piece, panel, room []float32, n, width int) {
	init := panel[:width]
	clear(init)
	first := p.panel * k.set.Columns()
	if k.bias != nil {
		copy(init[:n], k.bias[p.group*k.rows+first:])
	}
	dst := panel[width:]
	w := k.weights[p.group*k.weightGroup+first*k.weightRow:]
	for c := 0; c < g.channels; c += g.chunk {
		channels := min(g.chunk, g.channels-c)
		words := g.narrow.Words(channels)
		for t := 0; t < len(g.taps); t += g.run {
			for _, tap := range g.taps[t : t+g.run] {
				from := w[tap.weight*k.weightTap+c*k.weightChannel:]
				if k.weightRow == 1 {
					k.packRows(g, dst, from, room, channels, n, width)
				} else {
					k.packColumns(g, dst, from, room, channels, n, width)
				}
				dst = dst[words*width:]
			}
			if odd := g.run * words % kern.TileWidth; odd > 0 {
				clear(dst[:(kern.TileWidth-odd)*width])
				dst = dst[(kern.TileWidth-odd)*width:]
			}
		}
	}
}

// packRows packs weights of which those of neighbouring columns are neighbours.
func (k *tiledKernel) packRows(g *tiledTarget, dst, from, room []float32, channels, n, width int) {
	words := g.narrow.Words(channels)
	pairs := channels / 2
	if n == width {
		if pairs > 0 {
			_ = from[(channels-1)*k.weightChannel+n-1]
			g.narrow.PairRows(&dst[0], &from[0], &from[k.weightChannel], pairs, n, 4*n, 8*k.weightChannel)
		}
		if channels%2 != 0 {
			last := from[(channels-1)*k.weightChannel:][:n]
			g.narrow.PairRows(&dst[pairs*n], &last[0], &kern.Zeros[0], 1, n, 0, 0)
		}
	} else {
		first, second := room[:width], room[width:2*width]
		for c := 0; c < channels; c += 2 {
			for i, row := range [2][]float32{first, second} {
				if c+i == channels {
					clear(row)
					continue
				}
				clear(row[copy(row, from[(c+i)*k.weightChannel:][:n]):])
			}
			g.narrow.PairRows(&dst[c/2*width], &first[0], &second[0], 1, width, 0, 0)
		}
	}
	clear(dst[(channels+1)/2*width : words*width])
}

// packColumns packs weights of which those of neighbouring channels are neighbours.
func (k *tiledKernel) packColumns(g *tiledTarget, dst, from, room []float32, channels, n, width int) {
	for c := 0; c < g.narrow.Whole(channels); c += kern.TileDepth {
		deep := min(kern.TileDepth, channels-c)
		for j := 0; j < width; j += kern.TileRows {
			columns := min(kern.TileRows, n-j)
			_ = from[(j+columns-1)*k.weightRow+c+deep-1]
			g.narrow.Copy(&room[0], &from[j*k.weightRow+c], columns, deep, 4*kern.TileWidth, 4*k.weightRow)
			k.set.Tiles.Square(&dst[c/2*width+j], &room[0], 4*width, 4*kern.TileWidth)
		}
	}
}
