package train

import (
	"errors"
	"fmt"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"

	G "gorgonia.org/gorgonia"
)

// Network is a model on a device: its parameters, their gradients and its BatchNorm statistics in flat
// vectors, and a machine for each batch size and use, made when it is first needed. They share
// the vectors and one arena.
type Network struct {
	Device device.Device

	Params device.Vector // weights, in the order of Layout
	Grads  device.Vector // of the last Gradient
	Stats  device.Vector // running means and variances; nil without BatchNorm

	// StatsBatches counts the batches that the running statistics have seen, PyTorch's num_batches_tracked.
	StatsBatches int

	arch   string
	cfg    nn.Config
	model  *nn.Model // at batch 1, for names and shapes
	params []slot
	stats  []slot
	arena  *machine.Arena
	progs  map[progKey]*program
	pipe   *pipeline  // nil where the device waits for each kernel
	number [3]float64 // scalars on their way
	tracer machine.Tracer
}

// slot is the place of a tensor in a flat vector.
type slot struct {
	name   string
	typ    op.Type
	layout device.Layout
	off, n int
}

type use uint8

const (
	useGradient use = iota // forward, backward, statistics
	useStats               // forward up to the statistics
	useEval                // forward with the running statistics
)

func (u use) String() string { return [...]string{"training", "statistics", "evaluation"}[u] }

type progKey struct {
	use                  use
	batch, height, width int
}

// program is a graph with its machine.
type program struct {
	model *nn.Model
	m     *machine.Machine
}

