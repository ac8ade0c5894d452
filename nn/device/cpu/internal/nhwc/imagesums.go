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

// rows is the number of pixels that are summed at a time if they have to be widened; a piece covers their span.
func (s *ImageSums) rows() int  { return max(1, sumChunk/s.channels) }
func (s *ImageSums) Piece() int { return min(s.rows(), s.pixels) * s.channels }

// Phases returns the phases of the sums of x. finish receives the sum of each image and channel, images × channels.
func (s *ImageSums) Phases(st *work.Storage, x *work.Pieces, finish func(i int, sum float64)) []work.Phase {
	if st.Err != nil {
		return nil
	}
	k, half, all := vec.For(st.Level), vec.StoredFor(st.Level), st.Scratch64(s.sums)
	tiles, stride := work.Ceil(s.channels, s.tile), vec.Padded(s.channels)
	return []work.Phase{{Blocks: s.images * tiles, Run: func(worker, block int) {
		n, lo := block/tiles, block%tiles*s.tile
		hi := min(lo+s.tile, s.channels)
		sum := all[n*stride:][lo:vec.Padded(hi)]
		clear(sum)
		at := func(pixel int) int { return (n*s.pixels+pixel)*s.channels + lo }
		switch {
		case x.Stored() == nil:
			k.Sums(sum, x.All()[at(0):], hi-lo, s.channels, s.pixels)
		case half != nil:
			half.Sums(sum, x.Stored()[at(0):], hi-lo, s.channels, 0, s.pixels)
		default:
			step := s.rows()
			for p := 0; p < s.pixels; p += step {
				rows := min(step, s.pixels-p)
				k.Sums(sum, x.Rows(worker, at(p), rows, hi-lo, s.channels), hi-lo, s.channels, rows)
			}
		}
		for i, v := range sum[:hi-lo] {
			finish(n*s.channels+lo+i, v)
		}
	}}}
}
