package cpu

import "onlinerna/nn/device/cpu/internal/vec"

// channelSums adds up, for each channel, one or two quantities that depend on a pixel's values. Blocks of
// rows and columns are summed in float64 and then added in the order of the rows.
type channelSums struct {
	rows
	block      int  // rows in a block
	partial    part // sums of blocks of rows: of the first quantity, of the second
	parameters part // a row of what the kernel needs to know of each channel
}

const (
	// sumTile is how many columns a block of sums covers, at most.
	sumTile = 512
	// sumElements is how many elements such a block covers, about; sumChunk is how many of them are
	// summed at a time, so that a line of cache is still there when its other columns are.
	sumElements = 32 << 10
	sumChunk    = 4 << 10
	// channelTile is how many channels are added up over the blocks at a time.
	channelTile = 64
)

// newChannelSums takes its scratch from r.
func newChannelSums(r *room, pixels, channels int) *channelSums {
	const most = 256 // blocks of rows, to bound the scratch
	c := &channelSums{rows: rowsOf(pixels, channels)}
	c.block = max(1, sumElements/min(c.width(), sumTile), ceil(c.whole(), most))
	c.partial = r.doubles(c.ranges() * c.stride())
	c.parameters = r.floats(c.width())
	return c
}

// ranges is how many blocks of rows there are. The last one takes what is behind the last whole row.
func (c *channelSums) ranges() int { return max(1, ceil(c.whole(), c.block)) }

// stride is the sums of a block of rows.
func (c *channelSums) stride() int { return 2 * vec.Padded(c.width()) }

// summed is a matrix within an activation whose columns are to be added to sums.
type summed struct {
	first, second       []float64
	from                int       // element of the activation
	parameters          []float32 // of the columns
	width, stride, rows int
}

// phases are those that sum: add does it for a matrix, and finish receives the totals of a channel.
func (c *channelSums) phases(s *storage, add func(m summed), finish func(channel int, first, second float64)) []phase {
	partial, parameters := s.scratch64(c.partial), s.scratch(c.parameters)
	width, stride := c.width(), c.stride()
	tiles := ceil(width, sumTile)
	return []phase{
		{c.ranges() * tiles, func(_, block int) {
			at, lo := block/tiles, block%tiles*sumTile
			hi := min(lo+sumTile, width)
			sums := partial[at*stride:][:stride]
			m := summed{
				first: sums[lo:vec.Padded(hi)], second: sums[stride/2+lo : stride/2+vec.Padded(hi)],
				parameters: parameters[lo:hi], width: hi - lo, stride: width,
			}
			clear(m.first)
			clear(m.second)
			end := min((at+1)*c.block, c.whole())
			step := max(1, sumChunk/m.width)
			for row := at * c.block; row < end; row += step {
				m.from, m.rows = row*width+lo, min(step, end-row)
				add(m)
			}
			if rest := min(c.rest(), hi) - lo; rest > 0 && end == c.whole() {
				m.from, m.rows, m.width, m.parameters = end*width+lo, 1, rest, m.parameters[:rest]
				add(m)
			}
		}},
		totals(partial, stride, c.rows, finish),
	}
}

// totals adds up partial sums, stride of them for each block of an activation: those of the first quantity for each
// column of a row, then those of the second.
func totals(partial []float64, stride int, r rows, finish func(channel int, first, second float64)) phase {
	return phase{ceil(r.channels, channelTile), func(_, tile int) {
		lo := tile * channelTile
		n := min(channelTile, r.channels-lo)
		var first, second [channelTile]float64
		for at := 0; at < len(partial); at += stride {
			for p := range r.repeat {
				sums := partial[at+p*r.channels+lo:]
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

func lowerChannelSum(s step) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	shape := s.in(0).Shape
	pixels, channels := pixelsOf(shape)
	if n := len(shape); n != 2 && n != 4 {
		return s.channelSumPlanes(shape[0], channels, pixels/shape[0]), ""
	}
	var r room
	sums := newChannelSums(&r, pixels, channels)
	l := s.data(func(st *storage) []phase {
		k := kernels()
		x, dst := st.floats(s.In[0]), st.floats(s.Out)
		return sums.phases(st,
			func(m summed) { k.Sums(m.first, x[m.from:], m.width, m.stride, m.rows) },
			func(c int, sum, _ float64) { dst[c] = float32(sum) })
	})
	l.workspace = r.bytes
	return l, ""
}

// channelSumPlanes is the sum over row-major storage: n times a plane of each channel.
func (s step) channelSumPlanes(n, channels, plane int) *lowering {
	return s.data(func(st *storage) []phase {
		x, dst := st.floats(s.In[0]), st.floats(s.Out)
		return []phase{{channels, func(_, c int) {
			sum := 0.0
			for i := range n {
				for _, v := range x[(i*channels+c)*plane:][:plane] {
					sum += float64(v)
				}
			}
			dst[c] = float32(sum)
		}}}
	})
}
