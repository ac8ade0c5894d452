package network

import (
	"slices"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"

	G "gorgonia.org/gorgonia"
)

// overlaps reports whether parts of the gradient are summed over ranks during the backward pass: not if the batch's
// gradient must be weighted first.
func (s StepOptions) overlaps() bool {
	return s.Reducer != nil && s.Update.Optimizer != nil && s.Sum == nil && s.Weight == 1
}

// marks are the nodes of a model's run after which the loss and the gradient's buckets go to the reducer.
func (n *Network) marks(m *nn.Model, l *lane, s StepOptions) []machine.Mark {
	if !s.overlaps() {
		return nil
	}
	part := func(f func() error) error {
		return n.part(Communication, func() error {
			if err := f(); err != nil || n.tracer == nil { // the sums overlap the following work
				return err
			}
			return s.Reducer.Wait()
		})
	}
	list := []machine.Mark{{Nodes: G.Nodes{m.Loss}, Do: func() error {
		return part(func() error {
			if err := l.note(); err != nil {
				return err
			}
			return s.Reducer.Guard(n.guard.region())
		})
	}}}
	var before G.Nodes // buckets keep their order
	for _, b := range Buckets(n.Tensors()) {
		for i, t := range n.params {
			if t.off < b.Off+b.Len && b.Off < t.off+t.n && m.Params[i].Grad != nil {
				before = append(before, m.Params[i].Grad)
			}
		}
		list = append(list, machine.Mark{Nodes: before, Do: func() error {
			return part(func() error { return s.Reducer.Sum(n.Grads, b) })
		}})
	}
	return list
}

// reduce sums a gradient over ranks and adds all ranks' losses to the guard.
func (n *Network) reduce(grad device.Vector, s StepOptions) error {
	r := s.Reducer
	if s.overlaps() {
		return r.Wait()
	}
	if s.Sum == nil && s.Weight != 1 {
		if err := grad.AddScaled(s.Weight-1, grad); err != nil {
			return err
		}
	}
	if err := r.Guard(n.guard.region()); err != nil {
		return err
	}
	for _, b := range Buckets(n.Tensors()) {
		if err := r.Sum(grad, b); err != nil {
			return err
		}
	}
	return r.Wait()
}

// StartEmpty takes the step after a batch, configured by s, on a rank that has run out of batches: a step by the other
// ranks' gradients.
func (n *Network) StartEmpty(s StepOptions) error {
	grad := s.Sum
	if grad == nil {
		grad = n.Grads
	}
	if s.Sum == nil || s.First {
		if err := grad.Fill(0); err != nil {
			return err
		}
	}
	u := s.Update
	if u.Optimizer == nil {
		return nil
	}
	if err := n.guard.open(n.Device); err != nil {
		return err
	}
	s.Weight, s.Sum = 1, grad // no weighting: the gradient is 0 or a sum
	if err := n.part(Communication, func() error { return n.reduce(grad, s) }); err != nil {
		return err
	}
	u.Grad = grad
	u.Live.Guard = n.guard.region()
	return n.part(Updating, func() error { return n.Params.Update(u) })
}

// Elements of the buckets in which gradients are summed: a small first bucket starts the communication early; fewer
// large ones then cost less overhead.
const (
	firstBucket = 1 << 18 // 1 MiB of float32
	bucket      = 25 << 18
)

// Buckets splits a gradient into parts that are summed at once, in the order of the backward pass: from the last tensor
// to the first. Tensors are adjacent and stay whole.
func Buckets(tensors []device.Span) []device.Span {
	var list []device.Span
	room := 0
	for _, t := range slices.Backward(tensors) {
		if k := len(list) - 1; k >= 0 && t.Len <= room {
			list[k].Off, list[k].Len = t.Off, list[k].Len+t.Len
			room -= t.Len
			continue
		}
		most := bucket
		if len(list) == 0 {
			most = firstBucket
		}
		list, room = append(list, t), most-t.Len
	}
	return list
}
