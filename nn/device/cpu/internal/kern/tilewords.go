package kern

// PackedRows and PackedColumns make words for a panel of B, columns columns in rows of width words, from numbers whose
// rows are stride apart: the rows run along the columns of B, or along its depth. They write n.Words(depth) rows of
// words and need room for TileWidth·TileRows numbers. n is the Narrow of t, or it with another Block.

// PackedRows packs depth rows of columns numbers.
func (t *Tiles) PackedRows(n *Narrow, dst, from, room []float32, stride, depth, columns, width int) {
	pairs := depth / 2
	if columns == width {
		if pairs > 0 {
			_ = from[(depth-1)*stride+columns-1]
			n.PairRows(&dst[0], &from[0], &from[stride:][0], pairs, columns, 4*columns, 8*stride)
		}
		if depth%2 != 0 {
			last := from[(depth-1)*stride:][:columns]
			n.PairRows(&dst[pairs*columns], &last[0], &Zeros[0], 1, columns, 0, 0)
		}
	} else {
		first, second := room[:width], room[width:2*width]
		for c := 0; c < depth; c += 2 {
			for i, row := range [2][]float32{first, second} {
				if c+i == depth {
					clear(row)
					continue
				}
				clear(row[copy(row, from[(c+i)*stride:][:columns]):])
			}
			n.PairRows(&dst[c/2*width], &first[0], &second[0], 1, width, 0, 0)
		}
	}
	clear(dst[(depth+1)/2*width : n.Words(depth)*width])
}

// PackedColumns packs columns rows of depth numbers.
func (t *Tiles) PackedColumns(n *Narrow, dst, from, room []float32, stride, depth, columns, width int) {
	for c := 0; c < n.Whole(depth); c += TileDepth {
		deep := min(TileDepth, depth-c)
		for j := 0; j < width; j += TileRows {
			rows := min(TileRows, columns-j)
			_ = from[(j+rows-1)*stride+c+deep-1]
			n.Copy(&room[0], &from[j*stride+c], rows, deep, 4*TileWidth, 4*stride)
			clear(room[rows*TileWidth : TileRows*TileWidth])
			t.Square(&dst[c/2*width+j], &room[0], 4*width, 4*TileWidth)
		}
	}
}
