package network

import (
	"errors"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// lane is a device.Lane with the batch whose results it holds, or nil.
type lane struct {
	device.Lane
	last *Pending
	note device.Kernel // adds the loss to the guard
}

// feed says where the input of a batch lies in a lane. All but the images is copied as a whole.
type feed struct {
	images, labels, targets, crops, momentum, numbers device.Span
	counter                                           device.Span // of random layers
	bytes                                             int
}

// lineUp is the alignment of each part of a lane.
const lineUp = 256

// feed is how the input of a batch lies in a lane.
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
	f.momentum, f.numbers = add(size), add(device.NumbersLen*size)
	f.counter = add(2 * 4)
	return f
}

// rest is what is copied beside the images.
func (f feed) rest() device.Span { return device.Span{Off: f.labels.Off, Len: f.bytes - f.labels.Off} }

// The output of a lane: the loss, and the score.
const scoreOff = lineUp

func outputBytes(size int) int { return scoreOff + 3*size }

func lossIn(out device.Memory, size int) device.Region {
	return device.Region{Memory: out, Bytes: size}
}

func scoreIn(out device.Memory, size int) device.Region {
	return device.Region{Memory: out, Offset: scoreOff, Bytes: 3 * size}
}

// part is a part of a memory as a region.
func part(m device.Memory, s device.Span) device.Region {
	return device.Region{Memory: m, Offset: s.Off, Bytes: s.Len}
}

// fill writes a batch and the numbers of its step to the host's memory of a lane.
func (p *program) fill(host *device.HostMemory, b *data.Batch, s StepOptions) error {
	m, f := p.model, p.feed
	for _, x := range []struct {
		at   device.Span
		data op.Tensor
	}{
		{f.images, op.Tensor{Shape: shapeOf(m.Images), Data: b.Images}},
		{f.labels, op.Tensor{Shape: shapeOf(m.Labels), Data: b.Labels}},
		{f.crops, op.Tensor{Shape: shapeOf(m.Crops), Data: b.Crops}},
		{f.momentum, op.Tensor{Shape: op.Shape{1}, Data: []float64{s.StatsMomentum}}},
		{f.counter, op.Tensor{Shape: op.Shape{2}, Data: []int32{int32(b.Epoch), int32(b.First)}}},
		{f.numbers, op.Tensor{Shape: op.Shape{device.NumbersLen}, Data: s.Update.Numbers.Values()}},
	} {
		if err := device.UploadRowMajor(part(host, x.at), x.data); err != nil {
			return err
		}
	}
	if f.targets.Len == 0 {
		return nil
	}
	p.targets = p.objective.targets(p.targets, b, m.Config.Classes)
	return device.UploadRowMajor(part(host, f.targets), op.Tensor{Shape: shapeOf(m.Targets), Data: p.targets})
}

// widen makes sure that the lanes take so many bytes. Programs are bound to them: those of smaller lanes go.
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

// settle waits for the results of the batch before, which are about to be overwritten.
func (l *lane) settle() error {
	if l.last == nil {
		return nil
	}
	_, _, err := l.last.Wait()
	return err
}

// closeLanes gives back the lanes and the programs that are bound to them; results that nobody waited for are lost. Later batches make
// them again.
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
