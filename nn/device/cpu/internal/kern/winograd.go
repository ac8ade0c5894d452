package kern

// Winograd has the transforms of Winograd's convolutions F(4×4, 3×3), whose tiles are 6×6 values in the transformed
// domain. Each call works on a vector of channels.
type Winograd struct {
	// Source transforms windows of 6×6 pixels of the source, 4 apart, Grad tiles of 4×4 results and Weight 3×3 taps.
	Source, Grad, Weight func(*Spread)
	// Result transforms back to tiles of 4×4 results, WeightGrad to 3×3 taps. The second of each writes partial vectors.
	Result, WeightGrad [2]func(*Collect)
}

// The one-dimensional sizes of tiles: in the transformed domain, of results and of taps.
const (
	Window      = 6
	TileResults = 4
	TileTaps    = 3
)

// ColumnVectors is the number of scratch vectors of a source column.
const ColumnVectors = Window

// Spread holds the operands of a forward transform of a row of tiles. Steps are in bytes. The assembly knows the order
// of the fields. Spreads must be on the heap.
type Spread struct {
	Rows    [6]*float32 // the first column of each existing row of a tile
	Columns int         // columns to read
	StepC   int         // from a column to the next
	Mask    *int32      // -1 for the channels that are read, 0 for the others
	To      *float32    // scratch of the first column
	Scratch *float32    // scratch of the first column of the first tile, which may be another one
	Tiles   int
	Dst     *float32
	StepT   int // from a tile to the next
	StepP   int // between the 36 values of a tile
	Ahead   int // from a row of the source to that of the next row of tiles, for prefetching
}

// Collect holds the operands of the inverse transform of a row of tiles; otherwise it is like Spread.
type Collect struct {
	Src      *float32
	StepT    int // of Src
	StepP    int
	Scratch  *float32 // 24 vectors
	Dst      *float32
	StepRow  int // of Dst
	StepC    int
	StepTile int
	Rows     int      // written rows of a tile
	Columns  int      // written columns, over all tiles of the row
	From     *float32 // an addend, with the steps of Dst, or nil
	Bias     *float32 // a vector
	Floor    *float32 // a vector: the lower bound of results
	Mask     *int32   // -1 for the channels that are written, 0 for the others
}
