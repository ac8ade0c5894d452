package product

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
)

func (d Options) convGradWeight(s work.Step, o op.Conv2DGradWeight) (*work.Lowering, error) {
	x, y := s.InType(0).Shape, s.InType(1).Shape
	w := convWindow(o.Conv2D, s.OutType().Shape)
	return d.outer(s, &outer{
		grid:   w.forwardGrid(x, y),
		groups: w.groups, rows: y[1] / w.groups, columns: y[1],
	}, s.In[0], s.In[1])
}

func (d Options) linearGradWeight(s work.Step, _ op.LinearGradWeight) (*work.Lowering, error) {
	n, in, out := s.InType(0).Shape[0], s.InType(0).Shape[1], s.InType(1).Shape[1]
	return d.outer(s, &outer{grid: vectors(n, out), groups: 1, rows: in, columns: in}, s.In[1], s.In[0])
}

// outer lowers a step that sums outer products of two activations: the gradient of a weight.
func (d Options) outer(s work.Step, o *outer, a, b int) (*work.Lowering, error) {
	if err := work.DataIn(s); err != nil {
		return nil, err
	}
	var r work.Room
	stored := [2]bool{s.Values[a].Layout == work.Stored, s.Values[b].Layout == work.Stored}
	l := work.Result(s, work.Layout(s.OutType(), device.Weight), o.lower(d, &r, a, b, s.Out, stored))
	l.Workspace = r.Bytes
	if t, _ := d.inTiles(o); t != nil || d.vectorOuter(o) != nil || o.depthwise() {
		l.Kernel.Take(0, a, b)
	}
	return l, nil
}
