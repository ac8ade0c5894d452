package nhwc

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// Sums adds up, for each channel, one or two quantities that depend on a pixel's values. Blocks of rows and columns are
// summed in float64 and then added in the order of the rows.
type Sums struct {
	Rows
	block      int       // rows in a block
	partial    work.Part // sums of blocks of rows: of the first quantity, then of the second
	Parameters work.Part // a row of the kernel's parameters for each channel
}

const (
	// SumTile is the largest number of columns of a block of sums.
	SumTile = 1024
	// sumElements is about the number of elements of such a block. sumChunk is about the number that are summed at a time,
	// so that a cache line is still cached when its other columns are summed.
	sumElements = 32 << 10
	sumChunk    = 4 << 10
	// ChannelTile is the number of channels whose blocks are added up at a time.
	ChannelTile = 64
)

// NewSums reserves its scratch in r.
func NewSums(r *work.Room, pixels, channels int) *Sums {
	const most = 256 // blocks of rows, to bound the scratch
	c := &Sums{Rows: RowsOf(pixels, channels)}
	c.block = max(1, sumElements/min(c.Width(), SumTile), work.Ceil(c.Whole(), most))
	c.partial = r.Doubles(c.ranges() * c.stride())
	c.Parameters = r.Floats(c.Width())
	return c
}

// ranges is the number of blocks of rows. The last one includes the elements behind the last whole row.
func (c *Sums) ranges() int { return max(1, work.Ceil(c.Whole(), c.block)) }

// rows is the number of rows that are summed at a time; a piece covers their span.
func (c *Sums) rows() int  { return max(1, sumChunk/min(c.Width(), SumTile)) }
func (c *Sums) Piece() int { return c.rows() * c.Width() }

// stride is the number of sums of a block of rows.
func (c *Sums) stride() int { return 2 * vec.Padded(c.Width()) }

// Summed is a matrix within an activation whose columns are added to sums.
type Summed struct {
	First, Second       []float64
	From                int       // element of the activation
	Parameters          []float32 // of the columns
	Width, Stride, Rows int
}

// Read and To give the matrix's elements of a value that is taken in pieces, and Done stores the written ones.
func (m Summed) Read(x *work.Pieces, worker int) []float32 {
	return x.Rows(worker, m.From, m.Rows, m.Width, m.Stride)
}

func (m Summed) To(x *work.Pieces, worker int) []float32 { return x.RowsTo(worker, m.From) }

func (m Summed) Done(x *work.Pieces, worker int) {
	x.RowsDone(worker, m.From, m.Rows, m.Width, m.Stride)
}

// Phases returns the phases of the sums: add sums a matrix, and finish receives the totals of a channel.
func (c *Sums) Phases(s *work.Storage, add func(worker int, m Summed),
	finish func(channel int, first, second float64)) []work.Phase {
	partial, parameters := s.Scratch64(c.partial), s.Scratch(c.Parameters)
	width, stride := c.Width(), c.stride()
	tiles := work.Ceil(width, SumTile)
	return []work.Phase{
		{Blocks: c.ranges() * tiles, Run: func(worker, block int) {
			at, lo := block/tiles, block%tiles*SumTile
			hi := min(lo+SumTile, width)
			sums := partial[at*stride:][:stride]
			m := Summed{
				First: sums[lo:vec.Padded(hi)], Second: sums[stride/2+lo : stride/2+vec.Padded(hi)],
				Parameters: parameters[lo:hi], Width: hi - lo, Stride: width,
			}
			clear(m.First)
			clear(m.Second)
			end := min((at+1)*c.block, c.Whole())
			step := c.rows()
			for row := at * c.block; row < end; row += step {
				m.From, m.Rows = row*width+lo, min(step, end-row)
				add(worker, m)
			}
			if rest := min(c.Rest(), hi) - lo; rest > 0 && end == c.Whole() {
				m.From, m.Rows, m.Width, m.Parameters = end*width+lo, 1, rest, m.Parameters[:rest]
				add(worker, m)
			}
		}},
		Totals(partial, stride, c.Rows, finish),
	}
}

// Totals adds up partial sums. Each block of an activation has stride of them: those of the first quantity for each
// column of a row, then those of the second.
func Totals(partial []float64, stride int, r Rows, finish func(channel int, first, second float64)) work.Phase {
	return work.Phase{Blocks: work.Ceil(r.Channels, ChannelTile), Run: func(_, tile int) {
		lo := tile * ChannelTile
		n := min(ChannelTile, r.Channels-lo)
		var first, second [ChannelTile]float64
		for at := 0; at < len(partial); at += stride {
			for p := range r.Repeat {
				sums := partial[at+p*r.Channels+lo:]
				for i, v := range sums[:n] {
					first[i] += v
				}
				for i, v := range sums[stride/2:][:n] {
					second[i] += v
				}
			}
		}
		for i := range n {
			finish(lo+i, first[i], second[i])
		}
	}}
}
