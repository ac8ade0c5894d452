package network

import (
	"fmt"
	"slices"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// StepOptions configure the step after a batch's gradient in training.
type StepOptions struct {
	StatsMomentum float64 // see Gradient

	Sum   device.Vector // the accumulated sum of gradients, each times its number of images; nil without accumulation
	First bool          // Sum starts with this batch

	// Reducer, if not nil, sums the update's gradient over ranks: Sum, or else each batch's gradient times Weight. It
	// makes networks in many processes step as one; [Buckets] are the parts.
	Reducer device.Reducer
	Weight  float64

	// Update is the optimiser's step that follows, if it has an Optimizer. Its gradient is Sum or the batch's, and its
	// numbers are read from memory when it runs.
	Update device.Update
}

// records reports whether a recording for s serves t: they must agree except for values that it reads from memory.
func (s StepOptions) records(t StepOptions) bool {
	u, v := &s.Update, &t.Update
	return s.Sum == t.Sum && s.First == t.First && s.Reducer == t.Reducer && s.Weight == t.Weight &&
		u.Optimizer == v.Optimizer &&
		u.Clip == v.Clip && slices.Equal(u.State, v.State) &&
		slices.Equal(u.NoDecay, v.NoDecay) && slices.Equal(u.Factors, v.Factors) && slices.Equal(u.Tensors, v.Tensors) &&
		slices.Equal(u.Matrices, v.Matrices)
}

// A Pending is a batch that may still be running.
type Pending struct {
	net     *Network
	program *program // the batch's program, for its other results
	work    Work
	lane    *lane // nil once the results have arrived
	loss    float64
	tally   Tally
}

// Images is the number of images of the batch.
func (p *Pending) Images() int { return p.work.Batch }

// Ahead is the number of batches that may be running while the next one is made without waiting.
func (n *Network) Ahead() int { return n.pipe.Lanes() - 1 }

// Start runs a batch forward and backward as Gradient does, and the step after it, and returns before the device is
// done if the device is asynchronous. After a loss that is not finite no step changes the weights: see the package's
// comment.
func (n *Network) Start(b *data.Batch, s StepOptions) (*Pending, error) {
	p, err := n.issue(Training, b, s)
	if err == nil {
		n.StatsBatches++
	}
	return p, err
}

// Wait waits for the batch to finish. loss is the minimised loss, with label smoothing; the tally's loss is without.
func (p *Pending) Wait() (loss float64, t Tally, err error) {
	if p.lane != nil {
		if err := p.fetch(); err != nil {
			return 0, t, fmt.Errorf("%s, %v: %w", p.net.arch, p.work, err)
		}
		p.lane.last, p.lane = nil, nil
	}
	return p.loss, p.tally, nil
}

func (p *Pending) fetch() error {
	m, err := p.lane.Results()
	if err != nil {
		return err
	}
	size := p.net.Device.DType().Size()
	var x [3]float64
	if err := device.DownloadRowMajor(op.Tensor{Shape: op.Shape{}, Data: x[:1]}, lossIn(m, size)); err != nil {
		return err
	}
	p.loss = x[0]
	err = device.DownloadRowMajor(op.Tensor{Shape: op.Shape{3}, Data: x[:]}, scoreIn(m, size))
	p.tally = Tally{Loss: x[0], Top1: x[1], Top5: x[2], Images: p.work.Batch}
	if !p.net.Meaning.Classifies() { // by the minimised loss, in training
		p.tally = Tally{Loss: p.loss * float64(p.work.Batch), Images: p.work.Batch}
	}
	return err
}

// Gradient runs a batch forward and backward: it sets Grads to the gradient of the mean loss and moves the running
// statistics with the given momentum. loss is the minimised loss, with label smoothing; the tally's loss is without.
func (n *Network) Gradient(b *data.Batch, statsMomentum float64) (loss float64, t Tally, err error) {
	p, err := n.Start(b, StepOptions{StatsMomentum: statsMomentum})
	if err != nil {
		return 0, t, err
	}
	return p.Wait()
}

// UpdateStats runs a batch forward and moves the running statistics; the weights stay. Momentum 1/k for the k-th batch
// gives the plain average over batches; the first batch then replaces the old statistics.
func (n *Network) UpdateStats(b *data.Batch, momentum float64) error {
	if !n.HasStatistics() {
		return nil
	}
	_, err := n.issue(Statistics, b, StepOptions{StatsMomentum: momentum})
	return err
}

// Evaluate runs a batch with the running statistics. If logits is not nil, it receives the N×K logits, row by row.
func (n *Network) Evaluate(b *data.Batch, logits []float32) (Tally, error) {
	p, err := n.StartEvaluation(b)
	if err != nil {
		return Tally{}, err
	}
	if logits != nil {
		if err := p.logits(logits); err != nil {
			return Tally{}, err
		}
	}
	_, t, err := p.Wait()
	return t, err
}

// logits reads the logits of an evaluation into a []float32 or a []float64.
func (p *Pending) logits(to any) error {
	node := p.program.model.Logits
	return p.program.m.Read(op.Tensor{Shape: shapeOf(node), Data: to}, node)
}

// StartEvaluation is Evaluate, but returns before an asynchronous device is done: see [Pending.Wait].
func (n *Network) StartEvaluation(b *data.Batch) (*Pending, error) {
	return n.issue(Evaluation, b, StepOptions{})
}

// issue copies a batch to the device and issues its program and the step after it.
func (n *Network) issue(u Use, b *data.Batch, s StepOptions) (*Pending, error) {
	if err := n.checkBatch(u, b); err != nil {
		return nil, fmt.Errorf("%s, %v: %w", n.arch, u, err)
	}
	w := Work{u, b.N, b.Height, b.Width}
	var p *Pending
	err := n.ranges.In(w.String(), func() (err error) {
		p, err = n.issueWork(w, b, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s, %v: %w", n.arch, w, err)
	}
	return p, nil
}

func (n *Network) issueWork(w Work, b *data.Batch, s StepOptions) (*Pending, error) {
	p, err := n.next(w)
	if err != nil {
		return nil, err
	}
	l := n.lanes[n.turn]
	if err := l.settle(); err != nil {
		return nil, err
	}
	var taught op.Tensor
	if w.Use == Training && n.cfg.Teacher > 0 {
		if taught, err = n.lesson(b); err != nil {
			return nil, err
		}
	}
	host, err := l.Host()
	if err != nil {
		return nil, err
	}
	if err := n.part(Input, func() error {
		if err := p.fill(host, b, taught, s); err != nil {
			return err
		}
		return l.Send(device.Span{Len: p.feed.bytes})
	}); err != nil {
		return nil, err
	}
	p.ran = 0
	r, err := n.replay(p, l, w.Use, s)
	if err != nil {
		return nil, err
	}
	err = r.Run()
	n.phases.Turn("") // after a failure one is open
	if err != nil {
		return nil, err
	}
	if err := l.End(); err != nil {
		return nil, err
	}
	n.turn = (n.turn + 1) % len(n.lanes)
	q := &Pending{net: n, program: p, work: w}
	if w.Use != Statistics {
		q.lane, l.last = l, q
	}
	return q, nil
}

// replay finds or makes the recording of a program with the step after it.
func (n *Network) replay(p *program, l *lane, u Use, s StepOptions) (*machine.Replay, error) {
	for _, r := range p.replays {
		if r.step.records(s) {
			return r.Replay, nil
		}
	}
	numbers, images := part(l.Input(), p.feed.numbers), p.model.Config.Batch
	marks := n.phaseMarks(p.model, u)
	if u == Training {
		marks = append(marks, n.marks(p.model, l, s)...)
	}
	r, err := p.m.NewReplay(func() error {
		n.phases.Turn("")
		if u == Training {
			if err := n.follow(images, s, l, numbers); err != nil {
				return err
			}
		}
		if u == Statistics {
			return nil
		}
		return l.Fetch()
	}, marks...)
	if err == nil {
		p.replays = append(p.replays, stepReplay{s, r})
	}
	return r, err
}

// follow issues the step after a batch's gradient.
func (n *Network) follow(images int, s StepOptions, l *lane, numbers device.Region) error {
	u := s.Update
	if s.Sum == nil && u.Optimizer == nil {
		return nil
	}
	if !s.overlaps() {
		if err := l.note(); err != nil {
			return err
		}
	}
	u.Grad = n.Grads
	if s.Sum != nil {
		if err := n.part(Accumulation, func() error {
			if s.First {
				if err := s.Sum.Fill(0); err != nil {
					return err
				}
			}
			return s.Sum.AddScaled(float64(images), n.Grads)
		}); err != nil {
			return err
		}
		u.Grad = s.Sum
	}
	if u.Optimizer == nil {
		return nil
	}
	if s.Reducer != nil {
		if err := n.part(Communication, func() error { return n.reduce(u.Grad, s) }); err != nil {
			return err
		}
	}
	u.Live = device.Live{Numbers: numbers, Guard: n.guard.region()}
	return n.part(Updating, func() error { return n.Params.Update(u) })
}
