package train

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"

	G "gorgonia.org/gorgonia"
)

// pipeline is what a network has on a device.Pipeline: two lanes, so that the input of one batch is copied while the batch before
// is under way, and for each a program bound to its memory, with recordings of what it issues.
type pipeline struct {
	dev   device.Pipeline
	lanes [2]*lane // nil until the first batch
	turn  int      // of the lane that is used next
	progs map[lanedKey]*laned
}

// lane is a device.Lane with the batch whose results it holds, or nil.
type lane struct {
	device.Lane
	last *Pending
}

type lanedKey struct {
	progKey
	lane int
}

// laned is a program that reads and writes the memory of a lane.
type laned struct {
	*program
	feed    feed
	replays []stepReplay
}

// stepReplay is the replay of the program with a step's work behind it.
type stepReplay struct {
	step StepOptions
	*machine.Replay
}

// feed says where the input of a batch lies in a lane. All but the images is copied as a whole.
type feed struct {
	images, labels, crops, momentum, numbers device.Span
	bytes                                    int
}

// lineUp is the alignment of each part of a lane.
const lineUp = 256

func newFeed(k progKey, channels, size int) feed {
	var f feed
	add := func(bytes int) device.Span {
		s := device.Span{Off: f.bytes, Len: bytes}
		f.bytes += (bytes + lineUp - 1) / lineUp * lineUp
		return s
	}
	f.images = add(k.batch * k.height * k.width * channels)
	f.labels, f.crops = add(4*k.batch), add(3*4*k.batch)
	f.momentum, f.numbers = add(size), add(2*size)
	return f
}

// rest is what is copied beside the images.
func (f feed) rest() device.Span { return device.Span{Off: f.labels.Off, Len: f.bytes - f.labels.Off} }

// The output of a lane: the loss, and the score.
const scoreOff = lineUp

func outputBytes(size int) int { return scoreOff + 3*size }

// part is a part of a memory as a region.
func part(m device.Memory, s device.Span) device.Region {
	return device.Region{Memory: m, Offset: s.Off, Bytes: s.Len}
}

// StepOptions say what follows the gradient of a batch in training.
type StepOptions struct {
	StatsMomentum float64 // as of Gradient

	Sum   device.Vector // the sum of gradients, each times its number of images, where batches are accumulated; else nil
	First bool          // Sum starts with this batch

	Update   bool          // the optimiser's step follows, by Sum if there is one
	SGD      device.SGD    // of that
	Momentum device.Vector // of that
}

// records says whether what is recorded for s serves t: all but what is read from memory agrees.
func (s StepOptions) records(t StepOptions) bool {
	return s.Sum == t.Sum && s.First == t.First && s.Update == t.Update && s.Momentum == t.Momentum &&
		s.SGD.Momentum == t.SGD.Momentum && s.SGD.Decay == t.SGD.Decay && s.SGD.Nesterov == t.SGD.Nesterov &&
		slices.Equal(s.SGD.NoDecay, t.SGD.NoDecay)
}

// A Pending is a batch that may still be under way.
type Pending struct {
	net     *Network
	program *program // that it runs, for what else it has
	use     use
	lane    *lane // nil once the results are here
	images  int
	loss    float64
	tally   Tally
}

// Start runs a batch forward and backward as Gradient does, and the step behind it, and returns before the device is done where it can. A
// loss that is not finite leaves out the step where the device has been waited for.
func (n *Network) Start(b *data.Batch, s StepOptions) (*Pending, error) {
	if n.pipe == nil {
		l, t, err := n.gradient(b, s.StatsMomentum)
		if err == nil && finite(l) {
			err = n.follow(b.N, s, nil)
		}
		return &Pending{images: b.N, loss: l, tally: t}, err
	}
	p, err := n.issue(useGradient, b, s)
	if err == nil {
		n.StatsBatches++
	}
	return p, err
}

