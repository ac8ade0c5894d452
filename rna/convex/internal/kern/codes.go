package kern

// CodeBlock is the number of columns whose codes lie together, in one cache line. Column j of a block is word j/8, from
// the lowest, of lane j%8 of 64 bits, so that the same word of all lanes is columns in a row. Codes have an offset:
// they are not negative.
const (
	CodeBlock  = 32
	codeWords  = 4
	codeLanes  = CodeBlock / codeWords
	codeOffset = 1 << 15
)

// codeAt returns the index of column j.
func codeAt(j int) int {
	return j/CodeBlock*CodeBlock + j%codeLanes*codeWords + j%CodeBlock/codeLanes
}

// Encode sets element j of a row of codes.
func Encode(row []uint16, j int, v int16) { row[codeAt(j)] = uint16(int(v) + codeOffset) }

// Decode is element j of a row of codes.
func Decode(row []uint16, j int) float64 { return float64(int(row[codeAt(j)]) - codeOffset) }

func codedDotsPlain(n int) codedDots {
	return func(out *float64, x *uint16, w *float64, d, stride, rows, width, pitch int) {
		to, from, vectors := slice(out, (n-1)*pitch+rows), slice(x, (rows-1)*stride+d), slice(w, n*width)
		for i := range rows {
			for k := range n {
				to[k*pitch+i] = codedDot(from[i*stride:i*stride+d], vectors[k*width:])
			}
		}
	}
}

// codedDot keeps a sum for each word of the lanes.
func codedDot(row []uint16, w []float64) float64 {
	var sums [codeWords]float64
	for at := 0; at < len(row); at += CodeBlock {
		b, v := row[at:at+CodeBlock], w[at:at+CodeBlock]
		for l := range codeLanes {
			for k := range codeWords {
				sums[k] += float64(int(b[l*codeWords+k])-codeOffset) * v[k*codeLanes+l]
			}
		}
	}
	return (sums[0] + sums[1]) + (sums[2] + sums[3])
}

func codedAddRowsPlain(n int) codedAddRows {
	return func(dst *float64, x *uint16, a *float64, d, stride, rows, width, pitch int) {
		to, from, scale := slice(dst, n*width), slice(x, (rows-1)*stride+d), slice(a, (n-1)*pitch+rows)
		for k := range n {
			for i := range rows {
				codedAdd(to[k*width:], from[i*stride:i*stride+d], scale[k*pitch+i])
			}
		}
	}
}

func codedAdd(to []float64, row []uint16, a float64) {
	for at := 0; at < len(row); at += CodeBlock {
		b, t := row[at:at+CodeBlock], to[at:at+CodeBlock]
		for l := range codeLanes {
			for k := range codeWords {
				t[k*codeLanes+l] += a * float64(int(b[l*codeWords+k])-codeOffset)
			}
		}
	}
}
