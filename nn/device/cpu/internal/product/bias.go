package product

import (
	"onlinerna/nn/device/cpu/internal/nhwc"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

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
