package network

import (
	"errors"

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

// feed is the layout of a batch's input in a lane. All parts except the images are copied at once.
type feed struct {
	images, labels, targets, teacher, crops, momentum, numbers device.Span
	counter                                                    device.Span // for random layers
	bytes                                                      int
}

// lineUp is the alignment of each part of a lane.
const lineUp = 256

// feed lays out the input of a batch in a lane.
func (n *Network) feed(w Work) feed {
	size := n.Device.DType().Size()
	var f feed
	add := func(bytes int) device.Span {
		s := device.Span{Off: f.bytes, Len: bytes}
		f.bytes += (bytes + lineUp - 1) / lineUp * lineUp
		return s
	}
	f.images = add(w.Batch * w.Height * w.Width * n.model.Config.Channels)
	f.labels, f.crops = add(4*w.Batch), add(3*4*w.Batch)
	if w.Use == Training && n.cfg.Loss != nn.CrossEntropy {
		f.targets = add(size * w.Batch * n.model.Config.Classes)
	}
	if w.Use == Training && n.cfg.Teacher > 0 {
		f.teacher = add(size * w.Batch * n.model.Config.Classes)
	}
	f.momentum, f.numbers = add(size), add(device.NumbersLen*size)
	f.counter = add(2 * 4)
	return f
}

// rest is the range copied beside the images.
func (f feed) rest() device.Span { return device.Span{Off: f.labels.Off, Len: f.bytes - f.labels.Off} }

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
	m, f := p.model, p.feed
	type sent struct {
		at   device.Span
		data op.Tensor
	}
	list := []sent{
		{f.images, op.Tensor{Shape: shapeOf(m.Images), Data: b.Images}},
		{f.labels, op.Tensor{Shape: shapeOf(m.Labels), Data: b.Labels}},
		{f.crops, op.Tensor{Shape: shapeOf(m.Crops), Data: b.Crops}},
		{f.momentum, op.Tensor{Shape: op.Shape{1}, Data: []float64{s.StatsMomentum}}},
		{f.counter, op.Tensor{Shape: op.Shape{2}, Data: []int32{int32(b.Epoch), int32(b.First)}}},
		{f.numbers, op.Tensor{Shape: op.Shape{device.NumbersLen}, Data: s.Update.Numbers.Values()}},
	}
	if f.teacher.Len > 0 {
		list = append(list, sent{f.teacher, taught})
	}
	if f.targets.Len > 0 {
		p.targets = p.objective.targets(p.targets, b, m.Config.Classes)
		list = append(list, sent{f.targets, op.Tensor{Shape: shapeOf(m.Targets), Data: p.targets}})
	}
	for _, x := range list {
		if err := device.UploadRowMajor(part(host, x.at), x.data); err != nil {
			return err
		}
	}
	return nil
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
