package product

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

// window is a convolution's window with all defaults filled in.
type window struct {
	kernel, stride, pad, dilation [2]int
	groups                        int
}

// convWindow is the window of o with weights of the given shape, OIHW.
func convWindow(o op.Conv2D, weight op.Shape) window {
	w := window{
		kernel: [2]int{weight[2], weight[3]}, stride: o.Stride, pad: o.Pad, dilation: o.Dilation,
		groups: max(1, o.Groups),
	}
	for i := range 2 {
		w.stride[i] = max(1, w.stride[i])
		w.dilation[i] = max(1, w.dilation[i])
	}
	return w
}

// forwardGrid is the grid of results, of shape y, that read an input of shape x.
func (w window) forwardGrid(x, y op.Shape) grid {
	g := grid{
		images: y[0], height: y[2], width: y[3],
		rowStep: w.stride[0], colStep: w.stride[1],
		srcH: x[2], srcW: x[3], srcC: x[1], channels: x[1] / w.groups,
	}
	for r := range w.kernel[0] {
		for s := range w.kernel[1] {
			g.taps = append(g.taps, tap{r*w.dilation[0] - w.pad[0], s*w.dilation[1] - w.pad[1], r*w.kernel[1] + s})
		}
	}
	return g
}

// backwardGrids splits the pixels of the input, of shape x, by phase: their position modulo the stride. Each phase
// receives gradients from the result, of shape y, through its own taps.
func (w window) backwardGrids(x, y op.Shape) []target {
	rows, cols := w.phases(0, x[2]), w.phases(1, x[3])
	var list []target
	for _, a := range rows {
		for _, b := range cols {
			t := target{
				grid: grid{
					images: x[0], height: a.extent, width: b.extent, rowStep: 1, colStep: 1,
					srcH: y[2], srcW: y[3], srcC: y[1], channels: y[1] / w.groups,
				},
				stepH: w.stride[0], stepW: w.stride[1], offH: a.first, offW: b.first,
			}
			for _, r := range a.taps {
				for _, s := range b.taps {
					t.taps = append(t.taps, tap{r.offset, s.offset, r.kernel*w.kernel[1] + s.kernel})
				}
			}
			list = append(list, t)
		}
	}
	return list
}

// linePhase is a phase in one dimension.
type linePhase struct {
	first, extent int // input positions first + i·stride, i < extent
	taps          []lineTap
}

// lineTap is a tap of a phase: position i receives the kernel's weight times position i+offset of the result.
type lineTap struct{ offset, kernel int }

// phases lists the phases of dimension d, with n input positions. Taps are in the order of offsets.
func (w window) phases(d, n int) []linePhase {
	var list []linePhase
	for first := range min(w.stride[d], n) {
		p := linePhase{first: first, extent: (n - first + w.stride[d] - 1) / w.stride[d]}
		for k := w.kernel[d] - 1; k >= 0; k-- {
			if at := first + w.pad[d] - k*w.dilation[d]; at%w.stride[d] == 0 {
				p.taps = append(p.taps, lineTap{at / w.stride[d], k})
			}
		}
		list = append(list, p)
	}
	return list
}

func convStep(s work.Step, o op.Conv2D) productStep {
	x, weight, y := s.InType(0).Shape, s.InType(1).Shape, s.OutType().Shape
	w := convWindow(o, weight)
	p := &product{
		grids:  []target{{grid: w.forwardGrid(x, y), stepH: 1, stepW: 1}},
		groups: w.groups, rows: y[1] / w.groups, rounded: true,
		dstH: y[2], dstW: y[3], dstC: y[1],
		weightTap: weight[1] * y[1], weightChannel: y[1], weightRow: 1, weightGroup: y[1] / w.groups,
	}
	return forwardStep(s, p)
}

// forwardStep binds product p to the operands of s: source, weights and perhaps a bias.
func forwardStep(s work.Step, p *product) productStep {
	p.stored = work.IsStored(s.InValue(0))
	p.fixed = work.Fixed(s, s.In[1], s.Optional(2))
	return productStep{
		product: p, step: s, first: s, roles: [2]device.Role{device.Data, device.Weight},
		src: s.In[0], weights: s.In[1], bias: s.Optional(2),
	}
}

func convGradInputStep(s work.Step, o op.Conv2DGradInput) productStep {
	weight, y, x := s.InType(0).Shape, s.InType(1).Shape, s.OutType().Shape
	w := convWindow(o.Conv2D, weight)
	p := &product{
		grids:  w.backwardGrids(x, y),
		groups: w.groups, rows: weight[1], rounded: true,
		dstH: x[2], dstW: x[3], dstC: x[1],
		weightTap: weight[1] * y[1], weightChannel: 1, weightRow: y[1], weightGroup: y[1] / w.groups,
	}
	return gradStep(s, p)
}

// gradStep binds product p to the operands of s: weights and source.
func gradStep(s work.Step, p *product) productStep {
	p.stored = work.IsStored(s.InValue(1))
	return productStep{
		product: p, step: s, first: s, roles: [2]device.Role{device.Weight, device.Data},
		src: s.In[1], weights: s.In[0], bias: -1,
	}
}
