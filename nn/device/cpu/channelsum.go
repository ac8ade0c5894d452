package cpu

// channelSums adds up, for each channel, quantities that depend on a pixel's values. Blocks of
// pixels are summed in float64 and then added in their order.
type channelSums struct {
	pixels, channels int
	quantities       int
	rows             int // pixels in a block
	partial          part
}

// channelTile is how many channels are added up over the blocks at a time.
const channelTile = 64

// newChannelSums takes its scratch from r.
func newChannelSums(r *room, pixels, channels, quantities int) *channelSums {
	const most = 256 // blocks, to bound the scratch
	c := &channelSums{
		pixels: pixels, channels: channels, quantities: quantities,
		rows: max(1, elementBlock/channels, ceil(pixels, most)),
	}
	c.partial = r.doubles(c.blocks() * quantities * channels)
	return c
}

func (c *channelSums) blocks() int { return ceil(c.pixels, c.rows) }

// phases are those that sum: block adds the quantities of pixels lo to hi to sums, which holds the quantities
// one after the other, and finish receives the totals of a channel: of one quantity or two.
func (c *channelSums) phases(s *storage, block func(sums []float64, lo, hi int), finish func(channel int, first, second float64)) []phase {
	partial := s.scratch64(c.partial)
	size := c.quantities * c.channels
	return []phase{
		{c.blocks(), func(_, b int) {
			sums := partial[b*size:][:size]
			clear(sums)
			block(sums, b*c.rows, min((b+1)*c.rows, c.pixels))
		}},
		{ceil(c.channels, channelTile), func(_, tile int) {
			for ch := tile * channelTile; ch < min((tile+1)*channelTile, c.channels); ch++ {
				second := 0.0
				if c.quantities > 1 {
					second = column(partial, c.channels+ch, size)
				}
				finish(ch, column(partial, ch, size), second)
			}
		}},
	}
}

// column is the sum of every step-th element of x, from one on.
func column(x []float64, from, step int) float64 {
	sum := 0.0
	for i := from; i < len(x); i += step {
		sum += x[i]
	}
	return sum
}

func lowerChannelSum(s step) (*lowering, string) {
	if reason := s.dataIn(); reason != "" {
		return nil, reason
	}
	var r room
	pixels, channels := pixelsOf(s.in(0).Shape)
	width := 1 // elements of a channel that are contiguous
	if n := len(s.in(0).Shape); n != 2 && n != 4 {
		width = pixels / s.in(0).Shape[0] // row-major
	}
	sums := newChannelSums(&r, pixels/width, channels, 1)
	l := s.data(func(st *storage) []phase {
		x, dst := st.floats(s.In[0]), st.floats(s.Out)
		return sums.phases(st, func(sum []float64, lo, hi int) {
			for p := lo; p < hi; p++ {
				row := x[p*channels*width:][:channels*width]
				if width == 1 {
					for c, v := range row {
						sum[c] += float64(v)
					}
					continue
				}
				for c := range sum {
					for _, v := range row[c*width:][:width] {
						sum[c] += float64(v)
					}
				}
			}
		}, func(c int, sum, _ float64) { dst[c] = float32(sum) })
	})
	l.workspace = r.bytes
	return l, ""
}
