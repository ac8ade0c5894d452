package network

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// lane is a device.Lane and the pending batch whose results it holds, or nil.
type lane struct {
	device.Lane
	last *Pending
	note device.Kernel // adds the loss to the guard
}

// feed is the layout of a step's input in a lane.
type feed struct {
	inputs  []fed
	numbers device.Span // of the optimiser
	bytes   int
}

// fed is the place of a model's input.
type fed struct {
	*G.Node
	device.Span
}

// lineUp is the alignment of each part of a lane.
const lineUp = 256

// feedOf lays out the inputs that a model's program reads.
func feedOf(m *nn.Model, u Use) (f feed, err error) {
	add := func(bytes int) device.Span {
		s := device.Span{Off: f.bytes, Len: bytes}
		f.bytes += (bytes + lineUp - 1) / lineUp * lineUp
		return s
	}
	for _, in := range m.Inputs {
		t, err := nn.TypeOf(in)
		if err != nil {
			return f, err
		}
		if u == Training || in != m.Targets && in != m.Teacher { // others have no loss by targets
			f.inputs = append(f.inputs, fed{in, add(t.Bytes())})
		}
	}
	f.numbers = add(device.NumbersLen * m.Config.DType.Size())
	return f, nil
}

// A lane's output: the loss, then the score.
const scoreOff = lineUp

func outputBytes(size int) int { return scoreOff + 3*size }

func lossIn(out device.Memory, size int) device.Region {
	return device.Region{Memory: out, Bytes: size}
}

func scoreIn(out device.Memory, size int) device.Region {
	return device.Region{Memory: out, Offset: scoreOff, Bytes: 3 * size}
}

// part is a range of a memory as a region.
func part(m device.Memory, s device.Span) device.Region {
	return device.Region{Memory: m, Offset: s.Off, Bytes: s.Len}
}

// fill writes a batch and its step's numbers to a lane's host memory.
func (p *program) fill(host *device.HostMemory, b *data.Batch, taught op.Tensor, s StepOptions) error {
	m := p.model
	for _, in := range p.feed.inputs {
		x := op.Tensor{Shape: shapeOf(in.Node)}
		switch in.Node {
		case m.Images:
			x.Data = b.Images
		case m.Labels:
			x.Data = b.Labels
		case m.Crops:
			x.Data = b.Crops
		case m.BatchNormMomentum:
			x.Data = []float64{s.StatsMomentum}
		case m.RandomCounter:
			x.Data = []int32{int32(b.Epoch), int32(b.First)}
		case m.Teacher:
			x.Data = taught.Data
		case m.Targets:
			p.targets = p.objective.targets(p.targets, b, m.Config.Classes)
			x.Data = p.targets
		default:
			v := b.Inputs[in.Name()]
			if len(v) != x.Shape.Size() {
				return fmt.Errorf("the net takes the input %s %v, and the batch has %d numbers for it", in.Name(), x.Shape, len(v))
			}
			x.Data = v
		}
		if err := device.UploadRowMajor(part(host, in.Span), x); err != nil {
			return err
		}
	}
	return device.UploadRowMajor(part(host, p.feed.numbers),
		op.Tensor{Shape: op.Shape{device.NumbersLen}, Data: s.Update.Numbers.Values()})
}

// widen makes the lanes at least that many bytes long. Programs bound to smaller lanes are released.
func (n *Network) widen(bytes int) error {
	if len(n.lanes) > 0 && n.lanes[0].Input().Bytes() >= bytes {
		return nil
	}
	for _, l := range n.lanes {
		if err := l.settle(); err != nil {
			return err
		}
	}
	if err := n.closeLanes(); err != nil {
		return err
	}
	if err := n.guard.open(n.Device); err != nil {
		return err
	}
	size := n.Device.DType().Size()
	for range n.pipe.Lanes() {
		d, err := n.pipe.NewLane(bytes, outputBytes(size))
		if err != nil {
			return err
		}
		l := &lane{Lane: d}
		n.lanes = append(n.lanes, l)
		if l.note, err = n.guard.adding(n.Device, lossIn(d.Output(), size)); err != nil {
			return err
		}
	}
	return nil
}

// settle waits for the results of the previous batch before they are overwritten.
func (l *lane) settle() error {
	if l.last == nil {
		return nil
	}
	_, _, err := l.last.Wait()
	return err
}

// closeLanes releases the lanes and the programs bound to them; results that nobody has waited for are lost. Later
// batches allocate them again.
func (n *Network) closeLanes() error {
	var errs []error
	for _, ps := range n.programs {
		for _, p := range ps {
			if p != nil {
				errs = append(errs, p.close())
			}
		}
	}
	clear(n.programs)
	for _, l := range n.lanes {
		l.Free()
	}
	n.lanes, n.turn = nil, 0
	return errors.Join(errs...)
}
