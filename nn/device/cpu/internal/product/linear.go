package product

import (
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// vectors is the grid of n images of one pixel, with the given number of channels.
func vectors(n, channels int) grid {
	return grid{
		images: n, height: 1, width: 1, rowStep: 1, colStep: 1, taps: []tap{{}},
		srcH: 1, srcW: 1, srcC: channels, channels: channels,
	}
}

// linearProduct maps n vectors; channels and rows are the lengths of a source and of a result.
func linearProduct(n, channels, rows, weightRow, weightChannel int) *product {
	return &product{
		grids:  []target{{grid: vectors(n, channels), stepH: 1, stepW: 1}},
		groups: 1, rows: rows,
		dstH: 1, dstW: 1, dstC: rows,
		weightRow: weightRow, weightChannel: weightChannel,
	}
}

func linearStep(s work.Step) productStep {
	n, in, out := s.InType(0).Shape[0], s.InType(0).Shape[1], s.InType(1).Shape[0]
	return forwardStep(s, linearProduct(n, in, out, in, 1))
}

func linearGradStep(s work.Step) productStep {
	n, in, out := s.InType(1).Shape[0], s.InType(0).Shape[1], s.InType(0).Shape[0]
	return gradStep(s, linearProduct(n, out, in, 1, in))
}

// channelSum is the gradient of a bias.
func channelSum(s work.Step, _ op.ChannelSum) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	shape := s.InType(0).Shape
	pixels, channels := nhwc.Pixels(shape)
	if n := len(shape); n != 2 && n != 4 {
		return channelSumPlanes(s, shape[0], channels, pixels/shape[0]), nil
	}
	var r work.Room
	sums := nhwc.NewSums(&r, pixels, channels)
	l := work.Data(s, func(st *work.Storage) []work.Phase {
		k := vec.For(st.Level)
		x, dst := st.Pieces(s.In[0]), st.Floats(s.Out)
		return sums.Phases(st,
			func(worker int, m nhwc.Summed) { k.Sums(m.First, m.Read(x, worker), m.Width, m.Stride, m.Rows) },
			func(c int, sum, _ float64) { dst[c] = float32(sum) })
	})
	l.Workspace = r.Bytes
	l.Kernel.Take(sums.Piece(), s.In[0])
	return l, nil
}

// channelSumPlanes sums row-major storage: n images, each with a plane per channel.
func channelSumPlanes(s work.Step, n, channels, plane int) *work.Lowering {
	return work.Data(s, func(st *work.Storage) []work.Phase {
		x, dst := st.Floats(s.In[0]), st.Floats(s.Out)
		return []work.Phase{{Blocks: channels, Run: func(_, c int) {
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
