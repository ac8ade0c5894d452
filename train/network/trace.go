package network

import (
	"fmt"
	"time"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
)

// Phase is a part of a step of training.
type Phase uint8

// The phases, in their order.
const (
	Teaching      Phase = iota // the teacher's logits
	Input                      // copying the batch to the device
	Forward                    // up to the loss and the score
	Backward                   // the gradient
	Accumulation               // adding the gradient to that of the previous batches
	Communication              // summing gradients over ranks
	Updating                   // the optimiser's step
)

func (p Phase) String() string {
	names := [...]string{"teacher", "input to the device", "forward", "backward", "accumulation", "communication", "update"}
	if int(p) >= len(names) {
		return fmt.Sprintf("phase %d", uint8(p))
	}
	return names[p]
}

// Tracer receives the times of a batch's parts, by the device's clock if it has one. A traced batch runs part by part,
// with a wait for the device before and after each. Results do not depend on it.
type Tracer interface {
	// Group receives the time of a group of ops of the forward or the backward pass. g is the same pointer for every batch
	// and must not be changed.
	Group(p Phase, g *device.Group, at time.Time, took time.Duration)
	// Part receives the time of any other part.
	Part(p Phase, at time.Time, took time.Duration)
}

// Trace makes later batches report to t; nil ends that.
func (n *Network) Trace(t Tracer) {
	n.tracer = t
	for _, ps := range n.programs {
		for _, p := range ps {
			if p != nil {
				p.m.Trace(n.groups(p))
			}
		}
	}
}

// groups is the tracer for a program's machine, or nil.
func (n *Network) groups(p *program) machine.Tracer {
	if n.tracer == nil {
		return nil
	}
	return func(g *device.Group, at time.Time, took time.Duration) {
		phase := Backward
		if p.ran <= p.loss || p.ran == p.score {
			phase = Forward
		}
		p.ran++
		n.tracer.Group(phase, g, at, took)
	}
}

// place finds the kernels of a training program's run that compute the loss and the score. Other programs are forward
// only.
func (p *program) place(u Use) (err error) {
	p.loss = p.m.Stats().Runs
	if u != Training {
		return nil
	}
	if p.loss, err = p.m.Makes(p.model.Loss); err == nil {
		p.score, err = p.m.Makes(p.model.Score)
	}
	return err
}

// phaseMarks name the phases of a model's run for the device's profiler, if it has one.
func (n *Network) phaseMarks(m *nn.Model, u Use) []machine.Mark {
	if n.phases == nil {
		return nil
	}
	turn := func(p Phase, after ...*G.Node) machine.Mark {
		return machine.Mark{Nodes: after, Do: func() error { n.phases.Turn(p.String()); return nil }}
	}
	if u != Training {
		return []machine.Mark{turn(Forward)}
	}
	return []machine.Mark{turn(Forward), turn(Backward, m.Loss)}
}

// part runs a part of a batch and reports its time to the tracer.
func (n *Network) part(p Phase, f func() error) error {
	if n.tracer == nil {
		return n.ranges.In(p.String(), f)
	}
	if err := n.Device.Sync(); err != nil {
		return err
	}
	at := time.Now()
	took, err := device.Timed(n.Device, f)
	if err == nil {
		n.tracer.Part(p, at, took)
	}
	return err
}
