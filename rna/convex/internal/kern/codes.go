package kern

// CodeBlock is the number of columns whose codes lie together, in a line of the cache. Column j of a block is word j/8, from the
// lowest, of lane j%8 of 64 bits, so that the same word of all lanes is columns in a row. Codes have an offset: they
// are not negative.
const (
	CodeBlock  = 32
	codeWords  = 4
	codeLanes  = CodeBlock / codeWords
	codeOffset = 1 << 15
)

// codeAt is where column j is.
func codeAt(j int) int {
	return j/CodeBlock*CodeBlock + j%codeLanes*codeWords + j%CodeBlock/codeLanes
}

// Encode sets element j of a row of codes.
func Encode(row []uint16, j int, v int16) { row[codeAt(j)] = uint16(int(v) + codeOffset) }

// Decode is element j of a row of codes.
func Decode(row []uint16, j int) float64 { return float64(int(row[codeAt(j)]) - codeOffset) }

func codedDotsPlain(n int) codedDots {
	return func(out *float64, x *uint16, w *float64, d, stride, rows, width, pitch int) {
		decoded, of := make([]float64, d), plainDots(n)
		from := slice(x, (rows-1)*stride+d)
		for i := range rows {
			decodeRow(decoded, from[i*stride:])
			of(&slice(out, (n-1)*pitch+rows)[i], &decoded[0], w, d, d, 1, width, pitch)
		}
	}
}

func codedAddRowsPlain(n int) codedAddRows {
	return func(dst *float64, x *uint16, a *float64, d, stride, rows, width, pitch int) {
		decoded, of := make([]float64, d), plainAddRows(n)
		from := slice(x, (rows-1)*stride+d)
		for i := range rows {
			decodeRow(decoded, from[i*stride:])
			of(dst, &decoded[0], &slice(a, (n-1)*pitch+rows)[i], d, d, 1, width, pitch, 0)
		}
	}
}

func decodeRow(to []float64, row []uint16) {
	for at := 0; at < len(to); at += CodeBlock {
		b, t := row[at:at+CodeBlock], to[at:at+CodeBlock]
		for l := range codeLanes {
			for k := range codeWords {
				t[k*codeLanes+l] = float64(int(b[l*codeWords+k]) - codeOffset)
			}
		}
	}
}
