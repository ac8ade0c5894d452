package kern

import "onlinerna/internal/simd"

// The extents of a tile of AMX: rows, and numbers or words of 32 bits in a row.
const (
	TileRows  = 16
	TileWidth = 16
	// TileDepth is the number of elements of A and B along the depth that an instruction multiplies: TileWidth words.
	TileDepth = 2 * TileWidth
)

// TileArgs are the operands of a product of matrices of bfloat16 in tiles:
//
//	C[m, j] = S + Σ over steps t and k < TileDepth of A[m, Steps[t].A + k] · B[Steps[t].B, k, j]
//
// S is C[m, j] if Add is set, or else Init[j], or 0. The depth is summed step by step in the order of Steps; see
// [TileDot] for the sum of a step. Rows of A and C lie in spans of equally many rows, at most TileRows, which Config
// gives with the number of columns. Steps, spans and offsets are in bytes. A step of B has a row of words, pairs of
// elements, for each two k: of TileWidth words for a single tile of columns, and else of 2·TileWidth. Unused words are
// 0 in B and finite in A. The assembly knows the order of the fields.
type TileArgs struct {
	Config TileConfig

	A            *uint16
	B            *uint32
	C            *float32
	Init         *float32 // one number for each column, or nil
	Add          int      // 1 to add to C
	Spans        *[2]TileSpan
	Pairs        int // of spans, at least 1
	Steps        *TileStep
	Depth        int // steps, at least 1
	StepA, StepC int // from a row to the next
}

// TileStep is where the operands of a step begin, from A and from B.
type TileStep struct{ A, B int }

// TileSpan is where the rows of a tile begin, from A and from C.
type TileSpan struct{ A, C int }

// TileConfig is the configuration of tiles, as LDTILECFG reads it.
type TileConfig [64]byte

// Configure returns the configuration for spans of the given rows, and columns of C.
func Configure(rows, columns int) (c TileConfig) {
	set := func(tile, rows, bytes int) { c[16+2*tile], c[48+tile] = byte(bytes), byte(rows) }
	c[0] = 1 // the palette
	for i := range 2 {
		bytes := 4 * max(0, min(columns-i*TileWidth, TileWidth))
		if bytes > 0 {
			set(i, rows, bytes)
			set(2+i, rows, bytes)
			set(6+i, TileRows, bytes)
		}
		set(4+i, rows, 4*TileWidth)
	}
	return c
}

// Tiles are products of bfloat16 in tiles.
type Tiles struct {
	// Products are the kernels by number of tiles of columns, 1 or 2. The TileArgs must be on the heap. A call takes at
	// most about 100 µs: the garbage collector waits for it.
	Products [3]func(*TileArgs)
	// Copy is the Copy of a Set. Narrow makes words for A and B.
	Copy   func(dst, src *float32, rows, width, dstStride, srcStride int)
	Narrow Narrow

	// Turn and Pairs bring pixels into tiles, for sums over pixels. Pixels are numbers of steps of step bytes from src,
	// and negative ones are pixels of zeros. Order and Transpose bring the sums out.

	// Turn makes rows for A: for each block of TileDepth pixels and each channel those pixels. A block has rows rows, of
	// which it writes the first channels, a multiple of 8 and at most TileChannels.
	Turn func(dst, src *uint16, pixels *int32, blocks, channels, rows, step int)
	// Pairs makes panels for B, panel bytes apart, of two tiles of columns: for each two pixels a word for each of columns
	// channels, at most TileChannels, in the order of PairOrder. Words without a channel are 0.
	Pairs func(dst *uint32, src *uint16, pixels *int32, pairs, columns, step, panel int)
	// Order copies rows of sums to rows of columns numbers that are stride bytes apart. The sums lie in panels of
	// 2·TileWidth columns, panel bytes apart, in the order of PairOrder.
	Order func(dst, src *float32, rows, columns, stride, panel int)
	// Transpose writes the columns of at most TileRows rows of a panel of sums: columns rows of rows numbers, stride bytes
	// apart. It reads TileRows rows.
	Transpose func(dst, src *float32, rows, columns, stride int)
	// Square transposes TileRows rows of TileWidth words. Strides are in bytes.
	Square func(dst, src *float32, dstStride, srcStride int)

	// Add adds n elements of src to dst.
	Add func(dst, src *float32, n int)
	// Split splits float32, by the number of parts.
	Split [MostParts + 1]SplitRows
	// Parts is the number of parts of float32 that are multiplied; 0 for factors of bfloat16.
	Parts int

	peak func(config *TileConfig, n int)
}

// Set returns a set whose products run in tiles: it has no Products or Sums.
func (t *Tiles) Set() *Set {
	return &Set{Lanes: TileWidth, Rows: TileRows, Copy: t.Copy, Narrow: &t.Narrow, Tiles: t}
}

// TileChannels is the largest number of channels that Turn and Pairs take.
const TileChannels = 2048

// PairOrder is the place, in a row of two tiles, of column j: groups of four columns alternate between the tiles.
func PairOrder(j int) int { return j/4%2*TileWidth + j/8*4 + j%4 }

// Peak runs 4n products of whole tiles in registers, of TileRows·TileWidth·TileDepth multiply-adds each.
func (t *Tiles) Peak(n int) {
	c := Configure(TileRows, 2*TileWidth)
	t.peak(&c, n)
}

// TilesFor returns the kernels of a level, or nil without AMX.
func TilesFor(l simd.Level) *Tiles {
	if l == simd.AMX {
		return amxKernels
	}
	return nil
}

// TilesByVectors returns kernels that multiply by AVX-512 and give the bits of AMX, or nil without AVX-512. They are
// slower, serve tests, and need no AVX512_BF16.
func TilesByVectors() *Tiles {
	if simd.Best() != simd.AVX512 {
		return nil
	}
	t := PlainTiles()
	set := For(simd.AVX512)
	t.Products, t.Copy, t.Add, t.Split = vectorTiles, set.Copy, set.Add, vectorSplits
	return t
}
