package kern

import "unsafe"

// stepped is pixel number n of n channels, or nil for a negative number.
func stepped(src *uint16, number int32, channels, step int) []uint16 {
	if number < 0 {
		return make([]uint16, channels)
	}
	return unsafe.Slice(at(src, int(number)*step), channels)
}

func turnPlain(dst, src *uint16, pixels *int32, blocks, channels, rows, step int) {
	for p, number := range unsafe.Slice(pixels, blocks*TileDepth) {
		for c, v := range stepped(src, number, channels, step) {
			*at(dst, 2*((p/TileDepth*rows+c)*TileDepth+p%TileDepth)) = v
		}
	}
}

func pairsPlain(dst *uint32, src *uint16, pixels *int32, pairs, columns, step, panel int) {
	const width = 2 * TileWidth
	list := unsafe.Slice(pixels, 2*pairs)
	for p := range pairs {
		x, y := stepped(src, list[2*p], columns, step), stepped(src, list[2*p+1], columns, step)
		for first := 0; first < columns; first += width {
			words := unsafe.Slice(at(dst, first/width*panel+4*width*p), width)
			clear(words)
			for j := range min(width, columns-first) {
				words[PairOrder(j)] = uint32(x[first+j]) | uint32(y[first+j])<<16
			}
		}
	}
}

func orderPlain(dst, src *float32, rows, columns, stride, panel int) {
	const width = 2 * TileWidth
	for i := range rows {
		for j := range columns {
			*at(dst, i*stride+4*j) = *at(src, j/width*panel+4*(i*width+PairOrder(j%width)))
		}
	}
}

func transposePlain(dst, src *float32, rows, columns, stride int) {
	for i := range rows {
		for j := range columns {
			*at(dst, j*stride+4*i) = *at(src, 4*(i*2*TileWidth+PairOrder(j)))
		}
	}
}