// Wait waits until the batch is through. The loss is the one that is minimised, with label smoothing; the tally's is without.
func (p *Pending) Wait() (loss float64, t Tally, err error) {
	if p.lane != nil {
		if err := p.fetch(); err != nil {
			return 0, t, fmt.Errorf("%s, %v at batch %d: %w", p.net.arch, p.use, p.images, err)
		}
		p.lane.last, p.lane = nil, nil
	}
	return p.loss, p.tally, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func (p *Pending) fetch() error {
	m, err := p.lane.Results()
	if err != nil {
		return err
	}
	size := p.net.Device.DType().Size()
	var x [3]float64
	if err := device.DownloadRowMajor(op.Tensor{Shape: op.Shape{}, Data: x[:1]}, device.Region{Memory: m, Bytes: size}); err != nil {
		return err
	}
	p.loss = x[0]
	err = device.DownloadRowMajor(op.Tensor{Shape: op.Shape{3}, Data: x[:]}, device.Region{Memory: m, Offset: scoreOff, Bytes: 3 * size})
	p.tally = Tally{Loss: x[0], Top1: x[1], Top5: x[2], Images: p.images}
	return err
}

// follow issues a step behind the gradient of a batch. The rate and the scale are read from numbers if that is not nil.
func (n *Network) follow(images int, s StepOptions, numbers *device.Region) error {
	grad := n.Grads
	if s.Sum != nil {
		if s.First {
			if err := s.Sum.Fill(0); err != nil {
				return err
			}
		}
		if err := s.Sum.AddScaled(float64(images), n.Grads); err != nil {
			return err
		}
		grad = s.Sum
	}
	switch {
	case !s.Update:
		return nil
	case numbers != nil:
		return n.pipe.dev.Step(n.Params, grad, s.Momentum, s.SGD, device.Live{Numbers: *numbers})
	}
	return n.Params.SGD(grad, s.Momentum, s.SGD)
}

// issue copies a batch to the device and issues its program and the step behind it.
func (n *Network) issue(u use, b *data.Batch, s StepOptions) (*Pending, error) {
	p, err := n.issueOn(u, b, s)
	if err != nil {
		return nil, fmt.Errorf("%s, %v at batch %d: %w", n.arch, u, b.N, err)
	}
	return p, nil
}

func (n *Network) issueOn(u use, b *data.Batch, s StepOptions) (*Pending, error) {
	p, l, err := n.laned(progKey{u, b.N, b.Height, b.Width})
	if err != nil {
		return nil, err
	}
	if l.last != nil { // its results are about to be overwritten
		if _, _, err := l.last.Wait(); err != nil {
			return nil, err
		}
	}
	host, err := l.Host()
	if err != nil {
		return nil, err
	}
	if err := p.fill(host, b, s); err != nil {
		return nil, err
	}
	if err := l.Send(p.feed.images, p.feed.rest()); err != nil {
		return nil, err
	}
	if err := n.replay(p, l, u, b.N, s).Run(); err != nil {
		return nil, err
	}
	if err := l.End(); err != nil {
		return nil, err
	}
	n.pipe.turn = (n.pipe.turn + 1) % len(n.pipe.lanes)
	r := &Pending{net: n, program: p.program, use: u, images: b.N}
	if u != useStats {
		r.lane, l.last = l, r
	}
	return r, nil
}

// fill writes a batch and the numbers of its step to the host's memory of a lane.
func (p *laned) fill(host *device.HostMemory, b *data.Batch, s StepOptions) error {
	m, f := p.model, p.feed
	for _, x := range []struct {
		at   device.Span
		data op.Tensor
	}{
		{f.images, op.Tensor{Shape: shapeOf(m.Images), Data: b.Images}},
		{f.labels, op.Tensor{Shape: shapeOf(m.Labels), Data: b.Labels}},
		{f.crops, op.Tensor{Shape: shapeOf(m.Crops), Data: b.Crops}},
		{f.momentum, op.Tensor{Shape: op.Shape{1}, Data: []float64{s.StatsMomentum}}},
		{f.numbers, op.Tensor{Shape: op.Shape{2}, Data: []float64{s.SGD.Rate, s.SGD.Scale}}},
	} {
		if err := device.UploadRowMajor(part(host, x.at), x.data); err != nil {
			return err
		}
	}
	return nil
}

// replay finds or makes the replay of a program with a step behind it.
func (n *Network) replay(p *laned, l *lane, u use, images int, s StepOptions) *machine.Replay {
	for _, r := range p.replays {
		if r.step.records(s) {
			return r.Replay
		}
	}
	numbers := part(l.Input(), p.feed.numbers)
	r := p.m.NewReplay(func() error {
		if u == useGradient {
			if err := n.follow(images, s, &numbers); err != nil {
				return err
			}
		}
		if u == useStats {
			return nil
		}
		return l.Fetch()
	})
	p.replays = append(p.replays, stepReplay{s, r})
	return r
}

// laned finds or makes the program for the lane whose turn it is.
func (n *Network) laned(k progKey) (*laned, *lane, error) {
	f := newFeed(k, n.model.Config.Channels, n.Device.DType().Size())
	if err := n.widen(f.bytes); err != nil {
		return nil, nil, err
	}
	key := lanedKey{k, n.pipe.turn}
	l := n.pipe.lanes[key.lane]
	if p := n.pipe.progs[key]; p != nil {
		return p, l, nil
	}
	p, err := n.newProgram(k, n.arena, func(m *nn.Model, c *machine.Config) {
		in, out := l.Input(), l.Output()
		bind := func(node *G.Node, r device.Region) {
			if node != nil {
				c.Bind[node] = machine.Binding{Region: r}
			}
		}
		bind(m.Images, part(in, f.images))
		bind(m.Labels, part(in, f.labels))
		bind(m.Crops, part(in, f.crops))
		bind(m.BatchNormMomentum, part(in, f.momentum))
		size := n.Device.DType().Size()
		if k.use == useGradient {
			bind(m.Loss, device.Region{Memory: out, Bytes: size})
		}
		if k.use != useStats {
			bind(m.Score, device.Region{Memory: out, Offset: scoreOff, Bytes: 3 * size})
		}
	})
	if err != nil {
		return nil, nil, err
	}
	p.m.Trace(n.tracer)
	made := &laned{program: p, feed: f}
	n.pipe.progs[key] = made
	return made, l, nil
}

// widen makes sure that the lanes take so many bytes. Programs are bound to them: those of smaller lanes go.
func (n *Network) widen(bytes int) error {
	if l := n.pipe.lanes[0]; l != nil && l.Input().Bytes() >= bytes {
		return nil
	}
	for k := range n.progs { // what is planned already
		bytes = max(bytes, newFeed(k, n.model.Config.Channels, n.Device.DType().Size()).bytes)
	}
	for _, l := range n.pipe.lanes {
		if l != nil && l.last != nil {
			if _, _, err := l.last.Wait(); err != nil {
				return err
			}
		}
	}
	if err := n.pipe.close(); err != nil {
		return err
	}
	for i := range n.pipe.lanes {
		l, err := n.pipe.dev.NewLane(bytes, outputBytes(n.Device.DType().Size()))
		if err != nil {
			return err
		}
		n.pipe.lanes[i] = &lane{Lane: l}
	}
	return nil
}

// close gives everything back; results that nobody waited for are lost. Later batches make it again.
func (p *pipeline) close() error {
	var first error
	for k, x := range p.progs {
		for _, r := range x.replays {
			r.Free()
		}
		if err := x.m.Close(); err != nil && first == nil {
			first = err
		}
		delete(p.progs, k)
	}
	for i, l := range p.lanes {
		if l != nil {
			l.Free()
			p.lanes[i] = nil
		}
	}
	return first
}
