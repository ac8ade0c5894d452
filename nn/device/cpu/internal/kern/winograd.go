package kern

// Winograd has the transforms of Winograd's convolutions F(4×4, 3×3), whose tiles are 6×6 values in the transformed
// domain. Each takes a vector of channels at a time.
type Winograd struct {
	// Source transforms windows of 6×6 pixels of the source, 4 apart, Grad tiles of 4×4 results and Weight 3×3 taps.
	Source, Grad, Weight func(*Spread)
	// Result transforms back to tiles of 4×4 results, WeightGrad to 3×3 taps. The second of each writes less than
	// whole vectors.
	Result, WeightGrad [2]func(*Collect)
}

// The sizes of tiles in the transformed domain, of results and of taps, in one dimension.
const (
	Window      = 6
	TileResults = 4
	TileTaps    = 3
)

// ColumnVectors is how many vectors of scratch a column of the source takes.
const ColumnVectors = Window

// Spread are the operands of a transform of a row of tiles to the transformed domain. Steps are in bytes. The
// assembly knows the order of the fields. Spreads must be on the heap.
type Spread struct {
	Rows    [6]*float32 // the first column, in each row of a tile that there is
	Columns int         // to be read
	StepC   int         // from a column to the next
	Mask    *int32      // -1 for the channels that are read, 0 for the others
	To      *float32    // scratch of the first column
	Scratch *float32    // scratch of the first column of the first tile, which may be another one
	Tiles   int
	Dst     *float32
	StepT   int // from a tile to the next
	StepP   int // from one of its 36 values to the next
	Ahead   int // from a row of the source to that of the next row of tiles, which is prefetched
}

// Collect are the operands of a transform of a row of tiles back, likewise.
type Collect struct {
	Src      *float32
	StepT    int // of Src
	StepP    int
	Scratch  *float32 // 24 vectors
	Dst      *float32
	StepRow  int // of Dst
	StepC    int
	StepTile int
	Rows     int      // of a tile that are written
	Columns  int      // of all tiles of the row, that are written
	From     *float32 // what is added, with the steps of Dst, or nil
	Bias     *float32 // a vector
	Floor    *float32 // a vector: results are at least that
	Mask     *int32   // -1 for the channels that are written, 0 for the others
}
