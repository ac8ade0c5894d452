package mapping

import (
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
)

// sumTo sums in float64, separately for each sample if the result keeps samples.
func sumTo(s work.Step, o op.SumTo) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	x := s.InType(0)
	axes := o.Axes(x)
	samples, channels, pixels := x.Shape.Extents()
	ord := orderOf(x.Shape, work.Layout(x, device.Data))
	kept := axes // and those of one element
	for i, n := range []int{samples, channels, pixels} {
		if n == 1 {
			kept |= 1 << i
		}
	}
	inner, extent := ord.inner()
	switch {
	case kept == op.All&^inner:
		return sumRows(s, samples*channels*pixels/extent, extent), nil
	case kept == op.Samples:
		return sumRows(s, samples, channels*pixels), nil
	case kept == 0:
		return sumRows(s, 1, samples*channels*pixels), nil
	case kept == op.Samples|op.Channels: // channels are innermost
		return sumPixels(s, samples, channels, pixels), nil
	case kept == op.Samples|op.Pixels: // pixels are innermost
		return sumPixels(s, samples, pixels, channels), nil
	case kept == op.Channels|op.Pixels:
		return sumSamples(s, samples, channels*pixels), nil
	case kept == op.Channels && ord.last:
		return sumPixels(s, 1, channels, samples*pixels), nil
	}
	blocks := 1
	if axes&op.Samples != 0 {
		blocks = samples
	}
	size := samples / blocks * channels * pixels
	var r work.Room
	part := r.Doubles(s.OutType().Shape.Size())
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst, sums := st.Floats(s.In[0]), st.Floats(s.Out), st.Scratch64(part)
		mine := len(dst) / blocks
		return []work.Phase{{Blocks: blocks, Run: func(_, block int) {
			sum := sums[block*mine:][:mine]
			clear(sum)
			for i, v := range src[block*size:][:size] {
				n, c, p := ord.at(i)
				sum[ord.place(axes, n, c, p)] += float64(v)
			}
			for i, v := range sum {
				dst[block*mine+i] = float32(v)
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l, nil
}

// sumPixels sums each sample over its pixels, whose channels are innermost, as in the gradient of squeeze-and-excite's
// scaling.
func sumPixels(s work.Step, samples, channels, pixels int) *work.Lowering {
	var r work.Room
	sums := nhwc.NewImageSums(&r, samples, pixels, channels)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		dst := st.Floats(s.Out)
		return sums.Phases(st, st.Pieces(s.In[0]), func(i int, sum float64) { dst[i] = float32(sum) })
	})
	l.Kernel.Take(sums.Piece(), s.In[0])
	l.Workspace = r.Bytes
	return l
}

// summed matches the chain and the SumTo or GlobalAvgPool that alone reads its result, if that sums over the pixels of
// each sample and channel. The result is not stored.
func (c Chain) summed(f *lower.Flow, workers int) []work.Match {
	x, last := c.Last.OutType(), c.Steps[len(c.Steps)-1]
	samples, channels, pixels := x.Shape.Extents()
	next, sum := lower.Next[op.SumTo](f, last)
	count := 1.0
	if !sum {
		var mean bool
		if next, mean = lower.Next[op.GlobalAvgPool](f, last); !mean {
			return nil
		}
		count = float64(pixels)
	}
	s := f.Step(next)
	if sum && (len(x.Shape) != 4 || s.Op.(op.SumTo).Axes(x) != op.Samples|op.Channels) {
		return nil
	}
	return []work.Match{{Steps: append(slices.Clone(c.Steps), next), Lower: func() (*work.Lowering, error) {
		var r work.Room
		const block = 4 * Block // few rows at a time would read and write their sums too often
		p, err := c.Plan(&r, workers, block)
		if err != nil {
			return nil, err
		}
		if p.layout != work.Layout(x, device.Data) {
			return nil, lower.Reason("the sums are those of activations")
		}
		sums, scratch := nhwc.NewImageSums(&r, samples, pixels, channels), r.Each(workers, block)
		l := work.Data(s, func(st *work.Storage) []work.Phase {
			dst, parts := st.Floats(s.Out), st.Scratches(scratch)
			b, before := p.Bind(st)
			if st.Err != nil {
				return nil
			}
			part := func(worker, from, rows, width, stride int) []float32 {
				made := parts[worker][:rows*width]
				if width == stride {
					rows, width = 1, rows*width
				}
				for row := range rows {
					b.Run(worker, made[row*width:][:width], from+row*stride, nil)
				}
				return made
			}
			return append(append(before, b.Begin()...), sums.PhasesOf(st, block, part,
				func(i int, sum float64) { dst[i] = float32(sum / count) })...)
		})
		p.Take(&l.Kernel)
		l.Workspace = r.Bytes
		return l, nil
	}}}
}

// sumRows sums each row of size elements, as in the gradient of a factor of rows.
func sumRows(s work.Step, rows, size int) *work.Lowering {
	each := max(1, work.ElementBlock/size)
	if size > 2*work.ElementBlock {
		return sumLong(s, rows, size)
	}
	return work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{{Blocks: work.Ceil(rows, each), Run: func(_, block int) {
			for i := block * each; i < min((block+1)*each, rows); i++ {
				dst[i] = float32(sumOf(src[i*size:][:size]))
			}
		}}}
	})
}

// sumLong sums rows that workers share.
func sumLong(s work.Step, rows, size int) *work.Lowering {
	var r work.Room
	parts := work.Ceil(size, work.ElementBlock)
	sums := r.Doubles(rows * parts)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst, all := st.Floats(s.In[0]), st.Floats(s.Out), st.Scratch64(sums)
		return []work.Phase{{Blocks: rows * parts, Run: func(_, block int) {
			lo := block % parts * work.ElementBlock
			row := src[block/parts*size:][:size]
			all[block] = sumOf(row[lo:min(lo+work.ElementBlock, size)])
		}}, {Blocks: 1, Run: func(_, _ int) {
			for i := range dst[:rows] {
				sum := 0.0
				for _, v := range all[i*parts:][:parts] {
					sum += v
				}
				dst[i] = float32(sum)
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l
}

// sumOf adds four sums, each of every fourth element: a sum waits for the one before.
func sumOf(x []float32) float64 {
	var sums [4]float64
	for len(x) >= 4 {
		sums[0] += float64(x[0])
		sums[1] += float64(x[1])
		sums[2] += float64(x[2])
		sums[3] += float64(x[3])
		x = x[4:]
	}
	for i, v := range x {
		sums[i] += float64(v)
	}
	return sums[0] + sums[1] + (sums[2] + sums[3])
}

// sumSamples sums over the samples, each of size elements, as in the gradient of a positional embedding.
func sumSamples(s work.Step, samples, size int) *work.Lowering {
	const tile = 1 << 10 // a multiple of vec.Padded's
	var r work.Room
	part := r.Doubles(vec.Padded(size))
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		src, dst, all, k := st.Floats(s.In[0]), st.Floats(s.Out), st.Scratch64(part), vec.For(st.Level)
		return []work.Phase{{Blocks: work.Ceil(size, tile), Run: func(_, block int) {
			lo := block * tile
			hi := min(lo+tile, size)
			sums := all[lo:vec.Padded(hi)]
			clear(sums)
			k.Sums(sums, src[lo:], hi-lo, size, samples)
			for i, v := range sums[:hi-lo] {
				dst[lo+i] = float32(v)
			}
		}}}
	})
	l.Workspace = r.Bytes
	return l
}
