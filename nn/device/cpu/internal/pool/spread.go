package pool

import (
	"onlinerna/nn/device"
	"onlinerna/nn/device/lower"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Spread makes expressions add the gradient of a global pool to another expression's result without storing it for each
// pixel: the pool's gradient becomes one number for each image and channel.
func Spread(p *device.Program) {
	f := lower.NewFlow(p)
	for i := range p.Steps {
		s := f.Step(i)
		next, ok := lower.Next[op.Add](f, i)
		if !ok || !lower.Is[op.GlobalAvgPoolGrad](s) {
			continue
		}
		other, ok := f.Step(next).Other(s.Out)
		if !ok || f.Maker(other) < 0 || f.Sole(f.Maker(other)) != next || !lower.Is[op.Map](f.Step(f.Maker(other))) {
			continue
		}
		_, _, pixels := s.OutType().Shape.Extents()
		p.Values[s.Out].Type = s.InType(0)
		p.Steps[i].Op = op.Map{Expr: expr.Arg(0).Scale(float64(1 / float32(pixels)))}
		p.Steps[next].Op = op.Map{Expr: expr.Arg(0).Add(expr.Arg(1))}
		p.Steps[next].In = []int{other, s.Out}
	}
}