// NewNetwork puts an architecture on a device with initial weights drawn from seed. The batch and mode of
// cfg are not used.
func NewNetwork(dev device.Device, arch string, cfg nn.Config, seed uint64) (*Network, error) {
	cfg.DType = dev.DType()
	cfg.Batch, cfg.Mode = 1, nn.Eval
	model, err := nn.Build(arch, cfg)
	if err != nil {
		return nil, err
	}
	n := &Network{Device: dev, arch: arch, cfg: cfg, model: model, arena: machine.NewArena(dev), progs: map[progKey]*program{}}
	n.cfg.Size = model.Config.Size
	if d, ok := dev.(device.Pipeline); ok {
		n.pipe = &pipeline{dev: d, progs: map[lanedKey]*laned{}}
	}
	at := 0
	for _, p := range model.Params {
		t := op.Type{DType: cfg.DType, Shape: p.Shape}
		n.params = append(n.params, slot{p.Name, t, dev.Layout(t, device.Weight), at, p.Shape.Size()})
		at += p.Shape.Size()
	}
	sat := 0
	for _, s := range model.Stats {
		t := op.T(cfg.DType, 2, s.Channels)
		n.stats = append(n.stats, slot{s.Name, t, dev.Layout(t, device.Data), sat, 2 * s.Channels})
		sat += 2 * s.Channels
	}
	if err := n.checkWeights(at); err != nil {
		return nil, err
	}
	if n.Params, err = dev.NewVector(at); err == nil {
		n.Grads, err = dev.NewVector(at)
	}
	if err == nil && sat > 0 {
		n.Stats, err = dev.NewVector(sat)
	}
	if err == nil {
		err = n.Reset(seed)
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Model describes the network: names, shapes, the state dict. Its graph is not the one that runs.
func (n *Network) Model() *nn.Model { return n.model }

// Reset draws initial weights from seed and sets the statistics to mean 0 and variance 1.
func (n *Network) Reset(seed uint64) error {
	for i, s := range n.params {
		t := op.New(s.typ)
		if err := n.model.Params[i].Fill(t, seed); err != nil {
			return err
		}
		if err := n.upload(n.Params, s, t); err != nil {
			return err
		}
	}
	for i, s := range n.stats {
		t := op.New(s.typ)
		if err := n.model.Stats[i].Fill(t); err != nil {
			return err
		}
		if err := n.upload(n.Stats, s, t); err != nil {
			return err
		}
	}
	n.StatsBatches = 0
	return nil
}

func (n *Network) upload(v device.Vector, s slot, t op.Tensor) error {
	if err := n.Device.Upload(v.Region(s.off, s.n), s.layout, t); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

func (n *Network) download(t op.Tensor, v device.Vector, s slot) error {
	if err := n.Device.Download(t, v.Region(s.off, s.n), s.layout); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// NewParams allocates a vector like Params, for momentum or another set of weights.
func (n *Network) NewParams() (device.Vector, error) { return n.Device.NewVector(n.Params.Len()) }

// NoDecay lists the elements of Params that belong to biases and to BatchNorm.
func (n *Network) NoDecay() []device.Span {
	var spans []device.Span
	for i, s := range n.params {
		if !n.model.Params[i].BiasOrNorm {
			continue
		}
		if k := len(spans); k > 0 && spans[k-1].Off+spans[k-1].Len == s.off {
			spans[k-1].Len += s.n
			continue
		}
		spans = append(spans, device.Span{Off: s.off, Len: s.n})
	}
	return spans
}

// Gradient runs a batch forward and backward: Grads then holds the gradient of the mean loss, and the
// running statistics have moved with the given momentum. The loss is the one that is minimised, with label
// smoothing; the tally's is without.
func (n *Network) Gradient(b *data.Batch, statsMomentum float64) (loss float64, t Tally, err error) {
	if n.pipe == nil {
		return n.gradient(b, statsMomentum)
	}
	p, err := n.Start(b, StepOptions{StatsMomentum: statsMomentum})
	if err != nil {
		return 0, t, err
	}
	return p.Wait()
}

// gradient is Gradient on a device that waits for each kernel.
func (n *Network) gradient(b *data.Batch, statsMomentum float64) (loss float64, t Tally, err error) {
	p, err := n.run(useGradient, b, statsMomentum)
	if err != nil {
		return 0, t, err
	}
	n.StatsBatches++
	if loss, err = n.scalar(p); err != nil {
		return 0, t, err
	}
	t, err = n.tally(p, b.N)
	return loss, t, err
}

// UpdateStats runs a batch forward and moves the running statistics; the weights stay. Momentum 1/k for
// the k-th batch gives the plain average over batches, and the first then replaces what was there.
func (n *Network) UpdateStats(b *data.Batch, momentum float64) error {
	if n.Stats == nil {
		return nil
	}
	var err error
	if n.pipe == nil {
		_, err = n.run(useStats, b, momentum)
	} else {
		_, err = n.issue(useStats, b, StepOptions{StatsMomentum: momentum})
	}
	return err
}

// Evaluate runs a batch with the running statistics. If logits is not nil it receives them, row by row: N×K.
func (n *Network) Evaluate(b *data.Batch, logits []float32) (Tally, error) {
	r, p, err := n.evaluate(b)
	if err != nil {
		return Tally{}, err
	}
	if logits != nil {
		dst := op.Tensor{Shape: shapeOf(p.model.Logits), Data: logits}
		if err := p.m.Read(dst, p.model.Logits); err != nil {
			return Tally{}, err
		}
	}
	_, t, err := r.Wait()
	return t, err
}

// StartEvaluation is Evaluate, but returns before the device is done where it can: see [Pending.Wait].
func (n *Network) StartEvaluation(b *data.Batch) (*Pending, error) {
	p, _, err := n.evaluate(b)
	return p, err
}

// evaluate runs a batch with the running statistics, and returns before the device is done where it can.
func (n *Network) evaluate(b *data.Batch) (*Pending, *program, error) {
	if n.pipe != nil {
		r, err := n.issue(useEval, b, StepOptions{})
		if err != nil {
			return nil, nil, err
		}
		return r, r.program, nil
	}
	p, err := n.run(useEval, b, 0)
	if err != nil {
		return nil, nil, err
	}
	t, err := n.tally(p, b.N)
	return &Pending{images: b.N, tally: t}, p, err
}

// Programs lists what was planned so far, for diagnosis: memory, steps and groups for each use and batch size.
func (n *Network) Programs() map[string]machine.Stats {
	m := map[string]machine.Stats{}
	for k, p := range n.progs {
		m[fmt.Sprintf("%v, batch %d", k.use, k.batch)] = p.m.Stats()
	}
	return m
}

// Close gives back everything on the device.
func (n *Network) Close() error {
	var errs []error
	if n.pipe != nil {
		errs = append(errs, n.pipe.close())
	}
	for _, p := range n.progs {
		errs = append(errs, p.m.Close())
	}
	n.progs = nil
	errs = append(errs, n.arena.Close())
	for _, v := range []device.Vector{n.Params, n.Grads, n.Stats} {
		if v != nil {
			v.Free()
		}
	}
	return errors.Join(errs...)
}

// run writes a batch to the program for it and runs that.
func (n *Network) run(u use, b *data.Batch, momentum float64) (*program, error) {
	p, err := n.program(progKey{u, b.N, b.Height, b.Width})
	if err != nil {
		return nil, err
	}
	m := p.model
	err = p.m.Write(m.Images, op.Tensor{Shape: shapeOf(m.Images), Data: b.Images})
	if err == nil {
		err = p.m.Write(m.Crops, op.Tensor{Shape: shapeOf(m.Crops), Data: b.Crops})
	}
	if err == nil && u != useStats {
		err = p.m.Write(m.Labels, op.Tensor{Shape: shapeOf(m.Labels), Data: b.Labels})
	}
	if err == nil && m.BatchNormMomentum != nil && n.Stats != nil {
		n.number[0] = momentum
		err = p.m.Write(m.BatchNormMomentum, op.Tensor{Shape: op.Shape{1}, Data: n.number[:1]})
	}
	if err == nil {
		err = p.m.Run()
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %v: %w", n.arch, u, err)
	}
	return p, nil
}

// Plan returns the sizes that training at a batch size would have. Nothing is allocated on the device.
func (n *Network) Plan(batch int) (machine.Stats, error) {
	p, err := n.newProgram(progKey{useGradient, batch, n.cfg.Size, n.cfg.Size}, machine.NewArena(n.Device), nil)
	if err != nil {
		return machine.Stats{}, err
	}
	return p.m.Stats(), p.m.Close()
}

func (n *Network) program(k progKey) (*program, error) {
	if p := n.progs[k]; p != nil {
		return p, nil
	}
	p, err := n.newProgram(k, n.arena, nil)
	if err != nil {
		return nil, err
	}
	p.m.Trace(n.tracer)
	n.progs[k] = p
	return p, nil
}

// newProgram plans a program. bind, if not nil, gives more nodes storage of the caller's.
func (n *Network) newProgram(k progKey, arena *machine.Arena, bind func(*nn.Model, *machine.Config)) (*program, error) {
	cfg := n.cfg
	cfg.Batch, cfg.ImageHeight, cfg.ImageWidth = k.batch, k.height, k.width
	cfg.Mode = nn.Train
	if k.use == useEval {
		cfg.Mode = nn.Eval
	}
	model, err := nn.Build(n.arch, cfg)
	if err != nil {
		return nil, err
	}
	mc := machine.Config{Device: n.Device, Arena: arena, Bind: map[*G.Node]machine.Binding{}}
	switch k.use {
	case useGradient:
		mc.Keep = append(G.Nodes{model.Loss, model.Score}, model.Updates...)
	case useStats:
		mc.Keep = model.Updates
	case useEval:
		mc.Keep = G.Nodes{model.Logits, model.Score}
	}
	for i, s := range n.params {
		mc.Bind[model.Params[i].Node] = machine.Binding{Region: n.Params.Region(s.off, s.n), Layout: s.layout}
		if k.use == useGradient {
			mc.Bind[model.Params[i].Grad] = machine.Binding{Region: n.Grads.Region(s.off, s.n), Layout: s.layout}
		}
	}
	for i, s := range n.stats {
		mc.Bind[model.Stats[i].Node] = machine.Binding{Region: n.Stats.Region(s.off, s.n), Layout: s.layout}
	}
	if bind != nil {
		bind(model, &mc)
	}
	m, err := machine.New(model.Graph, mc)
	if err != nil {
		return nil, fmt.Errorf("%s, %v at batch %d: %w", n.arch, k.use, k.batch, err)
	}
	return &program{model, m}, nil
}

func (n *Network) scalar(p *program) (float64, error) {
	err := p.m.Read(op.Tensor{Shape: op.Shape{}, Data: n.number[:1]}, p.model.Loss)
	return n.number[0], err
}

func (n *Network) tally(p *program, images int) (Tally, error) {
	err := p.m.Read(op.Tensor{Shape: op.Shape{3}, Data: n.number[:]}, p.model.Score)
	return Tally{Loss: n.number[0], Top1: n.number[1], Top5: n.number[2], Images: images}, err
}

func shapeOf(n *G.Node) op.Shape { return op.Shape(n.Shape()) }
