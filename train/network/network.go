package network

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
	_ "onlinerna/nn/zoo" // registers nets
)

// Network is a model on a device: flat vectors of its parameters, gradients and BatchNorm statistics, and a program for
// each batch size and use, made on demand. The programs share the vectors and one arena. Only one goroutine at a time
// may use it.
type Network struct {
	Device device.Device

	Params device.Vector // weights, in the order of Layout
	Grads  device.Vector // of the last Gradient; nil before training is planned in a Blank net
	Stats  device.Vector // running means and variances; nil without BatchNorm

	// StatsBatches counts the batches in the running statistics, PyTorch's num_batches_tracked.
	StatsBatches int

	// TestFlip makes Score and Tally average the logits of an image and of its mirror image.
	TestFlip bool

	// LowMemory makes training take less memory and a little more time; see [machine.Config] for where results keep their
	// bits. It applies to programs made later.
	LowMemory bool

	// Fixed promises that weights and statistics stay as they are from the first batch on; set it before that. Programs
	// for one image at a time, and that for the first larger batch, then prepare weights once, each in memory of its own,
	// about as much as Params.
	Fixed bool

	// Meaning is that of the outputs, by which they are scored; set it before the first batch.
	Meaning Meaning

	seen   data.EvalOptions // the evaluation transform of the loaded weights, for Predict
	arch   string
	cfg    nn.Config
	model  *nn.Model // at batch 1, for names and shapes
	params []slot
	stats  []slot

	pipe      device.Pipeline // of Device
	lanes     []*lane         // used in turn; nil until needed
	turn      int
	programs  map[Work][]*program // by lane
	arena     *machine.Arena
	guard     guard
	objective objective
	teacher   *teacher // nil: none
	tracer    Tracer   // nil: no tracing

	ranges, phases *device.Ranges // for a profiler of the device: of calls, and of the parts of a program's run
}

// slot is a tensor's place in a flat vector.
type slot struct {
	name   string
	typ    op.Type
	layout device.Layout
	off, n int
}

// New is Blank with initial weights drawn from seed, and with room for gradients.
func New(dev device.Device, arch string, cfg nn.Config, seed uint64) (*Network, error) {
	n, err := Blank(dev, arch, cfg)
	if err != nil {
		return nil, err
	}
	if err = n.makeGrads(); err == nil {
		err = n.Reset(seed)
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Blank puts an architecture on a device, with room for weights that Load reads. Until then they are undefined. It
// ignores cfg's batch and mode.
func Blank(dev device.Device, arch string, cfg nn.Config) (*Network, error) {
	cfg.DType = dev.DType()
	cfg.Batch, cfg.Mode = 1, nn.Eval
	model, err := nn.Build(arch, cfg)
	if err != nil {
		return nil, err
	}
	n := &Network{
		Device: dev, arch: arch, cfg: cfg, model: model,
		pipe: device.Piped(dev), ranges: device.RangesOf(dev), phases: device.RangesOf(dev),
		programs: map[Work][]*program{}, arena: machine.NewArena(dev),
	}
	n.cfg.Size = model.Config.Size
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
	if n.Params, err = dev.NewVector(at); err == nil && sat > 0 {
		n.Stats, err = dev.NewVector(sat)
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// makeGrads allocates Grads. Frozen parameters keep gradients of 0.
func (n *Network) makeGrads() (err error) {
	if n.Grads != nil {
		return nil
	}
	if n.Grads, err = n.Device.NewVector(n.Params.Len()); err != nil {
		return err
	}
	if slices.ContainsFunc(n.model.Params, func(p nn.Param) bool { return p.Frozen }) {
		return n.Grads.Fill(0)
	}
	return nil
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
	return n.guard.clear(n.Device)
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

// NewParams allocates a vector like Params, for momentum or other weights.
func (n *Network) NewParams() (device.Vector, error) { return n.Device.NewVector(n.Params.Len()) }

// NoDecay lists the elements of Params that belong to biases and BatchNorm.
func (n *Network) NoDecay() []device.Span {
	spans, _ := n.Exempt(true)
	return spans
}

// Exempt lists the elements of Params without weight decay: biases and BatchNorm if biasAndNorm is set, and parameters
// whose names match one of the patterns, in the syntax of path.Match. A pattern without a match is an error.
func (n *Network) Exempt(biasAndNorm bool, patterns ...string) ([]device.Span, error) {
	var spans []device.Span
	used := make([]bool, len(patterns))
	for i, s := range n.params {
		exempt := biasAndNorm && n.model.Params[i].BiasOrNorm
		for k, p := range patterns {
			ok, err := path.Match(p, s.name)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", p, err)
			}
			exempt, used[k] = exempt || ok, used[k] || ok
		}
		if !exempt {
			continue
		}
		if k := len(spans); k > 0 && spans[k-1].Off+spans[k-1].Len == s.off {
			spans[k-1].Len += s.n
			continue
		}
		spans = append(spans, device.Span{Off: s.off, Len: s.n})
	}
	if k := slices.Index(used, false); k >= 0 {
		return nil, fmt.Errorf("no parameter of %s is called %s: names are as %s", n.arch, patterns[k], n.params[0].name)
	}
	return spans, nil
}

// Tensors lists the range of each parameter in Params.
func (n *Network) Tensors() []device.Span {
	spans := make([]device.Span, len(n.params))
	for i, s := range n.params {
		spans[i] = device.Span{Off: s.off, Len: s.n}
	}
	return spans
}

// ParameterNames lists the names of the parameters, in the order of Tensors.
func (n *Network) ParameterNames() (names []string) {
	for _, s := range n.params {
		names = append(names, s.name)
	}
	return names
}

// Variances lists the elements of Stats that are variances; the others are means.
func (n *Network) Variances() []device.Span {
	var spans []device.Span
	for _, s := range n.stats {
		spans = append(spans, device.Span{Off: s.off + s.n/2, Len: s.n / 2})
	}
	return spans
}

// Finite reports whether all weights and statistics are finite.
func (n *Network) Finite() (bool, error) {
	ok, err := n.Params.Finite()
	if err != nil || !ok || n.Stats == nil {
		return ok, err
	}
	return n.Stats.Finite()
}

// Close releases everything on the device. Results that nobody has waited for are lost.
func (n *Network) Close() error {
	errs := []error{n.closeLanes(), n.arena.Close()}
	if n.teacher != nil {
		errs = append(errs, n.teacher.Close())
	}
	n.guard.free()
	for _, v := range []device.Vector{n.Params, n.Grads, n.Stats} {
		if v != nil {
			v.Free()
		}
	}
	return errors.Join(errs...)
}
