package network

import (
	"fmt"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/machine"
)

// Phase is a part of a step of training.
type Phase uint8

// The phases, in their order.
const (
	Input         Phase = iota // a batch is copied to the device
	Forward                    // up to the loss and the score
	Backward                   // the gradient
	Accumulation               // the gradient is added to that of the batches before
	Communication              // gradients are added up over ranks
	Updating                   // the optimiser's step
)

func (p Phase) String() string {
	names := [...]string{"input to the device", "forward", "backward", "accumulation", "communication", "update"}
	if int(p) >= len(names) {
		return fmt.Sprintf("phase %d", uint8(p))
	}
	return names[p]
}

// Tracer is told what batches spend their time on, by the clock of a device that has one. A batch that is traced is run part by part: the device is
// waited for before and after each. Results do not depend on it.
type Tracer interface {
	// Group is told of a group of ops of the forward or the backward pass. It is the same value in every batch and must not be changed.
	Group(p Phase, g *device.Group, at time.Time, took time.Duration)
	// Part is told of anything else.
	Part(p Phase, at time.Time, took time.Duration)
}

// Trace has later batches report to t; nil ends that.
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

// groups is the tracer of a program's machine, nil for none.
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

// place notes where in a run of a training program the loss and the score are made. All of any other is forward.
func (p *program) place(u Use) (err error) {
	p.loss = p.m.Stats().Groups
	if u != Training {
		return nil
	}
	if p.loss, err = p.m.Makes(p.model.Loss); err == nil {
		p.score, err = p.m.Makes(p.model.Score)
	}
	return err
}

// part does a part of a batch, and has the tracer told what it took.
func (n *Network) part(p Phase, f func() error) error {
	if n.tracer == nil {
		return f()
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
