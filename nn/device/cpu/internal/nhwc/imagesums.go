package nhwc

import (
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
)

// ImageSums adds up the pixels of each image and channel in float64.
type ImageSums struct {
	images, pixels, channels int
	part                     int // pixels of a block
	sums                     work.Part
}

// NewImageSums reserves its scratch in r.
func NewImageSums(r *work.Room, images, pixels, channels int) *ImageSums {
	const few, most = 8, 32 // images that need more blocks, and the blocks of one
	s := &ImageSums{images: images, pixels: pixels, channels: channels, part: pixels}
	if images < few {
		s.part = max(1, work.Ceil(pixels, most), sumElements/min(channels, SumTile))
	}
	s.sums = r.Doubles(images * s.parts() * vec.Padded(channels))
	return s
}

func (s *ImageSums) parts() int { return work.Ceil(s.pixels, s.part) }

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
	return s.each(all, max(1, elements/min(s.channels, SumTile)), func(worker int, m Summed) {
		k.Sums(m.First, part(worker, m.From, m.Rows, m.Width, m.Stride), m.Width, m.Width, m.Rows)
	}, finish)
}

// each has the phases in which add sums a few pixels of an image, or columns of them, at a time. Their cache lines are
// then still cached when other columns are summed. finish receives the sums.
func (s *ImageSums) each(all []float64, rows int, add func(worker int, m Summed),
	finish func(i int, sum float64)) []work.Phase {
	parts, tiles, stride := s.parts(), work.Ceil(s.channels, SumTile), vec.Padded(s.channels)
	phases := []work.Phase{{Blocks: s.images * parts * tiles, Run: func(worker, block int) {
		at, lo := block/tiles, block%tiles*SumTile
		hi := min(lo+SumTile, s.channels)
		m := Summed{First: all[at*stride:][lo:vec.Padded(hi)], Width: hi - lo, Stride: s.channels}
		clear(m.First)
		n, from := at/parts, at%parts*s.part
		end := min(from+s.part, s.pixels)
		for p := from; p < end; p += rows {
			m.From, m.Rows = (n*s.pixels+p)*s.channels+lo, min(rows, end-p)
			add(worker, m)
		}
		if parts == 1 {
			for i, v := range m.First[:hi-lo] {
				finish(n*s.channels+lo+i, v)
			}
		}
	}}}
	if parts == 1 {
		return phases
	}
	groups := work.Ceil(s.channels, ChannelTile)
	return append(phases, work.Phase{Blocks: s.images * groups, Run: func(_, block int) {
		n, lo := block/groups, block%groups*ChannelTile
		for c := lo; c < min(lo+ChannelTile, s.channels); c++ {
			sum := 0.0
			for part := range parts {
				sum += all[(n*parts+part)*stride+c]
			}
			finish(n*s.channels+c, sum)
		}
	}})
}
