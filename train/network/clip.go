package network

import (
	"fmt"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// clamp keeps the elements of a gradient, each times the scale of its step, between −most and most. One that is not finite stays, so that
// those who look for such gradients find it.
type clamp struct {
	grad    device.Vector
	most    float64
	numbers device.Region
	kernel  device.Kernel
	space   device.Memory // workspace, or nil
}

// clampExpr is what happens to an element: argument 0 is the gradient's, argument 1 the scale.
func clampExpr(most float64) expr.Expr {
	g, bound := expr.Arg(0), expr.Const(most).Div(expr.Arg(1).Abs())
	inside := g.Max(bound.Neg()).Min(bound)
	return expr.If(g.Sub(g).Equal(expr.Const(0)), inside, g)
}

// clampsBy is clamps with numbers that are not in a lane.
func (n *Network) clampsBy(grad device.Vector, most float64, numbers device.Numbers) error {
	size := n.Device.DType().Size()
	if n.numbers == nil {
		m, err := n.Device.NewMemory(device.NumbersLen * size)
		if err != nil {
			return err
		}
		n.numbers = m
	}
	r := device.Region{Memory: n.numbers, Bytes: device.NumbersLen * size}
	if err := n.Device.Upload(r, "", op.Tensor{Shape: op.Shape{device.NumbersLen}, Data: numbers.Values()}); err != nil {
		return err
	}
	return n.clamps(grad, most, r)
}

// clamps bounds a gradient by the numbers of a step in memory.
func (n *Network) clamps(grad device.Vector, most float64, numbers device.Region) error {
	for _, c := range n.clampers {
		if c.grad == grad && c.most == most && c.numbers == numbers {
			return c.kernel()
		}
	}
	c := &clamp{grad: grad, most: most, numbers: numbers}
	dt := n.Device.DType()
	all, one := op.T(dt, 1, 1, grad.Len()), op.T(dt, 1)
	group := &device.Group{
		Values: []device.Value{{Name: "gradient", Type: all, Bytes: all.Bytes()}, {Name: "scale", Type: one, Bytes: one.Bytes()},
			{Name: "clipped", Type: all, Bytes: all.Bytes()}},
		Steps:  []device.Step{{Name: "clip", Op: op.Map{Expr: clampExpr(most)}, In: []int{0, 1}, Out: 2}},
		Inputs: []int{0, 1}, Outputs: []int{2},
	}
	p, err := n.Device.Describe(group)
	if err != nil {
		return fmt.Errorf("clipping gradients: %w", err)
	}
	if o := p.Outputs[0]; o.Layout != "" || o.Bytes != all.Bytes() || !slices.Contains(o.Over, 0) {
		return fmt.Errorf("device %s cannot clip gradients by value", n.Device.Name())
	}
	if p.Workspace > 0 {
		if c.space, err = n.Device.NewMemory(p.Workspace); err != nil {
			return err
		}
	}
	size := dt.Size()
	r := grad.Region(0, grad.Len())
	c.kernel, err = n.Device.Bind(group, p, device.Args{
		In:        []device.Region{r, {Memory: numbers.Memory, Offset: numbers.Offset + size, Bytes: size}},
		Out:       []device.Region{r},
		Workspace: device.Region{Memory: c.space, Bytes: p.Workspace},
	})
	if err != nil {
		return err
	}
	n.clampers = append(n.clampers, c)
	return c.kernel()
}

// freeClamps gives back what clamps holds.
func (n *Network) freeClamps() {
	for _, c := range n.clampers {
		if c.space != nil {
			c.space.Free()
		}
	}
	n.clampers = nil
	if n.numbers != nil {
		n.numbers.Free()
		n.numbers = nil
	}
}
