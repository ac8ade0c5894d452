package cpu

import (
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

func lowerImages(s step, o op.Images) (*lowering, string) {
	if reason := s.expect(device.Data, device.Data); reason != "" {
		return nil, reason
	}
	from := s.in(0).Shape // NHWC
	h, w, channels := from[1], from[2], from[3]
	to := imageOf(s.out().Shape)
	var r room
	tablePart := r.floats(256 * channels)
	l := s.data(func(st *storage) []phase {
		pixels, crops := value[uint8](st, s.In[0]), value[int32](st, s.In[1])
		dst, table := st.floats(s.Out), st.scratch(tablePart)
		return []phase{
			{1, func(int, int) { levels(table, o.Mean, o.Std) }},
			linesOf(to).phase(dst, func(n, i int, line []float32) {
				top, left, flip := int(crops[3*n])+i, int(crops[3*n+1]), crops[3*n+2] != 0
				for j := range to.w {
					col := left + j
					if flip {
						col = left + to.w - 1 - j
					}
					out := line[j*channels:][:channels]
					if uint(top) >= uint(h) || uint(col) >= uint(w) {
						copy(out, table[:channels])
						continue
					}
					for c, p := range pixels[((n*h+top)*w+col)*channels:][:channels] {
						out[c] = table[int(p)*channels+c]
					}
				}
			}),
		}
	})
	l.workspace = r.bytes
	return l, ""
}

// levels fills the table of what each of the 256 levels of each channel becomes.
func levels(table []float32, mean, std []float64) {
	channels := len(table) / 256
	for p := range 256 {
		for c := range channels {
			table[p*channels+c] = float32((float64(p)/255 - mean[c]) / std[c])
		}
	}
}
