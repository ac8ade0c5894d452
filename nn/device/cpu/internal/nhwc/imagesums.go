package nhwc

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// ImageSums adds up the pixels of each image and channel in float64.
type ImageSums struct {
	images, pixels, channels int
	tile                     int // channels of a block
	sums                     work.Part
}

// NewImageSums reserves its scratch in r.
func NewImageSums(r *work.Room, images, pixels, channels int) *ImageSums {
	const few, narrow = 8, 64 // images that need more blocks, and the channels of these
	tile := SumTile
	if images < few {
		tile = narrow
	}
	return &ImageSums{images, pixels, channels, tile, r.Doubles(images * vec.Padded(channels))}
}

// rows is the number of pixels that are summed at a time; a piece covers their span.
func (s *ImageSums) rows() int  { return max(1, sumChunk/s.channels) }
func (s *ImageSums) Piece() int { return min(s.rows(), s.pixels) * s.channels }

// Phases returns the phases of the sums of x. finish receives the sum of each image and channel, images × channels.
func (s *ImageSums) Phases(st *work.Storage, x *work.Pieces, finish func(i int, sum float64)) []work.Phase {
	if st.Err != nil {
		return nil
	}
	k, half, all := vec.For(st.Level), vec.StoredFor(st.Level), st.Scratch64(s.sums)
	return s.each(all, s.rows(), func(worker int, m Summed) {
		if half != nil && x.Stored() != nil {
			half.Sums(m.First, x.Stored()[m.From:], m.Width, m.Stride, 0, m.Rows)
			return
		}
		k.Sums(m.First, m.Read(x, worker), m.Width, m.Stride, m.Rows)
	}, finish)
}

// PhasesOf is Phases for pixels that part makes: rows of width elements without gaps. Those of an activation from place
// from on are stride apart. It asks for one row, or for rows with at most the given number of elements.
func (s *ImageSums) PhasesOf(st *work.Storage, elements int,
	part func(worker, from, rows, width, stride int) []float32, finish func(i int, sum float64)) []work.Phase {
	k, all := vec.For(st.Level), st.Scratch64(s.sums)
	return s.each(all, max(1, elements/min(s.channels, s.tile)), func(worker int, m Summed) {
		k.Sums(m.First, part(worker, m.From, m.Rows, m.Width, m.Stride), m.Width, m.Width, m.Rows)
	}, finish)
}

// each is the phase in which add sums a few pixels of an image, or columns of them, at a time. Their cache lines are
// then still cached when other columns are summed. finish receives the sums.
func (s *ImageSums) each(all []float64, rows int, add func(worker int, m Summed),
	finish func(i int, sum float64)) []work.Phase {
	tiles, stride := work.Ceil(s.channels, s.tile), vec.Padded(s.channels)
	return []work.Phase{{Blocks: s.images * tiles, Run: func(worker, block int) {
		n, lo := block/tiles, block%tiles*s.tile
		hi := min(lo+s.tile, s.channels)
		m := Summed{First: all[n*stride:][lo:vec.Padded(hi)], Width: hi - lo, Stride: s.channels}
		clear(m.First)
		for p := 0; p < s.pixels; p += rows {
			m.From, m.Rows = (n*s.pixels+p)*s.channels+lo, min(rows, s.pixels-p)
			add(worker, m)
		}
		for i, v := range m.First[:hi-lo] {
			finish(n*s.channels+lo+i, v)
		}
	}}}
}
