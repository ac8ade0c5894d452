package cpu

import (
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

func lowerConvGradWeight(s step, o op.Conv2DGradWeight) (*lowering, string) {
	if reason := s.expect(device.Data, device.Data); reason != "" {
		return nil, reason
	}
	x, y := s.in(0).Shape, s.in(1).Shape
	w := convWindow(o.Conv2D, s.out().Shape)
	return s.outer(&outer{
		grid:   w.forwardGrid(x, y),
		groups: w.groups, rows: y[1] / w.groups, columns: y[1],
	}, s.In[0], s.In[1]), ""
}

func lowerLinearGradWeight(s step) (*lowering, string) {
	if reason := s.expect(device.Data, device.Data); reason != "" {
		return nil, reason
	}
	n, in, out := s.in(0).Shape[0], s.in(0).Shape[1], s.in(1).Shape[1]
	return s.outer(&outer{grid: vectors(n, out), groups: 1, rows: in, columns: in}, s.In[1], s.In[0]), ""
}

// outer is the lowering of a step that is a sum of outer products: the gradient of a weight.
func (s step) outer(o *outer, a, b int) *lowering {
	var r room
	bind := o.lower(s.Device, &r, a, b, s.Out)
	l := s.result(s.Layout(s.out(), device.Weight), bind)
	l.workspace = r.bytes
	return l
}
